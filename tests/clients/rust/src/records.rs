//! The records of the client matrix.

use bytes::Bytes;
use krafka::Headers;

/// Key, value and headers.
pub type Content = (Option<Bytes>, Option<Bytes>, Headers);

pub fn plain(i: usize) -> Content {
    let value = format!("value-{i}-{}", "x".repeat(i % 300));
    (
        Some(format!("key-{i}").into()),
        Some(value.into()),
        Vec::new(),
    )
}

pub fn nulls(i: usize) -> Content {
    let or_empty = |text: &str, empty: bool| {
        if empty {
            Bytes::new()
        } else {
            format!("{text}-{i}").into()
        }
    };
    let key = (i % 3 != 0).then(|| or_empty("key", i % 5 == 0));
    let value = (i % 3 != 1).then(|| or_empty("value", i % 5 == 1));
    (key, value, Vec::new())
}

pub fn headed(i: usize) -> Content {
    let headers = vec![
        ("n".to_owned(), Some(i.to_string().into())),
        ("n".to_owned(), Some("again".into())),
        ("empty".to_owned(), Some(Bytes::new())),
        ("null".to_owned(), None),
    ];
    (
        Some(format!("key-{i}").into()),
        Some(format!("value-{i}").into()),
        headers,
    )
}

pub fn large(_: usize) -> Content {
    let value: Vec<u8> = (0..=250).cycle().take(5 * 1024 * 1024).collect();
    (Some("large".into()), Some(value.into()), Vec::new())
}
