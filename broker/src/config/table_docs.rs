//! What the more important Kafka keys mean, in a sentence; sorted by name.

/// The sentence for a Kafka key, or an empty text.
pub(super) fn of(name: &str) -> &'static str {
    let found = DOCS.binary_search_by(|(key, _)| (*key).cmp(name));
    found.map_or("", |at| DOCS[at].1)
}

#[rustfmt::skip] // a row is a line
const DOCS: &[(&str, &str)] = &[
    ("advertised.listeners", "The addresses that clients are told, by listener name. Without it, a client is told the address that it used."),
    ("auto.create.topics.enable", "Whether asking for the metadata of a missing topic, or producing to it, makes it."),
    ("broker.rack", "The rack of the broker, for consumers that prefer a near replica."),
    ("cleanup.policy", "`delete` drops old segments, `compact` keeps the last record of each key; both may hold; empty keeps everything."),
    ("compression.type", "What batches are stored with; `producer` leaves them as they came."),
    ("connections.max.idle.ms", "Silence after which a connection is closed."),
    ("consumer.assignment.interval.ms", "The least time between two assignments of this group."),
    ("consumer.heartbeat.interval.ms", "How often members of this group are told to call."),
    ("consumer.session.timeout.ms", "Silence after which a member of this group is removed."),
    ("default.replication.factor", "Replicas of a topic that is made without a number."),
    ("delete.retention.ms", "How long the tombstone of a deleted key stays in a compacted log."),
    ("delete.topic.enable", "Whether topics may be deleted."),
    ("errors.deadletterqueue.auto.create.topics.enable", "Whether a missing dead-letter topic is made (KIP-1191)."),
    ("errors.deadletterqueue.copy.record.enable", "Whether a dead letter carries the key and value of its record (KIP-1191)."),
    ("errors.deadletterqueue.group.enable", "Whether the topic may receive dead letters (KIP-1191)."),
    ("errors.deadletterqueue.topic.name", "The topic for this group's dead letters; empty is none (KIP-1191)."),
    ("errors.deadletterqueue.topic.name.prefix", "What the name of every dead-letter topic must begin with; empty allows any (KIP-1191)."),
    ("fetch.max.bytes", "The largest answer to a fetch; a first batch that is larger is sent whole."),
    ("file.delete.delay.ms", "How long the files of a deleted segment or topic stay on the disk."),
    ("flush.messages", "Records after which the log is forced to the disk."),
    ("flush.ms", "Time after which the log is forced to the disk."),
    ("group.consumer.assignment.interval.ms", "The least time between two assignments of a consumer group."),
    ("group.consumer.assignors", "Server-side assignors of consumer groups, the first being the default."),
    ("group.consumer.heartbeat.interval.ms", "How often members of consumer groups are told to call."),
    ("group.consumer.max.size", "The most members of a consumer group."),
    ("group.consumer.migration.policy", "Which changes between the classic and the consumer protocol a running group may make."),
    ("group.consumer.session.timeout.ms", "Silence after which a member of a consumer group is removed."),
    ("group.coordinator.rebalance.protocols", "The group protocols that are served. Share groups also need the feature share.version."),
    ("group.initial.rebalance.delay.ms", "How long the first rebalance of an empty classic group waits for more members."),
    ("group.max.session.timeout.ms", "The longest session timeout that a member of a classic group may ask for."),
    ("group.max.size", "The most members of a classic group."),
    ("group.min.session.timeout.ms", "The shortest session timeout that a member of a classic group may ask for."),
    ("group.share.assignment.interval.ms", "The least time between two assignments of a share group."),
    ("group.share.delivery.count.limit", "Deliveries after which a record that nobody accepts is given up."),
    ("group.share.heartbeat.interval.ms", "How often members of share groups are told to call."),
    ("group.share.max.share.sessions", "The most share sessions of a broker."),
    ("group.share.max.size", "The most members of a share group."),
    ("group.share.min.record.lock.duration.ms", "The shortest acquisition lock that a group may ask for."),
    ("group.share.partition.max.record.locks", "The most records of a partition between the first and the last that is in flight."),
    ("group.share.record.lock.duration.ms", "How long an acquired record stays with its consumer."),
    ("group.share.session.timeout.ms", "Silence after which a member of a share group is removed."),
    ("index.interval.bytes", "Log bytes between two entries of the offset index."),
    ("inter.broker.listener.name", "The listener that brokers use among themselves; here it only has to exist."),
    ("listener.security.protocol.map", "What each listener speaks, as NAME:PROTOCOL. Without it, a listener with a name of its own speaks PLAINTEXT."),
    ("listeners", "Where the broker listens: NAME://HOST:PORT, several with commas. An empty host is every interface, port 0 any port."),
    ("local.retention.bytes", "For tiered storage, which is not served."),
    ("log.cleaner.enable", "Whether compaction runs."),
    ("log.cleanup.policy", "The default of cleanup.policy."),
    ("log.dir", "Used where log.dirs is not given."),
    ("log.dirs", "Where records are kept. Without it and without log.dir, they are kept in memory."),
    ("log.flush.interval.messages", "The default of flush.messages."),
    ("log.flush.interval.ms", "The default of flush.ms."),
    ("log.message.timestamp.type", "The default of message.timestamp.type."),
    ("log.retention.bytes", "The default of retention.bytes."),
    ("log.retention.check.interval.ms", "How often retention looks for old segments."),
    ("log.retention.hours", "The default of retention.ms, in hours, where neither minutes nor milliseconds are given."),
    ("log.retention.minutes", "The default of retention.ms, in minutes, where no milliseconds are given."),
    ("log.retention.ms", "The default of retention.ms."),
    ("log.roll.hours", "The default of segment.ms, in hours, where no milliseconds are given."),
    ("log.roll.ms", "The default of segment.ms."),
    ("log.segment.bytes", "The default of segment.bytes."),
    ("max.compaction.lag.ms", "The longest time that a record stays before it is compacted."),
    ("max.connections", "The most connections of a broker."),
    ("max.connections.per.ip", "The most connections from one address."),
    ("max.connections.per.ip.overrides", "The most connections from certain addresses: HOST:NUMBER, several with commas."),
    ("max.incremental.fetch.session.cache.slots", "The most fetch sessions of a broker."),
    ("max.message.bytes", "The largest record batch that may be produced to the topic."),
    ("message.max.bytes", "The default of max.message.bytes."),
    ("message.timestamp.after.max.ms", "How far the time of a record may be ahead of the broker's."),
    ("message.timestamp.before.max.ms", "How far the time of a record may be behind the broker's."),
    ("message.timestamp.type", "Whose time a record carries: the producer's or, at the append, the broker's."),
    ("metadata.log.dir", "Without meaning here: the metadata log is a log among the others."),
    ("min.cleanable.dirty.ratio", "The part of a log that is not compacted yet at which compaction starts."),
    ("min.compaction.lag.ms", "The time that a record stays before it may be compacted."),
    ("min.insync.replicas", "Replicas that must be in sync for a produce with acks=all."),
    ("node.id", "The id of the broker; with several brokers in one process they are numbered from 0."),
    ("num.io.threads", "Without meaning here, as all thread pools of Kafka."),
    ("num.partitions", "Partitions of a topic that is made without a number."),
    ("offsets.retention.minutes", "How long the committed offsets of an empty group stay."),
    ("offsets.topic.num.partitions", "Partitions of __consumer_offsets, when it is made."),
    ("offsets.topic.replication.factor", "Replicas of __consumer_offsets, when it is made; at most as many as there are brokers, unless it is set."),
    ("preallocate", "Whether the file of a segment is allocated at once."),
    ("process.roles", "Ottla is broker and controller in one, whatever this says, as long as it says broker."),
    ("producer.id.expiration.ms", "How long an idle producer is remembered."),
    ("queued.max.request.bytes", "The most bytes of requests that wait for an answer; -1 is no limit."),
    ("remote.log.storage.system.enable", "Tiered storage, which is not served."),
    ("remote.storage.enable", "Tiered storage, which is not served."),
    ("retention.bytes", "Bytes of each partition that are kept; -1 is all."),
    ("retention.ms", "How long records are kept; -1 is for ever."),
    ("segment.bytes", "The size at which a segment is closed and the next begun."),
    ("segment.ms", "The age at which a segment is closed and the next begun."),
    ("share.assignment.interval.ms", "The least time between two assignments of this group."),
    ("share.auto.offset.reset", "Where a partition starts for this group: `earliest`, `latest`, or `by_duration:` and an ISO-8601 duration back from now."),
    ("share.coordinator.state.topic.min.isr", "In-sync replicas that a write of share state needs."),
    ("share.coordinator.state.topic.num.partitions", "Partitions of __share_group_state, when it is made."),
    ("share.coordinator.state.topic.replication.factor", "Replicas of __share_group_state, when it is made; at most as many as there are brokers, unless it is set."),
    ("share.delivery.count.limit", "Deliveries after which a record that nobody in this group accepts is given up."),
    ("share.heartbeat.interval.ms", "How often members of this group are told to call."),
    ("share.isolation.level", "Whether this group sees records of open and aborted transactions."),
    ("share.partition.max.record.locks", "The most records of a partition between the first and the last that is in flight in this group."),
    ("share.record.lock.duration.ms", "How long an acquired record stays with its consumer in this group."),
    ("share.renew.acknowledge.enable", "Whether consumers of this group may renew their locks (KIP-1222)."),
    ("share.session.timeout.ms", "Silence after which a member of this group is removed."),
    ("socket.request.max.bytes", "The largest request; a larger one closes its connection."),
    ("transaction.max.timeout.ms", "The longest transaction timeout that a producer may ask for."),
    ("transaction.state.log.num.partitions", "Partitions of __transaction_state, when it is made."),
    ("transactional.id.expiration.ms", "How long an idle transactional id stays."),
    ("unclean.leader.election.enable", "Whether a replica that is not in sync may become the leader."),
];

#[cfg(test)]
mod tests {
    use super::DOCS;
    use crate::config::table::{Scope, find};

    #[test]
    fn every_sentence_belongs_to_a_key_and_they_are_sorted() {
        assert!(DOCS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (name, _) in DOCS {
            let known = [Scope::Broker, Scope::Topic, Scope::Group].map(|scope| find(scope, name));
            assert!(known.iter().any(Option::is_some), "{name}");
        }
    }
}
