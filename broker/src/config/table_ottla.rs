//! Ottla's own keys of `server.properties` and `--set`, sorted by name. Capitals stand for a part that varies.

use super::table::Mode::ReadOnly;
use super::table::Type::{Boolean, Int, List, Long, String};
use super::table::Valid::{Any, Min, OneOf};
use super::table::{ConfigDef, broker};

/// Every key of ours.
pub(super) const ROWS: &[ConfigDef] = &[
    broker("ottla.admin.listener", String, Some("127.0.0.1:9644"), Any, ReadOnly).doc(
        "HOST:PORT of the admin HTTP server (metrics, page, JSON); port 0 is any, `none` is no server.",
    ),
    broker("ottla.brokers", Int, Some("1"), Min(1), ReadOnly).doc(
        "How many logical brokers this process serves, with ids from 0; with 1, node.id may be any.",
    ),
    broker("ottla.group.default.KEY", String, None, Any, ReadOnly).doc(
        "The default of the group config KEY, for every group that does not set it.",
    ),
    broker("ottla.listeners.ID", List, None, Any, ReadOnly).doc(
        "The listeners of broker ID, NAME://HOST:PORT, which are also its advertised addresses. Without \
         it broker ID listens where broker 0 does, on ports higher by ID.",
    ),
    broker("ottla.memory.max.bytes", Long, None, Min(1), ReadOnly).doc(
        "Bytes of records kept in memory mode; at the limit an append is refused with \
         KAFKA_STORAGE_ERROR. Default: a quarter of the memory that the process may use.",
    ),
    broker("ottla.override.ID.KEY", String, None, Any, ReadOnly).doc(
        "The broker config KEY of broker ID only, for example ottla.override.1.broker.rack=b.",
    ),
    broker("ottla.portable", Boolean, Some("false"), Any, ReadOnly).doc(
        "Use the portable code paths on Linux too: no memfd, no fallocate.",
    ),
    broker("ottla.profile", String, Some("desk"), OneOf(&["desk", "kafka"]), ReadOnly).doc(
        "Which defaults hold: `desk` for tests and development, `kafka` for Apache Kafka's own.",
    ),
];
