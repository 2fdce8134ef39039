//! Apache Kafka's own tests (`tests/conformance`) against the broker, compared with what a real Kafka passes.

use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use crate::args::Args;
use crate::{dirs, process, report};

const DIR: &str = "tests/conformance";

pub(crate) fn run(args: &Args) -> Result<()> {
    args.allow(&["full", "filter", "jobs", "broker", "keep", "dead-letters"])?;
    if args.words.is_empty() {
        bail!("name a suite: {}", suites()?.join(", "));
    }
    let full = args.has("full");
    let dead_letters = args.has("dead-letters");
    if dead_letters && (full || args.value("broker").is_some()) {
        bail!(
            "--dead-letters starts our own broker and records nothing: it takes no --full and no --broker"
        );
    }
    if full && (args.value("filter").is_some() || args.value("broker").is_some()) {
        bail!(
            "--full runs whole suites against our own release binary: it takes no --filter and no --broker"
        );
    }
    let given = args.value("broker");
    let broker = match given {
        Some(command) => command.to_owned(),
        None => process::build_broker(if full { "release" } else { "ci" })?
            .display()
            .to_string(),
    };
    let options = Options {
        broker,
        ours: given.is_none(),
        filter: args.value("filter").unwrap_or_default().to_owned(),
        jobs: args.number("jobs", 2)?,
        keep: args.has("keep"),
        dead_letters,
    };
    let mut missed = 0;
    for suite in &args.words {
        let outcome = run_suite(suite, &options)?;
        missed += outcome.missing.len();
        if full {
            outcome.record(suite)?;
        }
    }
    if missed > 0 {
        bail!("{missed} tests that pass with a real Kafka do not pass here");
    }
    Ok(())
}

pub(crate) struct Options {
    /// The command that serves, without arguments of the suite's.
    pub(crate) broker: String,
    /// Whether it takes our arguments.
    pub(crate) ours: bool,
    pub(crate) filter: String,
    pub(crate) jobs: u64,
    pub(crate) keep: bool,
    /// Whether every group has a dead-letter topic.
    pub(crate) dead_letters: bool,
}

/// Every group has a dead-letter topic, and a topic that is missing is made.
const DEAD_LETTERS: &str = " --set ottla.group.default.errors.deadletterqueue.topic.name=dlq.all \
    --set ottla.group.default.errors.deadletterqueue.copy.record.enable=true \
    --set errors.deadletterqueue.auto.create.topics.enable=true";

/// What the broker of a suite is started with: tests of these suites assert Kafka's default values, or
/// that a group has no assignment yet after 100 ms.
fn arguments(suite: &str) -> &'static str {
    match suite {
        "admin" | "consumer" | "producer" | "share" => " --profile kafka",
        _ => "",
    }
}

fn suites() -> Result<Vec<String>> {
    let dir = dirs::root().join(DIR).join("suites");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
        if let Some(stem) = entry?.path().file_stem() {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Resolves the jars and compiles the harness, so that a later run starts at once.
pub(crate) fn install() -> Result<()> {
    process::run(harness().arg("--prepare"))
}

fn harness() -> std::process::Command {
    let mut command = process::command(Path::new(DIR).join("run-suite"));
    command.env("CONFORMANCE_TARGET", dirs::target().join("conformance"));
    command
}

/// One invocation of a test: `Class#method`, and its display name without the cluster's description.
type Key = (String, String);

/// Rows of a results file: what ran, its status, the first line of its error.
fn read_results(text: &str) -> BTreeMap<Key, (String, String)> {
    text.lines()
        .skip(1)
        .filter_map(|line| {
            let f: Vec<&str> = line.split('\t').collect();
            let [class, method, invocation, status, ..] = f[..] else {
                return None;
            };
            let name = invocation.split(" Type=").next().unwrap_or(invocation);
            let error = f.get(5).copied().unwrap_or_default();
            Some((
                (format!("{class}#{method}"), name.to_owned()),
                (status.to_owned(), error.to_owned()),
            ))
        })
        .collect()
}

/// `Class#method TAB reason` rows.
fn read_exclusions(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .skip(1)
        .filter_map(|l| l.split_once('\t'))
        .map(|(test, reason)| (test.to_owned(), reason.to_owned()))
        .collect()
}

/// The tests of a suite file: a line that names a class alone stands for its methods in the baseline.
fn expand(suite: &str, known: &BTreeSet<String>) -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    for line in suite.lines() {
        let Some(entry) = line.split_whitespace().next() else {
            continue;
        };
        if entry.contains('#') {
            tests.insert(entry.to_owned());
        } else {
            let prefix = format!("{entry}#");
            tests.extend(known.iter().filter(|t| t.starts_with(&prefix)).cloned());
        }
    }
    tests
}

pub(crate) struct Outcome {
    pub(crate) passed: usize,
    pub(crate) total: usize,
    missing: Vec<String>,
    excluded: BTreeMap<String, String>,
    /// Tests that were run a second time, alone.
    again: Vec<String>,
}

impl Outcome {
    pub(crate) fn check(&self) -> Result<()> {
        if self.missing.is_empty() {
            return Ok(());
        }
        bail!("conformance: {} of {}", self.passed, self.total)
    }

    /// Writes the suite's section of docs/conformance.md.
    fn record(&self, suite: &str) -> Result<()> {
        let mut text = format!(
            "## {suite}\n\n| passed | of | date | command |\n| --- | --- | --- | --- |\n| {} | {} | {} | `cargo xtask conformance {suite} --full` |\n",
            self.passed,
            self.total,
            process::today()?,
        );
        let arguments = arguments(suite);
        if !arguments.is_empty() {
            let _ = write!(text, "\nThe broker: `ottla{arguments}`.\n");
        }
        list(&mut text, "Not passed", &self.missing);
        list(&mut text, "Tried twice, the second time alone", &self.again);
        let excluded: Vec<String> = self
            .excluded
            .iter()
            .map(|(test, why)| format!("`{}`: {why}", short(test)))
            .collect();
        list(&mut text, "Left out", &excluded);
        let file = dirs::root().join("docs/conformance.md");
        report::write_section(&file, "Conformance", &format!("conformance {suite}"), &text)
    }
}

fn list(text: &mut String, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = write!(text, "\n{title}:\n\n");
    for item in items {
        let _ = writeln!(text, "- {item}");
    }
}

/// `Class#method` without the package.
fn short(test: &str) -> &str {
    test.rsplit_once('.').map_or(test, |(_, name)| name)
}

/// What a suite asks of the broker.
struct Plan {
    /// `Class#method` of what is run.
    chosen: BTreeSet<String>,
    excluded: BTreeMap<String, String>,
    /// What a real Kafka did.
    baseline: BTreeMap<Key, (String, String)>,
}

impl Plan {
    fn read(suite: &str, filter: &str) -> Result<Self> {
        let dir = dirs::root().join(DIR);
        let baseline_name = suite.strip_suffix("-ci").unwrap_or(suite);
        let baseline = read_results(&read(
            &dir.join("baseline").join(format!("{baseline_name}.tsv")),
        )?);
        let known: BTreeSet<String> = baseline.keys().map(|(test, _)| test.clone()).collect();
        let mut chosen = expand(
            &read(&dir.join("suites").join(format!("{suite}.txt")))?,
            &known,
        );
        let mut excluded = read_exclusions(&read(&dir.join("exclusions.tsv"))?);
        excluded.retain(|test, _| chosen.contains(test));
        chosen.retain(|test| !excluded.contains_key(test) && test.contains(filter));
        if chosen.is_empty() {
            bail!("no test of suite {suite} matches");
        }
        Ok(Self {
            chosen,
            excluded,
            baseline,
        })
    }

    /// Every test that a real Kafka passes must have passed.
    fn judge(self, results: &BTreeMap<Key, (String, String)>) -> Outcome {
        let mut outcome = Outcome {
            passed: 0,
            total: 0,
            missing: Vec::new(),
            excluded: self.excluded,
            again: Vec::new(),
        };
        for (key, (status, _)) in &self.baseline {
            let (test, name) = key;
            if status != "passed" || !self.chosen.contains(test) {
                continue;
            }
            outcome.total += 1;
            let shown = short(test).split('#').next().unwrap_or_default();
            match results.get(key) {
                Some((status, _)) if status == "passed" => outcome.passed += 1,
                Some((status, error)) => outcome
                    .missing
                    .push(format!("`{shown} {name}` {status}: {error}")),
                None => outcome
                    .missing
                    .push(format!("`{shown} {name}` did not run")),
            }
        }
        outcome
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Tests that may be tried a second time, alone: their limits are seconds of real time, and the machine
/// may be busy. More than these are a fault of the broker's.
const SECOND_TRIES: usize = 4;

pub(crate) fn run_suite(suite: &str, options: &Options) -> Result<Outcome> {
    let arguments = if options.ours { arguments(suite) } else { "" };
    let letters = if options.dead_letters {
        DEAD_LETTERS
    } else {
        ""
    };
    let broker = format!("{}{arguments}{letters}", options.broker);
    let plan = Plan::read(suite, &options.filter)?;
    let out = dirs::target().join("conformance").join("out").join(suite);
    let mut results = run_once(&plan.chosen, &out, (&broker, options.keep), options.jobs)?;
    let failed: BTreeSet<String> = plan
        .baseline
        .iter()
        .filter(|((test, _), (status, _))| status == "passed" && plan.chosen.contains(test))
        .filter(|(key, _)| {
            results
                .get(*key)
                .is_none_or(|(status, _)| status != "passed")
        })
        .map(|((test, _), _)| test.clone())
        .collect();
    let mut again = Vec::new();
    if !failed.is_empty() && failed.len() <= SECOND_TRIES {
        again = failed
            .iter()
            .map(|test| format!("`{}`", short(test)))
            .collect();
        println!("a second try, alone: {}", again.join(", "));
        let out = out.join("second-try");
        results.extend(run_once(&failed, &out, (&broker, options.keep), 1)?);
    }
    let mut outcome = plan.judge(&results);
    outcome.again = again;
    println!(
        "conformance {suite}: {} of {} (left out: {}, tried twice: {})",
        outcome.passed,
        outcome.total,
        outcome.excluded.len(),
        outcome.again.len()
    );
    for line in &outcome.missing {
        println!("  {line}");
    }
    if !outcome.missing.is_empty() {
        println!("  stack traces: {}", out.join("logs").display());
    }
    Ok(outcome)
}

fn run_once(
    tests: &BTreeSet<String>,
    out: &Path,
    (broker, keep): (&str, bool),
    jobs: u64,
) -> Result<BTreeMap<Key, (String, String)>> {
    std::fs::create_dir_all(out)?;
    let file = out.join("suite.txt");
    let names: Vec<&str> = tests.iter().map(String::as_str).collect();
    std::fs::write(&file, names.join("\n") + "\n")?;
    let mut command = harness();
    command
        .arg("--broker")
        .arg(broker)
        .arg("--suite")
        .arg(&file)
        .arg("--out")
        .arg(out);
    command.arg("--jobs").arg(jobs.to_string());
    if keep {
        command.arg("--keep");
    }
    process::watch(&mut command)?.check()?;
    Ok(read_results(&read(&out.join("results.tsv"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: &str = "class\tmethod\tinvocation\tstatus\tseconds\terror\n\
        a.B\tone\tone [1] Type=Raft\tpassed\t1.0\t\n\
        a.B\ttwo\ttwo [1] Type=Other\tfailed\t1.0\tboom\n";

    #[test]
    fn results_are_keyed_without_the_cluster_type() {
        let found = read_results(RESULTS);
        let two = &found[&("a.B#two".to_owned(), "two [1]".to_owned())];
        assert_eq!(two, &("failed".to_owned(), "boom".to_owned()));
    }

    #[test]
    fn a_class_stands_for_its_methods_and_a_method_for_itself() {
        let known = read_results(RESULTS)
            .into_keys()
            .map(|(test, _)| test)
            .collect();
        let tests = expand("a.B\n\na.C#three   # why\n", &known);
        assert_eq!(
            tests.into_iter().collect::<Vec<_>>(),
            ["a.B#one", "a.B#two", "a.C#three"]
        );
    }

    #[test]
    fn a_test_that_failed_or_did_not_run_is_missing() {
        let plan = |chosen: &str| Plan {
            chosen: [chosen.to_owned()].into(),
            excluded: BTreeMap::new(),
            baseline: read_results(RESULTS),
        };
        let passed = plan("a.B#one").judge(&read_results(RESULTS));
        assert_eq!((passed.passed, passed.total), (1, 1));
        let absent = plan("a.B#one").judge(&BTreeMap::new());
        assert_eq!(absent.missing, ["`B one [1]` did not run"]);
        assert!(absent.check().is_err());
        let not_asked = plan("a.B#two").judge(&BTreeMap::new());
        assert_eq!(not_asked.total, 0, "a real Kafka fails it too");
    }

    #[test]
    fn every_exclusion_names_a_test_of_a_suite_and_a_reason() -> Result<()> {
        let dir = dirs::root().join(DIR);
        let exclusions = read_exclusions(&std::fs::read_to_string(dir.join("exclusions.tsv"))?);
        let mut all = String::new();
        for suite in suites()? {
            all += &std::fs::read_to_string(dir.join("suites").join(format!("{suite}.txt")))?;
        }
        for (test, reason) in exclusions {
            let class = test.split('#').next();
            let names_it = |line: &str| line.trim() == test || Some(line.trim()) == class;
            assert!(all.lines().any(names_it), "{test} is in no suite");
            assert!(!reason.trim().is_empty(), "{test} has no reason");
        }
        Ok(())
    }
}
