//! Reassignments (KIP-455): which replicas a partition is to have, and how far it is. Pure.

use ottla_protocol::ErrorCode;

use super::leadership::{Leadership, without};
use super::placement::check_replicas;
use crate::error_code::ApiError;

/// The leadership with a reassignment to `target` begun. `registered` are the brokers of the cluster,
/// stopped ones included; `same_factor` refuses another number of replicas.
pub fn start(
    now: &Leadership,
    target: &[i32],
    registered: &[i32],
    same_factor: bool,
) -> Result<Leadership, ApiError> {
    check_replicas(target, registered)?;
    let factor = now.target().len();
    if same_factor && target.len() != factor {
        let message = format!(
            "The replication factor is changed from {factor} to {}",
            target.len()
        );
        return Err(ApiError::new(
            ErrorCode::INVALID_REPLICATION_FACTOR,
            message,
        ));
    }
    let original = now.original();
    // A replica that an earlier reassignment began to add, and that is not in sync, is dropped at once.
    let pending = without(&now.adding, &now.isr);
    let removing = without(&without(&now.replicas, target), &pending);
    Ok(Leadership {
        replicas: target.iter().chain(&removing).copied().collect(),
        adding: without(target, &original),
        removing,
        ..now.clone()
    })
}

/// The leadership with its reassignment taken back. `unclean` allows a leader that may miss records,
/// which is needed when nothing but added replicas is in sync.
pub fn cancel(now: &Leadership, partition: &str, unclean: bool) -> Result<Leadership, ApiError> {
    if !now.is_reassigning() {
        return Err(ApiError::new(
            ErrorCode::NO_REASSIGNMENT_IN_PROGRESS,
            "No partition reassignment is in progress.",
        ));
    }
    let replicas = now.original();
    let isr = without(&now.isr, &now.adding);
    let stranded = isr.is_empty() && !now.isr.is_empty();
    if stranded && !unclean {
        let message = format!(
            "Unable to revert partition assignment for {partition} because it would require an \
             unclean leader election."
        );
        return Err(ApiError::new(
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            message,
        ));
    }
    Ok(Leadership {
        replicas,
        isr,
        adding: vec![],
        removing: vec![],
        ..now.clone()
    })
}

#[cfg(test)]
#[path = "reassignment_tests.rs"]
mod tests;
