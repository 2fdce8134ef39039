//! Starting again after a crash.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use ottla_storage::{Bound, LogConfig, Store, StoreOptions};

use crate::bed::{Bed, Kind, NOW, TOPIC_ID, append, batch, on_disks, options, read_all, small};

fn filled(kind: Kind) -> Bed {
    let bed = Bed::new(kind);
    let log = bed.log();
    for i in 0..40 {
        append(&log, &batch(2, NOW + i));
    }
    assert!(log.segment_count() > 4);
    drop(log);
    bed
}

fn last_file(dir: &Path, suffix: &str) -> std::path::PathBuf {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == suffix))
        .collect();
    files.sort();
    files.pop().unwrap()
}

fn a_torn_tail_is_cut_off_wherever_it_is_torn(kind: Kind) {
    let bed = filled(kind);
    let path = last_file(&bed.log_dir(), "log");
    let whole = std::fs::read(&path).unwrap();
    let base: i64 = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let mut bed = bed;
    let size = whole.len() / (80 - base as usize).div_ceil(2);
    for cut in (1..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..cut]).unwrap();
        bed = if cut % 2 == 0 {
            bed.crash()
        } else {
            bed.power_off()
        };
        let expected = base + 2 * (cut / size) as i64;
        assert_eq!(bed.log().end_offset(), expected, "cut at {cut}");
        let length = std::fs::metadata(&path).unwrap().len() as usize;
        assert_eq!(length, cut / size * size);
        assert_eq!(
            read_all(&bed.log(), 500, Bound::LogEnd).len() as i64,
            expected
        );
    }
}

fn garbage_and_damage_end_the_log_where_they_begin(kind: Kind) {
    for garbage in [vec![0; 500], vec![0xff; 500], b"not a batch".repeat(40)] {
        let bed = filled(kind);
        let path = last_file(&bed.log_dir(), "log");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend(garbage);
        std::fs::write(&path, bytes).unwrap();
        let bed = bed.crash();
        assert_eq!(bed.log().end_offset(), 80);
        assert_eq!(append(&bed.log(), &batch(1, NOW)).base_offset, 80);
    }
    let bed = filled(kind);
    let path = bed.log_dir().join(format!("{:020}.log", 0));
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let bed = bed.power_off();
    let end = bed.log().end_offset();
    assert!(end > 0 && end < 20, "{end}");
    assert_eq!(bed.log().segment_count(), 1);
    assert_eq!(read_all(&bed.log(), 500, Bound::LogEnd).len() as i64, end);
}

fn missing_and_damaged_side_files_are_made_anew(kind: Kind) {
    for suffix in ["index", "timeindex", "snapshot", "txnindex"] {
        for content in [None, Some(&b"nonsense that is no file of Kafka's"[..])] {
            let bed = filled(kind);
            let expected = read_all(&bed.log(), 300, Bound::LogEnd);
            let bed = bed.restart();
            bed.store.close().unwrap();
            for name in bed.files().iter().filter(|name| name.ends_with(suffix)) {
                let path = bed.log_dir().join(name);
                match content {
                    None => std::fs::remove_file(path).unwrap(),
                    Some(bytes) => std::fs::write(path, bytes).unwrap(),
                }
            }
            let bed = bed.crash();
            let log = bed.log();
            assert_eq!(read_all(&log, 300, Bound::LogEnd), expected, "{suffix}");
            assert_eq!(log.offset_for_timestamp(NOW + 20), Some((39, NOW + 20)));
            assert_eq!(log.end_offset_for_epoch(1), (1, 80));
        }
    }
}

fn lost_epochs_are_found_in_the_batches(kind: Kind) {
    let bed = filled(kind);
    let opts = ottla_storage::AppendOptions {
        leader_epoch: 6,
        ..options()
    };
    crate::bed::try_append_as(&bed.log(), &batch(1, NOW), opts).unwrap();
    let bed = bed.restart();
    bed.store.close().unwrap();
    std::fs::write(bed.log_dir().join("leader-epoch-checkpoint"), "0\n1\nx").unwrap();
    let bed = bed.crash();
    assert_eq!(bed.log().end_offset_for_epoch(1), (1, 80));
    assert_eq!(bed.log().end_offset_for_epoch(6), (6, 81));
}

/// Kafka keeps 10 MiB of zeros behind the entries of an active index.
fn the_active_indexes_of_a_killed_kafka_are_adopted(kind: Kind) {
    let bed = filled(kind);
    let dir = bed.log_dir();
    let active = last_file(&dir, "log");
    for (suffix, size) in [("index", 10_485_760), ("timeindex", 10_485_756)] {
        let file = std::fs::File::create(active.with_extension(suffix)).unwrap();
        file.set_len(size).unwrap();
    }
    let bed = bed.power_off();
    assert_eq!(bed.log().end_offset(), 80);
    let log = bed.log();
    append(&log, &batch(1, NOW));
    let index = std::fs::metadata(active.with_extension("index")).unwrap();
    assert!(index.len() < 100);
    assert_eq!(read_all(&log, 300, Bound::LogEnd).len(), 81);
}

on_disks! {
    a_torn_tail_is_cut_off_wherever_it_is_torn,
    garbage_and_damage_end_the_log_where_they_begin,
    missing_and_damaged_side_files_are_made_anew,
    lost_epochs_are_found_in_the_batches,
    the_active_indexes_of_a_killed_kafka_are_adopted,
}

const CHILD_DIR: &str = "OTTLA_STORAGE_CRASH_DIR";

/// Not a test of its own: the process that the next test kills.
#[test]
fn appending_child() {
    let Ok(dir) = std::env::var(CHILD_DIR) else {
        return;
    };
    let options = StoreOptions {
        data_dir: Some(dir.into()),
        log_config: small(),
        ..StoreOptions::default()
    };
    let store = Store::open(options, NOW).unwrap();
    let log = store
        .log("t", 0)
        .unwrap_or_else(|| store.create_log("t", 0, TOPIC_ID, small(), NOW).unwrap());
    log.set_config(LogConfig {
        segment_bytes: 20_000,
        ..small()
    });
    let mut out = std::io::stdout();
    loop {
        let info = append(&log, &batch(3, NOW));
        std::io::Write::write_all(&mut out, format!("acked {}\n", info.last_offset).as_bytes())
            .unwrap();
    }
}

#[test]
fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = -1;
    for lines in [1, 40, 700, 150] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "recovery::appending_child", "--nocapture"])
            .env(CHILD_DIR, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let acks = output.lines().map_while(Result::ok).filter_map(|line| {
            let at = line.find("acked ")?;
            line[at + 6..].trim().parse::<i64>().ok()
        });
        for offset in acks.take(lines) {
            acknowledged = offset;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let options = StoreOptions {
            data_dir: Some(dir.path().to_owned()),
            ..StoreOptions::default()
        };
        let store = Store::open(options, NOW).unwrap();
        let log = store.log("t", 0).unwrap();
        assert!(log.end_offset() > acknowledged);
        let found = read_all(&log, 5000, Bound::LogEnd);
        assert_eq!(found.len() as i64, log.end_offset());
    }
}
