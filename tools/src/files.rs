//! The files that a command names: the only place of this crate that opens any.

use std::io::Read as _;

/// No file of settings or offsets is larger.
const LARGEST: u64 = 64 << 20;

/// Reads a text file; the error is a sentence without the path.
pub(crate) fn read(path: &str) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| plain(&error))?;
    let mut text = String::new();
    file.take(LARGEST + 1)
        .read_to_string(&mut text)
        .map_err(|error| plain(&error))?;
    if text.len() as u64 > LARGEST {
        return Err(format!("larger than {} MiB", LARGEST >> 20));
    }
    Ok(text)
}

fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        _ => error.to_string(),
    }
}
