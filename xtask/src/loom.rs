//! The loom models: shipped kernels under every interleaving, in a target directory of their own.

use anyhow::{Result, bail};

use crate::args::Args;
use crate::process::Watched;
use crate::{dirs, process};

/// Crates whose `tests/loom_*.rs` are models.
const CRATES: &[&str] = &["coordinator", "storage"];
/// A model prints `loom NAME: N executions` when it has finished.
const MARK: &str = "loom";

pub(crate) fn run(args: &Args) -> Result<()> {
    args.allow(&["unbounded"])?;
    models(if args.has("unbounded") { None } else { Some(3) }).map(drop)
}

/// Runs every model; returns what cargo printed.
pub(crate) fn models(preemptions: Option<u32>) -> Result<Watched> {
    let mut cargo = process::cargo();
    cargo.args(["test", "--locked", "--profile", "ci"]);
    let mut files = 0;
    for name in CRATES {
        let dir = dirs::root().join(name).join("tests");
        let mut models: Vec<String> = std::fs::read_dir(&dir)
            .into_iter()
            .flatten()
            .flatten()
            .filter(|e| e.path().extension().is_some_and(|e| e == "rs"))
            .filter_map(|e| {
                e.path()
                    .file_stem()
                    .map(|s| s.to_string_lossy().into_owned())
            })
            .filter(|stem| stem.starts_with("loom_"))
            .collect();
        models.sort();
        files += models.len();
        if !models.is_empty() {
            cargo.arg("-p").arg(format!("ottla-{name}"));
        }
        for model in models {
            cargo.arg("--test").arg(model);
        }
    }
    if files == 0 {
        bail!("no model found: tests/loom_*.rs in {CRATES:?}");
    }
    cargo
        .args(["--", "--nocapture", "--test-threads=1"])
        .env("CARGO_TARGET_DIR", dirs::target().join("loom"))
        .env("RUSTFLAGS", "--cfg ottla_loom")
        .env_remove("LOOM_MAX_DURATION")
        .env_remove("LOOM_MAX_PERMUTATIONS");
    match preemptions {
        Some(bound) => cargo.env("LOOM_MAX_PREEMPTIONS", bound.to_string()),
        None => cargo.env_remove("LOOM_MAX_PREEMPTIONS"),
    };
    let watched = process::watch(&mut cargo)?;
    watched.check()?;
    let models = passed_tests(&watched.lines);
    let finished = watched.lines.iter().filter(|l| is_finished(l)).count();
    if models == 0 || finished < models {
        bail!("{models} models passed, but only {finished} printed `{MARK} NAME: N executions`");
    }
    let bound = preemptions.map_or_else(|| "no bound".to_owned(), |n| format!("bound {n}"));
    println!("{finished} loom models finished, {bound}");
    Ok(watched)
}

/// `loom NAME: N executions`, with more words behind it or not.
fn is_finished(line: &str) -> bool {
    // Cargo's "test NAME ... " may stand before it on the line.
    let Some(at) = line.find(MARK) else {
        return false;
    };
    let words: Vec<&str> = line[at..].split([' ', ',']).collect();
    words
        .windows(2)
        .any(|pair| pair[1] == "executions" && pair[0].parse().is_ok_and(|n: u64| n > 0))
}

/// The sum over `test result: ok. N passed; ...` lines.
pub(crate) fn passed_tests(lines: &[String]) -> usize {
    lines
        .iter()
        .filter_map(|l| l.strip_prefix("test result: "))
        .filter_map(|l| l.split_whitespace().nth(1)?.parse::<usize>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_model_that_counted_its_executions_has_finished() {
        assert!(is_finished("loom share_cell: 4842 executions"));
        assert!(is_finished(
            "loom publish: 7 executions, preemption bound Some(3)"
        ));
        assert!(is_finished(
            "test two_members ... loom two_members: 12 executions"
        ));
        assert!(!is_finished("loom share_cell: 0 executions"));
        assert!(!is_finished("loom share_cell: some executions"));
        assert!(!is_finished("share_cell: 4842 executions"));
        assert!(is_finished(
            "loom: wait: 7 executions, preemption bound None"
        ));
    }

    #[test]
    fn closing_lines_are_added_up() {
        let lines = [
            "test result: ok. 3 passed; 0 failed",
            "x",
            "test result: ok. 2 passed; 0 failed",
        ];
        assert_eq!(passed_tests(&lines.map(str::to_owned)), 5);
    }
}
