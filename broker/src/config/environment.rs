//! `KAFKA_*` environment variables, with the meaning that they have in the apache/kafka image.

use super::statics::Origin;

const PREFIX: &str = "KAFKA_";

/// Variables of the image that configure something other than the broker.
const EXCLUDED: &[&str] = &[
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_HEAP_OPTS",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_JMX_OPTS",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_OPTS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_VERSION",
];

/// The settings among the variables, sorted by their names.
pub fn settings(
    variables: impl IntoIterator<Item = (String, String)>,
) -> Vec<(String, String, Origin)> {
    let mut found: Vec<_> = variables
        .into_iter()
        .filter(|(name, _)| !EXCLUDED.contains(&name.as_str()))
        .filter_map(|(name, value)| Some((key_of(&name)?, value, Origin::Environment(name))))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// `KAFKA_A_B` is `a.b`; a doubled underscore is `_`, a tripled one `-`.
fn key_of(name: &str) -> Option<String> {
    let rest = name.strip_prefix(PREFIX).filter(|rest| !rest.is_empty())?;
    let dotted = rest.to_lowercase().replace('_', ".");
    Some(dotted.replace("...", "-").replace("..", "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underscores_become_dots_underscores_and_dashes() {
        let key = |name: &str| key_of(name);
        assert_eq!(
            key("KAFKA_LOG_RETENTION_MS").as_deref(),
            Some("log.retention.ms")
        );
        assert_eq!(key("KAFKA_A__B").as_deref(), Some("a_b"));
        assert_eq!(key("KAFKA_A___B").as_deref(), Some("a-b"));
        assert_eq!(key("KAFKA_"), None);
        assert_eq!(key("PATH"), None);
        assert_eq!(key("MY_KAFKA_NODE_ID"), None);
    }

    #[test]
    fn what_configures_the_jvm_or_the_image_is_left_alone() {
        let variables = [
            ("KAFKA_HEAP_OPTS", "-Xmx1G"),
            ("KAFKA_NODE_ID", "7"),
            ("KAFKA_LOG4J_LOGGERS", "kafka=WARN"),
            ("HOME", "/root"),
            ("KAFKA_LISTENERS", "PLAINTEXT://:9092"),
        ];
        let found = settings(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let keys: Vec<_> = found.iter().map(|(key, _, _)| key.as_str()).collect();
        assert_eq!(keys, ["listeners", "node.id"]);
        assert_eq!(found[1].2.to_string(), "environment variable KAFKA_NODE_ID");
    }
}
