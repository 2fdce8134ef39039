//! Regular expressions over topic names, in the syntax of RE2, as Kafka's brokers take them.
//!
//! Topic names are ASCII, so that the syntaxes of RE2 and of the `regex` crate differ in few places
//! that matter: those that RE2 refuses are refused here too, with its words.

use regex::Regex;
use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{self, Ast, ErrorKind, RepetitionKind, RepetitionRange};

/// The most repetitions that RE2 counts.
const REPEAT_MAX: u32 = 1000;

/// A compiled expression that matches whole names.
#[derive(Debug)]
pub(crate) struct TopicPattern(Regex);

impl TopicPattern {
    /// Compiles the expression, or says what is wrong with it.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let text = unquoted(text);
        let parsed = Parser::new().parse(&text).map_err(|e| what(e.kind()))?;
        ast::visit(&parsed, Refusals { follows: None })?;
        let whole = format!(r"\A(?:{text})\z");
        let pattern = Regex::new(&whole).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "expression too large".to_owned(),
            // What parses and cannot be compiled names a class that does not exist.
            _ => "invalid character class range".to_owned(),
        })?;
        Ok(Self(pattern))
    }

    /// Whether the whole name matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

/// `\Q...\E` written out: the `regex` crate does not know it.
fn unquoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (plain, escaped) = rest.split_at(at);
        out.push_str(plain);
        if let Some(quoted) = escaped.strip_prefix(r"\Q") {
            let (literal, after) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
            out.push_str(&regex::escape(literal));
            rest = after;
        } else {
            let next = escaped.chars().nth(1).map_or(0, char::len_utf8);
            out.push_str(&escaped[..=next]);
            rest = &escaped[1 + next..];
        }
    }
    out.push_str(rest);
    out
}

/// RE2's words for what is wrong.
fn what(kind: &ErrorKind) -> String {
    let text = match kind {
        ErrorKind::ClassUnclosed => "missing closing ]",
        ErrorKind::ClassEscapeInvalid
        | ErrorKind::ClassRangeInvalid
        | ErrorKind::ClassRangeLiteral => "invalid character class range",
        ErrorKind::GroupUnclosed => "missing closing )",
        ErrorKind::GroupUnopened => "regexp/syntax: internal error",
        ErrorKind::GroupNameDuplicate { .. } => "duplicate capture group name",
        ErrorKind::GroupNameEmpty | ErrorKind::GroupNameInvalid => "invalid named capture",
        ErrorKind::RepetitionMissing => "missing argument to repetition operator",
        ErrorKind::RepetitionCountInvalid
        | ErrorKind::RepetitionCountDecimalEmpty
        | ErrorKind::RepetitionCountUnclosed
        | ErrorKind::DecimalEmpty
        | ErrorKind::DecimalInvalid => "invalid repeat count",
        ErrorKind::EscapeUnexpectedEof => "trailing backslash at end of expression",
        ErrorKind::EscapeUnrecognized
        | ErrorKind::EscapeHexEmpty
        | ErrorKind::EscapeHexInvalid
        | ErrorKind::EscapeHexInvalidDigit
        | ErrorKind::UnsupportedBackreference => "invalid escape sequence",
        ErrorKind::NestLimitExceeded(_) => "expression nests too deeply",
        _ => "invalid or unsupported Perl syntax",
    };
    text.to_owned()
}

/// Refuses what only the `regex` crate takes: repetitions of repetitions, and of more than 1000.
struct Refusals {
    /// Where the repetition inside the one that is looked at ends.
    follows: Option<usize>,
}

impl ast::Visitor for Refusals {
    type Output = ();
    type Err = String;

    fn finish(self) -> Result<(), String> {
        Ok(())
    }

    fn visit_post(&mut self, ast: &Ast) -> Result<(), String> {
        let Ast::Repetition(repetition) = ast else {
            return Ok(());
        };
        if self.follows == Some(repetition.op.span.start.offset) {
            return Err("invalid nested repetition operator".to_owned());
        }
        self.follows = Some(repetition.span.end.offset);
        let count = match &repetition.op.kind {
            RepetitionKind::Range(
                RepetitionRange::Exactly(count)
                | RepetitionRange::AtLeast(count)
                | RepetitionRange::Bounded(_, count),
            ) => *count,
            _ => 0,
        };
        if count > REPEAT_MAX {
            return Err("invalid repeat count".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::TopicPattern;

    fn refused(text: &str) -> Option<String> {
        TopicPattern::new(text).err()
    }

    #[test]
    fn whole_names_match() {
        let matches = |pattern: &str, name: &str| {
            TopicPattern::new(pattern).is_ok_and(|pattern| pattern.matches(name))
        };
        assert!(matches("t.*", "topic"));
        assert!(!matches("t", "topic"));
        assert!(matches("a|topic", "topic"));
        assert!(matches("(?i)TOPIC", "topic"));
        assert!(matches(r"\Qa.b\E.*", "a.b-1"));
        assert!(!matches(r"\Qa.b\E", "axb"));
        assert!(matches("", ""));
    }

    #[test]
    fn what_re2_refuses_is_refused_in_its_words() {
        for (pattern, text) in [
            ("[", "missing closing ]"),
            ("(", "missing closing )"),
            ("(?P<n>a", "missing closing )"),
            ("a)", "regexp/syntax: internal error"),
            ("*a", "missing argument to repetition operator"),
            ("a**", "invalid nested repetition operator"),
            ("a++", "invalid nested repetition operator"),
            ("a{2,1}", "invalid repeat count"),
            ("a{1001}", "invalid repeat count"),
            ("x{99999999999}", "invalid repeat count"),
            ("\\", "trailing backslash at end of expression"),
            (r"\q", "invalid escape sequence"),
            (r"\Z", "invalid escape sequence"),
            (r"\1", "invalid escape sequence"),
            ("[b-a]", "invalid character class range"),
            (r"\pX", "invalid character class range"),
            ("(?z)", "invalid or unsupported Perl syntax"),
            ("(?=a)", "invalid or unsupported Perl syntax"),
            ("(?P<n>a)(?P<n>b)", "duplicate capture group name"),
        ] {
            assert_eq!(refused(pattern).as_deref(), Some(text), "{pattern}");
        }
    }

    #[test]
    fn what_re2_takes_is_taken() {
        for pattern in ["(?<n>a)", r"\z", "(a*)*", "a*?", "[[:alpha:]]", r"\pL+"] {
            assert_eq!(refused(pattern), None, "{pattern}");
        }
    }
}
