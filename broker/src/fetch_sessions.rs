//! Fetch sessions (KIP-227): what a consumer asked for last, so that it need not say it again. Pure.
//!
//! A session holds the partitions of one consumer in the order of their turns: a partition whose
//! records were sent goes to the end, so that a small answer serves each in its turn. What a client
//! was told last of a partition is kept too: a partition that has nothing new is left out.
//!
//! [`FetchSessions`] is the cache of one logical broker. It is bounded by slots
//! (`max.incremental.fetch.session.cache.slots`) and by partitions over all sessions. A session gives
//! way to a new one only if it was not used for [`EVICTION_MS`], or if it has lived that long and is
//! smaller than the new one; otherwise the newcomer gets none and goes on with full requests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ottla_coordinator::types::Ts;
use ottla_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use ottla_protocol::{ErrorCode, Uuid};

#[cfg(test)]
mod tests;

/// How long a session must be unused, or have lived, before another may take its place. Kafka's value.
pub const EVICTION_MS: i64 = 120_000;

/// Partitions in all sessions of a broker, so that a client that opens large ones costs a bounded
/// amount of memory.
pub const PARTITIONS_MAX: usize = 500_000;

/// How a request names a topic: by id since Fetch v13, by name before.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TopicKey {
    /// By id.
    Id(Uuid),
    /// By name. Owned: a slice of the request would keep the whole frame.
    Name(Arc<str>),
}

impl TopicKey {
    /// The key of a topic that a request wants.
    pub fn of(wanted: &FetchTopic, by_ids: bool) -> Self {
        Self::new(wanted.topic_id, &wanted.topic, by_ids)
    }

    fn new(id: Uuid, name: &str, by_ids: bool) -> Self {
        if by_ids {
            Self::Id(id)
        } else {
            Self::Name(name.into())
        }
    }
}

/// What a client asks of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The partition's index.
    pub partition: i32,
    /// The first offset to be read.
    pub fetch_offset: i64,
    /// The most bytes of this partition.
    pub max_bytes: i32,
    /// The leader epoch that the client believes in, or -1.
    pub leader_epoch: i32,
}

impl From<&FetchPartition> for Wanted {
    fn from(want: &FetchPartition) -> Self {
        Self {
            partition: want.partition,
            fetch_offset: want.fetch_offset,
            max_bytes: want.partition_max_bytes,
            leader_epoch: want.current_leader_epoch,
        }
    }
}

/// What an answer says of a partition, as far as a later answer is measured by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// The high watermark.
    pub high_watermark: i64,
    /// The log start offset.
    pub log_start_offset: i64,
}

impl Told {
    /// Nothing, or an error: the next answer without one is news.
    pub const NOTHING: Self = Self {
        high_watermark: -1,
        log_start_offset: -1,
    };
}

/// What an answer brings for a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct News {
    /// What the client knows after it.
    pub told: Told,
    /// Whether there are records.
    pub records: bool,
    /// Whether there is an error, or a replica to be read from instead.
    pub notable: bool,
}

/// One partition of a session.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its topic.
    pub topic: TopicKey,
    /// What is asked of it.
    pub wanted: Wanted,
    told: Told,
}

impl Entry {
    /// Whether the client is to hear this.
    pub fn is_told(&self, news: &News) -> bool {
        news.records || news.notable || news.told != self.told
    }
}

/// A place in the order of turns.
pub type Turn = u64;

/// What one consumer fetches.
#[derive(Debug)]
pub struct Session {
    by_ids: bool,
    /// The epoch of the next request.
    epoch: i32,
    entries: BTreeMap<Turn, Entry>,
    turns: HashMap<TopicKey, HashMap<i32, Turn>>,
    next_turn: Turn,
}

impl Session {
    /// The session that a full request opens; its next request has epoch 1.
    pub fn new(topics: &[FetchTopic], by_ids: bool) -> Self {
        let mut session = Self {
            by_ids,
            epoch: 1,
            entries: BTreeMap::new(),
            turns: HashMap::new(),
            next_turn: 0,
        };
        session.add(topics);
        session
    }

    /// Number of partitions.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no partitions.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The epoch of the next request.
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    /// The partitions, in the order of their turns.
    pub fn iter(&self) -> impl Iterator<Item = (Turn, &Entry)> {
        self.entries.iter().map(|(turn, entry)| (*turn, entry))
    }

    /// Takes an incremental request of `epoch`: partitions that are new or changed, and those that
    /// are forgotten. Returns the epoch of the next request.
    ///
    /// # Errors
    /// INVALID_FETCH_SESSION_EPOCH; FETCH_SESSION_TOPIC_ID_ERROR when the client went from names to
    /// ids or back. The session stays as it is.
    pub fn resume(
        &mut self,
        epoch: i32,
        by_ids: bool,
        topics: &[FetchTopic],
        forgotten: &[ForgottenTopic],
    ) -> Result<i32, ErrorCode> {
        if epoch != self.epoch {
            return Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        }
        if by_ids != self.by_ids {
            return Err(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
        }
        self.add(topics);
        for topic in forgotten {
            let key = TopicKey::new(topic.topic_id, &topic.topic, by_ids);
            self.forget(&key, &topic.partitions);
        }
        // The epoch never comes back to 0, which opens a session.
        self.epoch = self.epoch.checked_add(1).unwrap_or(1);
        Ok(self.epoch)
    }

    /// Notes what an answer says of the partition at `turn`; one with records goes to the end.
    pub fn settle(&mut self, turn: Turn, news: &News) {
        let Some(entry) = self.entries.get_mut(&turn) else {
            return;
        };
        entry.told = news.told;
        if !news.records {
            return;
        }
        if let Some(entry) = self.entries.remove(&turn) {
            let next = self.next_turn();
            let place = self
                .turns
                .get_mut(&entry.topic)
                .and_then(|places| places.get_mut(&entry.wanted.partition));
            if let Some(place) = place {
                *place = next;
            }
            self.entries.insert(next, entry);
        }
    }

    /// The same for a partition that is named; for the first answer.
    pub fn settle_named(&mut self, topic: &TopicKey, partition: i32, news: &News) {
        let turn = self
            .turns
            .get(topic)
            .and_then(|places| places.get(&partition));
        if let Some(&turn) = turn {
            self.settle(turn, news);
        }
    }

    fn next_turn(&mut self) -> Turn {
        self.next_turn += 1;
        self.next_turn
    }

    fn add(&mut self, topics: &[FetchTopic]) {
        for topic in topics {
            let key = TopicKey::of(topic, self.by_ids);
            for want in &topic.partitions {
                let wanted = Wanted::from(want);
                let known = self
                    .turns
                    .get(&key)
                    .and_then(|places| places.get(&wanted.partition));
                if let Some(entry) = known.and_then(|turn| self.entries.get_mut(turn)) {
                    entry.wanted = wanted;
                    continue;
                }
                let turn = self.next_turn();
                self.turns
                    .entry(key.clone())
                    .or_default()
                    .insert(wanted.partition, turn);
                let entry = Entry {
                    topic: key.clone(),
                    wanted,
                    told: Told::NOTHING,
                };
                self.entries.insert(turn, entry);
            }
        }
    }

    fn forget(&mut self, key: &TopicKey, partitions: &[i32]) {
        let Some(places) = self.turns.get_mut(key) else {
            return;
        };
        for partition in partitions {
            if let Some(turn) = places.remove(partition) {
                self.entries.remove(&turn);
            }
        }
        if places.is_empty() {
            self.turns.remove(key);
        }
    }
}

/// A session that requests share with the cache. Its lock is held for one look at the logs at most.
#[derive(Debug, Clone)]
pub struct SharedSession {
    /// Its id; greater than 0.
    pub id: i32,
    session: Arc<Mutex<Session>>,
}

impl SharedSession {
    /// The session.
    pub fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Slot {
    session: Arc<Mutex<Session>>,
    created: Ts,
    used: Ts,
    size: usize,
    /// Whether a larger newcomer may take its place.
    replaceable: bool,
}

/// The sessions of one logical broker.
#[derive(Debug)]
pub struct FetchSessions {
    slots: usize,
    partitions_max: usize,
    sessions: HashMap<i32, Slot>,
    by_use: BTreeSet<(Ts, i32)>,
    /// By size, those that have lived for [`EVICTION_MS`].
    replaceable: BTreeSet<(usize, i32)>,
    partitions: usize,
    evicted: u64,
}

impl FetchSessions {
    /// No sessions yet, and never more than `slots`.
    pub fn new(slots: usize) -> Self {
        Self::bounded(slots, PARTITIONS_MAX)
    }

    fn bounded(slots: usize, partitions_max: usize) -> Self {
        Self {
            slots,
            partitions_max,
            sessions: HashMap::new(),
            by_use: BTreeSet::new(),
            replaceable: BTreeSet::new(),
            partitions: 0,
            evicted: 0,
        }
    }

    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Partitions in all sessions.
    pub fn partitions(&self) -> usize {
        self.partitions
    }

    /// Sessions that gave way to others, or to the bound on partitions.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// A session.
    ///
    /// # Errors
    /// FETCH_SESSION_ID_NOT_FOUND.
    pub fn get(&self, id: i32) -> Result<SharedSession, ErrorCode> {
        let slot = self
            .sessions
            .get(&id)
            .ok_or(ErrorCode::FETCH_SESSION_ID_NOT_FOUND)?;
        Ok(SharedSession {
            id,
            session: Arc::clone(&slot.session),
        })
    }

    /// Whether a session of `size` partitions would be taken in now; makes room for it by the rules.
    pub fn make_room(&mut self, now: Ts, size: usize) -> bool {
        if self.slots == 0 || size > self.partitions_max {
            return false;
        }
        while self.sessions.len() >= self.slots || self.partitions + size > self.partitions_max {
            let Some(id) = self.replaced_by(now, size) else {
                return false;
            };
            self.close(id);
            self.evicted += 1;
        }
        true
    }

    /// Who gives way to a newcomer of `size` partitions.
    fn replaced_by(&self, now: Ts, size: usize) -> Option<i32> {
        let &(used, oldest) = self.by_use.first()?;
        if now - used > EVICTION_MS {
            return Some(oldest);
        }
        let &(smallest, id) = self.replaceable.first()?;
        (smallest < size).then_some(id)
    }

    /// Takes a session in under an id that `random` offers; 0 and ids in use are passed over. For
    /// use after [`FetchSessions::make_room`].
    pub fn open(&mut self, now: Ts, session: Session, mut random: impl FnMut() -> i32) -> i32 {
        let id = loop {
            let id = random() & i32::MAX;
            if id != 0 && !self.sessions.contains_key(&id) {
                break id;
            }
        };
        let size = session.len();
        self.partitions += size;
        self.by_use.insert((now, id));
        let slot = Slot {
            session: Arc::new(Mutex::new(session)),
            created: now,
            used: now,
            size,
            replaceable: false,
        };
        self.sessions.insert(id, slot);
        id
    }

    /// A session was used and has `size` partitions now. One that grows beyond the bound on all
    /// partitions is closed.
    pub fn touch(&mut self, now: Ts, id: i32, size: usize) {
        let Some(slot) = self.sessions.get_mut(&id) else {
            return;
        };
        self.by_use.remove(&(slot.used, id));
        self.by_use.insert((now, id));
        if slot.replaceable {
            self.replaceable.remove(&(slot.size, id));
        }
        slot.replaceable = now - slot.created > EVICTION_MS;
        if slot.replaceable {
            self.replaceable.insert((size, id));
        }
        let grows = size > slot.size;
        self.partitions = self.partitions - slot.size + size;
        slot.used = now;
        slot.size = size;
        if grows && self.partitions > self.partitions_max {
            self.close(id);
            self.evicted += 1;
        }
    }

    /// Ends all sessions.
    pub fn clear(&mut self) {
        self.sessions.clear();
        self.by_use.clear();
        self.replaceable.clear();
        self.partitions = 0;
    }

    /// Ends a session, if there is one of that id.
    pub fn close(&mut self, id: i32) {
        let Some(slot) = self.sessions.remove(&id) else {
            return;
        };
        self.by_use.remove(&(slot.used, id));
        self.replaceable.remove(&(slot.size, id));
        self.partitions -= slot.size;
    }
}
