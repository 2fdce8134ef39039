//! A Rust file, and the same text with comments, strings and character literals blanked.

#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
    /// As long as `text`, line for line, with spaces where comments and literals stood.
    pub(super) code: String,
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code: blank(text),
        }
    }

    /// The line, from 1, of a byte of `code`.
    pub(super) fn line_of(&self, at: usize) -> usize {
        self.code[..at].matches('\n').count() + 1
    }

    /// Whether the file is a test or an example, or the byte lies behind the `#[cfg(test)]` of the module at its end.
    pub(super) fn is_test(&self, at: usize) -> bool {
        let folder = ["/tests/", "/examples/"]
            .iter()
            .any(|dir| self.path.contains(dir));
        let file = self.path.starts_with("tests/") || self.path.ends_with("tests.rs");
        folder
            || file
            || self
                .code
                .find("#[cfg(test)]")
                .is_some_and(|start| at > start)
    }
}

/// Where `word` stands as a whole word, in bytes.
pub(super) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| {
            let bytes = code.as_bytes();
            let before = at.checked_sub(1).and_then(|i| bytes.get(i));
            let (first, last) = (word.as_bytes().first(), word.as_bytes().last());
            !((part(first) && part(before)) || (part(last) && part(bytes.get(at + word.len()))))
        })
}

fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        if end > at {
            for byte in &mut out[at..end.min(bytes.len())] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
            at = end;
        } else {
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Where the comment or literal that begins at `at` ends; `at` itself if none does.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let identifier_before =
        at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match rest {
        [b'/', b'/', ..] => at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => at + block_comment(rest),
        [b'"', ..] => at + 1 + quoted(&rest[1..], b'"'),
        [b'r', b'"' | b'#', ..] if !identifier_before => at + raw_string(rest),
        [b'b', b'r', b'"' | b'#', ..] if !identifier_before => at + 1 + raw_string(&rest[1..]),
        [b'\'', b'\\', ..] => at + 1 + quoted(&rest[1..], b'\''),
        [b'\'', ..] => at + char_literal(rest),
        _ => at,
    }
}

/// The length of a block comment, nested ones included.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut i) = (0_usize, 0);
    while i < rest.len() {
        match &rest[i..] {
            [b'/', b'*', ..] => (depth, i) = (depth + 1, i + 2),
            [b'*', b'/', ..] => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            break;
        }
    }
    i
}

/// The length up to and with the closing quote.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut i = 0;
    while i < rest.len() {
        match rest[i] {
            b'\\' => i += 2,
            b if b == quote => return i + 1,
            _ => i += 1,
        }
    }
    rest.len()
}

/// The length of `r"..."` or `r#"..."#`; 0 where it is a raw identifier.
fn raw_string(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|b| **b == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let mut i = 2 + hashes;
    while i < rest.len() {
        if rest[i] == b'"'
            && rest[i + 1..]
                .iter()
                .take(hashes)
                .filter(|b| **b == b'#')
                .count()
                == hashes
        {
            return i + 1 + hashes;
        }
        i += 1;
    }
    rest.len()
}

/// The length of `'x'`; 0 for a lifetime.
fn char_literal(rest: &[u8]) -> usize {
    let width = match rest.get(1) {
        Some(b) if *b >= 0xf0 => 4,
        Some(b) if *b >= 0xe0 => 3,
        Some(b) if *b >= 0xc0 => 2,
        _ => 1,
    };
    if rest.get(1 + width) == Some(&b'\'') {
        width + 2
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let text = "a(\"x { \\\" y\"); // {\n/* { /* } */ { */ b('{', '\\'', '{');\nfn c<'a>(x: &'a str) { r#\"\"{\"# }";
        let code = blank(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(code.lines().count(), 3);
        assert_eq!(code.matches('{').count(), 1, "{code}");
        assert!(code.contains("fn c<'a>(x: &'a str)"));
    }

    #[test]
    fn wide_characters_and_byte_strings_do_not_shift_anything() {
        let text = "x('é', \"…\", b\"{\", br#\"{\"#, r\"{\"); y";
        let code = blank(text);
        assert_eq!(code.len(), text.len());
        assert!(code.ends_with("; y") && !code.contains('{'));
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(words("unsafe_code unsafe x.unsafe", "unsafe").count(), 2);
        assert_eq!(words("std::fs::read my_std::fs", "std::fs::").count(), 1);
        assert_eq!(words("select! a_select!", "select!").count(), 1);
    }
}
