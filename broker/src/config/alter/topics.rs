//! Topics: names, and rules over several configs of one topic.

use ottla_protocol::ErrorCode;

use super::Refusal;
use crate::config::Configs;
use crate::config::configs::Own;

/// Kafka's rules for the name of a topic, with its texts.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    let problem = match name {
        "" => "the empty string is not allowed".to_owned(),
        "." | ".." => format!("'{name}' is not allowed"),
        _ if name.len() > 249 => {
            format!("the length of '{name}' is longer than the max allowed length 249")
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
    Err(Refusal::new(
        ErrorCode::INVALID_TOPIC_EXCEPTION,
        format!("Topic name is invalid: {problem}"),
    ))
}

/// Rules over several configs of a topic that would have the configs `own`.
pub(super) fn check_whole(configs: &Configs, broker: i32, own: &Own) -> Result<(), Refusal> {
    let topic = configs.topic_with(broker, own);
    let (min, max) = (topic.min_compaction_lag_ms, topic.max_compaction_lag_ms);
    if min > max {
        return Err(Refusal::config(format!(
            "conflict topic config setting min.compaction.lag.ms ({min}) > max.compaction.lag.ms ({max})"
        )));
    }
    if own
        .get("remote.storage.enable")
        .is_some_and(|value| value == "true")
    {
        return Err(Refusal::config(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with \
             remote log storage.",
        ));
    }
    Ok(())
}
