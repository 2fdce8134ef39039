//! However hostile a record batch is, checking it takes flat memory.
//!
//! One test in a process of its own: it counts every allocation. (What zstd allocates it does not
//! see; its window is bounded by the library, to 128 MiB that are touched only as they fill.)

#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::Bytes;
use ottla_protocol::batch::{
    BatchBuilder, BatchOptions, ProduceChecks, at, crc_of, records_up_to, validate_produce,
};
use ottla_protocol::compression::{Compression, compress, decompress};
use ottla_protocol::internal::{ClusterMetadataRecord, ConsumerOffsetsRecord};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// A decoder's tables and windows: the window of the walk, and at most two LZ4 blocks of 4 MiB.
const DECODER: usize = 9 << 20;
/// What an error's text may take.
const TEXT: usize = 4096;

/// The most bytes that were allocated while `work` ran.
fn peak<T>(work: impl FnOnce() -> T) -> (usize, T) {
    ALLOCATED.reset_peak_usage();
    let before = ALLOCATED.current_usage();
    let result = work();
    (ALLOCATED.peak_usage().saturating_sub(before), result)
}

fn batch(count: usize, value: &[u8], compression: Compression) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions {
        compression,
        ..BatchOptions::default()
    });
    for _ in 0..count {
        builder.push(0, Some(b"key"), Some(value));
    }
    builder.build().unwrap()
}

fn with_count(batch: &[u8], count: i32) -> Bytes {
    let mut lying = batch.to_vec();
    lying[at::COUNT..at::COUNT + 4].copy_from_slice(&count.to_be_bytes());
    lying[at::LAST_OFFSET_DELTA..at::LAST_OFFSET_DELTA + 4]
        .copy_from_slice(&(count - 1).to_be_bytes());
    let crc = crc_of(&lying);
    lying[at::CRC..at::CRC + 4].copy_from_slice(&crc.to_be_bytes());
    lying.into()
}

#[test]
fn checking_a_batch_takes_flat_memory() {
    let checks = ProduceChecks {
        max_message_bytes: usize::MAX,
        ..ProduceChecks::at(0)
    };

    // Nothing at all for an uncompressed batch, however many records it has or claims.
    let plain = batch(20_000, b"value", Compression::None);
    let (taken, result) = peak(|| validate_produce(&plain, &checks));
    assert!(result.is_ok());
    assert!(taken <= 64, "{taken} bytes");
    let (taken, result) = peak(|| validate_produce(&with_count(&plain, i32::MAX), &checks));
    assert!(result.is_err());
    assert!(taken <= plain.len() + TEXT, "{taken} bytes");

    bombs(&checks);
    refused_records(&checks);
    declared_lengths();
}

/// A window for a compressed batch, be it a bomb: 16 MiB come out of each, and past the limit it is
/// refused.
fn bombs(checks: &ProduceChecks) {
    for codec in Compression::ALL.into_iter().skip(1) {
        let bomb = batch(16, &vec![0; 1 << 20], codec);
        let (taken, result) = peak(|| validate_produce(&bomb, checks));
        assert!(result.is_ok(), "{codec}");
        assert!(taken <= DECODER, "{codec}: {taken} bytes");
        let limited = ProduceChecks {
            decompressed_limit: 1 << 20,
            ..*checks
        };
        let (taken, result) = peak(|| validate_produce(&bomb, &limited));
        assert!(result.is_err(), "{codec}");
        assert!(taken <= DECODER, "{codec}: {taken} bytes");
        let (taken, result) = peak(|| records_up_to(&bomb, 1 << 20).map(|_| ()));
        assert!(result.is_err(), "{codec}");
        assert!(taken <= DECODER + (3 << 20), "{codec}: {taken} bytes");
        let (taken, result) = peak(|| validate_produce(&with_count(&bomb, i32::MAX), checks));
        assert!(result.is_err(), "{codec}");
        assert!(
            taken <= DECODER + bomb.len() + TEXT,
            "{codec}: {taken} bytes"
        );
    }
}

/// Every record refused: the list of faults is bounded.
fn refused_records(checks: &ProduceChecks) {
    let mut builder = BatchBuilder::default();
    for _ in 0..200_000 {
        builder.push(0, None, None);
    }
    let keyless = builder.build().unwrap();
    let compacted = ProduceChecks {
        compacted: true,
        ..*checks
    };
    let (taken, result) = peak(|| validate_produce(&keyless, &compacted));
    assert!(result.is_err());
    assert!(taken <= 256 << 10, "{taken} bytes");
}

/// Lengths that a codec or a schema declares reserve nothing.
fn declared_lengths() {
    let lies: [(Compression, &[u8]); 2] = [
        (
            Compression::Snappy,
            &[0xff, 0xff, 0xff, 0xff, 0x0f, 0, b'a'],
        ),
        (
            Compression::Zstd,
            &[
                0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0,
            ],
        ),
    ];
    for (codec, lie) in lies {
        let (taken, result) = peak(|| decompress(codec, lie, usize::MAX).map(|out| out.len()));
        assert!(
            taken <= TEXT + (1 << 18),
            "{codec}: {taken} bytes, {result:?}"
        );
    }
    let one_block = compress(Compression::Lz4, None, b"x").unwrap();
    let (taken, _) = peak(|| decompress(Compression::Lz4, &one_block, usize::MAX));
    assert!(taken <= 256 << 10, "{taken} bytes");

    let (taken, result) = peak(|| {
        let key = [0, 13, 0, 1, b'g', 0, 1, b'm'];
        let value = [0, 0, 0xff, 0xff, 0xff, 0xff, 0x07, 0];
        let metadata = [
            1, 3, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0x7f,
        ];
        ConsumerOffsetsRecord::decode(&key, Some(&value)).is_err()
            && ClusterMetadataRecord::decode(&metadata).is_err()
    });
    assert!(result && taken <= TEXT, "{taken} bytes");
}
