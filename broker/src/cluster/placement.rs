//! Which replicas a new partition gets. Pure.

use std::collections::BTreeMap;

use ottla_protocol::ErrorCode;

use super::controller::NewTopic;
use super::image::Partition;
use crate::config::TopicDefaults;
use crate::error_code::ApiError;

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

/// The brokers that replicas may be placed on.
#[derive(Debug, Clone, Default)]
pub struct Sites {
    /// All brokers of the cluster: what a client may name.
    pub registered: Vec<i32>,
    /// Those that are up, with their racks: what is chosen from first, and who leads.
    pub up: Vec<(i32, Option<String>)>,
}

impl Sites {
    fn is_up(&self, id: i32) -> bool {
        self.up.iter().any(|(up, _)| *up == id)
    }

    /// The brokers that are up, so that neighbours are in different racks as far as possible.
    fn alternating(&self) -> Vec<(i32, Option<&str>)> {
        let mut racks: BTreeMap<Option<&str>, Vec<i32>> = BTreeMap::new();
        for (id, rack) in &self.up {
            racks.entry(rack.as_deref()).or_default().push(*id);
        }
        let longest = racks.values().map(Vec::len).max().unwrap_or(0);
        let rounds = 0..longest;
        rounds
            .flat_map(|round| {
                let of_rack = racks.iter();
                of_rack.filter_map(move |(rack, ids)| Some((*ids.get(round)?, *rack)))
            })
            .collect()
    }
}

/// The replicas of each partition of a new topic; `start` says where the first partition goes.
pub fn place(
    new: &NewTopic,
    defaults: &TopicDefaults,
    sites: &Sites,
    start: usize,
) -> Result<Vec<Vec<i32>>, ApiError> {
    if !new.assignments.is_empty() {
        return check_assignments(new, sites);
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
    check_factor(factor, sites)?;
    let partitions = 0..partitions as usize;
    Ok(spread(partitions, factor as usize, sites, start))
}

fn check_factor(factor: i16, sites: &Sites) -> Result<(), ApiError> {
    let invalid = |message| ApiError::new(ErrorCode::INVALID_REPLICATION_FACTOR, message);
    if factor <= 0 {
        return Err(invalid(
            "Replication factor must be larger than 0, or -1 to use the default value.".to_owned(),
        ));
    }
    let registered = sites.registered.len();
    if factor as usize > registered {
        return Err(invalid(format!(
            "Unable to replicate the partition {factor} time(s): The target replication factor of {factor} \
             cannot be reached because only {registered} broker(s) are registered or some brokers have all \
             their log directories cordoned."
        )));
    }
    if sites.up.is_empty() {
        return Err(invalid(format!(
            "Unable to replicate the partition {factor} time(s): All brokers are currently fenced."
        )));
    }
    Ok(())
}

/// Round robin: partition i is led by the broker `start + i` of the alternating order, and followed
/// by the next ones of racks that it has no replica in yet; stopped brokers come last.
fn spread(
    partitions: std::ops::Range<usize>,
    factor: usize,
    sites: &Sites,
    start: usize,
) -> Vec<Vec<i32>> {
    let order = sites.alternating();
    let racks: std::collections::BTreeSet<_> = order.iter().map(|(_, rack)| rack).collect();
    let registered = sites.registered.iter().copied();
    let stopped: Vec<i32> = registered.filter(|&id| !sites.is_up(id)).collect();
    partitions
        .map(|p| {
            let mut left: Vec<_> = order.clone();
            left.rotate_left((start + p) % order.len());
            let mut used = vec![];
            let mut replicas = vec![];
            while replicas.len() < factor && !left.is_empty() {
                let other_rack = left.iter().position(|(_, rack)| !used.contains(rack));
                let (id, rack) = left.remove(other_rack.unwrap_or(0));
                replicas.push(id);
                used.push(rack);
                if used.len() % racks.len() == 0 {
                    used.clear();
                }
            }
            let rest = stopped.iter().cycle().skip(p % stopped.len().max(1));
            replicas.extend(rest.take(factor - replicas.len()));
            replicas
        })
        .collect()
}

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message)
}

fn check_assignments(new: &NewTopic, sites: &Sites) -> Result<Vec<Vec<i32>>, ApiError> {
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
    check_replica_lists(&all, 0, None, sites)?;
    Ok(all)
}

/// Checks the replicas of the partitions from `first` on; without a `factor`, the first list's length
/// is everybody's.
fn check_replica_lists(
    lists: &[Vec<i32>],
    first: usize,
    factor: Option<usize>,
    sites: &Sites,
) -> Result<(), ApiError> {
    let factor = factor.or_else(|| lists.first().map(Vec::len)).unwrap_or(0);
    for (replicas, index) in lists.iter().zip(first..) {
        check_replicas(replicas, &sites.registered)?;
        if replicas.len() != factor {
            return Err(invalid(format!(
                "The manual partition assignment includes a partition with {} replica(s), but this is not consistent with previous partitions, which have {factor} replica(s).",
                replicas.len()
            )));
        }
        if !replicas.iter().any(|&id| sites.is_up(id)) {
            return Err(invalid(format!(
                "All brokers specified in the manual partition assignment for partition {index} are fenced or in controlled shutdown."
            )));
        }
    }
    Ok(())
}

/// Checks a list of replicas that a client gave.
pub(super) fn check_replicas(replicas: &[i32], registered: &[i32]) -> Result<(), ApiError> {
    if replicas.is_empty() {
        return Err(invalid(
            "The manual partition assignment includes an empty replica list.".to_owned(),
        ));
    }
    let mut sorted = replicas.to_vec();
    sorted.sort_unstable();
    if let Some(id) = sorted.iter().find(|id| !registered.contains(id)) {
        return Err(invalid(format!(
            "The manual partition assignment includes broker {id}, but no such broker is registered."
        )));
    }
    let mut twice = sorted.iter().zip(sorted.iter().skip(1));
    if let Some((id, _)) = twice.find(|(id, next)| id == next) {
        return Err(invalid(format!(
            "The manual partition assignment includes the broker {id} more than once."
        )));
    }
    Ok(())
}

/// The replicas of the partitions that take a topic from `have` to `total`.
pub fn extend(
    name: &str,
    have: &[std::sync::Arc<Partition>],
    total: i32,
    assignments: Option<Vec<Vec<i32>>>,
    sites: &Sites,
    start: usize,
) -> Result<Vec<Vec<i32>>, ApiError> {
    let invalid_count = |message: String| ApiError::new(ErrorCode::INVALID_PARTITIONS, message);
    let count = have.len() as i32;
    if total == count {
        return Err(invalid_count(format!(
            "Topic already has {count} partition(s)."
        )));
    }
    if total < count {
        return Err(invalid_count(format!(
            "The topic {name} currently has {count} partition(s); {total} would not be an increase."
        )));
    }
    let added = (total - count) as usize;
    let factor = have.first().map_or(1, |p| p.leadership().replicas.len());
    if let Some(lists) = assignments {
        if lists.len() != added {
            return Err(invalid(format!(
                "Attempted to add {added} additional partition(s), but only {} assignment(s) were specified.",
                lists.len()
            )));
        }
        check_replica_lists(&lists, have.len(), Some(factor), sites)?;
        return Ok(lists);
    }
    check_factor(factor as i16, sites)?;
    Ok(spread(have.len()..total as usize, factor, sites, start))
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
