//! Results that a run leaves in the documentation, between two marks.

use anyhow::{Context, Result, bail};
use std::path::Path;

/// Replaces what stands between `<!-- NAME -->` and `<!-- /NAME -->`; appends both where they are missing.
pub(crate) fn write_section(file: &Path, title: &str, name: &str, body: &str) -> Result<()> {
    let old = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => format!("# {title}\n"),
        Err(e) => return Err(e).with_context(|| file.display().to_string()),
    };
    std::fs::write(file, replace(&old, name, body)?).with_context(|| file.display().to_string())
}

fn replace(old: &str, name: &str, body: &str) -> Result<String> {
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let section = format!("{open}\n{}\n{close}", body.trim_end());
    match (old.find(&open), old.find(&close)) {
        (Some(from), Some(to)) if from < to => Ok(format!(
            "{}{section}{}",
            &old[..from],
            &old[to + close.len()..]
        )),
        (None, None) => Ok(format!("{}\n\n{section}\n", old.trim_end())),
        _ => bail!("the marks of section {name} are broken"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_section_is_appended_once_and_then_replaced() {
        let first = replace("# T\n", "a", "one\n").unwrap();
        assert_eq!(first, "# T\n\n<!-- a -->\none\n<!-- /a -->\n");
        let second = replace(&format!("{first}\nafter\n"), "a", "two").unwrap();
        assert_eq!(second, "# T\n\n<!-- a -->\ntwo\n<!-- /a -->\n\nafter\n");
    }

    #[test]
    fn half_a_pair_of_marks_is_an_error() {
        assert!(replace("<!-- a -->\n", "a", "x").is_err());
    }
}
