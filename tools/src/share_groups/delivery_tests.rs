#![allow(clippy::unwrap_used, reason = "tests")]

use ottla_protocol::StrBytes;
use ottla_protocol::messages::GroupId;
use ottla_protocol::messages::describe_share_group_delivery_response::LettersGivenUp;

use super::*;

fn word(text: &'static str) -> StrBytes {
    StrBytes::from_static_str(text)
}

fn tripped() -> DescribedShareGroupDelivery {
    let counts = |bucket_start_ms, delivered, dlq_written, given_up| DeliveryCounts {
        bucket_start_ms,
        delivered,
        dlq_written,
        given_up,
        ..Default::default()
    };
    DescribedShareGroupDelivery {
        delivery_state: word("PAUSED"),
        pause_reason: Some(word("DLQ_CIRCUIT_BREAKER_TRIPPED")),
        paused_since_ms: 1_767_225_610_000,
        note: Some(word("rate 0.25")),
        auto_resume_at_ms: 1_767_225_910_000,
        breaker_enabled: true,
        tripped: true,
        threshold: 0.2,
        window_ms: 60_000,
        buckets: 6,
        min_messages: 100,
        rate: 0.25,
        counts: vec![
            counts(1_767_225_600_000, 75, 25, 0),
            counts(1_767_225_610_000, 0, 0, 3),
        ],
        letters_written: 25,
        given_up: vec![LettersGivenUp {
            reason: word("prefix"),
            records: 3,
            ..Default::default()
        }],
        given_up_in_window: 3,
        dlq_topic: word("dlq.orders"),
        ..Default::default()
    }
}

#[test]
fn a_breaker_that_tripped_is_shown_with_its_window() {
    let expected = "
Share group 'g': PAUSED (DLQ_CIRCUIT_BREAKER_TRIPPED) since 2026-01-01T00:00:10.000Z
  note:          rate 0.25
  auto-resume:   2026-01-01T00:05:10.000Z
  breaker:       tripped; rate at or above 0.2 of at least 100 messages
  window:        60000 ms in 6 buckets
  rate:          0.2500
  letters to:    dlq.orders
  letters:       25 written, 3 given up (3 in the window), 0 timed out, 0 written late
  given up:      3 (prefix)

BUCKET                   DELIVERED  DLQ-WRITTEN  GIVEN-UP
2026-01-01T00:00:00.000Z 75         25           0
2026-01-01T00:00:10.000Z 0          0            3
all                      75         25           3
";
    assert_eq!(text("g", &tripped()), expected);
}

#[test]
fn a_group_that_runs_without_a_breaker_says_so_in_a_few_lines() {
    let found = DescribedShareGroupDelivery {
        delivery_state: word("RUNNING"),
        ..Default::default()
    };
    let expected = "
Share group 'g': RUNNING
  breaker:       off
  letters to:    none
  letters:       0 written, 0 given up (0 in the window), 0 timed out, 0 written late
";
    assert_eq!(text("g", &found), expected);
}

#[test]
fn the_document_holds_all_of_it() {
    let document = json("g", &tripped());
    assert_eq!(document["breaker"]["counts"][0]["dlqWritten"], 25);
    assert_eq!(document["breaker"]["threshold"], 0.2);
    assert_eq!(document["letters"]["givenUp"]["prefix"], 3);
    assert_eq!(document["lastResumeReason"], Value::Null);
}

#[test]
fn the_tagged_fields_of_a_described_group_are_read() {
    let field = |text: &str| {
        let mut field = vec![text.len() as u8 + 1];
        field.extend_from_slice(text.as_bytes());
        Bytes::from(field)
    };
    let mut described = DescribedGroup::default().with_group_id(GroupId(word("g")));
    assert_eq!((of(&described), told(&described)), (Value::Null, None));
    let tags = &mut described.unknown_tagged_fields;
    tags.insert(STATE, field("RUNNING"));
    assert_eq!(told(&described), None);
    let tags = &mut described.unknown_tagged_fields;
    tags.insert(STATE, field("PAUSED"));
    tags.insert(REASON, field("ADMIN"));
    tags.insert(SINCE, Bytes::copy_from_slice(&0i64.to_be_bytes()));
    tags.insert(NOTE, field("looking into it"));
    let line = "Share group 'g' is PAUSED (ADMIN) since 1970-01-01T00:00:00.000Z: looking into it";
    assert_eq!(told(&described).unwrap(), line);
    assert_eq!(of(&described)["reason"], "ADMIN");
}

#[test]
fn a_tagged_field_that_is_no_string_is_passed_over() {
    for field in [&b""[..], b"\xff", b"\x00", b"\x05ab", b"\x03\xff\xff"] {
        assert_eq!(compact(&Bytes::copy_from_slice(field)), None, "{field:?}");
    }
    assert_eq!(number(&Bytes::from_static(b"1234")), None);
}
