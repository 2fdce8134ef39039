//! `ApiVersions` request, versions 0 to 5 (KIP-35, KIP-511; KIP-1242 for 5).

use super::ApiVersionsResponse;
use super::codec::{messages, request};
use crate::{StrBytes, api_key};

messages! {
    versions 0..=5, flexible 3;

    /// What a client says of itself when it asks for the versions of the broker.
    pub struct ApiVersionsRequest {
        /// The name of the client library.
        pub client_software_name: StrBytes = StrBytes::new(), since 3;
        /// The version of the client library.
        pub client_software_version: StrBytes = StrBytes::new(), since 3;
        /// The cluster that the client believes it talks to; given together with `node_id`.
        pub cluster_id: Option<StrBytes> = None, since 5;
        /// The broker that the client believes it talks to; -1 when not given.
        pub node_id: i32 = -1, since 5;
    }
}

request!(ApiVersionsRequest = api_key::API_VERSIONS => ApiVersionsResponse);
