//! `bench compare` (Ottla beside Apache Kafka), `bench first-poll` (how soon a new group has its first
//! record) and `bench kernels` (criterion).

mod compare;
mod first_poll;
mod kernels;
mod side;

use anyhow::{Result, bail};

use crate::args::Args;

pub(crate) fn run(args: &Args) -> Result<()> {
    match args.words.first().map(String::as_str) {
        Some("compare") => compare::run(args),
        Some("first-poll") => first_poll::run(args),
        Some("kernels") => kernels::run(args),
        _ => bail!("bench compare, bench first-poll, or bench kernels"),
    }
}

/// The middle value; the lower of two.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get(sorted.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(f64::NAN)
}

/// What the numbers were made on.
fn machine() -> Result<String> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name"))
        .map_or("unknown processor", |l| {
            l.trim_start_matches([' ', '\t', ':'])
        });
    let cores = std::thread::available_parallelism()?;
    Ok(format!("{model}, {cores} cores"))
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(&[4.0, 1.0]) - 1.0).abs() < f64::EPSILON);
        assert!(median(&[]).is_nan());
    }
}
