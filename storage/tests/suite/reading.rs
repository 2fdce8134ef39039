//! Appending and reading back.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use ottla_protocol::batch::{BatchHeader, BatchOptions, Batches, TimestampType, crc_ok};
use ottla_protocol::compression::Compression;
use ottla_storage::{AppendError, AppendOptions, Bound, LogConfig, Origin, ReadError};

use crate::bed::{
    Bed, Kind, NOW, append, batch, built, on_disks, on_every_kind, options, read_all, small,
    try_append, try_append_as,
};

fn reads_with_small_limits_return_every_record_once_across_segments(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    let mut expected = Vec::new();
    for i in 0..60 {
        let count = 1 + i % 4;
        let info = append(&log, &batch(count, NOW + 10 * i as i64));
        assert_eq!(info.base_offset, expected.len() as i64);
        for at in 0..count {
            expected.push((info.base_offset + at as i64, NOW + (10 * i + at) as i64));
        }
    }
    assert!(log.segment_count() > 5);
    for limit in [1, 100, 250, 500, 999, 10_000, usize::MAX] {
        assert_eq!(read_all(&log, limit, Bound::LogEnd), expected, "{limit}");
    }
}

fn a_read_from_the_middle_of_a_batch_gets_the_whole_batch(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    append(&log, &batch(5, NOW));
    append(&log, &batch(5, NOW));
    let slice = log.read(7, 1, true, Bound::LogEnd).unwrap();
    assert_eq!((slice.first_offset, slice.next_offset), (5, 10));
    assert_eq!(slice.bytes.len() as u64, log.size_bytes() / 2);
    let nothing = log.read(7, 1, false, Bound::LogEnd).unwrap();
    assert!(nothing.bytes.is_empty());
    assert_eq!((nothing.first_offset, nothing.next_offset), (7, 7));
}

fn the_end_is_an_empty_read_and_beyond_it_is_out_of_range(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    assert!(
        log.read(0, 100, true, Bound::LogEnd)
            .unwrap()
            .bytes
            .is_empty()
    );
    append(&log, &batch(3, NOW));
    let slice = log.read(3, 100, true, Bound::LogEnd).unwrap();
    assert!(slice.bytes.is_empty());
    assert_eq!(slice.high_watermark, 3);
    for offset in [-1, 4] {
        let error = log.read(offset, 100, true, Bound::LogEnd).unwrap_err();
        assert!(matches!(
            error,
            ReadError::OffsetOutOfRange {
                start: 0,
                end: 3,
                ..
            }
        ));
    }
}

fn an_append_sets_offset_and_epoch_and_keeps_every_other_byte(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    append(&log, &batch(2, NOW));
    let sent = batch(3, NOW);
    let opts = AppendOptions {
        leader_epoch: 9,
        ..options()
    };
    let info = try_append_as(&log, &sent, opts).unwrap();
    assert_eq!(
        (info.base_offset, info.last_offset, info.log_append_time),
        (2, 4, None)
    );
    let slice = log.read(2, 1, true, Bound::LogEnd).unwrap();
    let header = BatchHeader::parse(&slice.bytes).unwrap();
    assert_eq!((header.base_offset, header.leader_epoch), (2, 9));
    assert_eq!(slice.bytes[16..], sent[16..]);
    assert_eq!(log.epoch_for_offset(1), Some(1));
    assert_eq!(log.epoch_for_offset(2), Some(9));
    assert_eq!(log.end_offset_for_epoch(1), (1, 2));
    assert_eq!(log.end_offset_for_epoch(9), (9, 5));
    assert_eq!(log.end_offset_for_epoch(10), (-1, -1));
}

fn log_append_time_replaces_the_producers_time(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    let opts = AppendOptions {
        log_append_time: true,
        ..options()
    };
    let info = try_append_as(&log, &batch(3, 5), opts).unwrap();
    assert_eq!(info.log_append_time, Some(NOW));
    let slice = log.read(0, 1, true, Bound::LogEnd).unwrap();
    let header = BatchHeader::parse(&slice.bytes).unwrap();
    assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(header.max_timestamp, NOW);
    assert!(crc_ok(&slice.bytes));
    assert_eq!(log.offset_for_timestamp(NOW), Some((0, NOW)));
}

fn a_slice_outlives_the_segment_and_the_log(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    for _ in 0..30 {
        append(&log, &batch(3, NOW));
    }
    let slice = log.read(0, 10_000, true, Bound::LogEnd).unwrap();
    log.delete_records_before(log.end_offset(), NOW).unwrap();
    bed.store.delete_log("t", 0, NOW).unwrap();
    bed.store.tick(NOW + 1_000_000);
    drop(log);
    for item in Batches::new(&slice.bytes) {
        assert!(crc_ok(item.unwrap().1));
    }
}

fn timestamps_find_the_first_record_that_is_as_new(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    assert_eq!(log.offset_for_timestamp(0), None);
    assert_eq!(log.max_timestamp(), None);
    for i in 0..40 {
        append(&log, &batch(3, 1000 + 10 * i));
    }
    // Out of order: newer in the middle of old ones.
    append(&log, &batch(2, 5000));
    append(&log, &batch(2, 1000));
    for i in 0..40 {
        let time = 1000 + 10 * i;
        assert_eq!(log.offset_for_timestamp(time), Some((3 * i, time)));
        assert_eq!(
            log.offset_for_timestamp(time + 1),
            Some((3 * i + 1, time + 1))
        );
        let next = if i == 39 { 5000 } else { time + 10 };
        assert_eq!(log.offset_for_timestamp(time + 3), Some((3 * i + 3, next)));
    }
    assert_eq!(log.offset_for_timestamp(-1), Some((0, 1000)));
    assert_eq!(log.offset_for_timestamp(5002), None);
    assert_eq!(log.max_timestamp(), Some((121, 5001)));
    log.delete_records_before(4, NOW).unwrap();
    assert_eq!(log.offset_for_timestamp(0), Some((4, 1011)));
}

fn timestamps_are_found_inside_compressed_batches(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    for codec in [
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ] {
        let options = BatchOptions {
            compression: codec,
            ..BatchOptions::default()
        };
        let info = append(&log, &built(5, NOW + 100 * codec as i64, options));
        let time = NOW + 100 * codec as i64 + 2;
        assert_eq!(
            log.offset_for_timestamp(time),
            Some((info.base_offset + 2, time))
        );
    }
}

fn old_first_records_make_the_next_batch_open_a_segment(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    append(&log, &batch(1, 0));
    assert_eq!(log.segment_count(), 1);
    append(&log, &batch(1, NOW));
    assert_eq!(log.segment_count(), 2);
    append(&log, &batch(1, NOW + 1));
    assert_eq!(log.segment_count(), 2);
}

fn a_full_index_opens_a_segment(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    log.set_config(LogConfig {
        segment_bytes: 1 << 20,
        segment_index_bytes: 16,
        index_interval_bytes: 1,
        ..small()
    });
    for _ in 0..10 {
        append(&log, &batch(1, NOW));
    }
    assert!(log.segment_count() > 2);
    assert_eq!(read_all(&log, 300, Bound::LogEnd).len(), 10);
}

fn a_replica_keeps_offsets_gaps_and_epochs(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    let opts = AppendOptions {
        origin: Origin::Replica,
        ..options()
    };
    let place = |base: i64, epoch: i32| {
        let mut bytes = batch(2, NOW).to_vec();
        ottla_protocol::batch::stamp(&mut bytes, base, epoch);
        bytes.into()
    };
    for (base, epoch) in [(10, 3), (20, 3), (5_000_000_000, 4), (5_000_000_002, 4)] {
        let info = try_append_as(&log, &place(base, epoch), opts).unwrap();
        assert_eq!(info.base_offset, base);
    }
    let again = try_append_as(&log, &place(20, 3), opts);
    assert!(matches!(again, Err(AppendError::BadBatch(_))));
    assert_eq!(log.epoch_for_offset(5_000_000_003), Some(4));
    let offsets: Vec<i64> = read_all(&log, 1, Bound::LogEnd)
        .iter()
        .map(|r| r.0)
        .collect();
    assert_eq!(offsets[..4], [10, 11, 20, 21]);
    assert_eq!(offsets[4], 5_000_000_000);
    assert_eq!(
        log.read(15, 1, true, Bound::LogEnd).unwrap().first_offset,
        20
    );
}

fn bytes_that_are_no_batch_are_refused(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    let good = batch(1, NOW);
    let header = BatchHeader::parse(&good).unwrap();
    for bytes in [&good[..good.len() - 1], &good[..10], &[]] {
        let error = log.append(bytes, &header, options()).unwrap_err();
        assert!(matches!(error, AppendError::BadBatch(_)));
    }
    assert!(matches!(
        try_append(&log, &batch(100, NOW)),
        Err(AppendError::TooLarge { max: 1000, .. })
    ));
    assert_eq!(log.end_offset(), 0);
}

fn listeners_see_what_was_published_and_may_read(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(AtomicI64::new(0));
    let (weak, calls2, seen2) = (Arc::downgrade(&log), Arc::clone(&calls), Arc::clone(&seen));
    log.on_publish(Arc::new(move || {
        calls2.fetch_add(1, Ordering::Relaxed);
        let log = weak.upgrade().unwrap();
        // Taking the log's own lock here would deadlock if it were still held.
        assert!(log.producers().is_empty());
        seen2.store(log.end_offset(), Ordering::Relaxed);
    }));
    append(&log, &batch(2, NOW));
    append(&log, &batch(2, NOW));
    assert_eq!(seen.load(Ordering::Relaxed), 4);
    log.delete_records_before(1, NOW).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    log.delete_records_before(1, NOW).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

fn readers_and_a_writer_go_on_at_the_same_time(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut next = 0;
                while next < 600 {
                    let Ok(slice) = log.read(next, 700, true, Bound::LogEnd) else {
                        next = log.start_offset();
                        continue;
                    };
                    for item in Batches::new(&slice.bytes) {
                        let (header, bytes) = item.unwrap();
                        assert!(crc_ok(bytes));
                        assert!(header.last_offset() < slice.high_watermark);
                    }
                    next = slice.next_offset;
                    std::thread::yield_now();
                }
            });
        }
        for i in 0..300 {
            append(&log, &batch(2, NOW));
            if i % 50 == 0 {
                log.delete_records_before(i, NOW).unwrap();
            }
        }
    });
}

fn idle_segments_are_unmapped_and_come_back(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    for i in 0..40 {
        append(&log, &batch(3, NOW + i));
    }
    let before = read_all(&log, 500, Bound::LogEnd);
    for round in 1..4 {
        bed.store.tick(NOW + round * 400_000);
    }
    assert_eq!(read_all(&log, 500, Bound::LogEnd), before);
    append(&log, &batch(1, NOW));
    assert_eq!(read_all(&log, 500, Bound::LogEnd).len(), before.len() + 1);
}

on_every_kind! {
    reads_with_small_limits_return_every_record_once_across_segments,
    a_read_from_the_middle_of_a_batch_gets_the_whole_batch,
    the_end_is_an_empty_read_and_beyond_it_is_out_of_range,
    an_append_sets_offset_and_epoch_and_keeps_every_other_byte,
    log_append_time_replaces_the_producers_time,
    a_slice_outlives_the_segment_and_the_log,
    timestamps_find_the_first_record_that_is_as_new,
    timestamps_are_found_inside_compressed_batches,
    old_first_records_make_the_next_batch_open_a_segment,
    a_full_index_opens_a_segment,
    a_replica_keeps_offsets_gaps_and_epochs,
    bytes_that_are_no_batch_are_refused,
    listeners_see_what_was_published_and_may_read,
    readers_and_a_writer_go_on_at_the_same_time,
    idle_segments_are_unmapped_and_come_back,
}

/// `many` descriptors must not be needed for many segments.
fn rolled_segments_hold_no_descriptor(kind: Kind) {
    let bed = Bed::new(kind);
    let log = bed.log();
    for i in 0..200 {
        append(&log, &batch(3, NOW + i));
    }
    log.flush().unwrap();
    read_all(&log, 500, Bound::LogEnd);
    assert!(log.segment_count() > 20);
    let dir = bed.log_dir();
    let open = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok())
        .filter(|path| path.starts_with(&dir))
        .count();
    assert!(open <= 2, "{open} descriptors");
}

#[cfg(target_os = "linux")]
mod descriptors {
    use super::on_disks;
    use super::rolled_segments_hold_no_descriptor;
    on_disks! { rolled_segments_hold_no_descriptor }
}
