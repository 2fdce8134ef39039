//! The broker's own topics are compacted too, and what they say stays.

use ottla_protocol::Uuid;
use ottla_tests::{Named, Settings};

use crate::A_REST_MS;

#[tokio::test]
async fn committed_offsets_survive_the_compaction_of_their_topic_and_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let settings = || {
        Settings::new()
            .data_dir(dir.path())
            .set("offsets.topic.num.partitions", "1")
    };
    let broker = settings().start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 2).await;
    for offset in 0..30 {
        client
            .commit("g", "t", &[(0, offset), (1, 2 * offset)])
            .await;
    }
    let configs = [
        ("internal.segment.bytes", "1500"),
        ("min.cleanable.dirty.ratio", "0.01"),
    ];
    let set = client
        .alter_configs(2, "__consumer_offsets", &configs)
        .await;
    assert_eq!(set.error_code, 0);
    for offset in 30..60 {
        client
            .commit("g", "t", &[(0, offset), (1, 2 * offset)])
            .await;
        client.commit("other", "t", &[(0, 7)]).await;
    }
    let before = client.fetch_all("__consumer_offsets", 0, 0).await.len();
    broker.advance(A_REST_MS).await;
    let after = client.fetch_all("__consumer_offsets", 0, 0).await.len();
    assert!(after * 3 < before, "{after} of {before} records are left");
    broker.shutdown().await;
    let broker = settings().start().await;
    let mut client = broker.client().await;
    let topic = Named {
        name: "t",
        id: Uuid::nil(),
    };
    let held = client.committed(7, "g", topic, &[0, 1]).await;
    let offsets: Vec<i64> = held.iter().map(|held| held.0).collect();
    assert_eq!(offsets, [59, 118]);
    assert_eq!(client.committed(7, "other", topic, &[0]).await[0].0, 7);
    broker.shutdown().await;
}
