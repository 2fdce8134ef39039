//! The client script: `tests/clients/run` against the broker.

use anyhow::{Result, bail};
use std::path::Path;
use std::process::Command;

use crate::args::Args;
use crate::{dirs, matrix, process};

pub(crate) fn run(args: &Args) -> Result<()> {
    args.allow(&["filter", "broker", "keep"])?;
    let broker = match args.value("broker") {
        Some(command) => command.to_owned(),
        None => process::build_broker("ci")?.display().to_string(),
    };
    let (passed, failed) = against(&broker, args.value("filter"), args.has("keep"))?;
    if args.value("filter").is_none() && args.value("broker").is_none() {
        matrix::write()?;
    }
    if failed > 0 {
        bail!("client script: {passed} passed, {failed} failed");
    }
    Ok(())
}

/// A command of `tests/clients`, with its files under the target directory.
pub(crate) fn script(name: &str) -> Command {
    let mut script = process::command(Path::new("tests/clients").join(name));
    script.env("CLIENTS_TARGET", dirs::target().join("clients"));
    script
}

/// Clients, compiled programs and the Python environment.
pub(crate) fn install() -> Result<()> {
    process::run(script("install").arg("--all"))
}

/// Returns how many checks passed and failed.
pub(crate) fn against(broker: &str, filter: Option<&str>, keep: bool) -> Result<(usize, usize)> {
    let mut script = script("run");
    script.arg("--broker").arg(broker);
    if let Some(text) = filter {
        script.arg("--filter").arg(text);
    }
    if keep {
        script.arg("--keep");
    }
    let watched = process::watch(&mut script)?;
    let Some((passed, failed)) = watched.lines.iter().rev().find_map(|l| summary(l)) else {
        bail!("`{}` ended without its closing line", watched.what);
    };
    if passed + failed == 0 {
        bail!("the client script ran no check");
    }
    if !watched.success && failed == 0 {
        bail!("`{}` failed after its last check", watched.what);
    }
    Ok((passed, failed))
}

/// Reads `N passed, N failed`.
pub(crate) fn summary(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_whitespace();
    let passed = words.next()?.parse().ok()?;
    (words.next()? == "passed,").then_some(())?;
    let failed = words.next()?.parse().ok()?;
    words
        .next()?
        .trim_end_matches(',')
        .eq("failed")
        .then_some((passed, failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_closing_line_is_read_with_and_without_skips() {
        assert_eq!(summary("66 passed, 1 failed"), Some((66, 1)));
        assert_eq!(summary("27 passed, 0 failed, 3 skipped"), Some((27, 0)));
        assert_eq!(summary("27 tests passed"), None);
    }
}
