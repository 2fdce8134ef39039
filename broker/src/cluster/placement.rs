//! Which replicas a partition gets, and who leads it when brokers come and go. Pure.

use ottla_protocol::ErrorCode;

use super::controller::NewTopic;
use super::image::{Leadership, NOBODY, Partition};
use crate::config::TopicDefaults;
use crate::error_code::ApiError;
use crate::records::MetadataChange;

/// Longest legal topic name, in bytes.
const NAME_MAX: usize = 249;

/// Checks a topic's name by Kafka's rules.
pub fn check_name(name: &str) -> Result<(), ApiError> {
    let problem = match name {
        "" => "the empty string is not allowed".to_owned(),
        "." | ".." => format!("'{name}' is not allowed"),
        _ if name.len() > NAME_MAX => {
            format!("the length of '{name}' is longer than the max allowed length {NAME_MAX}")
        }
        _ if !name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) =>
        {
            format!(
                "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
            )
        }
        _ => return Ok(()),
    };
    Err(ApiError::new(
        ErrorCode::INVALID_TOPIC_EXCEPTION,
        format!("Topic name is invalid: {problem}"),
    ))
}

/// The replicas of each partition of a new topic.
pub fn place(
    new: &NewTopic,
    defaults: &TopicDefaults,
    alive: &[i32],
    start: usize,
) -> Result<Vec<Vec<i32>>, ApiError> {
    if !new.assignments.is_empty() {
        return check_assignments(new, alive);
    }
    let partitions = if new.partitions == -1 {
        defaults.num_partitions
    } else {
        new.partitions
    };
    let factor = match new.replication_factor {
        -1 => defaults.replication_factor,
        factor => factor,
    };
    if partitions <= 0 {
        return Err(ApiError::new(
            ErrorCode::INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ));
    }
    check_factor(factor, alive.len())?;
    Ok(spread(
        0..partitions as usize,
        factor as usize,
        alive,
        start,
    ))
}

fn check_factor(factor: i16, alive: usize) -> Result<(), ApiError> {
    if factor <= 0 {
        return Err(ApiError::new(
            ErrorCode::INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ));
    }
    if factor as usize > alive {
        let message = format!(
            "Unable to replicate the partition {factor} time(s): The target replication factor of {factor} \
             cannot be reached because only {alive} broker(s) are registered or some brokers have all \
             their log directories cordoned."
        );
        return Err(ApiError::new(
            ErrorCode::INVALID_REPLICATION_FACTOR,
            message,
        ));
    }
    Ok(())
}

/// Round robin: partition i starts at broker `start + i`.
fn spread(
    partitions: std::ops::Range<usize>,
    factor: usize,
    alive: &[i32],
    start: usize,
) -> Vec<Vec<i32>> {
    partitions
        .map(|p| {
            (0..factor)
                .map(|r| alive[(start + p + r) % alive.len()])
                .collect()
        })
        .collect()
}

fn check_assignments(new: &NewTopic, alive: &[i32]) -> Result<Vec<Vec<i32>>, ApiError> {
    let invalid = |message: String| ApiError::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message);
    if new.partitions != -1 || new.replication_factor != -1 {
        return Err(ApiError::new(
            ErrorCode::INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions or replicationFactor was not set to -1.",
        ));
    }
    let mut sorted = new.assignments.clone();
    sorted.sort_by_key(|(index, _)| *index);
    for (want, (index, _)) in sorted.iter().enumerate() {
        if *index != want as i32 {
            return Err(invalid(
                "partitions should be a consecutive 0-based integer sequence".to_owned(),
            ));
        }
    }
    let all: Vec<Vec<i32>> = sorted.into_iter().map(|(_, replicas)| replicas).collect();
    check_replica_lists(&all, None, alive)?;
    Ok(all)
}

fn check_replica_lists(
    lists: &[Vec<i32>],
    factor: Option<usize>,
    alive: &[i32],
) -> Result<(), ApiError> {
    let invalid = |message: String| ApiError::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message);
    let factor = factor.or_else(|| lists.first().map(Vec::len)).unwrap_or(0);
    for replicas in lists {
        if replicas.is_empty() {
            return Err(invalid(
                "The manual partition assignment includes an empty replica list.".to_owned(),
            ));
        }
        if replicas.len() != factor {
            return Err(invalid(format!(
                "The manual partition assignment includes a partition with {} replica(s), but this is not consistent with previous partitions, which have {factor} replica(s).",
                replicas.len()
            )));
        }
        for (i, id) in replicas.iter().enumerate() {
            if replicas[..i].contains(id) {
                return Err(invalid(format!(
                    "The manual partition assignment includes the broker {id} more than once."
                )));
            }
            if !alive.contains(id) {
                return Err(invalid(format!(
                    "The manual partition assignment includes broker {id}, but no such broker is registered."
                )));
            }
        }
    }
    Ok(())
}

/// The replicas of the partitions that take a topic from `have` to `total`.
pub fn extend(
    name: &str,
    have: &[std::sync::Arc<Partition>],
    total: i32,
    assignments: Option<Vec<Vec<i32>>>,
    alive: &[i32],
    start: usize,
) -> Result<Vec<Vec<i32>>, ApiError> {
    let invalid = |message: String| ApiError::new(ErrorCode::INVALID_PARTITIONS, message);
    let count = have.len() as i32;
    if total == count {
        return Err(invalid(format!("Topic already has {count} partition(s).")));
    }
    if total < count {
        return Err(invalid(format!(
            "The topic {name} currently has {count} partition(s); {total} would not be an increase."
        )));
    }
    let added = (total - count) as usize;
    let factor = have.first().map_or(1, |p| p.leadership().replicas.len());
    if let Some(lists) = assignments {
        if lists.len() != added {
            let message = format!(
                "Attempted to add {added} additional partition(s), but only {} assignment(s) were specified.",
                lists.len()
            );
            return Err(ApiError::new(
                ErrorCode::INVALID_REPLICA_ASSIGNMENT,
                message,
            ));
        }
        check_replica_lists(&lists, Some(factor), alive)?;
        return Ok(lists);
    }
    check_factor(factor as i16, alive.len())?;
    Ok(spread(have.len()..total as usize, factor, alive, start))
}

/// What becomes of a partition when broker `id`, one of its replicas, goes down or comes up.
pub fn react(
    partition: &Partition,
    now: &Leadership,
    alive: &[i32],
    id: i32,
    up: bool,
) -> Option<MetadataChange> {
    let mut isr = now.isr.clone();
    if up {
        // Storage is shared, so a broker that is back is in sync at once.
        if !isr.contains(&id) {
            isr = now
                .replicas
                .iter()
                .copied()
                .filter(|r| isr.contains(r) || *r == id)
                .collect();
        }
    } else if isr.len() > 1 {
        // The last one in sync stays in the ISR, as in Kafka: it alone may lead again.
        isr.retain(|&r| r != id);
    }
    let leader_lost = now.leader == NOBODY || !alive.contains(&now.leader);
    let leader = leader_lost
        .then(|| {
            now.replicas
                .iter()
                .copied()
                .find(|r| isr.contains(r) && alive.contains(r))
        })
        .map(|found| found.unwrap_or(NOBODY))
        .filter(|&found| found != now.leader);
    if leader.is_none() && isr == now.isr {
        return None;
    }
    Some(MetadataChange::PartitionChange {
        topic_id: partition.topic_id,
        index: partition.index,
        leader,
        replicas: None,
        isr: (isr != now.isr).then_some(isr),
    })
}

/// The change that starts a new leader epoch after a restart: the preferred replica leads.
pub fn elect_anew(partition: &Partition, alive: &[i32]) -> MetadataChange {
    let now = partition.leadership();
    let isr: Vec<i32> = now
        .replicas
        .iter()
        .copied()
        .filter(|r| alive.contains(r))
        .collect();
    MetadataChange::PartitionChange {
        topic_id: partition.topic_id,
        index: partition.index,
        leader: Some(isr.first().copied().unwrap_or(NOBODY)),
        replicas: None,
        isr: Some(if isr.is_empty() { now.isr.clone() } else { isr }),
    }
}
