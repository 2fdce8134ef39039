//! `cargo xtask test`: everything that CI runs, cheapest to fail first, downloads in the background.

use anyhow::{Context, Result, bail};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::args::Args;
use crate::process::Watched;
use crate::{clients, conformance, deny, dirs, letters, loom, matrix, process, tidy};

/// What a step leaves behind.
#[derive(Default)]
struct Ledger {
    lines: Vec<String>,
    closing: Vec<String>,
    failed: Vec<String>,
    /// Of the suites that are not cargo's.
    suite_passed: usize,
    suite_failed: usize,
}

impl Ledger {
    /// Runs a step; a failure is printed and kept, and the steps after it still run.
    fn step<T>(&mut self, name: &str, work: impl FnOnce(&mut Self) -> Result<T>) -> Option<T> {
        println!("\n==== {name}");
        let start = Instant::now();
        let outcome = work(self);
        let seconds = start.elapsed().as_secs();
        match outcome {
            Ok(value) => {
                self.lines.push(format!("ok    {seconds:>5} s  {name}"));
                Some(value)
            }
            Err(error) => {
                println!("FAILED {name}: {error:#}");
                self.lines
                    .push(format!("FAIL  {seconds:>5} s  {name}: {error:#}"));
                self.failed.push(name.to_owned());
                None
            }
        }
    }

    /// Keeps the closing lines of cargo's test runner.
    fn cargo_tests(&mut self, watched: &Watched) -> Result<()> {
        let closing = watched
            .lines
            .iter()
            .filter(|l| l.starts_with("test result:") && !l.contains(" 0 passed; 0 failed"));
        self.closing.extend(closing.cloned());
        watched.check()?;
        let passed = loom::passed_tests(&watched.lines);
        println!("{passed} tests passed");
        if passed == 0 {
            bail!("no test ran");
        }
        Ok(())
    }

    fn suite(&mut self, passed: usize, failed: usize) {
        self.suite_passed += passed;
        self.suite_failed += failed;
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    args.allow(&[])?;
    let start = Instant::now();
    let mut ledger = Ledger::default();
    let downloads = in_background("clients and test jars", || {
        clients::install()?;
        conformance::install()
    });
    let deny = in_background("cargo-deny", deny::install);

    checks(&mut ledger);
    // All targets, so that the tests and the broker are built with the same features, once.
    let broker = ledger.step("build (profile ci)", |_| {
        process::run(process::cargo().args([
            "build",
            "--locked",
            "--profile",
            "ci",
            "--workspace",
            "--all-targets",
        ]))?;
        Ok(dirs::target().join("ci").join("ottla"))
    });
    if broker.is_some() {
        cargo_tests(&mut ledger);
        ledger.step("loom, preemption bound 3", |ledger| {
            let watched = loom::models(Some(3))?;
            ledger.cargo_tests(&watched)
        });
    }
    ledger.step("deny: licences, bans, sources", |_| {
        deny::check(&join(deny)?, false)
    });
    let ready = ledger.step("downloads", |_| join(downloads)).is_some();
    match broker {
        Some(broker) if ready => suites(&mut ledger, &broker.display().to_string()),
        _ => ledger
            .failed
            .push("suites (nothing to run, see above)".to_owned()),
    }
    finish(&ledger, start)
}

fn checks(ledger: &mut Ledger) {
    ledger.step("fmt", |_| {
        process::run(process::cargo().args(["fmt", "--all", "--check"]))
    });
    ledger.step("tidy", |_| tidy::run(&Args::default()));
    ledger.step("clippy", |_| {
        let clippy = [
            "clippy",
            "--locked",
            "--profile",
            "ci",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ];
        process::run(process::cargo().args(clippy))
    });
}

fn cargo_tests(ledger: &mut Ledger) {
    ledger.step("unit and integration tests", |ledger| {
        let mut test = process::cargo();
        test.args([
            "test",
            "--locked",
            "--profile",
            "ci",
            "--workspace",
            "--no-fail-fast",
        ]);
        test.args(["--lib", "--bins", "--tests", "--benches", "--examples"]);
        test.env("OTTLA_BIN", dirs::target().join("ci").join("ottla"));
        let watched = process::watch(&mut test)?;
        ledger.cargo_tests(&watched)
    });
    ledger.step("examples in the documentation", |_| {
        let doc = [
            "test",
            "--locked",
            "--profile",
            "ci",
            "--workspace",
            "--doc",
        ];
        process::watch(process::cargo().args(doc))?.check()
    });
}

fn suites(ledger: &mut Ledger, broker: &str) {
    ledger.step("Apache Kafka's own share tests, a part", |ledger| {
        let options = conformance::Options {
            broker: broker.to_owned(),
            ours: true,
            filter: String::new(),
            jobs: 2,
            keep: false,
            dead_letters: false,
        };
        let outcome = conformance::run_suite("share-ci", &options)?;
        ledger.suite(outcome.passed, outcome.total - outcome.passed);
        outcome.check()
    });
    ledger.step("dead letters beside those of a real Kafka", |ledger| {
        ledger.cargo_tests(&letters::against("ci", false)?)
    });
    ledger.step("clients and Kafka's tools", |ledger| {
        let (passed, failed) = clients::against(broker, None, false)?;
        ledger.suite(passed, failed);
        if failed > 0 {
            bail!("{passed} passed, {failed} failed");
        }
        matrix::check()
    });
}

fn finish(ledger: &Ledger, start: Instant) -> Result<()> {
    println!("\n==== closing lines");
    for line in &ledger.closing {
        println!("{line}");
    }
    println!();
    for line in &ledger.lines {
        println!("{line}");
    }
    println!("took {} s", start.elapsed().as_secs());
    println!(
        "{} passed, {} failed",
        ledger.suite_passed, ledger.suite_failed
    );
    if !ledger.failed.is_empty() {
        bail!("failed: {}", ledger.failed.join("; "));
    }
    Ok(())
}

struct Background<T> {
    name: &'static str,
    thread: JoinHandle<Result<T>>,
}

fn in_background<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Background<T> {
    Background {
        name,
        thread: std::thread::spawn(work),
    }
}

fn join<T>(background: Background<T>) -> Result<T> {
    match background.thread.join() {
        Ok(outcome) => outcome.context(background.name),
        Err(_) => bail!("{}: its thread panicked", background.name),
    }
}
