//! Lengths: of files and of functions.

use super::allow::{Allow, Kind};
use super::source::{Source, words};
use super::{Finding, Tree};

const NOTED_LINES: usize = 500;
const FILE_LINES: usize = 700;
const FUNCTION_LINES: usize = 70;

/// Returns the files that are longer than one likes.
pub(super) fn check(tree: &Tree, allow: &mut Allow, findings: &mut Vec<Finding>) -> Vec<String> {
    let mut notes = Vec::new();
    for source in &tree.sources {
        let lines = source.text.lines().count();
        if lines > FILE_LINES {
            if !allow.lets(Kind::Table, &source.path) {
                findings.push(Finding::new(
                    &source.path,
                    0,
                    format!("{lines} lines, at most {FILE_LINES}"),
                ));
            }
        } else if lines > NOTED_LINES {
            notes.push(format!("{} has {lines} lines", source.path));
        }
        for function in functions(source) {
            let subject = format!("{}::{}", source.path, function.name);
            if function.lines > FUNCTION_LINES && !allow.lets(Kind::Function, &subject) {
                findings.push(Finding::new(
                    &source.path,
                    function.line,
                    format!(
                        "fn {} has {} lines, at most {FUNCTION_LINES}",
                        function.name, function.lines
                    ),
                ));
            }
        }
    }
    notes
}

#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

/// Every function with a body, from its `fn` to its closing brace.
fn functions(source: &Source) -> Vec<Function> {
    let code = source.code.as_bytes();
    let mut found = Vec::new();
    for at in words(&source.code, "fn") {
        let name: String = source.code[at + 2..]
            .trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        if name.is_empty() {
            continue; // a function pointer's type
        }
        let Some(open) = body(code, at) else { continue };
        let Some(close) = matching(code, open) else {
            continue;
        };
        let line = source.line_of(at);
        found.push(Function {
            name,
            line,
            lines: source.line_of(close) - line + 1,
        });
    }
    found
}

/// The brace that opens the body; `None` where a semicolon ends the signature.
fn body(code: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (i, byte) in code.iter().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return Some(i),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn matching(code: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (i, byte) in code.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(i);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_function_reaches_from_its_signature_to_its_brace() {
        let text = "trait T { fn a(&self) -> [u8; 3]; }\nfn b(\n  x: fn(u8) -> u8,\n) {\n  if x { '}' } // }\n}\n";
        let found = functions(&Source::new("x.rs", text));
        assert_eq!(
            found,
            [Function {
                name: "b".to_owned(),
                line: 2,
                lines: 5
            }]
        );
    }

    #[test]
    fn long_files_and_functions_are_findings_unless_they_are_let_through() {
        let long = format!(
            "fn f() {{\n{}}}\n{}",
            "\n".repeat(FUNCTION_LINES),
            "\n".repeat(FILE_LINES)
        );
        let tree = Tree::of(&[("a.rs", &long)]);
        let mut findings = Vec::new();
        check(&tree, &mut Allow::parse("").unwrap(), &mut findings);
        assert_eq!(findings.len(), 2);
        findings.clear();
        let mut allow = Allow::parse("table a.rs # rows\nfunction a.rs::f # one match\n").unwrap();
        check(&tree, &mut allow, &mut findings);
        assert_eq!(findings, []);
        assert_eq!(allow.unused().count(), 0);
    }

    #[test]
    fn a_file_between_the_limits_is_only_noted() {
        let tree = Tree::of(&[("a.rs", &"\n".repeat(NOTED_LINES + 1))]);
        let mut findings = Vec::new();
        assert_eq!(
            check(&tree, &mut Allow::parse("").unwrap(), &mut findings).len(),
            1
        );
        assert_eq!(findings, []);
    }
}
