//! `__transaction_state`: the transaction coordinator's log (KIP-98, KIP-890).

use super::schema::{key, keyed_records, schema};

key! {
    /// Key of a transactional id.
    TransactionLogKey {
        /// The transactional id.
        transactional_id: String,
    }
}

schema! {
    /// Partitions of one topic in a transaction.
    TransactionPartitions {
        /// Topic name.
        topic: String,
        /// Partition indexes.
        partition_ids: Vec<i32>,
    }
}

schema! {
    /// The state of a transactional id.
    TransactionLogValue {
        /// Producer id in use.
        producer_id: i64,
        /// Epoch in use.
        producer_epoch: i16,
        /// Transaction timeout in milliseconds.
        transaction_timeout_ms: i32,
        /// 0 empty, 1 ongoing, 2 prepare commit, 3 prepare abort, 4 complete commit, 5 complete
        /// abort, 6 dead, 7 prepare epoch fence.
        transaction_status: i8,
        /// Partitions in the transaction; null when it is empty.
        transaction_partitions: Option<Vec<TransactionPartitions>>,
        /// Last change, milliseconds since the epoch.
        transaction_last_update_timestamp_ms: i64,
        /// Start of the transaction, milliseconds since the epoch, -1 for none.
        transaction_start_timestamp_ms: i64,
    }
    tags {
        /// Producer id before the last rotation, -1 for none.
        0 previous_producer_id: i64 = -1,
        /// Producer id after this transaction, -1 for none.
        1 next_producer_id: i64 = -1,
        /// Version of the transaction protocol that the client speaks (KIP-890).
        2 client_transaction_version: i16,
        /// Epoch after this transaction, -1 for none.
        3 next_producer_epoch: i16 = -1,
    }
}

keyed_records! {
    /// A record of `__transaction_state`.
    TransactionStateRecord {
        /// The state of a transactional id, or its expiry.
        0 TransactionLog(TransactionLogKey, TransactionLogValue) newest 1 flexible 1 writes 1,
    }
}
