//! Which crate may depend on what.

use super::source::words;
use super::{Finding, Tree};

struct Rule {
    dir: &'static str,
    /// Our own crates that it may name.
    ours: &'static [&'static str],
    /// Other crates that it must not depend on.
    never: &'static [&'static str],
}

const OURS: &str = "ottla";
const RULES: &[Rule] = &[
    Rule {
        dir: "protocol",
        ours: &[],
        never: &["tokio", "rand", "tracing"],
    },
    Rule {
        dir: "storage",
        ours: &["ottla-protocol"],
        never: &["tokio", "anyhow", "rand", "kafka-protocol"],
    },
    Rule {
        dir: "coordinator",
        ours: &[],
        never: &[
            "tokio",
            "anyhow",
            "rand",
            "tracing",
            "bytes",
            "kafka-protocol",
            "crossbeam",
        ],
    },
    Rule {
        dir: "tools",
        ours: &["ottla-protocol"],
        never: &["anyhow", "rand", "kafka-protocol"],
    },
    Rule {
        dir: "broker",
        ours: &[
            "ottla-coordinator",
            "ottla-storage",
            "ottla-protocol",
            "ottla-tools",
        ],
        never: &["kafka-protocol"],
    },
    Rule {
        dir: "tests",
        ours: &[
            "ottla",
            "ottla-coordinator",
            "ottla-storage",
            "ottla-protocol",
            "ottla-tools",
        ],
        never: &["kafka-protocol"],
    },
    Rule {
        dir: "benches",
        ours: &[
            "ottla",
            "ottla-coordinator",
            "ottla-storage",
            "ottla-protocol",
        ],
        never: &["kafka-protocol"],
    },
    Rule {
        dir: "xtask",
        ours: &[],
        never: &[],
    },
];

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for (path, text) in &tree.texts {
        let Some(dir) = path.strip_suffix("/Cargo.toml") else {
            continue;
        };
        match RULES.iter().find(|r| r.dir == dir) {
            Some(rule) => manifest(rule, path, text, findings),
            None => findings.push(Finding::new(
                path,
                0,
                "a crate that tidy's rules do not know",
            )),
        }
    }
    for source in &tree.sources {
        if source.path.starts_with("protocol/") {
            continue;
        }
        // Everything foreign is decoded behind `guard::decode`; the crate's own decoders trust the lengths they read.
        let product = !source.path.starts_with("tests/") && !source.path.starts_with("benches/");
        for (name, why) in [
            (
                "kafka_protocol",
                "only the protocol crate names kafka-protocol",
            ),
            (
                "Decodable",
                "foreign bytes are decoded by guard::decode alone",
            ),
        ] {
            for at in words(&source.code, name) {
                if name == "kafka_protocol" || (product && !source.is_test(at)) {
                    findings.push(Finding::new(&source.path, source.line_of(at), why));
                }
            }
        }
        if source.path.starts_with("broker/") && source.path != "broker/src/main.rs" {
            for at in words(&source.code, "anyhow").filter(|at| !source.is_test(*at)) {
                findings.push(Finding::new(
                    &source.path,
                    source.line_of(at),
                    "anyhow is for main.rs, xtask and tests",
                ));
            }
        }
    }
}

fn manifest(rule: &Rule, path: &str, text: &str, findings: &mut Vec<Finding>) {
    let mut development = false;
    let mut dependencies = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            dependencies = line.contains("dependencies");
            development = line.contains("dev-dependencies");
            continue;
        }
        let name: String = line
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_')
            .collect();
        if !dependencies || name.is_empty() {
            continue;
        }
        let ours = name == OURS || name.starts_with("ottla-");
        if ours && !rule.ours.contains(&name.as_str()) {
            findings.push(Finding::new(
                path,
                at + 1,
                format!("{} must not depend on {name}", rule.dir),
            ));
        }
        if !development && rule.never.contains(&name.as_str()) {
            findings.push(Finding::new(
                path,
                at + 1,
                format!("{} must not depend on {name}", rule.dir),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<Finding> {
        let mut found = Vec::new();
        check(&Tree::of(&[(path, text)]), &mut found);
        found
    }

    #[test]
    fn arrows_that_point_the_wrong_way_are_found() {
        let wrong = [
            (
                "coordinator/Cargo.toml",
                "[dependencies]\nottla-protocol.workspace = true\n",
            ),
            (
                "storage/Cargo.toml",
                "[dependencies]\nottla-coordinator = { path = \"x\" }\n",
            ),
            (
                "protocol/Cargo.toml",
                "[dev-dependencies]\nottla-storage.workspace = true\n",
            ),
            (
                "storage/Cargo.toml",
                "[target.'cfg(unix)'.dependencies]\ntokio = \"1\"\n",
            ),
            ("newcomer/Cargo.toml", "[package]\n"),
        ];
        for (path, text) in wrong {
            assert_eq!(findings(path, text).len(), 1, "{path} {text}");
        }
    }

    #[test]
    fn arrows_of_the_design_pass() {
        let right = [
            (
                "broker/Cargo.toml",
                "[dependencies]\nottla-storage.workspace = true\nottla-coordinator.workspace = true\n",
            ),
            (
                "storage/Cargo.toml",
                "[dependencies]\nottla-protocol.workspace = true\n",
            ),
            (
                "coordinator/Cargo.toml",
                "[dependencies]\nthiserror.workspace = true\n[dev-dependencies]\nbytes = \"1\"\n",
            ),
        ];
        for (path, text) in right {
            assert_eq!(findings(path, text), [], "{path}");
        }
    }

    #[test]
    fn the_wrapped_crate_and_its_bare_decoders_stay_inside_protocol() {
        assert_eq!(
            findings("broker/src/a.rs", "use kafka_protocol::X;").len(),
            1
        );
        assert_eq!(
            findings("broker/src/a.rs", "use ottla_protocol::Decodable;").len(),
            1
        );
        assert_eq!(
            findings(
                "broker/src/a.rs",
                "#[cfg(test)]\nmod tests { use ottla_protocol::Decodable; }"
            ),
            []
        );
        assert_eq!(
            findings("tests/src/wire.rs", "use ottla_protocol::Decodable;"),
            []
        );
        assert_eq!(findings("protocol/src/a.rs", "use kafka_protocol::X;"), []);
    }
}
