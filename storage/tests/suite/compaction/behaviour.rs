//! Keys, tombstones, producers, holes.

use ottla_protocol::batch::{BatchOptions, HEADER_LEN};
use ottla_protocol::compression::Compression;
use ottla_storage::{Bound, CleanerOptions, LogConfig};

use super::{
    batches, bed, by, clean, compacted, delete, keyed, last_values, put, put_as, roll, rows, told,
};
use crate::bed::{Bed, Kind, NOW, on_disks, on_every_kind, options, try_append_as};

fn row(offset: i64, key: &str, value: Option<&str>) -> super::Row {
    (offset, key.to_owned(), value.map(str::to_owned))
}

fn the_last_value_of_each_key_stays_at_its_offset(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    put_as(
        &log,
        &[("a", Some("1")), ("b", Some("1")), ("a", Some("2"))],
        BatchOptions::default(),
    );
    put(&log, "c", "1");
    put(&log, "b", "2");
    roll(&log);
    let (end, size) = (log.end_offset(), log.size_bytes());
    clean(&bed, NOW);
    let kept = [
        row(2, "a", Some("2")),
        row(3, "c", Some("1")),
        row(4, "b", Some("2")),
    ];
    assert_eq!(told(&log), kept);
    assert_eq!((log.start_offset(), log.end_offset()), (0, end));
    assert!(log.size_bytes() < size);
    // The batch that lost its first records still begins where it began.
    assert_eq!(batches(&log)[0].0.base_offset, 0);
    assert_eq!(batches(&log)[0].0.last_offset(), 2);
}

fn records_of_the_active_segment_stay(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    put(&log, "a", "1");
    put(&log, "a", "2");
    clean(&bed, NOW);
    assert_eq!(told(&log).len(), 2);
    roll(&log);
    put(&log, "a", "3");
    clean(&bed, NOW);
    // 2 is the last of the compacted part, 3 lies in the active segment.
    let values: Vec<_> = told(&log).into_iter().map(|row| row.2.unwrap()).collect();
    assert_eq!(values, ["2", "3"]);
}

fn a_log_that_is_not_to_be_compacted_is_left_alone(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    put(&log, "a", "1");
    put(&log, "a", "2");
    roll(&log);
    clean(&bed, NOW);
    assert_eq!(told(&log).len(), 2);
}

fn a_tombstone_goes_delete_retention_after_it_was_first_compacted(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    put(&log, "a", "1");
    delete(&log, "a");
    roll(&log);
    clean(&bed, NOW + 50);
    assert_eq!(told(&log), [row(1, "a", None)]);
    let header = batches(&log)[0].0;
    assert_eq!(header.delete_horizon(), Some(NOW + 1050));
    assert_eq!(header.max_timestamp, NOW);
    // A later pass, too early: nothing moves, the horizon least of all.
    put(&log, "b", "1");
    roll(&log);
    clean(&bed, NOW + 1049);
    assert_eq!(told(&log)[0], row(1, "a", None));
    assert_eq!(batches(&log)[0].0.delete_horizon(), Some(NOW + 1050));
    roll(&log);
    clean(&bed, NOW + 1050);
    assert_eq!(told(&log), [row(2 + (told(&log)[0].0 - 2), "b", Some("1"))]);
}

fn every_codec_stays(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    for codec in Compression::ALL {
        let how = BatchOptions {
            compression: codec,
            ..BatchOptions::default()
        };
        let name = codec.name();
        put_as(&log, &[("x", Some(name)), (name, Some("kept"))], how);
    }
    put(&log, "x", "last");
    roll(&log);
    clean(&bed, NOW);
    let codecs: Vec<_> = batches(&log)[..5]
        .iter()
        .map(|(header, _)| (header.compression().unwrap(), header.count))
        .collect();
    assert_eq!(codecs, Compression::ALL.map(|codec| (codec, 1)));
    assert_eq!(last_values(&log)["x"], "last");
}

fn a_producers_last_batch_stays_without_records_and_its_sequence_goes_on(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    put_as(&log, &[("a", Some("1"))], by(7, 0, false));
    put_as(&log, &[("a", Some("2")), ("b", Some("2"))], by(7, 1, false));
    put_as(
        &log,
        &[("a", Some("3")), ("b", Some("3"))],
        BatchOptions::default(),
    );
    roll(&log);
    clean(&bed, NOW);
    let (header, bytes) = batches(&log).remove(0);
    assert_eq!(
        (header.base_offset, header.last_offset(), header.count),
        (1, 2, 0)
    );
    assert_eq!(bytes.len(), HEADER_LEN);
    assert_eq!(log.max_timestamp().unwrap().1, NOW + 1);
    drop(log);
    // The sequence is known even if it is only known by the batches.
    let bed = if matches!(kind, Kind::Disk | Kind::PortableDisk) {
        for name in bed
            .files()
            .iter()
            .filter(|name| name.ends_with(".snapshot"))
        {
            std::fs::remove_file(bed.log_dir().join(name)).unwrap();
        }
        bed.crash()
    } else {
        bed
    };
    let log = bed.log();
    let again = keyed(&[("a", Some("2")), ("b", Some("2"))], NOW, by(7, 1, false));
    let again = try_append_as(&log, &again, options()).unwrap();
    assert!(again.duplicate && again.base_offset == 1);
    put_as(&log, &[("c", Some("4"))], by(7, 3, false));
    // It is the last one no longer: the empty batch goes.
    roll(&log);
    clean(&bed, NOW);
    assert!(batches(&log)[0].0.count > 0);
}

fn readers_reach_the_end_over_holes_and_keep_what_they_hold(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    for i in 0..60 {
        put(&log, &format!("k{}", i % 3), &format!("{i}"));
    }
    let held = log.read(0, 300, true, Bound::LogEnd).unwrap();
    let before = held.bytes.to_vec();
    roll(&log);
    clean(&bed, NOW);
    assert_eq!(held.bytes, before);
    // From an offset whose batch is gone the next batch is read, at every offset.
    let there = rows(&log);
    for from in 0..log.end_offset() {
        let slice = log.read(from, 1, true, Bound::LogEnd).unwrap();
        let next = there.iter().find(|row| row.0 >= from).unwrap().0;
        assert_eq!((slice.first_offset, slice.next_offset), (next, next + 1));
    }
    bed.store.tick(NOW + 100_000);
    assert_eq!(held.bytes, before);
    assert_eq!(told(&log).len(), 3);
}

fn the_last_batch_before_an_empty_segment_stays(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    put(&log, "a", "1");
    roll(&log);
    // All of the active segment is deleted again: the log ends behind a compacted part.
    let end = log.end_offset();
    log.delete_records_before(end, NOW).unwrap();
    clean(&bed, NOW);
    assert_eq!(batches(&log), []);
    put(&log, "a", "2");
    roll(&log);
    clean(&bed, NOW);
    assert_eq!(told(&log).len(), 1);
}

fn a_small_map_takes_several_passes_and_finds_the_same(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    for i in 0..120 {
        put(&log, &format!("k{}", i * 7 % 40), &format!("{i}"));
    }
    roll(&log);
    let expected = last_values(&log);
    let options = CleanerOptions {
        dedupe_buffer_bytes: 24 * 12,
        load_factor: 0.9,
    };
    bed.store.clean(NOW, &options);
    assert_eq!(last_values(&log), expected);
    assert_eq!(told(&log).len(), 40);
}

fn small_segments_become_one(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    for i in 0..200 {
        put(&log, &format!("k{}", i % 5), &format!("{i}"));
    }
    roll(&log);
    assert!(log.segment_count() > 10);
    clean(&bed, NOW);
    // What became small is merged by the next pass.
    roll(&log);
    clean(&bed, NOW);
    assert!(log.segment_count() <= 3);
    assert_eq!(told(&log).len(), 5);
    // Found again by time, and from every offset.
    assert_eq!(log.offset_for_timestamp(NOW).unwrap().0, told(&log)[0].0);
}

fn compaction_waits_for_the_ratio_and_takes_what_is_dirty(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    log.set_config(LogConfig {
        min_cleanable_dirty_ratio: 0.5,
        ..compacted()
    });
    for i in 0..40 {
        put(&log, &format!("{i}"), "x");
    }
    roll(&log);
    clean(&bed, NOW);
    let segments = log.segment_count();
    put(&log, "0", "y");
    roll(&log);
    clean(&bed, NOW);
    assert!(log.segment_count() > segments, "too little is dirty");
    for i in 0..60 {
        put(&log, &format!("{}", i % 40), "z");
    }
    roll(&log);
    clean(&bed, NOW);
    assert_eq!(told(&log).len(), 40);
}

on_every_kind! {
    the_last_value_of_each_key_stays_at_its_offset,
    records_of_the_active_segment_stay,
    a_log_that_is_not_to_be_compacted_is_left_alone,
    a_tombstone_goes_delete_retention_after_it_was_first_compacted,
    every_codec_stays,
    a_producers_last_batch_stays_without_records_and_its_sequence_goes_on,
    readers_reach_the_end_over_holes_and_keep_what_they_hold,
    the_last_batch_before_an_empty_segment_stays,
    a_small_map_takes_several_passes_and_finds_the_same,
    small_segments_become_one,
    compaction_waits_for_the_ratio_and_takes_what_is_dirty,
}

fn what_is_compacted_is_known_after_every_kind_of_restart(kind: Kind) {
    let mut bed = bed(kind);
    for i in 0..60 {
        put(&bed.log(), &format!("k{}", i % 3), &format!("{i}"));
    }
    roll(&bed.log());
    clean(&bed, NOW);
    let expected = rows(&bed.log());
    let offset = checkpoint(&bed).unwrap();
    assert!(offset > 60 && offset <= bed.log().end_offset());
    for restart in [Bed::restart, Bed::crash, Bed::power_off] {
        bed = restart(bed);
        assert_eq!(rows(&bed.log()), expected);
        assert_eq!(checkpoint(&bed), Some(offset));
        let size = bed.log().size_bytes();
        clean(&bed, NOW);
        assert_eq!(bed.log().size_bytes(), size);
    }
}

/// The log's row in `cleaner-offset-checkpoint`.
fn checkpoint(bed: &Bed) -> Option<i64> {
    let text = std::fs::read_to_string(bed.data_dir().join("cleaner-offset-checkpoint")).unwrap();
    let row = text.lines().find_map(|line| line.strip_prefix("t 0 "));
    row.map(|offset| offset.parse().unwrap())
}

fn old_files_go_after_the_delay_and_no_temporary_ones_stay(kind: Kind) {
    let bed = bed(kind);
    let log = bed.log();
    for i in 0..60 {
        put(&log, &format!("k{}", i % 3), &format!("{i}"));
    }
    roll(&log);
    clean(&bed, NOW);
    let ending = |suffix: &str| bed.files().iter().filter(|n| n.ends_with(suffix)).count();
    assert!(ending(".deleted") > 0);
    assert_eq!(ending(".cleaned") + ending(".swap"), 0);
    bed.store.tick(NOW + 60_000);
    assert_eq!(ending(".deleted"), 0);
    assert_eq!(ending(".log"), log.segment_count());
}

mod disks {
    use super::{
        old_files_go_after_the_delay_and_no_temporary_ones_stay, on_disks,
        what_is_compacted_is_known_after_every_kind_of_restart,
    };
    on_disks! {
        old_files_go_after_the_delay_and_no_temporary_ones_stay,
        what_is_compacted_is_known_after_every_kind_of_restart,
    }
}
