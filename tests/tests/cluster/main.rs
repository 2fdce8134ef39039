//! Several logical brokers as clients see them: elections, reassignments, replicas in sync, placement.
#![allow(clippy::unwrap_used, reason = "tests")]

mod elections;
mod in_sync;
mod placement;
mod reassignments;

use ottla_protocol::ErrorCode;
use ottla_tests::Told;

/// The answer to what went well.
fn fine() -> Told {
    (ErrorCode::NONE, String::new())
}

/// An error without a message.
fn only(code: ErrorCode) -> Told {
    (code, String::new())
}
