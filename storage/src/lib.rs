//! The log of Ottla: append-only partitions of record batches in Kafka's on-disk format, on a disk
//! or in memory.
//!
//! Blocking, without a runtime and without a clock: `now` is an argument. See [`Store`] and [`Log`].
//!
//! What always holds:
//! - bytes below a segment's published size never change and are never cut off while anyone can
//!   reach the segment; slices handed out keep their mapping alive (`mapping.rs`, `publish.rs`);
//! - a reader sees an end offset only after the bytes below it, and never waits for a writer's file
//!   work;
//! - an append that fails leaves the log as it was; only a failed sync ends a log;
//! - a new segment's file exists only once all files of the one before are complete, so that
//!   after a killed process only the last segment is walked (`recovery.rs`);
//! - listeners run with no lock held.
//!
//! The list of segments changes under the log's lock, through `Published::replace`: a roll
//! (`append.rs`), removal from the front (`trim.rs`), compaction (`clean/`).

mod append;
mod checkpoint;
mod clean;
mod config;
mod env;
mod epochs;
mod error;
mod faults;
mod file;
#[doc(hidden)]
pub mod flush;
mod flusher;
mod index;
mod limits;
mod log;
mod log_dir;
mod mapping;
mod meta;
mod producer;
#[doc(hidden)]
pub mod publish;
mod read;
mod recovery;
mod segment;
mod segment_meta;
mod snapshot;
mod store;
mod sync;
mod sys;
mod times;
mod trim;
mod txn_index;
mod view;

pub use append::{AppendInfo, AppendOptions};
pub use config::{CleanerOptions, LogConfig, StoreOptions};
pub use error::{AppendError, OpenError, ReadError, StorageError};
pub use faults::Faults;
pub use limits::default_memory_max;
pub use log::{Listener, Log};
pub use producer::{Origin, ProducerView};
pub use publish::Bounds;
pub use read::{Bound, ReadSlice};
pub use store::{Space, Store};
pub use times::TimedOffset;
pub use txn_index::AbortedTxn;
