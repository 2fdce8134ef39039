//! Renders `docs/configuration.md` from the table.

use std::fmt::Write as _;

use super::profile::{BOUND_BY_BROKERS, DIFFERENCES, WIDER_RANGES};
use super::table::{self, ConfigDef, Scope, Valid};

const HEAD: &str = "\
# Configuration

This page is made from the configuration table (`broker/src/config/table*.rs`) by a test; do not edit it:
`UPDATE_DOCS=1 cargo test -p ottla reference_page` writes it anew.

Every key of Apache Kafka 4.4.0 is known, with Kafka's type, default and range. A key that has no meaning
for Ottla is accepted, checked and shown by `kafka-configs`; one that nobody knows is named in a warning.
What asks for something that Ottla does not serve ends the process with status 78, and the last line of its
output says why.

The group configs that are ours stand after Kafka's.

Values come from, the later winning: Kafka's defaults, the profile, the `--config` file (a
`server.properties`), `KAFKA_*` environment variables (as in the apache/kafka image: `KAFKA_NUM_PARTITIONS`
is `num.partitions`; `__` is `_`, `___` is `-`), `--set KEY=VALUE`, flags of their own, the dynamic default of
all brokers, the dynamic config of a broker; for groups, `ottla.group.default.KEY`; for topics and groups, their
own config.

`metadata.version=N` and `feature.NAME=N` set the level of a feature.
";

/// The whole page.
pub fn reference_page() -> String {
    let mut page = HEAD.to_owned();
    ottla_section(&mut page);
    page.push_str("\n## The desk profile\n\n");
    page.push_str(&desk_profile());
    section(
        &mut page,
        "Group configs",
        Scope::Group,
        &["type", "default", "valid", "inherits"],
    );
    section(
        &mut page,
        "Topic configs",
        Scope::Topic,
        &["type", "default", "valid", "inherits"],
    );
    section(
        &mut page,
        "Broker configs",
        Scope::Broker,
        &["type", "default", "valid", "changes"],
    );
    section(
        &mut page,
        "Client metrics",
        Scope::ClientMetrics,
        &["type", "default", "valid"],
    );
    page
}

/// Writing to a text cannot fail.
macro_rules! put {
    ($page:expr, $($arguments:tt)*) => { let _ = writeln!($page, $($arguments)*); };
}

fn ottla_section(page: &mut String) {
    put!(
        page,
        "\n## Ottla's own\n\nCapitals stand for a part that varies.\n"
    );
    put!(
        page,
        "| key | type | default | meaning |\n|---|---|---|---|"
    );
    for def in table::ours(Scope::Broker) {
        let kind = def.kind.name().to_ascii_lowercase();
        put!(
            page,
            "| `{}` | {kind} | {} | {} |",
            def.name,
            default(def),
            def.documentation()
        );
    }
}

/// The tables of what the desk profile changes, for this page and for `docs/differences.md`.
pub fn desk_profile() -> String {
    let mut page = String::new();
    put!(
        page,
        "Where the defaults differ from Kafka's; `--profile kafka` takes Kafka's.\n"
    );
    put!(page, "| key | desk | Kafka | why |\n|---|---|---|---|");
    for row in DIFFERENCES {
        let kafka = table::find(Scope::Broker, row.key)
            .map(default)
            .unwrap_or_default();
        put!(
            page,
            "| `{}` | `{}` | {kafka} | {} |",
            row.key,
            row.value,
            row.reason
        );
    }
    put!(page, "\nRanges that are wider than Kafka's:\n");
    put!(page, "| key | desk | Kafka | why |\n|---|---|---|---|");
    for row in WIDER_RANGES {
        let kafka = table::find(row.scope, row.key)
            .map(|def| valid(def.valid))
            .unwrap_or_default();
        put!(
            page,
            "| `{}` | {} | {kafka} | {} |",
            row.key,
            valid(row.valid),
            row.reason
        );
    }
    put!(
        page,
        "\nIn both profiles these are at most the number of brokers, unless they are set, since Kafka's \
         defaults do not work with fewer than three: {}.",
        BOUND_BY_BROKERS
            .iter()
            .map(|key| format!("`{key}`"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    page
}

fn section(page: &mut String, title: &str, scope: Scope, columns: &[&str]) {
    put!(page, "\n## {title}\n");
    put!(page, "| key | {} | meaning |", columns.join(" | "));
    put!(page, "|---{}|---|", "|---".repeat(columns.len()));
    let ours = table::ours(scope).iter().filter(|_| scope == Scope::Group);
    for def in table::rows(scope).iter().chain(ours) {
        let mut cells = vec![format!("`{}`", def.name)];
        cells.extend(columns.iter().map(|column| cell(def, column)));
        let internal = if def.internal { "Internal. " } else { "" };
        cells.push(format!("{internal}{}", def.documentation()));
        put!(page, "| {} |", cells.join(" | ").trim_end());
    }
}

fn cell(def: &ConfigDef, column: &str) -> String {
    match column {
        "type" => def.kind.name().to_ascii_lowercase(),
        "default" => default(def),
        "valid" => valid(def.valid),
        "changes" => def.mode.name().to_owned(),
        _ => def
            .synonyms
            .iter()
            .map(|(name, _)| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn default(def: &ConfigDef) -> String {
    match def.default {
        None if def.required => "(Kafka: required)".to_owned(),
        None => "none".to_owned(),
        Some("") => "empty".to_owned(),
        Some(text) => format!("`{text}`"),
    }
}

fn valid(valid: Valid) -> String {
    match valid {
        Valid::Any | Valid::NonNull => String::new(),
        Valid::Min(min) => format!("≥ {min}"),
        Valid::Between(min, max) => format!("{min} to {max}"),
        Valid::Ratio(min, max) => format!("{min} to {max}"),
        Valid::Share => "over 0, to 1".to_owned(),
        Valid::OneOf(words) | Valid::OneOfIgnoringCase(words) => words.join(", "),
        Valid::EachOf(words) => format!("any of {}", words.join(", ")),
        Valid::NonEmpty | Valid::NonEmptyList => "not empty".to_owned(),
        Valid::GzipLevel => "-1, 1 to 9".to_owned(),
        Valid::ThrottledReplicas => "`*`, or PARTITION:BROKER,...".to_owned(),
        Valid::OffsetReset => "earliest, latest, by_duration:PnDTnHnMn.nS".to_owned(),
        Valid::DlqTopic => "must not start with `__`".to_owned(),
        Valid::HostLimits => "HOST:NUMBER,...".to_owned(),
        Valid::MinusOneOrMin(min) => format!("-1, ≥ {min}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::reference_page;
    use crate::config::file;

    #[test]
    fn the_reference_page_is_up_to_date() {
        let path = std::path::Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../docs/configuration.md"
        ));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            file::write(path, &reference_page()).unwrap();
        }
        let committed = file::text(path).unwrap_or_default();
        assert!(
            committed == reference_page(),
            "docs/configuration.md is old: UPDATE_DOCS=1 cargo test -p ottla reference_page"
        );
    }

    #[test]
    fn no_cell_of_the_reference_page_breaks_its_table() {
        let page = reference_page();
        let rows = page.lines().filter(|line| line.starts_with("| "));
        let mut columns = 0;
        for row in rows {
            let cells = row.matches('|').count();
            if row.starts_with("| key |") {
                columns = cells;
            }
            assert_eq!(cells, columns, "{row}");
        }
    }
}
