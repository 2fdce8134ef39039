//! Bytes for people.

use std::fmt::Write;

/// The most bytes that a dump shows.
const SHOWN: usize = 1024;

/// Offset, sixteen bytes and their ASCII on each line; what is longer than 1 KiB is cut.
pub fn hexdump(bytes: &[u8]) -> String {
    let mut out = format!("{} bytes\n", bytes.len());
    for (line, chunk) in bytes[..bytes.len().min(SHOWN)].chunks(16).enumerate() {
        let hex: Vec<String> = chunk.iter().map(|b| format!("{b:02x}")).collect();
        let text: String = chunk
            .iter()
            .map(|&b| {
                if b.is_ascii_graphic() || b == b' ' {
                    b as char
                } else {
                    '.'
                }
            })
            .collect();
        let _ = writeln!(out, "{:08x}  {:<47}  |{text}|", line * 16, hex.join(" "));
    }
    if bytes.len() > SHOWN {
        let _ = writeln!(out, "... {} more", bytes.len() - SHOWN);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::hexdump;

    #[test]
    fn a_dump_shows_offset_hex_and_text() {
        let dump = hexdump(b"GET / HTTP/1.1\r\nHost");
        assert!(
            dump.starts_with("20 bytes\n00000000  47 45 54 20 2f "),
            "{dump}"
        );
        assert!(
            dump.contains("|GET / HTTP/1.1..|\n00000010  48 6f 73 74 "),
            "{dump}"
        );
    }
}
