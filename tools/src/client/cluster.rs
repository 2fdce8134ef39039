//! The brokers of a cluster: which one to ask, and asking again when it was the wrong one.

use std::collections::BTreeMap;

use ottla_protocol::messages::metadata_request::MetadataRequestTopic;
use ottla_protocol::messages::{
    FindCoordinatorRequest, MetadataRequest, MetadataResponse, TopicName,
};
use ottla_protocol::{ErrorCode, Request, StrBytes};

use super::connection::Connection;
use super::{Error, Settings, is_passing};
use crate::clock::Deadline;

/// The key type of a group in FindCoordinator.
const GROUP: i8 = 0;

/// A broker, as the cluster names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: i32,
    /// Its address, `host:port`.
    pub address: String,
}

/// A cluster, and the connections to it that are open.
#[derive(Debug)]
pub struct Cluster {
    settings: Settings,
    nodes: BTreeMap<i32, String>,
    coordinators: BTreeMap<String, i32>,
    open: BTreeMap<String, Connection>,
    deadline: Deadline,
}

impl Cluster {
    /// A cluster to be asked; nothing is connected yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            deadline: Deadline::after(settings.timeout_ms),
            settings,
            nodes: BTreeMap::new(),
            coordinators: BTreeMap::new(),
            open: BTreeMap::new(),
        }
    }

    /// Asks any broker that can be reached.
    pub async fn any<R: Request>(&mut self, least: i16, request: &R) -> Result<R::Response, Error> {
        self.begin();
        self.anyone(least, request).await
    }

    /// Asks one broker.
    pub async fn node<R: Request>(
        &mut self,
        id: i32,
        least: i16,
        request: &R,
    ) -> Result<R::Response, Error> {
        self.begin();
        self.ask_node(id, least, request).await
    }

    pub(super) async fn ask_node<R: Request>(
        &mut self,
        id: i32,
        least: i16,
        request: &R,
    ) -> Result<R::Response, Error> {
        let address = self.nodes.get(&id).cloned();
        let address = address.ok_or_else(|| {
            let text = format!("broker {id} is not among those that are up");
            Error::refused(ErrorCode::BROKER_NOT_AVAILABLE.0, Some(&text))
        })?;
        self.at(&address, least, request).await
    }

    /// Asks the coordinator of a group, as often as it takes. `outcome` is the code of the answer.
    pub async fn coordinator<R: Request>(
        &mut self,
        group: &str,
        request: &R,
        outcome: impl Fn(&R::Response) -> ErrorCode,
    ) -> Result<R::Response, Error> {
        self.begin();
        loop {
            let last = match self.ask_coordinator(group, request).await {
                Ok(answer) if is_passing(outcome(&answer)) => {
                    Error::refused(outcome(&answer).0, None)
                }
                Err(error @ Error::Connection { .. }) => error,
                Err(error) if is_passing(error.code()) => error,
                done => return done,
            };
            self.coordinators.remove(group);
            if !self.again().await {
                return Err(self.late(&format!("the coordinator of group {group}"), &last));
            }
        }
    }

    async fn ask_coordinator<R: Request>(
        &mut self,
        group: &str,
        request: &R,
    ) -> Result<R::Response, Error> {
        let id = self.coordinator_of(group).await?.id;
        self.ask_node(id, R::VERSIONS.min, request).await
    }

    /// Who coordinates a group.
    pub async fn coordinator_of(&mut self, group: &str) -> Result<Node, Error> {
        if let Some(id) = self.coordinators.get(group)
            && let Some(address) = self.nodes.get(id)
        {
            return Ok(Node {
                id: *id,
                address: address.clone(),
            });
        }
        let key = StrBytes::from_string(group.to_owned());
        let request = FindCoordinatorRequest::default()
            .with_key_type(GROUP)
            .with_coordinator_keys(vec![key]);
        let answer = self.anyone(4, &request).await?;
        let found = answer.coordinators.into_iter().next().ok_or_else(|| {
            let text = "FindCoordinator answered nothing";
            Error::refused(ErrorCode::COORDINATOR_NOT_AVAILABLE.0, Some(text))
        })?;
        if found.error_code != 0 {
            let message = found.error_message.as_deref();
            return Err(Error::refused(found.error_code, message));
        }
        let node = Node {
            id: found.node_id.0,
            address: host_port(&found.host, found.port),
        };
        self.nodes.insert(node.id, node.address.clone());
        self.coordinators.insert(group.to_owned(), node.id);
        Ok(node)
    }

    /// Metadata of some topics, or of all; learns the brokers by the way.
    pub async fn metadata(&mut self, topics: Option<&[String]>) -> Result<MetadataResponse, Error> {
        self.begin();
        self.ask_metadata(topics).await
    }

    pub(super) async fn ask_metadata(
        &mut self,
        topics: Option<&[String]>,
    ) -> Result<MetadataResponse, Error> {
        let topic = |name: &String| {
            let name = TopicName(StrBytes::from_string(name.clone()));
            MetadataRequestTopic::default().with_name(Some(name))
        };
        let request = MetadataRequest::default()
            .with_topics(topics.map(|topics| topics.iter().map(topic).collect()))
            .with_allow_auto_topic_creation(false);
        let answer = self.anyone(9, &request).await?;
        self.nodes = answer
            .brokers
            .iter()
            .map(|broker| (broker.node_id.0, host_port(&broker.host, broker.port)))
            .collect();
        Ok(answer)
    }

    /// The brokers that are up.
    pub async fn nodes(&mut self) -> Result<Vec<i32>, Error> {
        self.metadata(Some(&[])).await?;
        Ok(self.nodes.keys().copied().collect())
    }

    /// A new question: its time begins.
    pub(crate) fn begin(&mut self) {
        self.deadline = Deadline::after(self.settings.timeout_ms);
    }

    /// Waits a moment; `false` when the question's time is over.
    pub(crate) async fn again(&self) -> bool {
        self.deadline
            .pause(self.settings.retry_backoff_ms.max(10))
            .await
    }

    /// The error of a question whose time is over.
    pub(crate) fn late(&self, what: &str, last: &Error) -> Error {
        Error::TimedOut {
            what: what.to_owned(),
            ms: self.settings.timeout_ms,
            last: Some(last.to_string()),
        }
    }

    /// One round over all addresses. When nobody answers that is said at once: a command that waits
    /// for a broker to be started helps nobody.
    async fn anyone<R: Request>(&mut self, least: i16, request: &R) -> Result<R::Response, Error> {
        let mut reasons = Vec::new();
        for address in self.addresses() {
            match self.at(&address, least, request).await {
                Err(error @ Error::Connection { .. }) => reasons.push(error.to_string()),
                done => return done,
            }
        }
        Err(Error::Unreachable(reasons.join("; ")))
    }

    /// Open connections first, then the addresses of the command, then what the cluster said.
    fn addresses(&self) -> Vec<String> {
        let mut addresses: Vec<String> = self.open.keys().cloned().collect();
        for address in self.settings.bootstrap.iter().chain(self.nodes.values()) {
            if !addresses.contains(address) {
                addresses.push(address.clone());
            }
        }
        addresses
    }

    async fn at<R: Request>(
        &mut self,
        address: &str,
        least: i16,
        request: &R,
    ) -> Result<R::Response, Error> {
        let deadline = self.deadline;
        let connection = self.connection(address).await?;
        let answer = connection.call(least, request, deadline).await;
        if matches!(answer, Err(Error::Connection { .. })) {
            self.open.remove(address);
        }
        answer
    }

    async fn connection(&mut self, address: &str) -> Result<&mut Connection, Error> {
        let connection = match self.open.remove(address) {
            Some(connection) => connection,
            None => Connection::open(address, &self.settings, self.deadline).await?,
        };
        Ok(self.open.entry(address.to_owned()).or_insert(connection))
    }
}

fn host_port(host: &str, port: i32) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}
