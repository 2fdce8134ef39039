//! How long a consumer of a new group waits for its first record, on both brokers and in both protocols.

use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;

use super::median;
use super::side::{Kind, Side, java};
use crate::args::Args;
use crate::{clients, dirs, process, report};

const ROUNDS: u64 = 30;
/// What the desk's profile promises, in milliseconds.
const PROMISE_MS: f64 = 50.0;

pub(super) fn run(args: &Args) -> Result<()> {
    args.allow(&["rounds"])?;
    let rounds = args.number("rounds", ROUNDS)?;
    clients::install()?;
    process::build_broker("release")?;
    let mut table =
        String::from("| broker | protocol | median, ms | worst, ms |\n| --- | --- | --- | --- |\n");
    let mut kept = true;
    for kind in [Kind::Kafka, Kind::Ottla] {
        let side = Side::start(kind)?;
        for protocol in ["classic", "consumer"] {
            let waits = waits(&side, protocol, rounds).with_context(|| format!("{kind:?}"))?;
            let (middle, worst) = (median(&waits), waits.iter().copied().fold(0.0, f64::max));
            println!("{kind:?} {protocol}: median {middle:.1} ms, worst {worst:.1} ms");
            writeln!(
                table,
                "| {kind:?} | {protocol} | {middle:.1} | {worst:.1} |"
            )?;
            // With the consumer protocol the client's own turns of 100 ms hide the broker's part.
            kept &= kind == Kind::Kafka || protocol == "consumer" || middle < PROMISE_MS;
        }
    }
    if rounds == ROUNDS {
        let text = format!(
            "## First poll of a new group\n\n\
             {}; {}; `cargo xtask bench first-poll`. A Java consumer, from subscribe() to its first record; {rounds} groups after ten\n\
             of warm-up, one partition, each broker with its own defaults. With the consumer protocol the Java client spends three turns of\n\
             100 ms of its own between the answer with its assignment and its first fetch, whoever answers.\n\n{table}",
            process::today()?,
            super::machine()?,
        );
        report::write_section(
            &dirs::root().join("docs/performance.md"),
            "Performance",
            "first-poll",
            &text,
        )?;
    } else {
        println!("not the standard run: docs/performance.md is left alone");
    }
    ensure!(kept, "a first poll takes longer than {PROMISE_MS} ms");
    Ok(())
}

fn waits(side: &Side, protocol: &str, rounds: u64) -> Result<Vec<f64>> {
    let rounds = rounds.to_string();
    let text = java("clients.FirstPoll", &[&side.address, protocol, &rounds])?;
    text.lines()
        .map(|line| line.trim().parse().with_context(|| format!("{line:?}")))
        .collect()
}
