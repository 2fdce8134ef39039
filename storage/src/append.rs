//! Appending: one lock, two fields patched on the way out, no copy of the batch.

use std::sync::atomic::Ordering;

use ottla_protocol::batch::{
    ATTR_LOG_APPEND_TIME, BatchHeader, EndTxnMarker, HEADER_LEN, at, records,
};

use crate::config::LogConfig;
use crate::error::{AppendError, StorageError};
use crate::index::{OFFSET_ENTRY, TIME_ENTRY};
use crate::log::{Log, Writer, stable_offset};
use crate::producer::{Check, Origin};
use crate::segment::{Segment, segment_path};
use crate::snapshot;
use crate::sync::Arc as KernelArc;

/// How to append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AppendOptions {
    /// Epoch of the partition's leader, written into the batch.
    pub leader_epoch: i32,
    /// Milliseconds since the epoch.
    pub now: i64,
    /// `message.timestamp.type=LogAppendTime`: the batch gets `now` as the time of all its records.
    pub log_append_time: bool,
    /// Who appends.
    pub origin: Origin,
}

/// Where a batch went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendInfo {
    /// Offset of its first record.
    pub base_offset: i64,
    /// Offset of its last record.
    pub last_offset: i64,
    /// The log's start offset at that time.
    pub log_start_offset: i64,
    /// Time of the append in milliseconds since the epoch, under log append time only.
    pub log_append_time: Option<i64>,
    /// The batch had been appended before, there; it was not appended again.
    pub duplicate: bool,
}

/// Bytes of each producer batch are patched in a copy of the header, on the stack.
struct Outgoing<'a> {
    header: BatchHeader,
    head: [u8; HEADER_LEN],
    body: &'a [u8],
    marker: Option<EndTxnMarker>,
}

impl Log {
    /// Appends one batch, validated before: `header` is what [`BatchHeader::parse`] says of it.
    ///
    /// The batch gets the next offset and the leader's epoch (both outside of its checksum). On an
    /// error the log is as it was, except for [`AppendError::Sync`]. Idempotence and transactions
    /// follow KIP-98: a batch that is among the producer's last five gives its first offsets again.
    pub fn append(
        &self,
        batch: &[u8],
        header: &BatchHeader,
        opts: AppendOptions,
    ) -> Result<AppendInfo, AppendError> {
        let mut out = Outgoing::new(batch, header, &opts)?;
        let config = self.config();
        let info = {
            let mut writer = self.lock_writer();
            self.append_locked(&mut writer, &mut out, &opts, &config)?
        };
        if info.duplicate {
            return Ok(info);
        }
        let synced = self.flush_if_due(&config, info.last_offset + 1, opts.now);
        self.announce();
        synced.map(|()| info)
    }

    fn append_locked(
        &self,
        writer: &mut Writer,
        out: &mut Outgoing<'_>,
        opts: &AppendOptions,
        config: &LogConfig,
    ) -> Result<AppendInfo, AppendError> {
        if writer.closed {
            return Err(StorageError::Closed(self.name.clone()).into());
        }
        if self.is_failed() {
            return Err(StorageError::Failed(self.name.clone()).into());
        }
        let bounds = self.published.bounds();
        let info = |base_offset, last_offset, time, duplicate| AppendInfo {
            base_offset,
            last_offset,
            log_start_offset: bounds.start,
            log_append_time: opts.log_append_time.then_some(time),
            duplicate,
        };
        let check = writer
            .producers
            .check(&out.header, out.marker, opts.origin)?;
        if let Check::Duplicate {
            base_offset,
            last_offset,
            timestamp,
        } = check
        {
            return Ok(info(base_offset, last_offset, timestamp, true));
        }
        out.place(bounds.end, opts)?;
        self.roll_if_needed(writer, &out.header, config, opts.now)?;
        self.write(writer, out, config, opts.now)?;
        let header = &out.header;
        if self.epochs().latest() < Some(header.leader_epoch) {
            self.epochs_mut()
                .assign(header.leader_epoch, header.base_offset);
            self.store_epochs();
        }
        Ok(info(
            header.base_offset,
            header.last_offset(),
            opts.now,
            false,
        ))
    }

    fn write(
        &self,
        writer: &mut Writer,
        out: &Outgoing<'_>,
        config: &LogConfig,
        now: i64,
    ) -> Result<(), StorageError> {
        let Writer {
            active, producers, ..
        } = writer;
        let header = &out.header;
        let start = self.published.bounds().start;
        let end = header.next_offset();
        self.published
            .append(active, [&out.head, out.body], |position| {
                active.add(position, header, config.index_interval_bytes, now);
                if let Some(aborted) = producers.update(header, out.marker) {
                    active.add_aborted(aborted);
                }
                (end, stable_offset(producers, start, end))
            })?;
        self.sync.commit.wrote(end);
        writer.dirty = true;
        Ok(())
    }

    fn roll_if_needed(
        &self,
        writer: &mut Writer,
        header: &BatchHeader,
        config: &LogConfig,
        now: i64,
    ) -> Result<(), AppendError> {
        let size = header.size();
        if size as u64 > u64::from(config.segment_bytes) {
            return Err(AppendError::TooLarge {
                size,
                max: config.segment_bytes,
            });
        }
        if needs_roll(&self.name, &writer.active, header, config, now) {
            self.roll(writer, header.base_offset, now)?;
        }
        Ok(())
    }

    /// Completes the active segment and goes on in a new one that begins at `base`. Nothing is
    /// changed if that fails.
    pub(crate) fn roll(
        &self,
        writer: &mut Writer,
        base: i64,
        now: i64,
    ) -> Result<(), StorageError> {
        let what = || format!("opening a new segment of {}", self.name);
        let old = KernelArc::clone(&writer.active);
        if old.base == base {
            return Ok(());
        }
        let on_disk = self.dir.on_disk();
        // In this order: a new .log file says that all files of the old segment are complete.
        if let Some(dir) = self.dir.path() {
            old.store_indexes().map_err(StorageError::io(what()))?;
            snapshot::store(&segment_path(&dir, base, "snapshot"), &writer.producers)
                .map_err(StorageError::io(what()))?;
        }
        let new =
            Segment::create(&self.env, &self.dir, base, now).map_err(StorageError::io(what()))?;
        if self.config().preallocate {
            new.preallocate(u64::from(self.config().segment_bytes));
        }
        let new = KernelArc::new(new);
        old.seal();
        let mut segments: Vec<_> = self.published.segments().iter().cloned().collect();
        if old.len() == 0 {
            // Nothing was written: its place is taken rather than left empty.
            segments.pop();
        }
        segments.push(KernelArc::clone(&new));
        self.published.replace(segments);
        writer.active = KernelArc::clone(&new);
        writer.dirty = true;
        if old.len() == 0 {
            old.discard(now, 0);
        }
        self.sync.rolled(&new);
        if on_disk {
            self.request_sync();
        }
        Ok(())
    }

    /// Honours `flush.messages` (waits) and `flush.ms` (sets the deadline).
    fn flush_if_due(&self, config: &LogConfig, end: i64, now: i64) -> Result<(), AppendError> {
        if !self.dir.on_disk() {
            return Ok(());
        }
        if config.flush_messages != i64::MAX
            && end - self.sync.commit.synced() >= config.flush_messages
        {
            self.request_sync();
            return self
                .sync
                .commit
                .wait(end)
                .map_err(|_| AppendError::Sync(self.name.clone()));
        }
        if config.flush_ms != i64::MAX {
            let due = now.saturating_add(config.flush_ms);
            self.flush_due.fetch_min(due, Ordering::AcqRel);
            self.env.flush_by(due);
        }
        Ok(())
    }
}

impl<'a> Outgoing<'a> {
    fn new(
        batch: &'a [u8],
        header: &BatchHeader,
        opts: &AppendOptions,
    ) -> Result<Self, AppendError> {
        let Some((_, body)) = batch.split_at_checked(HEADER_LEN) else {
            return Err(AppendError::BadBatch("it is shorter than its header"));
        };
        if header.magic != 2 || header.size() != batch.len() || header.last_offset_delta < 0 {
            return Err(AppendError::BadBatch("its header does not fit its bytes"));
        }
        let marker = if header.is_control() && header.has_producer_id() {
            marker_of(batch)
        } else {
            None
        };
        let mut header = *header;
        if opts.log_append_time {
            header.attributes |= ATTR_LOG_APPEND_TIME;
            header.max_timestamp = opts.now;
            let head = header.to_bytes();
            header.crc = crc32c::crc32c_append(crc32c::crc32c(&head[at::ATTRIBUTES..]), body);
        }
        Ok(Self {
            header,
            head: [0; HEADER_LEN],
            body,
            marker,
        })
    }

    /// Gives the batch its place behind `end`.
    fn place(&mut self, end: i64, opts: &AppendOptions) -> Result<(), AppendError> {
        if opts.origin != Origin::Replica {
            self.header.base_offset = end;
            self.header.leader_epoch = opts.leader_epoch;
        } else if self.header.base_offset < end {
            return Err(AppendError::BadBatch("its offsets are in the log already"));
        }
        self.head = self.header.to_bytes();
        Ok(())
    }
}

/// What a control batch says of the end of a transaction.
pub(crate) fn marker_of(batch: &[u8]) -> Option<EndTxnMarker> {
    let set = records(batch).ok()?;
    let record = set.iter().next()?.ok()?;
    EndTxnMarker::decode(record.key?, record.value?)
}

fn needs_roll(
    name: &str,
    active: &Segment,
    header: &BatchHeader,
    config: &LogConfig,
    now: i64,
) -> bool {
    if header.last_offset() - active.base > i64::from(i32::MAX) {
        return true;
    }
    let size = active.len();
    if size == 0 {
        return false;
    }
    if size + header.size() as u64 > u64::from(config.segment_bytes) {
        return true;
    }
    let room = config.segment_index_bytes as usize;
    active
        .with_meta(|meta| {
            // The time index keeps a place for the entry that completes it.
            let full = meta.offsets.len() >= room / OFFSET_ENTRY
                || meta.times.len() + 1 >= room / TIME_ENTRY;
            // Records' own time, as in Kafka; the clock where they have none.
            let age = match meta.first_timestamp {
                Some(first) if first >= 0 => header.max_timestamp.saturating_sub(first),
                _ => now.saturating_sub(active.created),
            };
            full || age > config.roll_ms() - jitter(name, active.base, config.segment_jitter_ms)
        })
        .unwrap_or(false)
}

/// A share of `max` that differs from segment to segment, and is the same each time.
fn jitter(name: &str, base: i64, max: i64) -> i64 {
    if max <= 0 {
        return 0;
    }
    let seed = crc32c::crc32c_append(crc32c::crc32c(name.as_bytes()), &base.to_be_bytes());
    i64::from(seed) % max
}
