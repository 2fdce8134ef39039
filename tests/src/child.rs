//! The binary in a process of its own: for what a library cannot show, from kill -9 to exit codes.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::embedded::advance_over_http;
use crate::{Client, soon};

/// How the binary is to be started.
#[derive(Debug)]
pub struct Launch {
    arguments: Vec<String>,
    /// A limit for the size of any file that it writes, in bytes: the kernel's stand-in for a full disk.
    file_size_max: Option<u64>,
    scratch: TempDir,
}

/// How a process ended.
#[derive(Debug)]
pub struct Exited {
    /// Its status.
    pub status: ExitStatus,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

impl Default for Launch {
    fn default() -> Self {
        Self::new()
    }
}

impl Launch {
    /// In memory, on ports that are free.
    pub fn new() -> Self {
        Self::bare()
            .arg("--listen")
            .arg("127.0.0.1:0")
            .arg("--admin-listen")
            .arg("127.0.0.1:0")
    }

    /// Without any argument.
    pub fn bare() -> Self {
        let scratch =
            tempfile::tempdir().unwrap_or_else(|error| panic!("no scratch directory: {error}"));
        Self {
            arguments: vec![],
            file_size_max: None,
            scratch,
        }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// A line of a `server.properties`.
    #[must_use]
    pub fn set(self, key: &str, value: &str) -> Self {
        self.arg("--set").arg(format!("{key}={value}"))
    }

    /// Keeps the data in a directory.
    #[must_use]
    pub fn data_dir(self, dir: &Path) -> Self {
        self.arg("--data-dir").arg(dir.display().to_string())
    }

    /// No file may become larger than this, in bytes.
    #[must_use]
    pub fn file_size_max(mut self, bytes: u64) -> Self {
        self.file_size_max = Some(bytes);
        self
    }

    fn stderr_path(&self) -> PathBuf {
        self.scratch.path().join("stderr")
    }

    fn spawn(&self) -> tokio::process::Child {
        let binary = binary();
        let stderr = std::fs::File::create(self.stderr_path());
        let stderr = stderr.unwrap_or_else(|error| panic!("no file for stderr: {error}"));
        let mut command = match self.file_size_max {
            None => Command::new(&binary),
            Some(bytes) => {
                let mut shell = Command::new("bash");
                // SIGXFSZ ignored, the write fails with EFBIG; what is ignored stays so over exec.
                let script = format!(
                    "trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"",
                    bytes.div_ceil(1024)
                );
                shell.arg("-c").arg(script).arg(&binary);
                shell
            }
        };
        command
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", binary.display()))
    }

    /// Starts it and waits for its ready line.
    pub async fn start(self) -> Child {
        let mut process = self.spawn();
        let stdout = process
            .stdout
            .take()
            .unwrap_or_else(|| panic!("stdout is a pipe"));
        let mut lines = BufReader::new(stdout).lines();
        let line = soon("the ready line", lines.next_line()).await;
        let line = line.ok().flatten().unwrap_or_default();
        let Some((addresses, admin)) = parse_ready(&line) else {
            panic!("not ready: {line:?}\n{}", read(&self.stderr_path()));
        };
        Child {
            process,
            addresses,
            admin,
            launch: self,
        }
    }

    /// Starts it and waits until it ends by itself.
    pub async fn run_to_its_end(self) -> Exited {
        let process = self.spawn();
        let output = soon("the end of the process", process.wait_with_output()).await;
        let output = output.unwrap_or_else(|error| panic!("{error}"));
        Exited {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: read(&self.stderr_path()),
        }
    }
}

/// Reads `ready bootstrap.servers=HOST:PORT,... admin=http://HOST:PORT`; there may be no admin port.
fn parse_ready(line: &str) -> Option<(Vec<SocketAddr>, Option<SocketAddr>)> {
    let line = line.strip_prefix("ready bootstrap.servers=")?;
    let (servers, rest) = line.split_once(' ').unwrap_or((line, ""));
    let addresses = servers
        .split(',')
        .map(|at| at.parse().ok())
        .collect::<Option<Vec<_>>>()?;
    Some((
        addresses,
        rest.strip_prefix("admin=http://")
            .and_then(|at| at.parse().ok()),
    ))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The binary: `OTTLA_BIN`, or the one that was built with the tests.
fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("OTTLA_BIN") {
        return path.into();
    }
    // Tests lie in target/PROFILE/deps, binaries one above.
    let test =
        std::env::current_exe().unwrap_or_else(|error| panic!("where is this test? {error}"));
    let beside = test
        .parent()
        .and_then(Path::parent)
        .map(|dir| dir.join("ottla-under-test"));
    match beside {
        Some(path) if path.exists() => path,
        _ => panic!(
            "there is no ottla-under-test above {}: run the tests with `cargo test -p ottla-tests`, \
             which builds it, or name a binary in OTTLA_BIN",
            test.display()
        ),
    }
}

/// A broker in a process of its own. Dropped, it is killed.
#[derive(Debug)]
pub struct Child {
    process: tokio::process::Child,
    addresses: Vec<SocketAddr>,
    admin: Option<SocketAddr>,
    launch: Launch,
}

impl Child {
    /// Where its first logical broker listens.
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// A client of its first logical broker. It stamps its records with the wall clock.
    pub async fn client(&self) -> Client {
        Client::connect(self.address()).await
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process
            .id()
            .unwrap_or_else(|| panic!("the broker has ended:\n{}", self.stderr()))
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// What it has logged so far.
    pub fn stderr(&self) -> String {
        read(&self.launch.stderr_path())
    }

    /// Memory in use (RSS), in bytes.
    pub fn resident_bytes(&self) -> u64 {
        self.status_kib("VmRSS:") << 10
    }

    /// The most memory that was ever in use, in bytes.
    pub fn peak_resident_bytes(&self) -> u64 {
        self.status_kib("VmHWM:") << 10
    }

    fn status_kib(&self, field: &str) -> u64 {
        let status = read(Path::new(&format!("/proc/{}/status", self.pid())));
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.unwrap_or_else(|| panic!("no {field} in {status}"))
    }

    /// Its admin port.
    pub fn admin(&self) -> SocketAddr {
        self.admin
            .unwrap_or_else(|| panic!("this broker has no admin port"))
    }

    /// Moves its clock and does all that falls due on the way.
    pub async fn advance(&self, ms: i64) {
        advance_over_http(self.admin(), ms, false).await;
    }

    /// The same, while members' sessions stand still.
    pub async fn advance_holding_sessions(&self, ms: i64) {
        advance_over_http(self.admin(), ms, true).await;
    }

    /// kill -9, and waits until it is gone.
    pub async fn kill(mut self) {
        if let Err(error) = soon("the end of a killed process", self.process.kill()).await {
            panic!("kill -9: {error}");
        }
    }

    /// SIGTERM, and waits until it has ended.
    pub async fn terminate(mut self) -> Exited {
        let pid = i32::try_from(self.pid())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        let pid = pid.unwrap_or_else(|| panic!("no process id"));
        if let Err(error) = rustix::process::kill_process(pid, rustix::process::Signal::TERM) {
            panic!("SIGTERM: {error}");
        }
        let status = soon("the end after SIGTERM", self.process.wait()).await;
        Exited {
            status: status.unwrap_or_else(|error| panic!("{error}")),
            stdout: String::new(),
            stderr: self.stderr(),
        }
    }
}
