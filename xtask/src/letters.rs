//! Dead letters beside those of a real Kafka: starts one, and plays the scenarios of
//! `tests/tests/dead_letters_identical` there and on ours.

use anyhow::{Context, Result, bail};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::process::Watched;
use crate::{clients, dirs, process};

/// How long Kafka may take until it listens.
const START_LIMIT: Duration = Duration::from_mins(1);

pub(crate) fn run(args: &Args) -> Result<()> {
    args.allow(&["record"])?;
    against("dev", args.has("record"))?.check()
}

/// A real Kafka, as long as it is needed.
struct Kafka {
    process: Child,
    at: String,
}

impl Kafka {
    fn start(dir: &Path) -> Result<Self> {
        let at = format!("127.0.0.1:{}", process::free_port()?);
        let log = std::fs::File::create(dir.join("log"))?;
        let mut command = clients::script("reference-broker");
        command.args(["--listen", &at, "--data-dir"]);
        command.arg(dir.join("data"));
        let settings = [
            "num.partitions=1",
            "group.share.min.record.lock.duration.ms=1000",
        ];
        for setting in settings {
            command.args(["--set", setting]);
        }
        command.env(
            "KAFKA_JVM",
            "-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        );
        let process = command
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| process::describe(&command))?;
        let mut kafka = Self { process, at };
        let start = Instant::now();
        while TcpStream::connect(&kafka.at).is_err() {
            if kafka.process.try_wait()?.is_some() || start.elapsed() > START_LIMIT {
                bail!(
                    "the real Kafka does not listen: {}",
                    dir.join("log").display()
                );
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(kafka)
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Plays the scenarios on both; with `record`, what Kafka did becomes what is expected.
pub(crate) fn against(profile: &str, record: bool) -> Result<Watched> {
    process::run(&mut clients::script("install"))?;
    let dir = dirs::target().join("letters");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    let kafka = Kafka::start(&dir)?;
    let mut test = process::cargo();
    // Of the whole workspace, as its tests are built: another choice of packages has other features.
    test.args(["test", "--locked", "--profile", profile, "--workspace"]);
    test.args(["--test", "dead_letters_identical"]);
    test.env("OTTLA_REFERENCE", &kafka.at);
    if record {
        test.env("UPDATE_LETTERS", "1");
    }
    process::watch(&mut test)
}
