//! Subscriptions and assignments that consumers exchange, read and written for the coordinators.

use bytes::{BufMut, Bytes, BytesMut};
use ottla_coordinator::group::consumer_protocol::{
    ConsumerProtocol, NamedPartitions, Subscription,
};
use ottla_protocol::messages::TopicName;
use ottla_protocol::messages::consumer_protocol_assignment::{
    self as assignment, ConsumerProtocolAssignment,
};
use ottla_protocol::messages::consumer_protocol_subscription::{
    self as subscription, ConsumerProtocolSubscription,
};
use ottla_protocol::{Encodable, Message, StrBytes, guard};

/// The consumers' own schemas.
#[derive(Clone, Copy, Debug)]
pub struct KafkaConsumers;

impl ConsumerProtocol for KafkaConsumers {
    fn subscription(&self, bytes: &[u8]) -> Option<Subscription> {
        let version = declared_version(bytes)?;
        let read = guard::decode_subscription(Bytes::copy_from_slice(bytes)).ok()?;
        let owned = read.owned_partitions.into_iter();
        Some(Subscription {
            version,
            topics: read.topics.iter().map(ToString::to_string).collect(),
            owned: owned
                .map(|owned| (owned.topic.to_string(), owned.partitions))
                .collect(),
            generation_id: read.generation_id,
            rack_id: read.rack_id.map(|rack| rack.to_string()),
        })
    }

    fn assignment(&self, bytes: &[u8]) -> Option<NamedPartitions> {
        if bytes.is_empty() {
            return Some(Vec::new());
        }
        let read = guard::decode_assignment(Bytes::copy_from_slice(bytes)).ok()?;
        let assigned = read.assigned_partitions.into_iter();
        Some(
            assigned
                .map(|topic| (topic.topic.to_string(), topic.partitions))
                .collect(),
        )
    }

    fn encode_subscription(&self, value: &Subscription) -> Vec<u8> {
        let owned = value.owned.iter().map(|(topic, partitions)| {
            subscription::TopicPartition::default()
                .with_topic(topic_name(topic))
                .with_partitions(partitions.clone())
        });
        let topics = value.topics.iter();
        let message = ConsumerProtocolSubscription::default()
            .with_topics(topics.map(|topic| text(topic)).collect())
            .with_user_data(None)
            .with_owned_partitions(owned.collect())
            .with_generation_id(value.generation_id)
            .with_rack_id(value.rack_id.as_deref().map(text));
        encode(value.version, &message)
    }

    fn encode_assignment(&self, version: i16, partitions: &NamedPartitions) -> Vec<u8> {
        let assigned = partitions.iter().map(|(topic, partitions)| {
            assignment::TopicPartition::default()
                .with_topic(topic_name(topic))
                .with_partitions(partitions.clone())
        });
        let message = ConsumerProtocolAssignment::default()
            .with_assigned_partitions(assigned.collect())
            .with_user_data(None);
        encode(version, &message)
    }
}

/// The version that the bytes say they are in, or the newest known one below it.
fn declared_version(bytes: &[u8]) -> Option<i16> {
    let declared = i16::from_be_bytes(*bytes.first_chunk()?);
    Some(declared.min(ConsumerProtocolSubscription::VERSIONS.max))
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn topic_name(name: &str) -> TopicName {
    TopicName(text(name))
}

/// Empty when a field is longer than the schema can say, which no broker's topic is.
fn encode<M: Encodable + Message>(version: i16, message: &M) -> Vec<u8> {
    let version = version.clamp(M::VERSIONS.min, M::VERSIONS.max);
    let mut bytes = BytesMut::new();
    bytes.put_i16(version);
    match message.encode(&mut bytes, version) {
        Ok(()) => bytes.to_vec(),
        Err(error) => {
            tracing::error!(%error, "a consumer's metadata could not be written");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned() -> NamedPartitions {
        vec![("t".to_owned(), vec![0, 2]), ("u".to_owned(), vec![1])]
    }

    #[test]
    fn a_subscription_is_read_as_it_was_written() {
        let subscription = Subscription {
            version: 3,
            topics: vec!["t".to_owned(), "u".to_owned()],
            owned: owned(),
            generation_id: 7,
            rack_id: Some("r".to_owned()),
        };
        let bytes = KafkaConsumers.encode_subscription(&subscription);
        assert_eq!(KafkaConsumers.subscription(&bytes), Some(subscription));
        assert_eq!(KafkaConsumers.subscription(&bytes[..bytes.len() - 1]), None);
        assert_eq!(KafkaConsumers.subscription(&[]), None);
    }

    #[test]
    fn an_assignment_is_read_as_it_was_written_and_no_bytes_are_no_partitions() {
        let bytes = KafkaConsumers.encode_assignment(1, &owned());
        assert_eq!(KafkaConsumers.assignment(&bytes), Some(owned()));
        assert_eq!(KafkaConsumers.assignment(&[]), Some(Vec::new()));
        assert_eq!(KafkaConsumers.assignment(&[0]), None);
    }
}
