//! One attempt to write the letters of a unit: what is configured is looked at anew, then the letters
//! are built and appended batch by batch.
//!
//! INVARIANT: letters are claimed right before they are appended, and their outcome is told right
//! after. So whatever the share partition decided meanwhile, each record has one outcome that counts.

use std::ops::ControlFlow;
use std::sync::Arc;

use ottla_coordinator::share::types::{CloseReason, Limits, OffsetRange};
use ottla_protocol::ErrorCode;
use ottla_protocol::batch::BatchError;

use super::Lost;
use super::copy::{self, Source};
use super::counts::{GiveUp, GroupLetters};
use super::record::{Letters, Packer, Stamp, smaller};
use super::retry::Obstacle;
use super::work::Pending;
use crate::append::{self, Write};
use crate::broker::Broker;
use crate::cluster::{NOBODY, NewTopic, Partition, Topic};
use crate::config::ShareGroupConfig;
use crate::error_code::ApiError;
use crate::shares;

/// The version of Produce whose rules hold for letters: Kafka's sender speaks it.
const PRODUCE_VERSION: i16 = 13;

/// The level of `share.version` from which there are dead letters.
pub(crate) const SHARE_VERSION: i16 = 2;

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum End {
    /// With an outcome for each record, or somebody else sees to it.
    Done,
    /// Another one may help.
    Again(Obstacle, String),
    /// It goes on after others have had their turn.
    GoOn,
}

/// Why letters are not written now.
#[derive(Debug)]
enum Stop {
    /// The share partition wants no letter any more.
    Unwanted,
    /// The share partition has ended.
    Closed(CloseReason),
    /// Another attempt may help.
    Again(Obstacle, String),
    /// None would.
    GiveUp(GiveUp, String),
    /// It is the turn of others.
    Awaited,
}

/// Makes an attempt.
pub(super) fn run(broker: &Broker, pending: &mut Pending, source: &mut Source) -> End {
    let group = broker.group_config(&pending.slot.key.group_id);
    let config = &group.share;
    let name = match &pending.topic {
        Some(name) => Arc::clone(name),
        None => {
            skip_decided(broker, pending);
            if pending.left.is_empty() {
                return End::Done;
            }
            let version = broker.feature_level("share.version");
            if config.dlq_topic_name.is_empty() || version < SHARE_VERSION {
                let left: Vec<OffsetRange> = pending.left.iter().copied().collect();
                archive(broker, pending, &left);
                return End::Done;
            }
            let name: Arc<str> = config.dlq_topic_name.as_str().into();
            pending.topic = Some(Arc::clone(&name));
            name
        }
    };
    let found = find(broker, pending, config, &name);
    let written =
        found.and_then(|topic| Writer::new(broker, pending, source, &topic).write(config));
    pending.under_way = matches!(written, Err(Stop::Awaited));
    match written {
        Err(Stop::Awaited) => End::GoOn,
        Ok(()) | Err(Stop::Unwanted) => End::Done,
        Err(Stop::Again(obstacle, error)) => End::Again(obstacle, error),
        Err(Stop::GiveUp(why, error)) => {
            give_up(broker, pending, why, &error);
            End::Done
        }
        Err(Stop::Closed(reason)) => {
            let left: Vec<OffsetRange> = pending.left.iter().copied().collect();
            closed(broker, pending, &left, reason);
            End::Done
        }
    }
}

/// Records whose outcome was decided in an earlier life of the share partition take it.
fn skip_decided(broker: &Broker, pending: &mut Pending) {
    // Only records that were loaded on their way can have one.
    if pending.unit.generation.is_some() {
        return;
    }
    let slot = &pending.slot;
    let ranges = std::mem::take(&mut pending.left);
    let ledger = &broker.dead_letters.ledger;
    let (decided, open) = ledger.split(&slot.key, slot.state_epoch(), ranges);
    pending.left = open.into();
    if !decided.is_empty() {
        archive(broker, pending, &decided);
    }
}

/// Records are archived without a letter, and that is not counted: they had an outcome before, or their
/// group has no dead letters any more.
fn archive(broker: &Broker, pending: &Pending, ranges: &[OffsetRange]) {
    let slot = &pending.slot;
    let (now, limits) = (
        broker.clock.now(),
        shares::limits(broker, &slot.key.group_id),
    );
    for &range in ranges {
        // A cell that is closed needs none.
        let _ = slot
            .cell
            .letters_given_up(pending.unit.id, range, now, &limits);
    }
    slot.settle(broker, now, &limits);
}

/// What is left of a unit goes without letters, unless its time has run out before.
pub(super) fn give_up(broker: &Broker, pending: &Pending, why: GiveUp, error: &str) {
    let slot = &pending.slot;
    let (now, limits) = (
        broker.clock.now(),
        shares::limits(broker, &slot.key.group_id),
    );
    let (mut counted, mut unheard) = (vec![], vec![]);
    let mut ended = None;
    for &range in &pending.left {
        match slot
            .cell
            .letters_given_up(pending.unit.id, range, now, &limits)
        {
            Ok(true) => {
                let ledger = &broker.dead_letters.ledger;
                ledger.decide(&slot.key, slot.state_epoch(), range);
                counted.push(range);
            }
            Ok(false) => {}
            Err(reason) => {
                unheard.push(range);
                ended = Some(reason);
            }
        }
    }
    slot.settle(broker, now, &limits);
    lost(broker, pending, &counted, why, error);
    if let Some(reason) = ended {
        closed(broker, pending, &unheard, reason);
    }
}

fn lost(broker: &Broker, pending: &Pending, ranges: &[OffsetRange], why: GiveUp, error: &str) {
    let lost = Lost {
        unit: &pending.unit,
        ranges,
        topic: pending.topic.as_deref(),
        why,
        error,
    };
    broker.dead_letters.given_up(broker, &pending.slot, &lost);
}

/// The share partition has ended before it heard of `ranges`. Who loads its state next finds the records
/// and hands them over again, unless that state is gone or was replaced.
fn closed(broker: &Broker, pending: &Pending, ranges: &[OffsetRange], reason: CloseReason) {
    let slot = &pending.slot;
    let gone = match reason {
        CloseReason::GroupDeleted | CloseReason::TopicDeleted => true,
        CloseReason::NotLeader | CloseReason::Shutdown => false,
        CloseReason::Fenced => {
            let stored = broker.share_states.summary(broker, &slot.key);
            let epoch = stored.ok().flatten().map(|stored| stored.state_epoch);
            epoch.is_some_and(|epoch| epoch != slot.state_epoch())
        }
    };
    if gone && !broker.dead_letters.work.current_is_over() {
        let error = reason.to_string();
        lost(broker, pending, ranges, GiveUp::SourceChanged, &error);
    }
}

/// The topic, if the letters may go there; made, where that is allowed.
fn find(
    broker: &Broker,
    pending: &Pending,
    config: &ShareGroupConfig,
    name: &str,
) -> Result<Arc<Topic>, Stop> {
    let refuse = |why, error: &str| Err(Stop::GiveUp(why, error.to_owned()));
    let slot = &pending.slot;
    let topics = &broker.cluster.broker_config(slot.leader).topics;
    if let Some(conflict) = broker.dlq_conflict(&slot.key.group_id) {
        return refuse(GiveUp::IsolationConflict, &conflict);
    }
    if name.starts_with("__") {
        return refuse(GiveUp::InvalidName, "the name starts with __");
    }
    if !name.starts_with(&topics.dlq_name_prefix) {
        let prefix = &topics.dlq_name_prefix;
        return refuse(
            GiveUp::Prefix,
            &format!("{name:?} does not begin with {prefix:?}"),
        );
    }
    if name == &*slot.partition.topic && !config.dlq_allow_loop {
        return refuse(GiveUp::Loop, "the record comes from the topic");
    }
    let topic = match broker.cluster.topic(name) {
        Some(topic) => topic,
        None if topics.dlq_auto_create => create(broker, name)?,
        None => return refuse(GiveUp::TopicMissing, "there is no such topic"),
    };
    let config = topic.config();
    if !config.dlq_group_enable {
        return refuse(GiveUp::FlagMissing, "the topic takes no dead letters");
    }
    if config.cleanup_policy.compact {
        return refuse(GiveUp::Compacted, "cleanup.policy is compact");
    }
    Ok(topic)
}

/// Makes the topic as Kafka does, unless somebody else is quicker.
fn create(broker: &Broker, name: &str) -> Result<Arc<Topic>, Stop> {
    let configs = [
        ("errors.deadletterqueue.group.enable", "true"),
        ("message.timestamp.type", "CreateTime"),
    ];
    let new = NewTopic {
        name: name.to_owned(),
        partitions: -1,
        replication_factor: -1,
        configs: configs
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        ..Default::default()
    };
    broker
        .create_or_find(&new)
        .map_err(|error| match error.code {
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => {
                Stop::Again(Obstacle::NoLeader, "the topic was deleted again".to_owned())
            }
            ErrorCode::INVALID_TOPIC_EXCEPTION => {
                Stop::GiveUp(GiveUp::InvalidName, error.to_string())
            }
            _ => Stop::GiveUp(GiveUp::Refused, error.to_string()),
        })
}

/// Writes the letters of one unit to one topic.
struct Writer<'a> {
    broker: &'a Broker,
    pending: &'a mut Pending,
    topic: &'a Topic,
    counts: Arc<GroupLetters>,
    source: &'a mut Source,
    /// Letters whose headers alone are too large, and why.
    too_large: Vec<OffsetRange>,
    refusal: String,
}

impl<'a> Writer<'a> {
    fn new(
        broker: &'a Broker,
        pending: &'a mut Pending,
        source: &'a mut Source,
        topic: &'a Topic,
    ) -> Self {
        Self {
            counts: broker.dead_letters.group(&pending.slot.key.group_id),
            source,
            broker,
            pending,
            topic,
            too_large: vec![],
            refusal: String::new(),
        }
    }

    fn write(mut self, config: &ShareGroupConfig) -> Result<(), Stop> {
        if !self.pending.under_way {
            self.counts.add_attempt();
        }
        let from = Arc::clone(&self.pending.slot.partition);
        let partitions = self.topic.partitions();
        let at = usize::try_from(from.index).unwrap_or(0) % partitions.len().max(1);
        let Some(partition) = partitions.get(at) else {
            return Err(Stop::Again(Obstacle::NoLeader, "no partition".to_owned()));
        };
        let copy = config.dlq_copy_record_enable;
        let flow = match self.ready(partition) {
            ControlFlow::Continue(()) => self.write_ranges(&from, partition, copy),
            stop @ ControlFlow::Break(_) => stop,
        };
        if !self.too_large.is_empty() {
            lost(
                self.broker,
                self.pending,
                &self.too_large,
                GiveUp::TooLarge,
                &self.refusal,
            );
        }
        let refused = matches!(flow, ControlFlow::Break(Stop::Again(..) | Stop::GiveUp(..)));
        if refused || !self.too_large.is_empty() {
            self.counts.add_failure();
        }
        match flow {
            ControlFlow::Break(stop) => Err(stop),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    fn write_ranges(
        &mut self,
        from: &Partition,
        partition: &Partition,
        copy: bool,
    ) -> ControlFlow<Stop> {
        let unit = self.pending.unit;
        let stamp = Stamp::new(
            &from.topic,
            from.index,
            &self.pending.slot.key.group_id,
            unit.delivery_count,
            super::cause(unit.cause),
        );
        let limit = usize::try_from(self.topic.config().max_message_bytes).unwrap_or(0);
        for range in self.pending.left.clone() {
            let now = self.broker.clock.now();
            let size = stamp.least_size(range.first, now);
            if size > limit {
                let error = BatchError::TooLarge { size, limit };
                self.give_up(range, error.to_string())?;
                continue;
            }
            let mut packer = Packer::new(&stamp, now, limit);
            let mut source = std::mem::take(self.source);
            let mut each =
                |offset, copied: copy::Copied<'_>| match unbroken(packer.push(offset, copied))? {
                    Some(letters) => self.append(partition, &letters),
                    None => ControlFlow::Continue(()),
                };
            let flow = if copy {
                source.read(&from.log, range, &mut each)
            } else {
                copy::none(range, &mut each)
            };
            *self.source = source;
            flow?;
            if let Some(letters) = unbroken(packer.take())? {
                self.append(partition, &letters)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Looks whether letters are wanted and could be stored, before any is built.
    fn ready(&self, partition: &Partition) -> ControlFlow<Stop> {
        if let Some(first) = self.pending.left.front() {
            self.claim(*first)?;
        }
        if partition.leader() == NOBODY {
            return ControlFlow::Break(leaderless(partition));
        }
        ControlFlow::Continue(())
    }

    fn claim(&self, range: OffsetRange) -> ControlFlow<Stop> {
        let cell = &self.pending.slot.cell;
        match cell.claim_letters(self.pending.unit.id, range) {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(Stop::Unwanted),
            Err(reason) => ControlFlow::Break(Stop::Closed(reason)),
        }
    }

    fn append(&mut self, partition: &Partition, letters: &Letters) -> ControlFlow<Stop> {
        self.claim(letters.range)?;
        let leadership = partition.leadership();
        if leadership.leader == NOBODY {
            return ControlFlow::Break(leaderless(partition));
        }
        let write = Write {
            records: &letters.records,
            leadership: &leadership,
            all_in_sync: true,
            produce_version: PRODUCE_VERSION,
        };
        let stored = append::append(self.broker, self.topic, partition, &write);
        if self.broker.cluster.topic_by_id(self.topic.id).is_none() {
            // What was stored, if anything was, went with it.
            let error = format!("{} was deleted", self.topic.name);
            return ControlFlow::Break(Stop::Again(Obstacle::NoLeader, error));
        }
        match stored {
            // A replica that was lost meanwhile does not take the letter back.
            Ok(_) => {
                self.written(letters.range);
                self.end_turn(letters.records.len())
            }
            Err(refused) => self.refused(partition, letters, &refused.error),
        }
    }

    /// Lets others have their turn, if it is time.
    fn end_turn(&mut self, stored_bytes: usize) -> ControlFlow<Stop> {
        let over = self.broker.dead_letters.work.spend(stored_bytes);
        if over && !self.pending.left.is_empty() {
            return ControlFlow::Break(Stop::Awaited);
        }
        ControlFlow::Continue(())
    }

    /// The limits as they are now: they may have changed since the attempt began.
    fn limits(&self) -> Limits {
        shares::limits(self.broker, &self.pending.slot.key.group_id)
    }

    fn written(&mut self, range: OffsetRange) {
        let (broker, slot) = (self.broker, Arc::clone(&self.pending.slot));
        let letters = &broker.dead_letters;
        letters.ledger.decide(&slot.key, slot.state_epoch(), range);
        let now = broker.clock.now();
        let (unit, limits) = (self.pending.unit.id, self.limits());
        match slot.cell.letters_written(unit, range, now, &limits) {
            Ok(written) => {
                self.counts.add_written(written.counted);
                self.counts.add_late(written.late);
            }
            Err(_) if letters.work.current_is_over() => self.counts.add_late(range.len()),
            Err(_) => self.counts.add_written(range.len()),
        }
        self.done(range);
        slot.settle(broker, now, &limits);
    }

    /// These records have their outcome; letters are written in the order of offsets.
    fn done(&mut self, range: OffsetRange) {
        if let Some(first) = self.pending.left.front_mut() {
            first.first = range.last + 1;
            if first.is_empty() {
                self.pending.left.pop_front();
            }
        }
    }

    fn refused(
        &mut self,
        partition: &Partition,
        letters: &Letters,
        error: &ApiError,
    ) -> ControlFlow<Stop> {
        let told = error.to_string();
        match error.code {
            ErrorCode::MESSAGE_TOO_LARGE | ErrorCode::RECORD_LIST_TOO_LARGE => {
                let parts = unbroken(smaller(letters))?;
                if parts.is_empty() {
                    return self.give_up(letters.range, told);
                }
                for part in parts {
                    self.append(partition, &part)?;
                }
                ControlFlow::Continue(())
            }
            ErrorCode::NOT_ENOUGH_REPLICAS | ErrorCode::KAFKA_STORAGE_ERROR => {
                ControlFlow::Break(Stop::Again(Obstacle::Unavailable, told))
            }
            _ => ControlFlow::Break(Stop::GiveUp(GiveUp::Refused, told)),
        }
    }

    /// These letters are too large without a copy: the others of the unit are written all the same.
    fn give_up(&mut self, range: OffsetRange, error: String) -> ControlFlow<Stop> {
        let (broker, slot) = (self.broker, Arc::clone(&self.pending.slot));
        let now = broker.clock.now();
        let (unit, limits) = (self.pending.unit.id, self.limits());
        match slot.cell.letters_given_up(unit, range, now, &limits) {
            Ok(true) => {
                let ledger = &broker.dead_letters.ledger;
                ledger.decide(&slot.key, slot.state_epoch(), range);
                self.too_large.push(range);
                self.refusal = error;
            }
            Ok(false) => return ControlFlow::Break(Stop::Unwanted),
            Err(reason) => return ControlFlow::Break(Stop::Closed(reason)),
        }
        self.done(range);
        slot.settle(broker, now, &limits);
        ControlFlow::Continue(())
    }
}

fn leaderless(partition: &Partition) -> Stop {
    Stop::Again(Obstacle::NoLeader, format!("nobody leads {partition:?}"))
}

/// A batch that could not be built is no letter.
fn unbroken<T>(built: Result<T, BatchError>) -> ControlFlow<Stop, T> {
    match built {
        Ok(built) => ControlFlow::Continue(built),
        Err(error) => ControlFlow::Break(Stop::GiveUp(GiveUp::Refused, error.to_string())),
    }
}
