//! One broker process under load: started, measured, stopped.

use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{clients, dirs, process};

const START_LIMIT: Duration = Duration::from_mins(1);

/// Which broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Kafka,
    Ottla,
}

pub(super) struct Side {
    child: Child,
    pub(super) address: String,
    dir: PathBuf,
    /// From the start of the process to its first answered request.
    pub(super) start: Duration,
}

impl Side {
    pub(super) fn start(kind: Kind) -> Result<Self> {
        let port = process::free_port()?;
        let address = format!("127.0.0.1:{port}");
        let dir = dirs::target().join("bench-data").join(port.to_string());
        std::fs::create_dir_all(&dir)?;
        let log = std::fs::File::create(dir.join("broker.log"))?;
        let mut command: Command = match kind {
            Kind::Kafka => clients::script("reference-broker"),
            Kind::Ottla => process::command(dirs::target().join("release/ottla")),
        };
        let data = dir.join("data");
        if kind == Kind::Kafka {
            // Formatted before the clock starts: an installation does that once.
            process::run(
                clients::script("reference-broker")
                    .args(["--format", "--listen", &address, "--data-dir"])
                    .arg(&data),
            )?;
        }
        command
            .args(["--listen", &address, "--data-dir"])
            .arg(&data);
        command.stdout(log.try_clone()?).stderr(log);
        if kind == Kind::Ottla {
            command.args(["--set", "ottla.admin.listener=127.0.0.1:0"]);
        }
        let begin = Instant::now();
        let child = command
            .spawn()
            .with_context(|| process::describe(&command))?;
        let mut side = Self {
            child,
            address,
            dir,
            start: Duration::ZERO,
        };
        while !side.answers() {
            if let Some(status) = side.child.try_wait()? {
                bail!("the broker ended ({status}): {}", side.log_tail());
            }
            if begin.elapsed() > START_LIMIT {
                bail!("the broker does not answer: {}", side.log_tail());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        side.start = begin.elapsed();
        Ok(side)
    }

    /// One `ApiVersions` v0 request.
    fn answers(&self) -> bool {
        let Ok(address) = self.address.parse::<SocketAddr>() else {
            return false;
        };
        let Ok(mut stream) = TcpStream::connect(address) else {
            return false;
        };
        let mut head = [0; 10];
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .is_ok()
            && stream
                .write_all(&[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff])
                .is_ok()
            && stream.read_exact(&mut head).is_ok()
            && head[4..] == [0, 0, 0, 1, 0, 0]
    }

    fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(self.dir.join("broker.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(3)..].join(" | ")
    }

    /// Seconds of processor time so far, user and system, of the process alone.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        let ticks: f64 = process::output(process::command("getconf").arg("CLK_TCK"))?
            .trim()
            .parse()?;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        Ok(cpu_ticks(&stat).context("/proc/PID/stat")? / ticks)
    }

    /// Resident memory in MiB.
    pub(super) fn resident_mib(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find_map(|l| l.strip_prefix("VmRSS:"))
            .context("VmRSS")?;
        let kib: f64 = line.split_whitespace().next().context("VmRSS")?.parse()?;
        Ok(kib / 1024.0)
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Fields 14 and 15 of `/proc/PID/stat`, counted after the program's name in parentheses.
fn cpu_ticks(stat: &str) -> Option<f64> {
    let rest = &stat[stat.rfind(')')? + 1..];
    let mut fields = rest.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// A Java program on the class path of `tests/clients`.
pub(super) fn java(class: &str, args: &[&str]) -> Result<String> {
    let dir = dirs::target().join("clients");
    let jars = std::fs::read_to_string(dir.join("classpath"))?;
    let classpath = format!("{}:{}", dir.join("classes").display(), jars.trim());
    let config = Path::new("tests/clients/log4j2.yaml");
    let mut command = process::command("java");
    command.arg("-Xmx512m").arg("-XX:+UseSerialGC");
    command.arg(format!(
        "-Dlog4j2.configurationFile={}",
        dirs::root().join(config).display()
    ));
    command
        .arg("-cp")
        .arg(classpath)
        .arg(class)
        .args(args)
        .stderr(Stdio::inherit());
    process::output(&mut command)
}

#[cfg(test)]
mod tests {
    use super::cpu_ticks;

    #[test]
    fn processor_time_is_found_behind_a_name_with_spaces_and_parentheses() {
        let stat = "12 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 300 44 0 0 20";
        assert_eq!(cpu_ticks(stat), Some(344.0));
        assert_eq!(cpu_ticks("no name"), None);
    }
}
