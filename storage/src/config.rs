//! What a store and its logs can be told.

use std::path::PathBuf;
use std::sync::Arc;

use crate::faults::Faults;

/// Settings of one log: topic configurations of Kafka, by their names.
#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`: a segment, and so a batch, is no larger than this.
    pub segment_bytes: u32,
    /// `segment.ms`: a batch this much newer than the segment's first opens a new segment.
    pub segment_ms: i64,
    /// `segment.jitter.ms`: `segment_ms` is shortened by up to this much, differently per segment.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`: a segment whose offset index would be larger is full.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`: bytes of log between two entries of the offset index.
    pub index_interval_bytes: u32,
    /// `flush.messages`: an append that makes this many records unsynced waits for a sync.
    pub flush_messages: i64,
    /// `flush.ms`: records are synced this long after they were appended; `i64::MAX` for never.
    pub flush_ms: i64,
    /// `file.delete.delay.ms`: how long deleted files stay, renamed.
    pub file_delete_delay_ms: i64,
    /// `producer.id.expiration.ms`: a producer without an open transaction is forgotten after this.
    pub producer_id_expiration_ms: i64,
    /// `retention.ms`: segments whose newest record is older go; -1 for never.
    pub retention_ms: i64,
    /// `retention.bytes`: the oldest segments go while the rest holds at least this; -1 for never.
    pub retention_bytes: i64,
    /// Whether `cleanup.policy` contains `delete`: without it the two retention settings are idle.
    pub cleanup_delete: bool,
    /// Whether `cleanup.policy` contains `compact`: the last record of each key stays.
    pub cleanup_compact: bool,
    /// `min.cleanable.dirty.ratio`: the log is compacted when more than this part of its bytes was
    /// not compacted yet; 0 to 1.
    pub min_cleanable_dirty_ratio: f64,
    /// `delete.retention.ms`: how long a tombstone stays once what it deletes is gone.
    pub delete_retention_ms: i64,
    /// `min.compaction.lag.ms`: younger records are not compacted.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`: a log with older records is compacted whatever the ratio.
    pub max_compaction_lag_ms: i64,
    /// `preallocate`: a new segment's blocks are reserved at once.
    pub preallocate: bool,
}

impl LogConfig {
    /// After how long a segment is full. A compacted log also rolls so that `max.compaction.lag.ms`
    /// can be kept: the active segment is never compacted.
    pub(crate) fn roll_ms(&self) -> i64 {
        if self.cleanup_compact {
            return self.segment_ms.min(self.max_compaction_lag_ms.max(1));
        }
        self.segment_ms
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        const WEEK_MS: i64 = 7 * 24 * 3600 * 1000;
        Self {
            segment_bytes: 1 << 30,
            segment_ms: WEEK_MS,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
            file_delete_delay_ms: 60_000,
            producer_id_expiration_ms: 24 * 3600 * 1000,
            retention_ms: WEEK_MS,
            retention_bytes: -1,
            cleanup_delete: true,
            cleanup_compact: false,
            min_cleanable_dirty_ratio: 0.5,
            delete_retention_ms: 24 * 3600 * 1000,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            preallocate: false,
        }
    }
}

/// How a store compacts (`log.cleaner.*`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CleanerOptions {
    /// `log.cleaner.dedupe.buffer.size`: the most memory for the keys of one pass. What does not
    /// fit is left for the next pass.
    pub dedupe_buffer_bytes: u64,
    /// `log.cleaner.io.buffer.load.factor`: how full that memory may get, 0 to 1.
    pub load_factor: f64,
}

impl Default for CleanerOptions {
    fn default() -> Self {
        Self {
            dedupe_buffer_bytes: 128 << 20,
            load_factor: 0.9,
        }
    }
}

/// How to open a store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The data directory (Kafka's `log.dirs`), made if absent; `None` keeps everything in memory.
    pub data_dir: Option<PathBuf>,
    /// In memory: how many bytes all logs together may take.
    pub memory_max_bytes: u64,
    /// Uses only what every Unix has: see `sys.rs`.
    pub portable: bool,
    /// A disk that fails on command, for tests and the simulator.
    pub faults: Option<Arc<Faults>>,
    /// Syncs on the thread that asks instead of a thread of its own: the same order every time.
    pub inline_flush: bool,
    /// Configuration of logs found in the directory, until `Log::set_config` says better.
    pub log_config: LogConfig,
    /// Cluster id for a directory that has none yet; `None` for a random one.
    pub cluster_id: Option<String>,
    /// `node.id` for a directory that has none yet.
    pub node_id: i32,
    /// `log.retention.check.interval.ms`: how often `Store::tick` looks for expired segments.
    pub retention_check_ms: i64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            data_dir: None,
            memory_max_bytes: u64::MAX,
            portable: false,
            faults: None,
            inline_flush: false,
            log_config: LogConfig::default(),
            cluster_id: None,
            node_id: 1,
            retention_check_ms: 300_000,
        }
    }
}
