//! What every test stands on: stores of each kind, batches, and naive reading.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use ottla_protocol::batch::{BatchBuilder, BatchHeader, BatchOptions, Batches, records};
use ottla_storage::{
    AppendError, AppendInfo, AppendOptions, Bound, Faults, Log, LogConfig, Origin, Store,
    StoreOptions,
};
use tempfile::TempDir;

/// Where logs live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    PortableMemory,
    Disk,
    PortableDisk,
}

/// Makes one test per kind out of functions that take the kind.
macro_rules! on_every_kind {
    ($($name:ident),* $(,)?) => {
        $crate::bed::on_kinds! { memory Memory $($name)* }
        $crate::bed::on_kinds! { portable_memory PortableMemory $($name)* }
        $crate::bed::on_kinds! { disk Disk $($name)* }
        $crate::bed::on_kinds! { portable_disk PortableDisk $($name)* }
    };
}
/// As `on_every_kind`, for what only a disk can do.
macro_rules! on_disks {
    ($($name:ident),* $(,)?) => {
        $crate::bed::on_kinds! { disk Disk $($name)* }
        $crate::bed::on_kinds! { portable_disk PortableDisk $($name)* }
    };
}
macro_rules! on_kinds {
    ($module:ident $kind:ident $($name:ident)*) => {
        mod $module {
            $(#[test]
            fn $name() {
                super::$name($crate::bed::Kind::$kind);
            })*
        }
    };
}
pub(crate) use {on_disks, on_every_kind, on_kinds};

/// A store, and its directory if it has one.
pub(crate) struct Bed {
    pub(crate) store: Arc<Store>,
    pub(crate) options: StoreOptions,
    dir: Option<TempDir>,
}

pub(crate) const NOW: i64 = 1_700_000_000_000;
pub(crate) const TOPIC_ID: [u8; 16] = [7; 16];

impl Bed {
    pub(crate) fn new(kind: Kind) -> Self {
        Self::with(kind, |_| {})
    }

    pub(crate) fn with(kind: Kind, change: impl FnOnce(&mut StoreOptions)) -> Self {
        let on_disk = matches!(kind, Kind::Disk | Kind::PortableDisk);
        let dir = on_disk.then(|| tempfile::tempdir().unwrap());
        let mut options = StoreOptions {
            data_dir: dir.as_ref().map(|dir| dir.path().join("data")),
            portable: matches!(kind, Kind::PortableMemory | Kind::PortableDisk),
            log_config: small(),
            ..StoreOptions::default()
        };
        change(&mut options);
        let store = Store::open(options.clone(), NOW).unwrap();
        Self {
            store,
            options,
            dir,
        }
    }

    /// A disk whose faults can be set.
    pub(crate) fn faulty() -> (Self, Arc<Faults>) {
        let faults = Faults::new();
        let bed = Self::with(Kind::Disk, |options| {
            options.faults = Some(Arc::clone(&faults));
        });
        (bed, faults)
    }

    pub(crate) fn log(&self) -> Arc<Log> {
        match self.store.log("t", 0) {
            Some(log) => log,
            None => self
                .store
                .create_log("t", 0, TOPIC_ID, small(), NOW)
                .unwrap(),
        }
    }

    /// Stops cleanly and starts again.
    pub(crate) fn restart(self) -> Self {
        self.store.close().unwrap();
        self.crash()
    }

    /// Forgets the store as a killed process does, and starts again.
    pub(crate) fn crash(self) -> Self {
        let Self {
            store,
            options,
            dir,
        } = self;
        drop(store);
        let store = Store::open(options.clone(), NOW).unwrap();
        Self {
            store,
            options,
            dir,
        }
    }

    /// As after a power failure: the next start cannot know that the page cache survived.
    pub(crate) fn power_off(self) -> Self {
        std::fs::remove_file(self.data_dir().join(".ottla-boot")).unwrap();
        self.crash()
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.as_ref().unwrap().path().join("data")
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        self.data_dir().join("t-0")
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.log_dir())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Segments of a few batches and an index entry for every other batch.
pub(crate) fn small() -> LogConfig {
    LogConfig {
        segment_bytes: 1000,
        index_interval_bytes: 150,
        retention_ms: -1,
        ..LogConfig::default()
    }
}

/// A batch of `count` records with timestamps from `time` on.
pub(crate) fn batch(count: usize, time: i64) -> Bytes {
    built(count, time, BatchOptions::default())
}

pub(crate) fn built(count: usize, time: i64, options: BatchOptions) -> Bytes {
    let mut builder = BatchBuilder::new(options);
    for i in 0..count {
        let time = time + i as i64;
        builder.push(time, None, Some(format!("value {time}").as_bytes()));
    }
    builder.build().unwrap()
}

pub(crate) fn produced(producer_id: i64, epoch: i16, sequence: i32, count: usize) -> Bytes {
    let options = BatchOptions {
        producer_id,
        producer_epoch: epoch,
        base_sequence: sequence,
        ..BatchOptions::default()
    };
    built(count, NOW, options)
}

pub(crate) fn options() -> AppendOptions {
    AppendOptions {
        leader_epoch: 1,
        now: NOW,
        log_append_time: false,
        origin: Origin::Client,
    }
}

pub(crate) fn try_append_as(
    log: &Log,
    batch: &Bytes,
    opts: AppendOptions,
) -> Result<AppendInfo, AppendError> {
    log.append(batch, &BatchHeader::parse(batch).unwrap(), opts)
}

pub(crate) fn try_append(log: &Log, batch: &Bytes) -> Result<AppendInfo, AppendError> {
    try_append_as(log, batch, options())
}

pub(crate) fn append(log: &Log, batch: &Bytes) -> AppendInfo {
    try_append(log, batch).unwrap()
}

/// Reads everything from the start, a read at a time, and checks what every read must hold to.
pub(crate) fn read_all(log: &Log, max_bytes: usize, bound: Bound) -> Vec<(i64, i64)> {
    let mut found: Vec<(i64, i64)> = Vec::new();
    let mut from = log.start_offset();
    loop {
        let slice = log.read(from, max_bytes, true, bound).unwrap();
        if slice.bytes.is_empty() {
            assert_eq!(slice.next_offset, from);
            return found;
        }
        let mut batches = 0;
        for item in Batches::new(&slice.bytes) {
            let (header, bytes) = item.unwrap();
            batches += 1;
            assert!(ottla_protocol::batch::crc_ok(bytes));
            assert!(
                header.last_offset() >= from,
                "a batch before the offset asked for"
            );
            assert!(header.last_offset() < slice.next_offset);
            for record in &records(bytes).unwrap() {
                let record = record.unwrap();
                if record.offset >= from {
                    found.push((record.offset, record.timestamp));
                }
            }
        }
        assert!(batches == 1 || slice.bytes.len() <= max_bytes);
        assert!(slice.next_offset > from);
        from = slice.next_offset;
    }
}
