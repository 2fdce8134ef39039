//! A data directory and its logs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::checkpoint::Checkpoints;
use crate::config::{LogConfig, StoreOptions};
use crate::env::{CHECKPOINT_MS, Env, lock};
use crate::epochs::Epochs;
use crate::error::{OpenError, StorageError};
use crate::file::{read_file, remove_file, replace_file};
use crate::log::{Listener, Log, Parts};
use crate::meta::{DirName, MetaProperties, classify, deleted_name, log_name, store_topic_id};
use crate::producer::Producers;
use crate::recovery::{Known, LastRun, open_log};
use crate::segment::{LogDir, Segment};
use crate::sys::{DirLock, lock_exclusive};

const CLEAN_FILE: &str = ".kafka_cleanshutdown";
const BOOT_FILE: &str = ".ottla-boot";
/// As in Kafka, the first look for expired segments comes soon after the start.
const FIRST_CHECK_MS: i64 = 30_000;

/// How large a volume is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// All of it.
    pub total: u64,
    /// What is left for use.
    pub usable: u64,
}

/// All logs of one data directory, or of one process in memory.
#[derive(Debug)]
pub struct Store {
    pub(crate) env: Arc<Env>,
    meta: MetaProperties,
    log_config: LogConfig,
    logs: RwLock<BTreeMap<String, Arc<Log>>>,
    check_ms: i64,
    next_check: Mutex<i64>,
    written: Mutex<Checkpoints>,
    closed: AtomicBool,
    /// Held while logs are compacted.
    pub(crate) cleaning: Mutex<()>,
    /// Holds the lock on the directory, until the store is closed.
    lock: Mutex<Option<DirLock>>,
}

impl Store {
    /// Opens a data directory (making it if need be), or a store in memory. `now` is in
    /// milliseconds since the epoch.
    ///
    /// After a clean stop the logs are as they were. Otherwise each log is walked from where it is
    /// known to be good, and cut at the first bytes that are no whole batch.
    pub fn open(options: StoreOptions, now: i64) -> Result<Arc<Self>, OpenError> {
        let Some(dir) = options.data_dir.clone() else {
            return Self::open_memory(&options, now);
        };
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Io { path, source }
        };
        fs::create_dir_all(&dir).map_err(at(&dir))?;
        let lock_path = dir.join(".lock");
        let lock = fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(at(&lock_path))?;
        let Some(lock) = lock_exclusive(lock).map_err(at(&lock_path))? else {
            return Err(OpenError::InUse(dir));
        };
        let cluster_id = options.cluster_id.as_deref();
        let meta_path = dir.join("meta.properties");
        let meta = MetaProperties::load_or_create(&meta_path, cluster_id, options.node_id)?;
        let env = Arc::new(Env::new(&options).map_err(at(&dir))?);
        let last_run = last_run(&dir, &env).map_err(at(&dir))?;
        let known = Checkpoints::load(&dir).map_err(at(&dir))?;
        let logs = open_logs(&env, &dir, &options.log_config, last_run, &known, now)?;
        begin_run(&dir, &env).map_err(at(&dir))?;
        let store = Self::assemble(env, meta, &options, now, Some(lock));
        *store.map_mut() = logs;
        Ok(store)
    }

    fn open_memory(options: &StoreOptions, now: i64) -> Result<Arc<Self>, OpenError> {
        let failed = |source| OpenError::Io {
            path: PathBuf::from("/dev/urandom"),
            source,
        };
        let meta =
            MetaProperties::new(options.cluster_id.as_deref(), options.node_id).map_err(failed)?;
        let env = Arc::new(Env::new(options).map_err(failed)?);
        Ok(Self::assemble(env, meta, options, now, None))
    }

    fn assemble(
        env: Arc<Env>,
        meta: MetaProperties,
        options: &StoreOptions,
        now: i64,
        lock: Option<DirLock>,
    ) -> Arc<Self> {
        let check_ms = options.retention_check_ms.max(1);
        Arc::new(Self {
            env,
            meta,
            log_config: options.log_config.clone(),
            logs: RwLock::default(),
            check_ms,
            next_check: Mutex::new(now.saturating_add(check_ms.min(FIRST_CHECK_MS))),
            written: Mutex::default(),
            closed: AtomicBool::new(false),
            cleaning: Mutex::default(),
            lock: Mutex::new(lock),
        })
    }

    fn map(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<String, Arc<Log>>> {
        self.logs.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn map_mut(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Arc<Log>>> {
        self.logs.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cluster's id: 22 characters, made when the directory was first opened.
    pub fn cluster_id(&self) -> String {
        self.meta.cluster_id.clone()
    }

    /// `node.id` of the directory.
    pub fn node_id(&self) -> i32 {
        self.meta.node_id
    }

    /// Id of the data directory: 22 characters, empty if Kafka never wrote one.
    pub fn directory_id(&self) -> String {
        self.meta.directory_id.clone()
    }

    /// The data directory; `None` in memory.
    pub fn data_dir(&self) -> Option<&Path> {
        self.env.data_dir.as_deref()
    }

    /// The volume of the data directory, or the memory that logs may take.
    pub fn space(&self) -> io::Result<Space> {
        match self.data_dir() {
            Some(dir) => crate::sys::volume(dir),
            None => Ok(self.env.memory.space()),
        }
    }

    /// Bytes that all logs take in memory; 0 on a disk.
    pub fn memory_used(&self) -> u64 {
        self.env.memory.used()
    }

    /// All logs with their directory names (`<topic>-<partition>`), by name.
    pub fn logs(&self) -> Vec<(String, Arc<Log>)> {
        self.map()
            .iter()
            .map(|(name, log)| (name.clone(), Arc::clone(log)))
            .collect()
    }

    /// Whether a log is so.
    pub(crate) fn any(&self, is: impl Fn(&Log) -> bool) -> bool {
        self.map().values().any(|log| is(log))
    }

    pub(crate) fn all(&self) -> Vec<Arc<Log>> {
        self.map().values().cloned().collect()
    }

    pub(crate) fn log_by_name(&self, name: &str) -> Option<Arc<Log>> {
        self.map().get(name).cloned()
    }

    /// One log.
    pub fn log(&self, topic: &str, partition: i32) -> Option<Arc<Log>> {
        self.map().get(&log_name(topic, partition)?).cloned()
    }

    /// The configuration that logs get which are found in the directory.
    pub fn log_config(&self) -> &LogConfig {
        &self.log_config
    }

    fn check_open(&self) -> Result<(), StorageError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StorageError::Closed("of a closed store".into()));
        }
        Ok(())
    }

    /// Makes an empty log.
    pub fn create_log(
        &self,
        topic: &str,
        partition: i32,
        topic_id: [u8; 16],
        config: LogConfig,
        now: i64,
    ) -> Result<Arc<Log>, StorageError> {
        self.check_open()?;
        let name = log_name(topic, partition)
            .ok_or_else(|| StorageError::BadName(format!("{topic}-{partition}")))?;
        let mut logs = self.map_mut();
        if logs.contains_key(&name) {
            return Err(StorageError::Exists(name));
        }
        let path = self.env.data_dir.as_ref().map(|dir| dir.join(&name));
        let made = self.make_log(&name, path.clone(), topic_id, config, now);
        let log = Arc::new(made.map_err(|source| {
            if let Some(path) = path {
                let _ = fs::remove_dir_all(path);
            }
            StorageError::Io {
                what: format!("creating log {name}"),
                source,
            }
        })?);
        logs.insert(name, Arc::clone(&log));
        Ok(log)
    }

    fn make_log(
        &self,
        name: &str,
        path: Option<PathBuf>,
        topic_id: [u8; 16],
        config: LogConfig,
        now: i64,
    ) -> io::Result<Log> {
        if let Some(path) = &path {
            fs::create_dir_all(path)?;
            store_topic_id(&path.join("partition.metadata"), topic_id)?;
        }
        let dir = Arc::new(LogDir::new(path));
        let active = Segment::create(&self.env, &dir, 0, now)?;
        if config.preallocate && dir.on_disk() {
            active.preallocate(u64::from(config.segment_bytes));
        }
        let parts = Parts {
            name: name.to_owned(),
            topic_id,
            config,
            sealed: Vec::new(),
            active,
            dir,
            producers: Producers::default(),
            epochs: Epochs::default(),
            start: 0,
            end: 0,
            synced: 0,
            cleaned: None,
            dirty: true,
        };
        Ok(Log::from_parts(&self.env, parts))
    }

    /// Removes a log: it is gone at once, its files `file.delete.delay.ms` after `now`. Whoever
    /// reads it at the moment still can.
    pub fn delete_log(&self, topic: &str, partition: i32, now: i64) -> Result<(), StorageError> {
        self.check_open()?;
        let name = format!("{topic}-{partition}");
        let log = self
            .map_mut()
            .remove(&name)
            .ok_or_else(|| StorageError::NotFound(name.clone()))?;
        log.abandon();
        if let (Some(dir), Some(path)) = (&self.env.data_dir, log.dir.path()) {
            let what = || format!("deleting log {name}");
            let doomed = dir.join(deleted_name(&name).map_err(StorageError::io(what()))?);
            fs::rename(&path, &doomed).map_err(StorageError::io(what()))?;
            log.dir.moved(doomed.clone());
            let delay = log.config().file_delete_delay_ms.max(0);
            self.env.doom(doomed, now.saturating_add(delay));
        }
        Ok(())
    }

    /// Does what is due by `now`: flushes by time, delayed deletions, retention, forgetting of
    /// producers, unmapping of idle segments, checkpoints. Errors are logged; the work comes again.
    pub fn tick(&self, now: i64) {
        if self.closed.load(Ordering::Acquire) {
            return;
        }
        self.env.purge(now);
        self.flush_due(now);
        let check = {
            let mut next = lock(&self.next_check);
            let due = *next <= now;
            if due {
                *next = now.saturating_add(self.check_ms);
            }
            due
        };
        if check {
            for log in self.all() {
                if let Err(error) = log.retain(now) {
                    tracing::warn!(log = log.name(), %error, "retention failed");
                }
                log.expire_producers(now);
                log.published.segments().iter().for_each(|s| s.sweep());
            }
        }
        if (check || self.env.starts_due.load(Ordering::Acquire) <= now)
            && let Err(error) = self.checkpoint()
        {
            tracing::warn!(%error, "cannot write the checkpoints");
        }
        self.env.purge(now);
    }

    fn flush_due(&self, now: i64) {
        if self.env.flush_due.load(Ordering::Acquire) > now {
            return;
        }
        self.env.flush_due.store(i64::MAX, Ordering::Release);
        for log in self.all() {
            let due = log.flush_due.load(Ordering::Acquire);
            if due <= now {
                log.request_sync();
            } else {
                self.env.flush_by(due);
            }
        }
    }

    /// Calls `f` whenever [`Store::next_deadline`] may have come closer: an append with `flush.ms`,
    /// a deletion. `f` must be quick; locks of logs may be held.
    pub fn on_deadline(&self, f: Listener) {
        self.env.on_deadline(f);
    }

    /// When [`Store::tick`] has something to do next, in milliseconds since the epoch.
    pub fn next_deadline(&self) -> Option<i64> {
        let check = *lock(&self.next_check);
        let flush = self.env.flush_due.load(Ordering::Acquire);
        let doom = self.env.next_doom().unwrap_or(i64::MAX);
        let starts = self.env.starts_due.load(Ordering::Acquire);
        Some(check.min(flush).min(doom).min(starts))
    }

    /// Writes the checkpoint files that changed: recovery points, high watermarks, start offsets.
    pub fn checkpoint(&self) -> Result<(), StorageError> {
        // Also in memory: what stays due would be looked at every millisecond.
        let due = self.env.starts_due.swap(i64::MAX, Ordering::AcqRel);
        let Some(dir) = &self.env.data_dir else {
            return Ok(());
        };
        let mut written = lock(&self.written);
        let current = self.checkpoints();
        let result = current.store(dir, &written);
        match result {
            Ok(()) => *written = current,
            Err(_) => self.env.checkpoint_by(due.saturating_add(CHECKPOINT_MS)),
        }
        result.map_err(StorageError::io("writing the checkpoints"))
    }

    fn checkpoints(&self) -> Checkpoints {
        let mut current = Checkpoints::default();
        for (name, log) in self.map().iter() {
            let bounds = log.bounds();
            let recovery_point = log.recovery_point();
            current.recovery_points.insert(name.clone(), recovery_point);
            current.high_watermarks.insert(name.clone(), bounds.end);
            if let Some(offset) = log.cleaning.offset() {
                current.cleaned.insert(name.clone(), offset);
            }
            let first = log.published.segments().first().map_or(0, |s| s.base);
            if bounds.start > first {
                current.starts.insert(name.clone(), bounds.start);
            }
        }
        current
    }

    /// A clean stop: indexes, producers, checkpoints, one sync of the file system, the marker that
    /// lets the next start skip recovery. Afterwards every append fails.
    pub fn close(&self) -> Result<(), StorageError> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.env.stopping.store(true, Ordering::Release);
        drop(lock(&self.cleaning));
        let closed = self.close_logs();
        // Whoever still holds this store cannot write any more: the directory is free for another.
        lock(&self.lock).take();
        closed
    }

    fn close_logs(&self) -> Result<(), StorageError> {
        let logs = self.all();
        let results: Vec<_> = logs.iter().map(|log| log.close()).collect();
        self.env.flusher.stop();
        let wrote = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let Some(dir) = &self.env.data_dir else {
            return Ok(());
        };
        let what = || "closing the data directory";
        if wrote.contains(&true) {
            self.sync_all(dir, &logs)?;
        }
        self.checkpoint()?;
        let marker = b"{\"version\":0,\"brokerEpoch\":-1}";
        replace_file(&dir.join(CLEAN_FILE), marker, true).map_err(StorageError::io(what()))
    }
}

impl Store {
    /// One sync of the file system where that is possible, else one of each log.
    fn sync_all(&self, dir: &Path, logs: &[Arc<Log>]) -> Result<(), StorageError> {
        // Injected faults must meet the sync too.
        let at_once = self.env.faults.is_none()
            && self
                .env
                .platform
                .sync_file_system(dir)
                .map_err(StorageError::io("syncing the data directory"))?;
        for log in logs {
            if at_once && !log.is_failed() {
                log.sync.commit.synced_by_others();
            } else {
                log.flush()?;
            }
        }
        Ok(())
    }
}

/// How the last run over this directory ended.
fn last_run(dir: &Path, env: &Env) -> io::Result<LastRun> {
    if dir.join(CLEAN_FILE).exists() {
        return Ok(LastRun::Clean);
    }
    let then = read_file(&dir.join(BOOT_FILE))?.unwrap_or_default();
    let killed = env
        .platform
        .boot_id()
        .is_some_and(|now| now.as_bytes() == then.trim_ascii());
    Ok(if killed {
        LastRun::Killed
    } else {
        LastRun::Crashed
    })
}

/// From here on a crash is a crash of this run.
fn begin_run(dir: &Path, env: &Env) -> io::Result<()> {
    let boot_id = env.platform.boot_id().unwrap_or_default();
    replace_file(&dir.join(BOOT_FILE), boot_id.as_bytes(), false)?;
    remove_file(&dir.join(CLEAN_FILE))
}

fn open_logs(
    env: &Arc<Env>,
    dir: &Path,
    config: &LogConfig,
    last_run: LastRun,
    known: &Checkpoints,
    now: i64,
) -> Result<BTreeMap<String, Arc<Log>>, OpenError> {
    let mut names = Vec::new();
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::Io { path, source }
    };
    for entry in fs::read_dir(dir).map_err(at(dir))? {
        let entry = entry.map_err(at(dir))?;
        let (Ok(name), path) = (entry.file_name().into_string(), entry.path()) else {
            continue;
        };
        match classify(&name) {
            DirName::Log if path.is_dir() => names.push(name),
            DirName::Deleted if path.is_dir() => env.doom(path, now),
            _ => {}
        }
    }
    names.sort_unstable();
    let open = |name: &String| {
        let path = dir.join(name);
        let known = Known {
            last_run,
            recovery_point: known.recovery_points.get(name).copied().unwrap_or(0),
            start: known.starts.get(name).copied().unwrap_or(0),
            cleaned: known.cleaned.get(name).copied(),
        };
        open_log(env, name, &path, config, known)
            .map(|log| (name.clone(), Arc::new(log)))
            .map_err(at(&path))
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let share = names.len().div_ceil(workers).max(8);
    std::thread::scope(|scope| {
        let workers: Vec<_> = names
            .chunks(share)
            .map(|names| scope.spawn(|| names.iter().map(open).collect::<Vec<_>>()))
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| match worker.join() {
                Ok(opened) => opened,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    })
}
