//! `ApiVersions` response, versions 0 to 5. Its header is always version 0 (KIP-511).

use super::codec::{messages, response};
use crate::{StrBytes, api_key};

messages! {
    versions 0..=5, flexible 3;

    /// The APIs and features of the broker.
    pub struct ApiVersionsResponse {
        /// Error code, or 0.
        pub error_code: i16 = 0;
        /// The APIs that are served on this listener.
        pub api_keys: Vec<ApiVersion> = Vec::new();
        /// How long the request was throttled, in ms.
        pub throttle_time_ms: i32 = 0, since 1;
        tagged {
            /// Features that the broker supports.
            0 => pub supported_features: Vec<SupportedFeatureKey> = Vec::new();
            /// Epoch of the finalized features; -1 when unknown.
            1 => pub finalized_features_epoch: i64 = -1;
            /// Features that are switched on for the whole cluster.
            2 => pub finalized_features: Vec<FinalizedFeatureKey> = Vec::new();
            /// A leftover of the migration from the old metadata store; false.
            3 => pub zk_migration_ready: bool = false;
        }
    }

    /// One API and its range of versions.
    pub struct ApiVersion {
        /// The API key.
        pub api_key: i16 = 0;
        /// Lowest version served.
        pub min_version: i16 = 0;
        /// Highest version served.
        pub max_version: i16 = 0;
    }

    /// One feature that the broker supports.
    pub struct SupportedFeatureKey {
        /// The feature's name.
        pub name: StrBytes = StrBytes::new();
        /// Lowest level supported; 0 is allowed from version 4 of the response on.
        pub min_version: i16 = 0;
        /// Highest level supported.
        pub max_version: i16 = 0;
    }

    /// One feature that is switched on.
    pub struct FinalizedFeatureKey {
        /// The feature's name.
        pub name: StrBytes = StrBytes::new();
        /// Highest finalized level.
        pub max_version_level: i16 = 0;
        /// Lowest finalized level.
        pub min_version_level: i16 = 0;
    }
}

response!(ApiVersionsResponse = api_key::API_VERSIONS);
