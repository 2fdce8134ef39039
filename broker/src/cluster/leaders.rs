//! Leaders: what becomes of them when brokers come and go, and what can be asked for: elections
//! (KIP-460), reassignments (KIP-455), and the return to preferred leaders.

use std::sync::{Arc, MutexGuard, PoisonError};

use ottla_protocol::ErrorCode;
use ottla_storage::Log;

use super::controller::Cluster;
use super::election::{self, Election, World};
use super::image::{Partition, Topic};
use super::leadership::{Leadership, LeadershipChange, NOBODY};
use super::reassignment;
use crate::error_code::ApiError;
use crate::records::MetadataChange;

/// The longest name of a topic.
const MAX_NAME: usize = 249;

/// What a partition's replicas are to be.
#[derive(Debug, Clone)]
pub struct Reassignment {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partition's index.
    pub partition: i32,
    /// The replicas, the preferred leader first; `None` takes a reassignment back.
    pub replicas: Option<Vec<i32>>,
}

/// A partition, and what came of an election.
pub(crate) type Elected = (Arc<str>, i32, Result<(), ApiError>);

impl Cluster {
    /// Marks a logical broker as up or down and moves leadership accordingly.
    pub fn set_alive(&self, id: i32, alive: bool, now: i64) -> Result<(), ApiError> {
        let log = self.log_guard();
        {
            let mut brokers = self.brokers.write().unwrap_or_else(PoisonError::into_inner);
            let Some(broker) = brokers.get_mut(&id) else {
                return Err(ErrorCode::BROKER_ID_NOT_REGISTERED.into());
            };
            broker.alive = alive;
        }
        self.settle(&log, &self.all_topics(), now).map(drop)
    }

    /// Whether as many replicas are in sync as a write with acks=all asks for.
    pub fn has_min_isr(&self, partition: &Partition) -> bool {
        let leadership = partition.leadership();
        let isr = leadership.isr.len();
        if isr >= leadership.replicas.len() {
            return true;
        }
        let topic = self.topic(&partition.topic);
        topic.is_none_or(|topic| isr >= leadership.min_isr(topic.config().min_insync_replicas))
    }

    fn all_topics(&self) -> Vec<Arc<Topic>> {
        self.image().topics.values().cloned().collect()
    }

    /// Brings the topics' leaders in line with who is up and what is configured; says whether any
    /// leader changed.
    pub(super) fn settle(
        &self,
        log: &MutexGuard<'_, Arc<Log>>,
        topics: &[Arc<Topic>],
        now: i64,
    ) -> Result<bool, ApiError> {
        let alive = self.alive();
        let (mut changes, mut moved) = (vec![], false);
        for topic in topics {
            let world = self.world(topic, &alive);
            let election = on_loss(topic);
            for partition in topic.partitions().iter() {
                let recorded = partition.leadership();
                let from = Leadership::clone(&recorded);
                let steps = election::settle(&recorded, from, &world, election);
                moved |= steps.iter().any(|step| step.leader.is_some());
                changes.extend(recorded_as(partition, steps));
            }
        }
        self.commit(log, changes, now)?;
        Ok(moved)
    }

    /// After a restart every broker has been down and is back: leaders are elected anew.
    pub(super) fn elect_after_restart(&self, now: i64) -> Result<(), ApiError> {
        let log = self.log_guard();
        let mut changes = vec![];
        for topic in self.all_topics() {
            let world = self.world(&topic, &[]);
            for partition in topic.partitions().iter() {
                let recorded = partition.leadership();
                let from = Leadership::clone(&recorded);
                let steps = election::settle(&recorded, from, &world, Election::Clean);
                changes.extend(recorded_as(partition, steps));
            }
        }
        self.commit(&log, changes, now)?;
        self.settle(&log, &self.all_topics(), now).map(drop)
    }

    fn world<'a>(&self, topic: &Topic, alive: &'a [i32]) -> World<'a> {
        let features = &self.image().features;
        World {
            alive,
            min_isr: usize::try_from(topic.config().min_insync_replicas).unwrap_or(1),
            elr: features.get("eligible.leader.replicas.version") > Some(&0),
        }
    }

    /// Elects leaders: preferred ones, or, where there is none, any that is up. Without a list of
    /// partitions, everywhere it is needed; those where it is not are left out of the answer.
    pub(crate) fn elect_leaders(
        &self,
        wanted: Option<Vec<(Arc<str>, i32)>>,
        unclean: bool,
        now: i64,
    ) -> Vec<Elected> {
        let log = self.log_guard();
        let alive = self.alive();
        let everywhere = wanted.is_none();
        let wanted = wanted.unwrap_or_else(|| self.all_partitions());
        let mut elected = vec![];
        for (name, index) in wanted {
            let result = self.find(&name, index).and_then(|(topic, partition)| {
                let world = self.world(&topic, &alive);
                let steps = elect(&partition, &world, unclean)?;
                self.commit(&log, recorded_as(&partition, steps).collect(), now)
            });
            let not_needed = |error: &ApiError| error.code == ErrorCode::ELECTION_NOT_NEEDED;
            if !(everywhere && result.as_ref().is_err_and(not_needed)) {
                elected.push((name, index, result));
            }
        }
        elected
    }

    fn all_partitions(&self) -> Vec<(Arc<str>, i32)> {
        let topics = self.all_topics();
        let each = topics.iter().flat_map(|topic| {
            let indexes = 0..topic.partitions().len() as i32;
            indexes.map(|index| (Arc::clone(&topic.name), index))
        });
        each.collect()
    }

    fn find(&self, name: &str, index: i32) -> Result<(Arc<Topic>, Arc<Partition>), ApiError> {
        let unknown = |message| ApiError::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message);
        let topic = self
            .topic(name)
            .ok_or_else(|| unknown(format!("No such topic as {}", shown(name))))?;
        let partition = topic
            .partition(index)
            .ok_or_else(|| unknown(format!("No such partition as {name}-{index}")))?;
        Ok((topic, partition))
    }

    /// Changes the replicas of a partition, or takes such a change back. Replicas whose brokers are up
    /// are in sync at once; the reassignment stays in progress while one that it adds is down.
    pub fn reassign(
        &self,
        wanted: &Reassignment,
        same_factor: bool,
        now: i64,
    ) -> Result<(), ApiError> {
        let log = self.log_guard();
        let name = &*wanted.topic;
        let unknown = |message| ApiError::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message);
        let topic = self
            .topic(name)
            .ok_or_else(|| unknown(format!("Unable to find a topic named {}.", shown(name))))?;
        let index = wanted.partition;
        let partition = topic
            .partition(index)
            .ok_or_else(|| unknown(format!("Unable to find partition {name}:{index}.")))?;
        let recorded = partition.leadership();
        let election = on_loss(&topic);
        let sites = self.sites();
        let begun = match &wanted.replicas {
            Some(target) => reassignment::start(&recorded, target, &sites.registered, same_factor)?,
            None => {
                let unclean = election == Election::Unclean;
                reassignment::cancel(&recorded, &format!("{name}:{index}"), unclean)?
            }
        };
        let alive = self.alive();
        let steps = election::settle(&recorded, begun, &self.world(&topic, &alive), election);
        self.commit(&log, recorded_as(&partition, steps).collect(), now)
    }

    /// Lets preferred replicas lead where others do, and says whether any leader changed.
    pub fn prefer_leaders(&self, now: i64) -> bool {
        let elected = self.elect_leaders(None, false, now);
        elected.iter().any(|(_, _, outcome)| outcome.is_ok())
    }
}

/// As much of a name as a topic's can have: the message goes out once a partition.
fn shown(name: &str) -> &str {
    let longest = name.char_indices().nth(MAX_NAME);
    &name[..longest.map_or(name.len(), |(at, _)| at)]
}

/// How a leader that is lost is replaced.
fn on_loss(topic: &Topic) -> Election {
    if topic.config().unclean_leader_election_enable {
        Election::Unclean
    } else {
        Election::Clean
    }
}

fn recorded_as(
    partition: &Partition,
    steps: Vec<LeadershipChange>,
) -> impl Iterator<Item = MetadataChange> {
    let (topic_id, index) = (partition.topic_id, partition.index);
    steps
        .into_iter()
        .map(move |change| MetadataChange::PartitionChange {
            topic_id,
            index,
            change,
        })
}

/// The changes of an election that was asked for.
fn elect(
    partition: &Partition,
    world: &World<'_>,
    unclean: bool,
) -> Result<Vec<LeadershipChange>, ApiError> {
    let now = partition.leadership();
    let (satisfied, election, failure) = if unclean {
        let failure = ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE;
        (now.leader != NOBODY, Election::Unclean, failure)
    } else {
        let failure = ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE;
        (now.leader == now.preferred(), Election::Preferred, failure)
    };
    if satisfied {
        return Err(ErrorCode::ELECTION_NOT_NEEDED.into());
    }
    let steps = election::settle(&now, Leadership::clone(&now), world, election);
    if steps.is_empty() {
        return Err(failure.into());
    }
    Ok(steps)
}
