//! `DescribeLogDirs`.

use ottla_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use ottla_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use ottla_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse, TopicName};

use super::{text, writes};

fn topic() -> TopicName {
    TopicName(text("t"))
}

#[test]
fn the_request_is_kafkas() {
    let all = DescribeLogDirsRequest {
        topics: None,
        ..Default::default()
    };
    let some = DescribeLogDirsRequest {
        topics: Some(vec![DescribableLogDirTopic {
            topic: topic(),
            partitions: vec![1, 2],
            ..Default::default()
        }]),
        ..Default::default()
    };
    writes(&some, &[(1, "00000001000174000000020000000100000002")]);
    writes(&all, &[(1, "ffffffff")]);
    for version in 2..=5 {
        writes(&some, &[(version, "0202740300000001000000020000")]);
        writes(&all, &[(version, "0000")]);
    }
}

#[test]
fn the_response_is_kafkas() {
    let partition = DescribeLogDirsPartition {
        partition_index: 1,
        partition_size: 2,
        offset_lag: 3,
        is_future_key: true,
        ..Default::default()
    };
    let result = DescribeLogDirsResult {
        error_code: 4,
        log_dir: text("/d"),
        topics: vec![DescribeLogDirsTopic {
            name: topic(),
            partitions: vec![partition],
            ..Default::default()
        }],
        total_bytes: 5,
        usable_bytes: 6,
        is_cordoned: true,
        ..Default::default()
    };
    let response = DescribeLogDirsResponse {
        throttle_time_ms: 7,
        error_code: 8,
        results: vec![result],
        ..Default::default()
    };
    let of_a_partition = "0202740200000001000000000000000200000000000000030100";
    let sizes = "00000000000000050000000000000006";
    for (version, kafka) in [
        (
            1,
            "0000000700000001000400022f640000000100017400000001000000010000000000000002000000000000000301"
                .to_owned(),
        ),
        (2, format!("00000007020004032f64{of_a_partition}000000")),
        (3, format!("000000070008020004032f64{of_a_partition}000000")),
        (4, format!("000000070008020004032f64{of_a_partition}00{sizes}0000")),
        (5, format!("000000070008020004032f64{of_a_partition}00{sizes}010000")),
    ] {
        writes(&response, &[(version, &kafka)]);
    }
}
