//! Opening a log's directory: after a clean stop by its index files, after a crash by its batches.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ottla_protocol::batch::crc_ok;

use crate::append::marker_of;
use crate::config::LogConfig;
use crate::env::Env;
use crate::epochs::Epochs;
use crate::file::{File, read_file, remove_file};
use crate::log::{EPOCHS_FILE, Log, Parts};
use crate::log_dir::{Found, list, list_segments, tidy};
use crate::mapping::Mapping;
use crate::meta::load_topic_id;
use crate::producer::Producers;
use crate::publish::Watermark;
use crate::segment::{LogDir, Recovered, Segment, segment_path};
use crate::segment_meta::{Meta, store_meta, stored_meta};
use crate::snapshot;
use crate::sync::Arc as KernelArc;
use crate::txn_index::{self, Aborted};
use crate::view::{View, Walk};

/// After a crash that the page cache survived, checksums are only computed in this much of the end.
const CHECKED_TAIL: u64 = 1 << 20;

/// How the last run of the store ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastRun {
    /// Everything was written and synced.
    Clean,
    /// The process died, the machine did not: what was written is there.
    Killed,
    /// Unknown: what was not synced may be missing.
    Crashed,
}

/// What the checkpoints say of a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) last_run: LastRun,
    pub(crate) recovery_point: i64,
    pub(crate) start: i64,
    /// Offset below which the log is compacted.
    pub(crate) cleaned: Option<i64>,
}

/// What a walk over a segment's batches found.
#[derive(Debug)]
struct Scan {
    meta: Meta,
    aborted: Vec<Aborted>,
    /// Bytes of good batches.
    size: u64,
    /// Offset behind them.
    end: i64,
}

struct Opening<'a> {
    env: &'a Arc<Env>,
    path: &'a Path,
    dir: Arc<LogDir>,
    name: &'a str,
    interval: u32,
    producers: Producers,
    epochs: Epochs,
}

/// Opens the log in `path`.
pub(crate) fn open_log(
    env: &Arc<Env>,
    name: &str,
    path: &Path,
    config: &LogConfig,
    known: Known,
) -> io::Result<Log> {
    let snapshots = tidy(path)?;
    let found = list_segments(path, known.start)?;
    let epochs = read_file(&path.join(EPOCHS_FILE))?.and_then(|bytes| Epochs::decode(&bytes));
    let mut opening = Opening {
        env,
        path,
        dir: Arc::new(LogDir::new(Some(path.to_owned()))),
        name,
        interval: config.index_interval_bytes,
        producers: Producers::default(),
        epochs: epochs.unwrap_or_default(),
    };
    let opened = match known.last_run {
        LastRun::Clean => opening.open_clean(&found, &snapshots)?,
        LastRun::Killed | LastRun::Crashed => None,
    };
    let recovered = opened.is_none();
    let (segments, end) = match opened {
        Some(opened) => opened,
        None => opening.recover(&found, &snapshots, known)?,
    };
    opening.finish(segments, end, known, recovered, config)
}

type Opened = (Vec<Recovered>, i64);

impl Opening<'_> {
    /// Trusts the index files; `None` if they do not fit the log.
    fn open_clean(&mut self, found: &[Found], snapshots: &[i64]) -> io::Result<Option<Opened>> {
        let Some((last, rest)) = found.split_last() else {
            return Ok(None);
        };
        let meta = if last.size == 0 {
            Some(Meta::new())
        } else {
            stored_meta(self.path, last.base, last.size)?
        };
        let (Some(mut meta), file) = (meta, self.open(last)?) else {
            return Ok(None);
        };
        let view = self.view(&file, last.size)?;
        let Some(end) = resume(&view, last, &mut meta)? else {
            return Ok(None);
        };
        let Some(mut segments) = self.sealed(rest)? else {
            return Ok(None);
        };
        let Some(aborted) = txn_index::load(&segment_path(self.path, last.base, "txnindex"))?
        else {
            return Ok(None);
        };
        let from = self.load_producers(snapshots, end)?;
        for (index, segment) in found.iter().enumerate() {
            let next = found.get(index + 1).map_or(end, |next| next.base);
            if next > from {
                self.replay(segment, from)?;
            }
        }
        drop(view);
        segments.push(Recovered {
            base: last.base,
            size: last.size,
            file: None,
            meta: Some(meta),
            aborted,
            sealed: false,
            modified: last.modified,
            reserved: 0,
        });
        Ok(Some((segments, end)))
    }

    /// The sealed segments as their files say; `None` if an index of aborted transactions is bad.
    fn sealed(&self, found: &[Found]) -> io::Result<Option<Vec<Recovered>>> {
        let mut segments = Vec::with_capacity(found.len() + 1);
        for segment in found {
            let path = segment_path(self.path, segment.base, "txnindex");
            let Some(aborted) = txn_index::load(&path)? else {
                return Ok(None);
            };
            segments.push(Recovered {
                base: segment.base,
                size: segment.size,
                file: None,
                meta: None,
                aborted,
                sealed: true,
                modified: segment.modified,
                reserved: 0,
            });
        }
        Ok(Some(segments))
    }

    /// Walks what may be damaged, cuts the log at the first bad batch, rebuilds the indexes.
    fn recover(&mut self, found: &[Found], snapshots: &[i64], known: Known) -> io::Result<Opened> {
        let last = found.len().saturating_sub(1);
        let mut from = match known.last_run {
            LastRun::Crashed => found
                .partition_point(|s| s.base <= known.recovery_point)
                .saturating_sub(1),
            LastRun::Clean | LastRun::Killed => last,
        };
        let mut segments = loop {
            match self.sealed(&found[..from])? {
                Some(sealed) => break sealed,
                None => from -= 1,
            }
        };
        let replay_from = self.load_producers(snapshots, found[from].base)?;
        for (index, segment) in found[..from].iter().enumerate() {
            if found[index + 1].base > replay_from {
                self.replay(segment, replay_from)?;
            }
        }
        let mut end = found[from].base;
        for (index, segment) in found.iter().enumerate().skip(from) {
            let check_all = known.last_run == LastRun::Crashed;
            let scan = self.scan(segment, end, check_all)?;
            end = scan.end;
            let cut = scan.size < segment.size;
            let sealed = index < last && !cut;
            segments.push(self.rebuilt(segment, scan, sealed)?);
            if cut {
                self.remove_behind(&found[index + 1..])?;
                break;
            }
        }
        Ok((segments, end))
    }

    fn rebuilt(&self, segment: &Found, scan: Scan, sealed: bool) -> io::Result<Recovered> {
        let cut = segment.size - scan.size;
        if cut > 0 {
            tracing::warn!(
                log = self.name,
                segment = segment.base,
                bytes = cut,
                end = scan.end,
                "cutting off bytes that are no whole batches"
            );
        }
        let mut meta = scan.meta;
        let index_there = segment_path(self.path, segment.base, "index").exists();
        if sealed {
            meta.note_newest(segment.base);
        }
        if sealed || index_there {
            store_meta(self.path, segment.base, &meta)?;
        }
        let path = segment_path(self.path, segment.base, "txnindex");
        txn_index::store(&path, &scan.aborted)?;
        let mut file = None;
        if !sealed {
            // Also gives back blocks that were reserved beyond the end.
            let open = self.open(segment)?;
            open.set_len(scan.size)?;
            file = Some(open);
        }
        Ok(Recovered {
            base: segment.base,
            size: scan.size,
            file,
            meta: (!sealed).then_some(meta),
            aborted: scan.aborted,
            sealed,
            modified: segment.modified,
            reserved: 0,
        })
    }

    fn remove_behind(&self, found: &[Found]) -> io::Result<()> {
        for segment in found {
            tracing::warn!(
                log = self.name,
                segment = segment.base,
                "removing a segment behind a damaged one"
            );
            for suffix in ["log", "index", "timeindex", "txnindex", "snapshot"] {
                remove_file(&segment_path(self.path, segment.base, suffix))?;
            }
        }
        Ok(())
    }

    fn finish(
        mut self,
        mut segments: Vec<Recovered>,
        end: i64,
        known: Known,
        recovered: bool,
        config: &LogConfig,
    ) -> io::Result<Log> {
        let first = segments.first().map_or(0, |s| s.base);
        let start = known.start.clamp(first, end.max(first));
        let synced = if recovered {
            known.recovery_point.min(end)
        } else {
            end
        };
        self.drop_stray_snapshots(&segments, end)?;
        self.complete_epochs(&segments, end)?;
        let segment = |found| Segment::recovered(self.env, &self.dir, found);
        let active = match segments.pop() {
            Some(found) => segment(found),
            None => Segment::create(self.env, &self.dir, start, 0)?,
        };
        let parts = Parts {
            name: self.name.to_owned(),
            topic_id: load_topic_id(&self.path.join("partition.metadata"))?,
            sealed: segments.into_iter().map(segment).collect(),
            active,
            dir: Arc::clone(&self.dir),
            config: config.clone(),
            producers: self.producers,
            epochs: self.epochs,
            start,
            end,
            synced,
            cleaned: known.cleaned,
            dirty: recovered,
        };
        Ok(Log::from_parts(self.env, parts))
    }

    /// Snapshots are kept where a segment begins and where the log ends.
    fn drop_stray_snapshots(&self, segments: &[Recovered], end: i64) -> io::Result<()> {
        for offset in list(self.path, "snapshot")? {
            if offset != end && segments.iter().all(|segment| segment.base != offset) {
                remove_file(&segment_path(self.path, offset, "snapshot"))?;
            }
        }
        Ok(())
    }

    /// Epochs that no checkpoint names are found in the batches.
    fn complete_epochs(&mut self, segments: &[Recovered], end: i64) -> io::Result<()> {
        let before = self.epochs.clone();
        self.epochs.trim_end(end);
        if self.epochs.latest().is_none() {
            for segment in segments {
                let found = Found {
                    base: segment.base,
                    size: segment.size,
                    modified: 0,
                };
                let file = self.open(&found)?;
                let view = self.view(&file, found.size)?;
                let mut walk = Walk::new(&view, 0, found.size);
                while let Some((_, header)) = walk.next()? {
                    self.epochs.assign(header.leader_epoch, header.base_offset);
                }
            }
        }
        if self.epochs != before {
            crate::file::replace_file(&self.path.join(EPOCHS_FILE), &self.epochs.encode(), false)?;
        }
        Ok(())
    }

    /// Loads the newest snapshot at or below `limit`; returns the offset to replay from.
    fn load_producers(&mut self, snapshots: &[i64], limit: i64) -> io::Result<i64> {
        for &offset in snapshots.iter().rev().filter(|&&offset| offset <= limit) {
            if let Some(producers) = snapshot::load(&segment_path(self.path, offset, "snapshot"))? {
                self.producers = producers;
                return Ok(offset);
            }
            tracing::warn!(
                log = self.name,
                offset,
                "ignoring a damaged producer snapshot"
            );
        }
        self.producers = Producers::default();
        Ok(0)
    }

    fn open(&self, segment: &Found) -> io::Result<File> {
        self.env
            .open_file(&segment_path(self.path, segment.base, "log"))
    }

    /// Reads a file that nobody writes now, up to its size.
    fn view(&self, file: &File, size: u64) -> io::Result<View> {
        if size > 0 && self.env.may_map(true) {
            let published = KernelArc::new(Watermark::new(size));
            if let Ok(mapping) = Mapping::new(file.inner(), size as usize, published) {
                return Ok(View::Mapped(Arc::new(mapping)));
            }
        }
        let again = File::Disk(file.inner().try_clone()?, self.env.platform);
        Ok(View::Copied(Arc::new(again), size))
    }

    /// Takes the producers of a good segment's batches from `from` on.
    fn replay(&mut self, segment: &Found, from: i64) -> io::Result<()> {
        let file = self.open(segment)?;
        let view = self.view(&file, segment.size)?;
        let mut walk = Walk::new(&view, 0, segment.size);
        while let Some((position, header)) = walk.next()? {
            if header.base_offset < from {
                continue;
            }
            let marker = if header.is_control() {
                marker_of(&view.bytes(position, header.size())?)
            } else {
                None
            };
            self.producers.update(&header, marker);
        }
        Ok(())
    }

    /// Walks a segment up to the first byte that is not part of a good batch.
    fn scan(&mut self, segment: &Found, expected: i64, check_all: bool) -> io::Result<Scan> {
        let file = self.open(segment)?;
        let view = self.view(&file, segment.size)?;
        let mut scan = Scan {
            meta: Meta::new(),
            aborted: Vec::new(),
            size: 0,
            end: expected.max(segment.base),
        };
        let checked_from = if check_all {
            0
        } else {
            segment.size.saturating_sub(CHECKED_TAIL)
        };
        let mut walk = Walk::new(&view, 0, segment.size);
        // A header that makes no sense and a batch that is cut off end the log.
        while let Ok(Some((position, header))) = walk.next() {
            let end = position + header.size() as u64;
            let relative = header.last_offset() - segment.base;
            let in_order = header.base_offset >= scan.end
                && header.last_offset_delta >= 0
                && relative <= i64::from(i32::MAX);
            if !in_order || (end > checked_from && !view.checksum_ok(position, header.size())?) {
                break;
            }
            let marker = if header.is_control() {
                marker_of(&view.bytes(position, header.size())?)
            } else {
                None
            };
            scan.aborted.extend(self.producers.update(&header, marker));
            self.epochs.assign(header.leader_epoch, header.base_offset);
            scan.meta
                .add(segment.base, position, &header, self.interval);
            scan.size = end;
            scan.end = header.next_offset();
        }
        Ok(scan)
    }
}

impl View {
    fn checksum_ok(&self, at: u64, len: usize) -> io::Result<bool> {
        match self {
            Self::Mapped(mapping) => {
                let at = at as usize;
                Ok(mapping.with(at..at + len, crc_ok).unwrap_or(false))
            }
            Self::Copied(..) => Ok(crc_ok(&self.bytes(at, len)?)),
        }
    }
}

/// Goes on from the last index entry to the end; `None` if the batches do not fit the index.
fn resume(view: &View, segment: &Found, meta: &mut Meta) -> io::Result<Option<i64>> {
    if segment.size == 0 {
        return Ok(Some(segment.base));
    }
    let from = meta.offsets.last().map_or(0, |e| u64::from(e.position));
    let mut end = segment.base;
    let mut walk = Walk::new(view, from, segment.size);
    loop {
        match walk.next() {
            Ok(Some((_, header))) if header.base_offset >= end => {
                meta.see_time(&header);
                end = header.next_offset();
            }
            Ok(None) => break,
            Ok(Some(_)) | Err(_) => return Ok(None),
        }
    }
    let first = view.header(0)?;
    meta.resume(segment.size - from, first.max_timestamp);
    Ok(Some(end))
}
