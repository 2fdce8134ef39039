//! What a hostile peer can make the broker allocate, measured from outside.

use ottla_protocol::ErrorCode;
use ottla_tests::{Child, Launch, batch_of};

use crate::support::{alive, frame};

const MIB: u64 = 1 << 20;

/// A body with one list of `count` elements that are all zero bytes.
fn zeros(before: &[u8], count: u32, element: usize) -> Vec<u8> {
    let mut body = before.to_vec();
    body.extend(count.to_be_bytes());
    body.resize(body.len() + count as usize * element, 0);
    body
}

/// Sends a frame and returns by how many bytes the process has ever grown since before it.
async fn growth(child: &Child, bytes: &[u8]) -> u64 {
    let before = child.resident_bytes();
    let mut client = child.client().await;
    let sent = client.try_send_bytes(bytes).await;
    if sent.is_ok() {
        // Answered or closed: either way it has been dealt with.
        client.receive_or_closed().await;
    }
    alive(&mut child.client().await).await;
    child.peak_resident_bytes().saturating_sub(before)
}

#[tokio::test]
async fn tiny_elements_do_not_multiply_a_frame_in_memory() {
    // Element sizes are the smallest that each list can have on the wire.
    let cases: [(&str, i16, i16, Vec<u8>); 6] = [
        (
            "Metadata v1: 8 million topics",
            3,
            1,
            zeros(&[], 8 << 20, 2),
        ),
        (
            "Metadata v1: a million topics",
            3,
            1,
            zeros(&[], 1_000_000, 2),
        ),
        (
            "DeleteTopics v1: 8 million names",
            20,
            1,
            zeros(&[], 8 << 20, 2),
        ),
        (
            "Produce v3: 2 million topics",
            0,
            3,
            zeros(&[0xff, 0xff, 0, 1, 0, 0, 0, 9], 2 << 20, 6),
        ),
        ("ListGroups v4 as a list of 16 million", 16, 4, {
            let mut body = vec![0x81, 0x80, 0x80, 0x08];
            body.resize(16 << 20, 1);
            body
        }),
        (
            "DeleteRecords v0: 2 million topics",
            21,
            0,
            zeros(&[], 2 << 20, 6),
        ),
    ];
    for (what, key, version, body) in cases {
        let child = Launch::new().start().await;
        let bytes = frame(key, version, 1, &body);
        let grown = growth(&child, &bytes).await;
        // The frame while it is read, its buffer's growth, and eight times its size once decoded.
        let allowed = 11 * bytes.len() as u64 + 16 * MIB;
        assert!(
            grown < allowed,
            "{what}: {} MiB for {} MiB",
            grown / MIB,
            bytes.len() as u64 / MIB
        );
    }
}

#[tokio::test]
async fn a_hundred_megabytes_of_tiny_elements_are_refused_without_being_decoded() {
    let child = Launch::new().start().await;
    // 50 million topics of two bytes each, in the largest frame that is let in.
    let body = zeros(&[], (50 << 20) - 16, 2);
    let bytes = frame(3, 1, 1, &body);
    assert!(bytes.len() as u64 > 99 * MIB);
    let grown = growth(&child, &bytes).await;
    assert!(
        grown < 3 * bytes.len() as u64 + 16 * MIB,
        "{} MiB",
        grown / MIB
    );
}

// C8
#[tokio::test]
async fn declared_lengths_reserve_nothing() {
    let child = Launch::new().start().await;
    let before = child.resident_bytes();
    let mut held = vec![];
    for _ in 0..100 {
        let mut client = child.client().await;
        client.send_bytes(&(100u32 << 20).to_be_bytes()).await;
        client.send_bytes(&[0, 3, 0, 1]).await;
        held.push(client);
    }
    alive(&mut child.client().await).await;
    let grown = child.peak_resident_bytes().saturating_sub(before);
    assert!(grown < 32 * MIB, "{} MiB for 100 connections", grown / MIB);
}

// C5
#[tokio::test]
async fn a_hundred_tls_hellos_reserve_nothing() {
    let child = Launch::new().start().await;
    let before = child.resident_bytes();
    for _ in 0..100 {
        let mut client = child.client().await;
        client.send_bytes(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc]).await;
        client.expect_close().await;
    }
    let grown = child.peak_resident_bytes().saturating_sub(before);
    assert!(grown < 16 * MIB, "{} MiB", grown / MIB);
}

#[tokio::test]
async fn at_the_memory_limit_appends_are_refused_and_deleting_a_topic_makes_room() {
    let child = Launch::new()
        .set("ottla.memory.max.bytes", "8388608")
        .start()
        .await;
    let mut client = child.client().await;
    client.create_topic("big", 1).await;
    client.create_topic("small", 1).await;
    let batch = batch_of(client.timestamp, &[vec![7u8; 500_000]]);
    let mut stored = 0;
    let refused = loop {
        let answer = client.produce("big", 0, batch.clone()).await;
        if answer.error_code != 0 {
            break answer;
        }
        stored += 1;
        assert!(stored < 100, "the limit is not kept");
    };
    assert_eq!(
        ErrorCode(refused.error_code),
        ErrorCode::KAFKA_STORAGE_ERROR
    );
    assert!(
        stored >= 8,
        "only {stored} batches of half a megabyte found room in 8 MiB"
    );
    let message = refused.error_message.unwrap();
    assert!(message.contains("ottla.memory.max.bytes"), "{message}");
    // What was stored is there, and nothing of what was refused.
    assert_eq!(client.end_offset("big", 0).await, stored);
    assert_eq!(client.fetch_all("big", 0, 0).await.len() as i64, stored);
    let other = client.produce("small", 0, batch.clone()).await;
    assert_eq!(ErrorCode(other.error_code), ErrorCode::KAFKA_STORAGE_ERROR);
    assert_eq!(client.delete_topic("big").await, ErrorCode::NONE);
    child.advance(120_000).await;
    assert_eq!(client.produce_values("small", 0, &["fits again"]).await, 0);
    assert_eq!(client.produce("small", 0, batch).await.error_code, 0);
}
