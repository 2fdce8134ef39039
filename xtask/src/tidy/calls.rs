//! Calls that belong in one place, and `unsafe`.

use super::source::{Source, words};
use super::{Finding, Tree};

struct Ban {
    call: &'static str,
    /// Where it is right: paths, or folders with a slash at the end.
    except: &'static [&'static str],
    /// Test code may use it.
    tests: bool,
    why: &'static str,
}

/// Folders whose code is no part of the broker.
const OUTSIDE: &[&str] = &["xtask/", "benches/"];
const CLOCK: &[&str] = &["broker/src/clock.rs"];
/// A tool waits for other processes: its clock is the wire's.
const TOOLS: &str = "tools/src/clock.rs";
/// Integration tests bound their waits on the wire; they do not sleep either.
const WIRE: &[&str] = &["broker/src/clock.rs", TOOLS, "tests/"];
const FILES: &[&str] = &[
    "storage/",
    "broker/src/config/file.rs",
    "tools/src/files.rs",
    "tests/",
];

const BANS: &[Ban] = &[
    Ban {
        call: "Instant::now",
        except: WIRE,
        tests: false,
        why: "time comes from the clock",
    },
    Ban {
        call: "SystemTime::now",
        except: CLOCK,
        tests: false,
        why: "time comes from the clock",
    },
    Ban {
        call: "tokio::time",
        except: WIRE,
        tests: false,
        why: "waits go through the clock",
    },
    Ban {
        call: "time::sleep",
        except: &["broker/src/clock.rs", TOOLS],
        tests: false,
        why: "nothing sleeps: wait for an event, or move the clock",
    },
    Ban {
        call: "thread::sleep",
        except: &[],
        tests: false,
        why: "nothing sleeps: wait for an event, or move the clock",
    },
    Ban {
        call: "std::fs",
        except: FILES,
        tests: true,
        why: "files belong to storage, broker/src/config/file.rs and tools/src/files.rs",
    },
    Ban {
        call: "tokio::fs",
        except: &[],
        tests: true,
        why: "files belong to storage, broker/src/config/file.rs and tools/src/files.rs",
    },
    Ban {
        call: "todo!",
        except: &[],
        tests: false,
        why: "finish it, or refuse with the protocol's error",
    },
    Ban {
        call: "unimplemented!",
        except: &[],
        tests: false,
        why: "finish it, or refuse with the protocol's error",
    },
    Ban {
        call: "dbg!",
        except: &[],
        tests: false,
        why: "left over",
    },
];

const UNSAFE: &[&str] = &["storage/src/mapping.rs", "protocol/src/splice.rs"];

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for source in &tree.sources {
        if !UNSAFE.contains(&source.path.as_str()) {
            for at in words(&source.code, "unsafe") {
                findings.push(Finding::new(
                    &source.path,
                    source.line_of(at),
                    format!("unsafe outside {UNSAFE:?}"),
                ));
            }
        }
        if OUTSIDE.iter().any(|dir| source.path.starts_with(dir)) {
            continue;
        }
        for ban in BANS {
            if ban
                .except
                .iter()
                .any(|e| source.path == *e || (e.ends_with('/') && source.path.starts_with(e)))
            {
                continue;
            }
            for at in words(&source.code, ban.call) {
                if !(ban.tests && source.is_test(at)) {
                    let text = format!("{}: {}", ban.call, ban.why);
                    findings.push(Finding::new(&source.path, source.line_of(at), text));
                }
            }
        }
        unbiased(source, findings);
    }
}

/// `select!` polls at random unless its body begins with `biased;`.
fn unbiased(source: &Source, findings: &mut Vec<Finding>) {
    for at in words(&source.code, "select!") {
        let body = source.code[at + "select!".len()..].trim_start();
        if !body
            .strip_prefix('{')
            .is_some_and(|b| b.trim_start().starts_with("biased;"))
        {
            findings.push(Finding::new(
                &source.path,
                source.line_of(at),
                "select! without `biased;` polls at random",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        let mut found = Vec::new();
        check(&Tree::of(&[(path, text)]), &mut found);
        found.len()
    }

    #[test]
    fn the_clock_alone_reads_time() {
        assert_eq!(
            findings("broker/src/server.rs", "let t = Instant::now();"),
            1
        );
        assert_eq!(
            findings("broker/src/server.rs", "use tokio::time::timeout;"),
            1
        );
        assert_eq!(
            findings(
                "broker/src/clock.rs",
                "let t = Instant::now(); tokio::time::sleep(d)"
            ),
            0
        );
        assert_eq!(
            findings(
                "broker/src/server.rs",
                "// Instant::now\nlet s = \"Instant::now\";"
            ),
            0
        );
    }

    #[test]
    fn files_are_opened_in_two_places_and_in_tests() {
        assert_eq!(findings("broker/src/cli.rs", "std::fs::read(p)"), 1);
        assert_eq!(findings("broker/src/config/file.rs", "std::fs::read(p)"), 0);
        assert_eq!(findings("storage/src/sys.rs", "use std::fs;"), 0);
        assert_eq!(
            findings(
                "broker/src/cli.rs",
                "#[cfg(test)]\nmod tests { use std::fs; }"
            ),
            0
        );
    }

    #[test]
    fn a_select_says_that_it_is_biased() {
        assert_eq!(
            findings("broker/src/a.rs", "tokio::select! {\n  x = y => {} }"),
            1
        );
        assert_eq!(
            findings(
                "broker/src/a.rs",
                "tokio::select! {\n  biased;\n  x = y => {} }"
            ),
            0
        );
    }

    #[test]
    fn unsafe_stands_in_two_files() {
        assert_eq!(findings("storage/src/log.rs", "unsafe { f() }"), 1);
        assert_eq!(findings("storage/src/mapping.rs", "unsafe { f() }"), 0);
        assert_eq!(findings("storage/src/log.rs", "#![deny(unsafe_code)]"), 0);
    }
}
