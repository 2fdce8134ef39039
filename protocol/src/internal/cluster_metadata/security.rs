//! Credentials, tokens, ACLs and quotas.

use bytes::Bytes;
use uuid::Uuid;

use crate::internal::schema::schema;

schema! {
    /// A delegation token was created or renewed.
    DelegationTokenRecord {
        /// Principal that it stands for.
        owner: String,
        /// Principal that asked for it.
        requester: String,
        /// Principals that may renew it.
        renewers: Vec<String>,
        /// When it was issued, milliseconds since the epoch.
        issue_timestamp: i64,
        /// When it ends at the latest, milliseconds since the epoch.
        max_timestamp: i64,
        /// When it ends unless renewed, milliseconds since the epoch.
        expiration_timestamp: i64,
        /// The token.
        token_id: String,
    }
}

schema! {
    /// A SCRAM credential was set.
    UserScramCredentialRecord {
        /// User.
        name: String,
        /// 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
        mechanism: i8,
        /// Salt.
        salt: Bytes,
        /// Stored key.
        stored_key: Bytes,
        /// Server key.
        server_key: Bytes,
        /// Iterations.
        iterations: i32,
    }
}

schema! {
    /// Part of what a quota is for.
    QuotaEntity {
        /// `user`, `client-id` or `ip`.
        entity_type: String,
        /// Its name, null for the default.
        entity_name: Option<String>,
    }
}

schema! {
    /// A client quota was set or removed.
    ClientQuotaRecord {
        /// What it is for.
        entity: Vec<QuotaEntity>,
        /// Quota key.
        key: String,
        /// Quota value.
        value: f64,
        /// Whether it is removed.
        remove: bool,
    }
}

schema! {
    /// An ACL was created.
    AccessControlEntryRecord {
        /// Its id.
        id: Uuid,
        /// Resource type: 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user.
        resource_type: i8,
        /// Resource name, or a prefix of it.
        resource_name: String,
        /// Pattern type: 3 literal, 4 prefixed.
        pattern_type: i8,
        /// Principal.
        principal: String,
        /// Host, `*` for any.
        host: String,
        /// Operation.
        operation: i8,
        /// 2 deny, 3 allow.
        permission_type: i8,
    }
}

schema! {
    /// An ACL was deleted.
    RemoveAccessControlEntryRecord {
        /// Its id.
        id: Uuid,
    }
}

schema! {
    /// A SCRAM credential was deleted.
    RemoveUserScramCredentialRecord {
        /// User.
        name: String,
        /// 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
        mechanism: i8,
    }
}

schema! {
    /// A delegation token was deleted.
    RemoveDelegationTokenRecord {
        /// The token.
        token_id: String,
    }
}
