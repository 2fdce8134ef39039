//! Where clients that asked the wrong broker find the right one (KIP-951): the addresses that produce,
//! fetch and share responses carry.

use ottla_protocol::StrBytes;
use ottla_protocol::messages::{
    BrokerId, fetch_response, produce_response, share_acknowledge_response, share_fetch_response,
};

use crate::context::Cx;

/// A response's own type of node endpoint.
pub(super) trait NodeEndpoint: Default {
    /// Sets id, host, port and rack.
    fn set(&mut self, id: BrokerId, host: StrBytes, port: i32, rack: Option<StrBytes>);
}

macro_rules! node_endpoints {
    ($($response:ident),*) => {$(
        impl NodeEndpoint for $response::NodeEndpoint {
            fn set(&mut self, id: BrokerId, host: StrBytes, port: i32, rack: Option<StrBytes>) {
                self.node_id = id;
                self.host = host;
                self.port = port;
                self.rack = rack;
            }
        }
    )*};
}

node_endpoints!(
    fetch_response,
    produce_response,
    share_acknowledge_response,
    share_fetch_response
);

/// The brokers that are up, where somebody was misdirected; nothing otherwise.
pub(super) fn node_endpoints<T: NodeEndpoint>(cx: &Cx, misdirected: bool) -> Vec<T> {
    if !misdirected {
        return vec![];
    }
    let endpoints = cx.broker.endpoints(&cx.connection).into_iter();
    endpoints
        .map(|e| {
            let mut node = T::default();
            let rack = e.rack.map(StrBytes::from_string);
            node.set(BrokerId(e.id), StrBytes::from_string(e.host), e.port, rack);
            node
        })
        .collect()
}
