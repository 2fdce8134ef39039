//! Requests of every API and version that are cut, inflated, flipped or random. A process of its own
//! serves them: it must live, and its log must show no panic.

use ottla_protocol::guard::{LengthField, Variety, sample};
use ottla_tests::{Child, Launch};

use crate::support::{Random, alive, frame, served};

const VARIETY: Variety = Variety {
    tags: true,
    elements: 3,
    string: 20,
};

/// What becomes of a hostile body.
async fn answered(child: &Child, key: i16, version: i16, body: &[u8]) -> bool {
    let mut client = child.client().await;
    client.send_bytes(&frame(key, version, 1, body)).await;
    // A request that waits for an answer that never comes must not hold this test.
    client.finish_sending().await;
    client.receive_or_closed().await.is_some()
}

pub(crate) async fn lived(mut child: Child) {
    alive(&mut child.client().await).await;
    assert!(child.is_running());
    let log = child.stderr();
    let panic: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("panicked"))
        .collect();
    assert!(panic.is_empty(), "{panic:#?}");
}

/// One well-formed body of every API and version, by a seed.
fn bodies(apis: &[(i16, i16, i16)], seed: u64) -> Vec<(i16, i16, Vec<u8>, Vec<LengthField>)> {
    let mut random = Random::new(seed);
    let mut all = vec![];
    for &(key, first, last) in apis {
        for version in first..=last {
            if let Some(found) = sample(key, version, VARIETY, &mut |n| random.below(n)) {
                all.push((key, version, found.body, found.lengths));
            }
        }
    }
    assert!(all.len() > 100, "{} bodies", all.len());
    all
}

fn inflate(body: &mut Vec<u8>, field: LengthField) {
    let huge: &[u8] = match (field.compact, field.width) {
        // 2^31 - 1 elements: one more as an unsigned varint.
        (true, _) => &[0x80, 0x80, 0x80, 0x80, 0x08],
        (false, 2) => &[0x7f, 0xff],
        (false, _) => &[0x7f, 0xff, 0xff, 0xff],
    };
    body.splice(field.at..field.at + field.width, huge.iter().copied());
}

#[tokio::test]
async fn a_count_of_two_billion_ends_the_connection_in_every_api_and_version() {
    let child = Launch::new().start().await;
    let apis = served(&mut child.client().await).await;
    let before = child.resident_bytes();
    let mut tried = 0;
    for seed in 1..=2 {
        for (key, version, body, lengths) in bodies(&apis, seed) {
            for &field in lengths.iter().take(6) {
                let mut inflated = body.clone();
                inflate(&mut inflated, field);
                let answered = answered(&child, key, version, &inflated).await;
                assert!(
                    !answered,
                    "seed {seed}, key {key} v{version}, {field:?} of {body:02x?}"
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 500, "{tried}");
    let grown = child.peak_resident_bytes().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes more");
    lived(child).await;
}

#[tokio::test]
async fn requests_that_are_cut_end_their_connection() {
    let child = Launch::new().start().await;
    let apis = served(&mut child.client().await).await;
    let mut random = Random::new(3);
    for (key, version, body, _) in bodies(&apis, 3) {
        for _ in 0..2 {
            let length = random.below(body.len() as u32) as usize;
            if length < body.len() {
                // What is left may happen to be whole, where the rest was optional.
                answered(&child, key, version, &body[..length]).await;
            }
        }
    }
    lived(child).await;
}

#[tokio::test]
async fn random_bytes_for_every_api_and_version_kill_nobody() {
    let child = Launch::new().start().await;
    let apis = served(&mut child.client().await).await;
    for seed in 10..12 {
        let mut random = Random::new(seed);
        for &(key, first, last) in &apis {
            for version in first..=last {
                let length = random.below(200) as usize;
                let body = random.bytes(length);
                answered(&child, key, version, &body).await;
            }
        }
    }
    lived(child).await;
}

#[tokio::test]
async fn random_requests_of_every_api_and_version_are_answered_or_end_their_connection() {
    let child = Launch::new().start().await;
    let apis = served(&mut child.client().await).await;
    let mut answers = 0;
    for seed in 20..24 {
        for (key, version, body, _) in bodies(&apis, seed) {
            answers += usize::from(answered(&child, key, version, &body).await);
        }
    }
    // Fetches with their wait cut short by the end of the stream, and acks=0, have no answer.
    assert!(answers > 300, "{answers}");
    lived(child).await;
}

#[tokio::test]
async fn flipped_bytes_kill_nobody() {
    let child = Launch::new().start().await;
    let apis = served(&mut child.client().await).await;
    let mut random = Random::new(30);
    for seed in 30..32 {
        for (key, version, mut body, _) in bodies(&apis, seed) {
            for _ in 0..3 {
                if !body.is_empty() {
                    let at = random.below(body.len() as u32) as usize;
                    body[at] ^= 1 << random.below(8);
                }
            }
            answered(&child, key, version, &body).await;
        }
    }
    lived(child).await;
}
