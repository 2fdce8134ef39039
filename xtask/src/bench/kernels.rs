//! The criterion kernels: run, and their lines put into docs/performance.md.

use anyhow::{Result, bail};
use std::fmt::Write as _;

use crate::args::Args;
use crate::{dirs, process, report};

pub(super) fn run(args: &Args) -> Result<()> {
    args.allow(&[])?;
    let filter = args.words.get(1);
    let mut cargo = process::cargo();
    cargo.args(["bench", "--locked", "-p", "ottla-benches", "--"]);
    cargo.args(filter);
    let watched = process::watch(&mut cargo)?;
    watched.check()?;
    let rows = rows(&watched.lines);
    if rows.is_empty() {
        bail!("no kernel ran");
    }
    if filter.is_some() {
        return Ok(()); // a part of the kernels is not a record
    }
    let mut text = format!(
        "## Kernels\n\n{}; {}; `cargo xtask bench kernels`. Criterion's estimate between its bounds.\n\n| kernel | low | time | high |\n| --- | --- | --- | --- |\n",
        process::today()?,
        super::machine()?,
    );
    for [name, low, middle, high] in rows {
        let _ = writeln!(text, "| {name} | {low} | {middle} | {high} |");
    }
    report::write_section(
        &dirs::root().join("docs/performance.md"),
        "Performance",
        "kernels",
        &text,
    )
}

/// Criterion prints `NAME   time:   [1.0 µs 1.1 µs 1.2 µs]`, a long name on the line before.
fn rows(lines: &[String]) -> Vec<[String; 4]> {
    let mut found = Vec::new();
    let mut before = "";
    for line in lines {
        if let Some((name, rest)) = line.split_once("time:") {
            let name = if name.trim().is_empty() {
                before
            } else {
                name.trim()
            };
            let values: Vec<&str> = rest
                .trim()
                .trim_matches(['[', ']'])
                .split_whitespace()
                .collect();
            if let [a, au, b, bu, c, cu] = values[..] {
                found.push([
                    name.to_owned(),
                    format!("{a} {au}"),
                    format!("{b} {bu}"),
                    format!("{c} {cu}"),
                ]);
            }
        }
        before = line.trim();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn both_layouts_of_a_result_are_read() {
        let lines = [
            "acquire/500   time:   [1.0 µs 1.1 µs 1.2 µs]",
            "a long name",
            "      time:   [2 ns 3 ns 4 ns]",
        ];
        let found = rows(&lines.map(str::to_owned));
        assert_eq!(found[0], ["acquire/500", "1.0 µs", "1.1 µs", "1.2 µs"]);
        assert_eq!(found[1][0], "a long name");
        assert_eq!(found[1][2], "3 ns");
    }
}
