//! Regular expressions over topic names, in the syntax of RE2, as Kafka's brokers take them.
//!
//! Topic names are ASCII, so that the syntaxes of RE2 and of the `regex` crate differ in few places
//! that matter: those that RE2 refuses are refused here too, with its words.

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{
    self, Ast, ClassSetItem, ErrorKind, Flag, Flags, FlagsItemKind, GroupKind, RepetitionKind,
    RepetitionRange,
};

/// The most repetitions that RE2 counts.
const REPEAT_MAX: u32 = 1000;

/// The most Unicode classes in an expression: each costs a table of hundreds of ranges.
const UNICODE_CLASSES_MAX: usize = 100;

/// How large a compiled expression may be, without and with Unicode classes, in bytes. What a match
/// costs grows with it, and a group's coordinator waits for it.
const SIZE_MAX: [usize; 2] = [1 << 20, 4 << 20];

/// A compiled expression that matches whole names.
#[derive(Debug)]
pub(crate) struct TopicPattern(Regex);

impl TopicPattern {
    /// Compiles the expression, or says what is wrong with it.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let text = unquoted(text);
        let parsed = Parser::new().parse(&text).map_err(|e| what(e.kind()))?;
        let unicode_classes = ast::visit(&parsed, Refusals::default())?;
        // Names are ASCII: only what asks for Unicode pays for it.
        let unicode = unicode_classes > 0 || !text.is_ascii();
        let whole = format!(r"\A(?:{text})\z");
        let mut builder = RegexBuilder::new(&whole);
        builder
            .unicode(unicode)
            .size_limit(SIZE_MAX[usize::from(unicode)]);
        let pattern = builder.build().map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "expression too large".to_owned(),
            // What parses and cannot be compiled names a class that does not exist.
            _ => "invalid character class range".to_owned(),
        })?;
        Ok(Self(pattern))
    }

    /// Whether the whole name matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.0.is_match(name.as_bytes())
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

/// Refuses what only the `regex` crate takes: repetitions of repetitions, and of more than 1000, and
/// its own flags. Counts the Unicode classes, of which there may be only so many.
#[derive(Default)]
struct Refusals {
    /// Where the repetition inside the one that is looked at ends.
    follows: Option<usize>,
    unicode_classes: usize,
}

impl Refusals {
    fn unicode_class(&mut self) -> Result<(), String> {
        self.unicode_classes += 1;
        if self.unicode_classes > UNICODE_CLASSES_MAX {
            return Err("expression too large".to_owned());
        }
        Ok(())
    }

    fn flags(flags: &Flags) -> Result<(), String> {
        let is_own = |kind: &FlagsItemKind| {
            matches!(
                kind,
                FlagsItemKind::Flag(Flag::Unicode | Flag::IgnoreWhitespace | Flag::CRLF)
            )
        };
        if flags.items.iter().any(|item| is_own(&item.kind)) {
            return Err("invalid or unsupported Perl syntax".to_owned());
        }
        Ok(())
    }
}

impl ast::Visitor for Refusals {
    type Output = usize;
    type Err = String;

    fn finish(self) -> Result<usize, String> {
        Ok(self.unicode_classes)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), String> {
        match ast {
            Ast::Flags(set) => Self::flags(&set.flags),
            Ast::Group(group) => match &group.kind {
                GroupKind::NonCapturing(flags) => Self::flags(flags),
                _ => Ok(()),
            },
            Ast::ClassUnicode(_) => self.unicode_class(),
            _ => Ok(()),
        }
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), String> {
        match item {
            ClassSetItem::Unicode(_) => self.unicode_class(),
            _ => Ok(()),
        }
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
            ("(?u)a", "invalid or unsupported Perl syntax"),
            ("(?x:a)", "invalid or unsupported Perl syntax"),
            ("(?=a)", "invalid or unsupported Perl syntax"),
            ("(?P<n>a)(?P<n>b)", "duplicate capture group name"),
        ] {
            assert_eq!(refused(pattern).as_deref(), Some(text), "{pattern}");
        }
    }

    #[test]
    fn what_would_cost_too_much_is_refused() {
        let many = |text: &str, times: usize| text.repeat(times);
        for pattern in [
            "((a{1000}){1000}){1000}".to_owned(),
            many(r"\pL", 10_900),
            format!("(?i){}", many(r"\pL", 10_900)),
            format!("(?i)[{}]", many(r"\pL\PN", 5_000)),
            many(".{0,1000}", 3_000),
        ] {
            let what = &pattern[..20];
            assert_eq!(
                refused(&pattern).as_deref(),
                Some("expression too large"),
                "{what}"
            );
        }
        let nested = format!("{}a{}", many("(", 15_000), many(")", 15_000));
        assert_eq!(
            refused(&nested).as_deref(),
            Some("expression nests too deeply")
        );
    }

    #[test]
    fn names_in_a_long_list_are_taken() {
        let names: Vec<String> = (0..500)
            .map(|i| format!(r"orders-{i}-[a-z]+\.v\d+"))
            .collect();
        let list = TopicPattern::new(&names.join("|"));
        assert!(
            list.is_ok_and(
                |list| list.matches("orders-321-eu.v12") && !list.matches("orders-321-.v1")
            )
        );
    }

    #[test]
    fn what_re2_takes_is_taken() {
        for pattern in ["(?<n>a)", r"\z", "(a*)*", "a*?", "[[:alpha:]]", r"\pL+"] {
            assert_eq!(refused(pattern), None, "{pattern}");
        }
    }
}
