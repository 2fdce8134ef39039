//! The two APIs that Ottla alone has: their bytes, so that they stay what clients know.

use ottla_protocol::messages::describe_share_group_delivery_response::*;
use ottla_protocol::messages::*;

use super::{text, writes};

#[test]
fn alter_share_group_delivery_keeps_its_bytes() {
    let pause = AlterShareGroupDeliveryRequest {
        group_id: GroupId(text("g")),
        pause: true,
        reason: Some(text("why")),
        ..Default::default()
    };
    writes(&pause, &[(0, "0267010477687900")]);
    let resume = AlterShareGroupDeliveryRequest {
        group_id: GroupId(text("g")),
        ..Default::default()
    };
    writes(&resume, &[(0, "0267000000")]);
    let response = AlterShareGroupDeliveryResponse {
        throttle_time_ms: 1,
        error_code: 42,
        error_message: Some(text("no")),
        ..Default::default()
    };
    writes(&response, &[(0, "00000001002a036e6f00")]);
}

#[test]
fn describe_share_group_delivery_keeps_its_bytes() {
    let request = DescribeShareGroupDeliveryRequest {
        group_ids: vec![GroupId(text("g")), GroupId(text("h"))],
        ..Default::default()
    };
    writes(&request, &[(0, "030267026800")]);
    let group = DescribedShareGroupDelivery {
        error_code: 1,
        error_message: Some(text("e")),
        group_id: GroupId(text("g")),
        delivery_state: text("PAUSED"),
        pause_reason: Some(text("ADMIN")),
        paused_since_ms: 2,
        note: Some(text("n")),
        last_resume_reason: None,
        auto_resume_at_ms: -1,
        breaker_enabled: true,
        tripped: false,
        threshold: 0.5,
        window_ms: 3,
        buckets: 4,
        min_messages: 5,
        timeout_pause_enabled: true,
        rate: 0.25,
        counts: vec![DeliveryCounts {
            bucket_start_ms: 6,
            delivered: 7,
            dlq_written: 8,
            given_up: 9,
            ..Default::default()
        }],
        letters_written: 10,
        write_timeouts: 11,
        late_writes: 12,
        given_up: vec![LettersGivenUp {
            reason: text("r"),
            records: 13,
            ..Default::default()
        }],
        given_up_in_window: 14,
        dlq_topic: text("d"),
        dlq_disabled_reason: Some(text("x")),
        ..Default::default()
    };
    let expected = [
        "00000000",                                                             // throttle time
        "02",                                                                   // one group
        "0001026502670750415553454406",                                         // error, id, state
        "41444d494e",                                                           // pause reason
        "0000000000000002026e00ffffffffffffffff", // since .. auto-resume
        "01003fe0000000000000",                   // breaker, threshold
        "000000000000000300000004000000000000000501", // window .. timeouts
        "3fd0000000000000",                       // rate
        "02000000000000000600000000000000070000000000000008000000000000000900", // counts
        "000000000000000a000000000000000b000000000000000c", // totals
        "020272000000000000000d00",               // given up
        "000000000000000e02640278",               // .. disabled reason
        "00",
        "00",
    ];
    let response = DescribeShareGroupDeliveryResponse {
        groups: vec![group],
        ..Default::default()
    };
    writes(&response, &[(0, &expected.concat())]);
}
