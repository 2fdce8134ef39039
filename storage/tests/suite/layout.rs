//! The files of a directory, byte for byte as Kafka has them.

use ottla_storage::LogConfig;

use crate::bed::{Bed, Kind, NOW, append, batch, produced, small};

#[test]
fn a_stopped_directory_has_kafkas_files() {
    let bed = Bed::new(Kind::Disk);
    append(&bed.log(), &batch(1, NOW));
    bed.store.close().unwrap();
    assert_eq!(
        bed.files(),
        [
            "00000000000000000000.index",
            "00000000000000000000.log",
            "00000000000000000000.timeindex",
            "00000000000000000001.snapshot",
            "leader-epoch-checkpoint",
            "partition.metadata",
        ]
    );
    let read = |name: &str| std::fs::read(bed.log_dir().join(name)).unwrap();
    let text = |name: &str| String::from_utf8(read(name)).unwrap();
    assert_eq!(read("00000000000000000000.index"), b"");
    let mut time = NOW.to_be_bytes().to_vec();
    time.extend([0; 4]);
    assert_eq!(read("00000000000000000000.timeindex"), time);
    assert_eq!(read("00000000000000000001.snapshot").len(), 10);
    assert_eq!(text("leader-epoch-checkpoint"), "0\n1\n1 0\n");
    assert_eq!(
        text("partition.metadata"),
        "version: 0\ntopic_id: BwcHBwcHBwcHBwcHBwcHBw"
    );
    let root = |name: &str| std::fs::read_to_string(bed.data_dir().join(name)).unwrap();
    assert_eq!(
        root(".kafka_cleanshutdown"),
        "{\"version\":0,\"brokerEpoch\":-1}"
    );
    assert_eq!(root("recovery-point-offset-checkpoint"), "0\n1\nt 0 1\n");
    assert_eq!(root("replication-offset-checkpoint"), "0\n1\nt 0 1\n");
    assert_eq!(root("log-start-offset-checkpoint"), "0\n0\n");
    assert!(root("meta.properties").starts_with("version=1\ncluster.id="));
}

#[test]
fn rolled_segments_have_indexes_and_a_snapshot_at_the_next_base() {
    let bed = Bed::new(Kind::Disk);
    let log = bed.log();
    log.set_config(LogConfig {
        segment_bytes: 4 * batch(1, NOW).len() as u32,
        index_interval_bytes: batch(1, NOW).len() as u32,
        ..small()
    });
    for i in 0..4 {
        append(&log, &batch(1, NOW + i));
    }
    append(&log, &produced(5, 0, 0, 1));
    let read = |name: &str| std::fs::read(bed.log_dir().join(name)).unwrap();
    // No entry for the first batch, nor before more than the interval has been appended.
    let size = batch(1, NOW).len() as u32;
    let entry = |relative: u32, position: u32| [relative.to_be_bytes(), position.to_be_bytes()];
    assert_eq!(
        read("00000000000000000000.index"),
        entry(2, 2 * size).concat()
    );
    let times = read("00000000000000000000.timeindex");
    assert_eq!(times[..8], (NOW + 2).to_be_bytes());
    assert_eq!(times[12..20], (NOW + 3).to_be_bytes());
    assert_eq!(times.len(), 24);
    assert_eq!(read("00000000000000000004.snapshot").len(), 10);
    let log_size = read("00000000000000000000.log").len() as u32;
    assert_eq!(log_size, 4 * size);
}

/// Space is reserved ahead, but a file is as long as its batches.
#[test]
fn files_have_their_exact_size_while_they_grow() {
    let bed = Bed::new(Kind::Disk);
    let log = bed.log();
    log.set_config(LogConfig {
        segment_bytes: 1 << 20,
        ..small()
    });
    for _ in 0..200 {
        append(&log, &batch(5, NOW));
        let path = bed.log_dir().join(format!("{:020}.log", 0));
        assert_eq!(std::fs::metadata(path).unwrap().len(), log.size_bytes());
    }
}
