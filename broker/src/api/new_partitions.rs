//! What CreateTopics and CreatePartitions have in common: topics that are named twice, and requests
//! that ask for too much.

use std::collections::{HashMap, HashSet};

use ottla_protocol::ErrorCode;

use crate::error_code::ApiError;

/// The partitions that one request may make, as in Kafka.
const PARTITIONS_MAX: i64 = 10_000;

/// The topics of a request, each name once, and whether it is refused for what else is asked for:
/// more than 10,000 partitions `of_each` together get POLICY_VIOLATION, told with `excess`; a name
/// that comes twice INVALID_REQUEST.
pub(super) fn each_once<'a, T>(
    topics: &'a [T],
    name: impl Fn(&'a T) -> &'a str,
    of_each: impl Fn(&T) -> i64,
    excess: &'static str,
) -> impl Iterator<Item = (&'a T, Result<(), ApiError>)> {
    let mut named: HashMap<&str, usize> = HashMap::new();
    for topic in topics {
        *named.entry(name(topic)).or_default() += 1;
    }
    let too_many = topics.iter().map(of_each).sum::<i64>() > PARTITIONS_MAX;
    let mut answered = HashSet::new();
    topics.iter().filter_map(move |topic| {
        let name = name(topic);
        let refused = if too_many {
            Err(ApiError::new(ErrorCode::POLICY_VIOLATION, excess))
        } else if named[name] > 1 {
            Err(ApiError::new(
                ErrorCode::INVALID_REQUEST,
                "Duplicate topic name.",
            ))
        } else {
            Ok(())
        };
        answered.insert(name).then_some((topic, refused))
    })
}
