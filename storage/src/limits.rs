//! How much memory a store may take when nobody said.

use std::fs;

/// A quarter of the memory that this process may have: of its control group's limit, or of the
/// machine. In bytes.
pub fn default_memory_max() -> u64 {
    const UNKNOWN: u64 = 4 << 30;
    let machine = read_kib("/proc/meminfo", "MemTotal:").unwrap_or(UNKNOWN);
    let group = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ]
    .iter()
    .find_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    group.unwrap_or(u64::MAX).min(machine) / 4
}

/// The value of a line `NAME: N kB`, in bytes.
fn read_kib(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::default_memory_max;

    #[test]
    fn the_default_is_a_real_amount() {
        assert!(default_memory_max() >= 16 << 20);
    }
}
