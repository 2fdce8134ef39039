//! The questions about topics, offsets and configs.

use std::collections::BTreeMap;

use ottla_protocol::messages::describe_configs_request::DescribeConfigsResource;
use ottla_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use ottla_protocol::messages::{
    BrokerId, DescribeConfigsRequest, ListConfigResourcesRequest, ListOffsetsRequest,
};
use ottla_protocol::{ErrorCode, StrBytes};

use super::groups::{only, refused, text, topic_name};
use super::{Cluster, Error, is_passing};

/// The offset behind the last record, as a timestamp of ListOffsets.
pub const LATEST: i64 = -1;
/// The offset of the first record, as a timestamp of ListOffsets.
pub const EARLIEST: i64 = -2;

/// What kind of thing a config belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A topic.
    Topic,
    /// A broker; an empty name is every broker.
    Broker,
    /// A group.
    Group,
}

impl Resource {
    const fn wire(self) -> i8 {
        match self {
            Self::Topic => 2,
            Self::Broker => 4,
            Self::Group => 32,
        }
    }
}

/// Of a topic: its partitions and their leaders.
type Leaders = BTreeMap<i32, i32>;

impl Cluster {
    /// Topics that are there, each with its partitions and their leaders (-1: none at the moment).
    pub async fn topics(
        &mut self,
        names: &[String],
    ) -> Result<BTreeMap<String, Result<Leaders, Error>>, Error> {
        self.begin();
        self.known_topics(names).await
    }

    async fn known_topics(
        &mut self,
        names: &[String],
    ) -> Result<BTreeMap<String, Result<Leaders, Error>>, Error> {
        let answer = self.ask_metadata(Some(names)).await?;
        let mut found = BTreeMap::new();
        for topic in answer.topics {
            let partitions = topic.partitions.iter();
            let leaders = partitions
                .map(|partition| (partition.partition_index, partition.leader_id.0))
                .collect();
            let name = topic.name.as_ref().map(|name| name.to_string());
            let outcome = match ErrorCode(topic.error_code) {
                ErrorCode::NONE | ErrorCode::LEADER_NOT_AVAILABLE => Ok(leaders),
                code => Err(Error::refused(code.0, None)),
            };
            found.insert(name.unwrap_or_default(), outcome);
        }
        Ok(found)
    }

    /// ListOffsets at a point in time (ms, [`LATEST`] or [`EARLIEST`]); -1 for a partition that has no
    /// such record. All partitions must exist.
    pub async fn offsets_at(
        &mut self,
        partitions: &[(String, i32)],
        timestamp: i64,
    ) -> Result<BTreeMap<(String, i32), i64>, Error> {
        self.begin();
        let mut found = BTreeMap::new();
        let mut open: Vec<(String, i32)> = partitions.to_vec();
        loop {
            let last = match self.offsets_once(&mut open, timestamp, &mut found).await {
                Ok(()) if open.is_empty() => return Ok(found),
                Ok(()) => Error::refused(ErrorCode::LEADER_NOT_AVAILABLE.0, None),
                Err(error @ Error::Connection { .. }) => error,
                Err(error) if is_passing(error.code()) => error,
                Err(error) => return Err(error),
            };
            if !self.again().await {
                return Err(self.late("the leaders of the partitions", &last));
            }
        }
    }

    /// Asks each leader once; what stays open has no leader, or had another one.
    async fn offsets_once(
        &mut self,
        open: &mut Vec<(String, i32)>,
        timestamp: i64,
        found: &mut BTreeMap<(String, i32), i64>,
    ) -> Result<(), Error> {
        for (leader, asked) in self.by_leader(open).await? {
            let mut topics: BTreeMap<&str, Vec<_>> = BTreeMap::new();
            for (topic, partition) in &asked {
                let partition = ListOffsetsPartition {
                    partition_index: *partition,
                    timestamp,
                    ..Default::default()
                };
                topics.entry(topic).or_default().push(partition);
            }
            let topic = |(name, partitions): (&str, Vec<_>)| ListOffsetsTopic {
                name: topic_name(name),
                partitions,
                ..Default::default()
            };
            let request = ListOffsetsRequest {
                replica_id: BrokerId(-1),
                topics: topics.into_iter().map(topic).collect(),
                timeout_ms: 30_000,
                ..Default::default()
            };
            let answer = self.ask_node(leader, 1, &request).await?;
            for topic in answer.topics {
                for partition in topic.partitions {
                    let at = (topic.name.to_string(), partition.partition_index);
                    match ErrorCode(partition.error_code) {
                        ErrorCode::NONE => {
                            open.retain(|waiting| *waiting != at);
                            found.insert(at, partition.offset);
                        }
                        code if is_passing(code) => {}
                        code => {
                            let text = format!("{}-{}", at.0, at.1);
                            return Err(Error::refused(code.0, Some(&text)));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    async fn by_leader(
        &mut self,
        partitions: &[(String, i32)],
    ) -> Result<BTreeMap<i32, Vec<(String, i32)>>, Error> {
        let mut names: Vec<String> = partitions.iter().map(|(topic, _)| topic.clone()).collect();
        names.dedup();
        let topics = self.known_topics(&names).await?;
        let mut leaders: BTreeMap<i32, Vec<_>> = BTreeMap::new();
        for (topic, partition) in partitions {
            let leader = match topics.get(topic) {
                Some(Ok(known)) => known.get(partition).copied().ok_or_else(|| {
                    let text = format!("The partitions \"{topic}-{partition}\" do not exist");
                    Error::refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.0, Some(&text))
                })?,
                Some(Err(error)) => return Err(Error::refused(error.code().0, Some(topic))),
                None => -1,
            };
            if leader >= 0 {
                let at = (topic.clone(), *partition);
                leaders.entry(leader).or_default().push(at);
            }
        }
        Ok(leaders)
    }

    /// Configs of one thing, by name; a null value is left out.
    pub async fn configs(
        &mut self,
        kind: Resource,
        name: &str,
        keys: Option<&[&str]>,
    ) -> Result<BTreeMap<String, String>, Error> {
        let keys = keys.map(|keys| keys.iter().map(|key| text(key)).collect());
        let resource = DescribeConfigsResource::default()
            .with_resource_type(kind.wire())
            .with_resource_name(text(name))
            .with_configuration_keys(keys);
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
        // What belongs to one broker is known to that one.
        let answer = match name.parse() {
            Ok(id) if kind == Resource::Broker => self.node(id, 1, &request).await?,
            _ => self.any(1, &request).await?,
        };
        let result = only(answer.results)?;
        refused(result.error_code, result.error_message.as_ref())?;
        let value = |config: ottla_protocol::messages::describe_configs_response::DescribeConfigsResourceResult| {
            let value = config.value?;
            Some((config.name.to_string(), value.to_string()))
        };
        Ok(result.configs.into_iter().filter_map(value).collect())
    }

    /// The names of what has configs of its own. `None`: the broker cannot list them (Kafka before 4.1).
    pub async fn configured(&mut self, kind: Resource) -> Result<Option<Vec<String>>, Error> {
        let request = ListConfigResourcesRequest::default().with_resource_types(vec![kind.wire()]);
        let answer = match self.any(1, &request).await {
            Err(Error::Unsupported { .. }) => return Ok(None),
            answer => answer?,
        };
        refused(answer.error_code, None::<&StrBytes>)?;
        let names = answer.config_resources.into_iter();
        Ok(Some(
            names.map(|one| one.resource_name.to_string()).collect(),
        ))
    }
}
