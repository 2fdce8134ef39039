//! What became of the letters of each group, in numbers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::metrics::labels::{GroupLabel, ReasonLabel};

/// Why letters were not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GiveUp {
    /// The topic's name does not begin with the prefix of the broker.
    Prefix,
    /// The topic does not exist, and is not made.
    TopicMissing,
    /// The topic does not say that it takes dead letters.
    FlagMissing,
    /// The topic is compacted.
    Compacted,
    /// No topic can have the name.
    InvalidName,
    /// The topic is the one that the record comes from.
    Loop,
    /// The topic does not even take the headers of a letter.
    TooLarge,
    /// The topic could not be made, or did not take the letter.
    Refused,
    /// Nobody led the partition for as long as it was tried.
    RetriesExhausted,
    /// The write timeout was over.
    TimedOut,
    /// The group, its topic or its offsets were deleted or altered.
    SourceChanged,
    /// Another group uses the topic, and one of the two does not share.
    IsolationConflict,
}

impl GiveUp {
    /// All of them, in the order of the docs.
    pub const ALL: [Self; 12] = [
        Self::Prefix,
        Self::TopicMissing,
        Self::FlagMissing,
        Self::Compacted,
        Self::InvalidName,
        Self::Loop,
        Self::TooLarge,
        Self::Refused,
        Self::RetriesExhausted,
        Self::TimedOut,
        Self::SourceChanged,
        Self::IsolationConflict,
    ];

    /// Its name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prefix => "prefix",
            Self::TopicMissing => "topic_missing",
            Self::FlagMissing => "flag_missing",
            Self::Compacted => "compacted",
            Self::InvalidName => "invalid_name",
            Self::Loop => "loop",
            Self::TooLarge => "too_large",
            Self::Refused => "refused",
            Self::RetriesExhausted => "retries_exhausted",
            Self::TimedOut => "write_timeout",
            Self::SourceChanged => "source_changed",
            Self::IsolationConflict => "isolation_conflict",
        }
    }

    /// What an operator can do, for the log.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::Prefix => {
                "name the topic after errors.deadletterqueue.topic.name.prefix, or change the prefix"
            }
            Self::TopicMissing => {
                "create the topic with errors.deadletterqueue.group.enable=true, or set errors.deadletterqueue.auto.create.topics.enable=true"
            }
            Self::FlagMissing => "set errors.deadletterqueue.group.enable=true on the topic",
            Self::Compacted => {
                "set cleanup.policy=delete on the topic: letters without a copy have no key"
            }
            Self::InvalidName => "set errors.deadletterqueue.topic.name to a legal name",
            Self::Loop => "name another topic, or set ottla.share.dlq.allow.loop=true on the group",
            Self::TooLarge => "raise max.message.bytes of the topic",
            Self::Refused => "see the error",
            Self::RetriesExhausted => {
                "bring back a leader of the partition; share.group.dlq.write.timeout.ms lets it be tried for longer"
            }
            Self::TimedOut => "see why the topic could not be written",
            Self::SourceChanged => "nothing: the share partition begins anew",
            Self::IsolationConflict => {
                "let one of the groups name another topic, or set share.group.dlq.strict.isolation=false"
            }
        }
    }
}

/// The numbers of one group, since the start of the process. They only grow.
#[derive(Debug, Default)]
pub struct GroupLetters {
    written: AtomicU64,
    attempts: AtomicU64,
    failed_attempts: AtomicU64,
    write_timeouts: AtomicU64,
    late_writes: AtomicU64,
    given_up: [AtomicU64; GiveUp::ALL.len()],
}

impl GroupLetters {
    /// Letters written; those that were late are not among them.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Attempts to write a unit.
    pub fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Attempts that failed.
    pub fn failed_attempts(&self) -> u64 {
        self.failed_attempts.load(Ordering::Relaxed)
    }

    /// Records whose letter was not written in time.
    pub fn write_timeouts(&self) -> u64 {
        self.write_timeouts.load(Ordering::Relaxed)
    }

    /// Letters that were written although they were given up in time.
    pub fn late_writes(&self) -> u64 {
        self.late_writes.load(Ordering::Relaxed)
    }

    /// Records without a letter, for one reason.
    pub fn given_up(&self, why: GiveUp) -> u64 {
        self.given_up[why as usize].load(Ordering::Relaxed)
    }

    pub(super) fn add_written(&self, letters: i64) {
        add(&self.written, letters);
    }

    pub(super) fn add_late(&self, letters: i64) {
        add(&self.late_writes, letters);
    }

    pub(super) fn add_attempt(&self) {
        add(&self.attempts, 1);
    }

    pub(super) fn add_failure(&self) {
        add(&self.failed_attempts, 1);
    }

    pub(super) fn add_given_up(&self, why: GiveUp, records: i64) {
        add(&self.given_up[why as usize], records);
        if why == GiveUp::TimedOut {
            add(&self.write_timeouts, records);
        }
    }
}

fn add(counter: &AtomicU64, by: i64) {
    counter.fetch_add(u64::try_from(by).unwrap_or(0), Ordering::Relaxed);
}

/// The numbers of all groups that have had letters.
#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<BTreeMap<Arc<str>, Arc<GroupLetters>>>);

impl Counts {
    /// The numbers of a group; all zero at first.
    pub(super) fn group(&self, group: &str) -> Arc<GroupLetters> {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = groups.get(group) {
            return Arc::clone(found);
        }
        Arc::clone(groups.entry(group.into()).or_default())
    }

    /// The numbers of a group that has had letters.
    pub(super) fn find(&self, group: &str) -> Option<Arc<GroupLetters>> {
        let groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        groups.get(group).cloned()
    }

    fn all(&self) -> Vec<(Arc<str>, Arc<GroupLetters>)> {
        let groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = groups.iter();
        each.map(|(name, letters)| (Arc::clone(name), Arc::clone(letters)))
            .collect()
    }
}

/// The numbers on `/metrics`, under Kafka's names where it has one.
#[derive(Debug, Default)]
pub(crate) struct LetterMetrics {
    written: Family<GroupLabel, Counter>,
    attempts: Family<GroupLabel, Counter>,
    failed_attempts: Family<GroupLabel, Counter>,
    write_timeouts: Family<GroupLabel, Counter>,
    late_writes: Family<GroupLabel, Counter>,
    given_up: Family<ReasonLabel, Counter>,
}

impl LetterMetrics {
    /// Registers them all.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let by_group = [
            (
                "dead_letter_queue_record_count",
                "Dead letters written",
                &metrics.written,
            ),
            (
                "dead_letter_queue_produce_requests",
                "Attempts to write a run of dead letters",
                &metrics.attempts,
            ),
            (
                "dead_letter_queue_failed_produce_requests",
                "Attempts to write a run of dead letters that failed",
                &metrics.failed_attempts,
            ),
            (
                "dlq_write_timeouts",
                "Records whose dead letter was not written within the group's write timeout",
                &metrics.write_timeouts,
            ),
            (
                "dlq_late_writes",
                "Dead letters written although their write timeout was over",
                &metrics.late_writes,
            ),
        ];
        for (name, help, family) in by_group {
            registry.register(name, help, family.clone());
        }
        registry.register(
            "dlq_given_up",
            "Records whose dead letter was not written, by reason",
            metrics.given_up.clone(),
        );
        metrics
    }

    /// Takes over the numbers as they are now. What has not happened yet has no line.
    pub(super) fn observe(&self, counts: &Counts) {
        for (group, letters) in counts.all() {
            let group = group.to_string();
            for (family, value) in [
                (&self.written, letters.written()),
                (&self.attempts, letters.attempts()),
                (&self.failed_attempts, letters.failed_attempts()),
                (&self.write_timeouts, letters.write_timeouts()),
                (&self.late_writes, letters.late_writes()),
            ] {
                let label = GroupLabel {
                    group: group.clone(),
                };
                raise(family, label, value);
            }
            for why in GiveUp::ALL {
                let label = ReasonLabel {
                    group: group.clone(),
                    reason: why.name(),
                };
                raise(&self.given_up, label, letters.given_up(why));
            }
        }
    }
}

/// Lets a counter show `value`. Another scrape may have been quicker.
fn raise<L>(family: &Family<L, Counter>, label: L, value: u64)
where
    L: Clone + PartialEq + Eq + std::hash::Hash,
{
    if value > 0 {
        let counter = family.get_or_create_owned(&label);
        counter.inner().fetch_max(value, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    #[test]
    fn every_reason_has_its_place_and_name() {
        for (place, why) in GiveUp::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, place);
        }
        let names: std::collections::BTreeSet<_> = GiveUp::ALL.map(GiveUp::name).into();
        assert_eq!(names.len(), GiveUp::ALL.len());
    }

    #[test]
    fn only_what_has_happened_has_a_line() {
        let mut registry = Registry::default();
        let metrics = LetterMetrics::register(&mut registry);
        let counts = Counts::default();
        counts.group("g").add_written(3);
        counts.group("g").add_given_up(GiveUp::TimedOut, 2);
        metrics.observe(&counts);
        metrics.observe(&counts);
        let mut told = String::new();
        text::encode(&mut told, &registry).unwrap();
        let lines: Vec<&str> = told.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                "dead_letter_queue_record_count_total{group=\"g\"} 3",
                "dlq_write_timeouts_total{group=\"g\"} 2",
                "dlq_given_up_total{group=\"g\",reason=\"write_timeout\"} 2",
            ]
        );
    }
}
