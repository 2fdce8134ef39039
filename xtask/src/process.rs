//! Other programs: run, watched, or their output taken.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::dirs;

/// A command that runs in the repository's folder.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dirs::root()).stdin(Stdio::null());
    command
}

/// Cargo, without what the outer `cargo run` left in the environment.
pub(crate) fn cargo() -> Command {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    cargo
}

pub(crate) fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|w| w.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs to the end; anything but status 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| describe(command))?;
    if !status.success() {
        bail!("`{}` failed ({status})", describe(command));
    }
    Ok(())
}

/// What ran: its lines, and whether its status was 0.
pub(crate) struct Watched {
    pub(crate) lines: Vec<String>,
    pub(crate) success: bool,
    pub(crate) what: String,
}

impl Watched {
    pub(crate) fn check(&self) -> Result<()> {
        if !self.success {
            bail!("`{}` failed", self.what);
        }
        Ok(())
    }
}

/// Runs, shows standard output as it comes, and keeps it.
pub(crate) fn watch(command: &mut Command) -> Result<Watched> {
    let what = describe(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| what.clone())?;
    let mut lines = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            println!("{line}");
            lines.push(line);
        }
    }
    let success = child.wait()?.success();
    Ok(Watched {
        lines,
        success,
        what,
    })
}

/// Standard output of a command that must succeed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let what = describe(command);
    let out = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| what.clone())?;
    if !out.status.success() {
        bail!(
            "`{what}` failed ({})\n{}",
            out.status,
            String::from_utf8_lossy(&out.stdout)
        );
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Builds the broker's binary with a profile and returns its path.
pub(crate) fn build_broker(profile: &str) -> Result<PathBuf> {
    run(cargo().args([
        "build",
        "--locked",
        "--profile",
        profile,
        "-p",
        "ottla",
        "--bin",
        "ottla",
    ]))?;
    Ok(dirs::target().join(profile).join("ottla"))
}

/// A port whose successor is free too (a real Kafka's controller listens there), below the ephemeral range.
pub(crate) fn free_port() -> Result<u16> {
    let seed = u64::from(std::process::id()) ^ u64::from(Instant::now().elapsed().subsec_nanos());
    for i in 0..2000_u64 {
        let port = 10_000 + ((seed + i * 7919) % 20_000) as u16;
        let free = |p: u16| TcpListener::bind(("127.0.0.1", p)).is_ok();
        if free(port) && free(port + 1) {
            return Ok(port);
        }
    }
    bail!("no free port")
}

/// Today, as year-month-day in UTC.
pub(crate) fn today() -> Result<String> {
    Ok(output(command("date").args(["-u", "+%Y-%m-%d"]))?
        .trim()
        .to_owned())
}
