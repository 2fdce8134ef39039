//! `cargo xtask soak`: days of the broker's time in minutes (`tests/tests/dead_letters_soak`).

use anyhow::Result;

use crate::args::Args;
use crate::process;

/// Three days.
const HOURS: u64 = 72;

pub(crate) fn run(args: &Args) -> Result<()> {
    args.allow(&["hours"])?;
    let hours = args.number("hours", HOURS)?;
    let mut test = process::cargo();
    test.args(["test", "--locked", "--release", "-p", "ottla-tests"]);
    test.args(["--test", "dead_letters_soak", "--", "--nocapture"]);
    test.env("OTTLA_SOAK_HOURS", hours.to_string());
    process::watch(&mut test)?.check()
}
