#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

fn pairs(text: &str) -> Vec<(String, String)> {
    parse("f", text)
        .unwrap()
        .settings
        .into_iter()
        .map(|(key, value, _)| (key, value))
        .collect()
}

fn one(text: &str) -> (String, String) {
    let mut all = pairs(text);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn owned(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[test]
fn a_key_ends_at_an_equals_sign_a_colon_or_a_blank() {
    for text in [
        "node.id=1",
        "node.id = 1",
        "node.id:1",
        "node.id : 1",
        "node.id 1",
        "\t node.id\t1",
    ] {
        assert_eq!(one(text), owned("node.id", "1"), "{text:?}");
    }
}

#[test]
fn a_value_keeps_its_own_separators_and_trailing_blanks() {
    assert_eq!(one("a=b=c:d e "), owned("a", "b=c:d e "));
    assert_eq!(
        one("listeners=PLAINTEXT://127.0.0.1:9092"),
        owned("listeners", "PLAINTEXT://127.0.0.1:9092")
    );
}

#[test]
fn comments_and_empty_lines_are_skipped() {
    assert_eq!(pairs("# a=1\n  ! b=2\n\n \t\nc=3\n#"), [owned("c", "3")]);
}

#[test]
fn a_line_goes_on_after_a_backslash_without_the_next_lines_indent() {
    assert_eq!(one("log.dirs=/a,\\\n    /b"), owned("log.dirs", "/a,/b"));
    assert_eq!(one("a=1\\\\"), owned("a", "1\\"));
    assert_eq!(one("a=1\\\n# no comment"), owned("a", "1# no comment"));
    assert_eq!(one("a=1\\"), owned("a", "1"));
}

#[test]
fn escapes_are_javas() {
    assert_eq!(one(r"a\=b\:c\ d=e"), owned("a=b:c d", "e"));
    assert_eq!(one(r"a=x\ty\nz\\q\zd"), owned("a", "x\ty\nz\\qzd"));
    assert_eq!(one(r"a=\u00e4\ud83d\ude00"), owned("a", "ä😀"));
}

#[test]
fn every_kind_of_line_end_counts() {
    let found = parse("f", "a=1\r\nb=2\rc=3\nd=4").unwrap();
    let lines: Vec<_> = found
        .settings
        .iter()
        .map(|(_, _, origin)| origin.to_string())
        .collect();
    assert_eq!(lines, ["f line 1", "f line 2", "f line 3", "f line 4"]);
}

#[test]
fn a_sentence_before_the_equals_sign_is_a_setting_that_nobody_knows() {
    let found = parse("f", "The most bytes of a fetch.=30\n").unwrap();
    let (key, value, _) = &found.settings[0];
    assert_eq!((&**key, &**value), ("The", "most bytes of a fetch.=30"));
}

#[test]
fn a_broken_line_is_named_with_its_number() {
    let error = |text: &str| parse("server.properties", text).unwrap_err().text;
    assert_eq!(
        error("a=1\nthis is no setting\n"),
        "server.properties line 2: \"this is no setting\" is no setting: write KEY=VALUE"
    );
    assert_eq!(
        error("=1"),
        "server.properties line 1: \"=1\" is no setting: write KEY=VALUE"
    );
    assert_eq!(
        error("# x\n\na=\\u12g4"),
        "server.properties line 3: \\u12g4 is no \\uXXXX escape"
    );
    assert_eq!(
        error("a=1\\\n2\nb=\\ud83d"),
        "server.properties line 3: a \\uXXXX escape is half of a character"
    );
}

#[test]
fn of_a_key_that_is_set_twice_the_later_holds_with_a_warning() {
    let found = parse("f", "a=1\nb=2\na=3").unwrap();
    assert_eq!(
        found.warnings,
        ["f line 3: a was set in line 1 too; line 3 holds"]
    );
    assert_eq!(found.settings.last().unwrap().1, "3");
}

#[test]
fn a_file_that_is_not_utf_8_is_read_as_java_reads_it() {
    assert_eq!(text_of(vec![b'a', b'=', 0xe4]), "a=ä");
    assert_eq!(text_of("a=ä".into()), "a=ä");
}

#[test]
fn a_missing_file_says_which() {
    let error = read(Path::new("/no/such/file")).unwrap_err();
    assert!(
        error.text.starts_with("cannot read /no/such/file: "),
        "{}",
        error.text
    );
}
