//! Apache Kafka 4.4.0 and Ottla under the same load, turn by turn in one run.

use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::time::Duration;

use super::median;
use super::side::{Kind, Side, java};
use crate::args::Args;
use crate::{clients, dirs, process, report};

const TOOLS: &str = "org.apache.kafka.tools";
const RECORDS: u64 = 1_000_000;
const ROUNDS: u64 = 3;
const WARM_UP: u64 = 200_000;
const RECORD_BYTES: &str = "1024";

/// What is measured: records a second, and the broker's processor seconds for all of them.
const WORKLOADS: [&str; 3] = ["produce", "read", "share consume"];

/// One pass over one broker.
struct Round {
    per_second: [f64; 3],
    cpu: [f64; 3],
    start_ms: f64,
    idle_mib: f64,
}

pub(super) fn run(args: &Args) -> Result<()> {
    args.allow(&["rounds", "records"])?;
    let (records, rounds) = (
        args.number("records", RECORDS)?,
        args.number("rounds", ROUNDS)?,
    );
    clients::install()?;
    process::build_broker("release")?;
    let (mut kafka, mut ottla) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // Who goes first changes, so that neither always has the warmer machine.
        let order = if round % 2 == 0 {
            [Kind::Kafka, Kind::Ottla]
        } else {
            [Kind::Ottla, Kind::Kafka]
        };
        for kind in order {
            let result = one(kind, records).with_context(|| format!("{kind:?}"))?;
            for (i, name) in WORKLOADS.iter().enumerate() {
                println!(
                    "round {} {kind:?} {name}: {:.0} records/s, {:.2} CPU s",
                    round + 1,
                    result.per_second[i],
                    result.cpu[i]
                );
            }
            println!(
                "round {} {kind:?} start {:.1} ms, idle {:.1} MiB",
                round + 1,
                result.start_ms,
                result.idle_mib
            );
            match kind {
                Kind::Kafka => kafka.push(result),
                Kind::Ottla => ottla.push(result),
            }
        }
    }
    let table = table(&kafka, &ottla);
    println!("{table}");
    if records != RECORDS || rounds != ROUNDS {
        println!("not the standard run: docs/performance.md is left alone");
        return Ok(());
    }
    let text = format!(
        "## Beside Apache Kafka 4.4.0\n\n\
         {}; {}; `cargo xtask bench compare`. Medians of {rounds} rounds, brokers in turn, each fresh on its own data\n\
         directory on disk, after {WARM_UP} records of warm-up. {records} records of {RECORD_BYTES} bytes, one partition: written by\n\
         ProducerPerformance (acks=all), read by a Java consumer with an assignment, consumed by ShareConsumerPerformance as a\n\
         backlog. CPU is the broker process's own (user and system); clients share the machine.\n\n{table}",
        process::today()?,
        super::machine()?,
    );
    report::write_section(
        &dirs::root().join("docs/performance.md"),
        "Performance",
        "compare",
        &text,
    )
}

fn one(kind: Kind, records: u64) -> Result<Round> {
    let side = Side::start(kind)?;
    let start_ms = side.start.as_secs_f64() * 1000.0;
    std::thread::sleep(Duration::from_secs(2));
    let idle_mib = side.resident_mib()?;
    let at = side.address.as_str();
    for topic in ["warm", "load"] {
        java(
            &format!("{TOOLS}.TopicCommand"),
            &[
                "--bootstrap-server",
                at,
                "--create",
                "--topic",
                topic,
                "--partitions",
                "1",
            ],
        )?;
    }
    for group in ["warm-group", "load-group"] {
        java(
            &format!("{TOOLS}.ConfigCommand"),
            &[
                "--bootstrap-server",
                at,
                "--alter",
                "--entity-type",
                "groups",
                "--entity-name",
                group,
                "--add-config",
                "share.auto.offset.reset=earliest",
            ],
        )?;
    }
    pass(&side, "warm", "warm-group", WARM_UP)?;
    let (per_second, cpu) = pass(&side, "load", "load-group", records)?;
    Ok(Round {
        per_second,
        cpu,
        start_ms,
        idle_mib,
    })
}

fn pass(side: &Side, topic: &str, group: &str, records: u64) -> Result<([f64; 3], [f64; 3])> {
    let at = side.address.as_str();
    let count = records.to_string();
    let mut marks = vec![side.cpu_seconds()?];
    let out = java(
        &format!("{TOOLS}.ProducerPerformance"),
        &[
            "--topic",
            topic,
            "--num-records",
            &count,
            "--record-size",
            RECORD_BYTES,
            "--throughput",
            "-1",
            "--bootstrap-server",
            at,
            "--command-property",
            "acks=all",
        ],
    )?;
    let produced = produced(&out).with_context(|| out.clone())?;
    marks.push(side.cpu_seconds()?);
    let out = java("clients.ReadAll", &[at, topic, &count])?;
    let read: f64 = out.trim().parse().with_context(|| out.clone())?;
    marks.push(side.cpu_seconds()?);
    let out = java(
        &format!("{TOOLS}.ShareConsumerPerformance"),
        &[
            "--bootstrap-server",
            at,
            "--topic",
            topic,
            "--group",
            group,
            "--num-records",
            &count,
            "--timeout",
            "60000",
        ],
    )?;
    let shared = shared(&out, records).with_context(|| out.clone())?;
    marks.push(side.cpu_seconds()?);
    let cpu = [
        marks[1] - marks[0],
        marks[2] - marks[1],
        marks[3] - marks[2],
    ];
    Ok(([produced, read, shared], cpu))
}

/// From `N records sent, R records/sec (...), ...`; the last such line is the total.
fn produced(out: &str) -> Option<f64> {
    let line = out.lines().rev().find(|l| l.contains("records sent"))?;
    line.split(", ")
        .find_map(|part| part.split_once(" records/sec")?.0.trim().parse().ok())
}

/// From the comma-separated total: start, end, MB, MB/s, records/s, records, fetch time. Every record must be in it.
fn shared(out: &str, records: u64) -> Option<f64> {
    let line = out
        .lines()
        .rev()
        .find(|l| l.split(", ").count() >= 7 && !l.starts_with("start.time"))?;
    let fields: Vec<&str> = line.split(", ").collect();
    let consumed: u64 = fields[5].trim().parse().ok()?;
    (consumed >= records).then_some(())?;
    fields[4].trim().parse().ok()
}

fn table(kafka: &[Round], ottla: &[Round]) -> String {
    let mut text = "| load | Kafka, records/s | Ottla, records/s | ratio | Kafka, CPU s | Ottla, CPU s | ratio |\n\
                    | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for (i, name) in WORKLOADS.iter().enumerate() {
        let middle = |rounds: &[Round], f: fn(&Round) -> &[f64; 3]| {
            median(&rounds.iter().map(|r| f(r)[i]).collect::<Vec<_>>())
        };
        let (kr, or) = (
            middle(kafka, |r| &r.per_second),
            middle(ottla, |r| &r.per_second),
        );
        let (kc, oc) = (middle(kafka, |r| &r.cpu), middle(ottla, |r| &r.cpu));
        let _ = writeln!(
            text,
            "| {name} | {kr:.0} | {or:.0} | {:.2} | {kc:.2} | {oc:.2} | {:.2} |",
            or / kr,
            oc / kc
        );
    }
    let of =
        |rounds: &[Round], f: fn(&Round) -> f64| median(&rounds.iter().map(f).collect::<Vec<_>>());
    let _ = write!(
        text,
        "\n| | Kafka | Ottla |\n| --- | --- | --- |\n| start to the first answer, ms | {:.0} | {:.1} |\n| idle memory, MiB resident | {:.0} | {:.1} |\n",
        of(kafka, |r| r.start_ms),
        of(ottla, |r| r.start_ms),
        of(kafka, |r| r.idle_mib),
        of(ottla, |r| r.idle_mib),
    );
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_producers_total_is_its_last_line() {
        let out = "1000 records sent, 199.9 records/sec (0.2 MB/sec), 5 ms avg latency.\n\
                   20000 records sent, 12345.5 records/sec (12.06 MB/sec), 1.0 ms avg latency.\n";
        assert!((produced(out).unwrap() - 12345.5).abs() < 1e-9);
        assert_eq!(produced("nothing"), None);
    }

    #[test]
    fn a_share_consumer_that_missed_records_has_no_throughput() {
        let out = "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms\n\
                   2026-01-01 00:00:00:000, 2026-01-01 00:00:02:000, 0.9, 0.4, 500.5, 1000, 1500\n";
        assert!((shared(out, 1000).unwrap() - 500.5).abs() < 1e-9);
        assert_eq!(shared(out, 1001), None);
    }
}
