//! What these tests share.

use ottla_protocol::messages::{ApiVersionsRequest, MetadataRequest};
use ottla_tests::{Client, Embedded};

/// A generator that needs no seed of the machine, so that a failure comes back.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `n`, 0 if there is none.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        (self.next() >> 33) as u32 % n.max(1)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Asks something small: whoever answers is well.
pub(crate) async fn alive(client: &mut Client) {
    let response = client
        .call(12, &MetadataRequest::default().with_topics(Some(vec![])))
        .await;
    assert_eq!(response.brokers.len(), 1);
}

/// Sends `bytes` on a connection of its own and sees that only that one ends.
pub(crate) async fn ends_only_its_connection(bytes: &[u8]) {
    let broker = Embedded::start().await;
    let mut bystander = broker.client().await;
    alive(&mut bystander).await;
    let mut bad = broker.client().await;
    alive(&mut bad).await;
    bad.send_bytes(bytes).await;
    bad.expect_close().await;
    alive(&mut bystander).await;
    alive(&mut broker.client().await).await;
    broker.shutdown().await;
}

/// Key, first and last version of everything that a broker says it serves.
pub(crate) async fn served(client: &mut Client) -> Vec<(i16, i16, i16)> {
    let response = client.call(0, &ApiVersionsRequest::default()).await;
    response
        .api_keys
        .iter()
        .map(|api| (api.api_key, api.min_version, api.max_version))
        .collect()
}

/// A frame of any API: a header as a client writes it, then `body`.
pub(crate) fn frame(key: i16, version: i16, correlation_id: i32, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 4];
    frame.extend(key.to_be_bytes());
    frame.extend(version.to_be_bytes());
    frame.extend(correlation_id.to_be_bytes());
    frame.extend([0, 1, b'x']);
    if ottla_protocol::frame::is_flexible(key, version) {
        frame.push(0);
    }
    frame.extend(body);
    let length = (frame.len() - 4) as u32;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame
}
