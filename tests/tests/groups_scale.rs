//! Many groups, many members, many partitions: what is done stays in proportion. Work is counted in
//! requests and in records of `__consumer_offsets`, not in time.

use std::collections::BTreeMap;

use ottla_protocol::{ErrorCode, StrBytes};
use ottla_tests::{Client, Consumer, Embedded, Named, OK, heartbeat_error};

const TOPIC: &str = "orders";

/// Records that groups have written so far.
async fn written(client: &mut Client) -> i64 {
    let topic = client.describe_topic("__consumer_offsets", false).await;
    let mut records = 0;
    for partition in topic.partitions {
        records += client
            .end_offset("__consumer_offsets", partition.partition_index)
            .await;
    }
    records
}

async fn join_and_commit(broker: &Embedded, topic: Named, number: usize) -> Consumer {
    let group = format!("group-{number}");
    let mut member = Consumer::new(broker.client().await, &group, "m");
    assert_eq!(heartbeat_error(&member.join(&[TOPIC]).await), OK);
    assert_eq!(member.partitions(), [0]);
    let mut commit = Client::commit_request(&group, topic, &[(0, 1, None)]);
    commit.generation_id_or_member_epoch = member.epoch;
    commit.member_id = StrBytes::from_static_str("m");
    let codes = member.client.commit_with(10, &commit).await;
    assert_eq!(codes, [(0, ErrorCode::NONE)]);
    member
}

#[tokio::test]
async fn a_thousand_groups_write_ten_times_what_a_hundred_do() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    let id = client.create_topic(TOPIC, 1).await;
    let topic = Named { name: TOPIC, id };
    let mut members = Vec::new();
    for number in 0..100 {
        members.push(join_and_commit(&broker, topic, number).await);
    }
    let of_a_hundred = written(&mut client).await;
    for number in 100..1_000 {
        members.push(join_and_commit(&broker, topic, number).await);
    }
    assert_eq!(written(&mut client).await, 10 * of_a_hundred);
    // A heartbeat that changes nothing writes nothing, with as many groups as there may be.
    for member in &mut members {
        member.quiet().await;
    }
    assert_eq!(written(&mut client).await, 10 * of_a_hundred);
    let listed = client.list_groups(&["stable"], &["consumer"]).await;
    assert_eq!(listed.len(), 1_000);
}

#[tokio::test]
async fn a_hundred_members_share_a_thousand_partitions_within_a_few_heartbeats_each() {
    let broker = Embedded::start().await;
    broker.client().await.create_topic(TOPIC, 1_000).await;
    let mut members = Vec::new();
    for number in 0..100 {
        let id = format!("m{number:02}");
        let mut member = Consumer::new(broker.client().await, "many", &id);
        assert_eq!(heartbeat_error(&member.join(&[TOPIC]).await), OK);
        members.push(member);
    }
    let mut heartbeats = 0;
    while broker.client().await.consumer_group_state("many").await.0 != "Stable" {
        for member in &mut members {
            assert_eq!(heartbeat_error(&member.beat().await), OK);
            heartbeats += 1;
        }
        assert!(
            heartbeats <= 600,
            "not settled after {heartbeats} heartbeats"
        );
    }
    let mut owners = BTreeMap::new();
    for member in &members {
        let partitions = member.partitions();
        assert_eq!(partitions.len(), 10, "{}", member.id);
        for partition in partitions {
            assert_eq!(owners.insert(partition, &member.id), None);
        }
    }
    assert_eq!(owners.len(), 1_000);
}
