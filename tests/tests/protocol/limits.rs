//! How much an answer may hold.

use ottla_protocol::messages::FetchRequest;
use ottla_tests::{Client, Embedded, Settings};

/// A fetch of all four partitions.
fn wide(max_bytes: i32, partition_max_bytes: i32) -> FetchRequest {
    let mut request = Client::fetch_request("t", 0, 0).with_max_bytes(max_bytes);
    let partition = request.topics[0].partitions[0]
        .clone()
        .with_partition_max_bytes(partition_max_bytes);
    request.topics[0].partitions = (0..4)
        .map(|n| partition.clone().with_partition(n))
        .collect();
    request
}

async fn sizes(client: &mut Client, request: &FetchRequest) -> Vec<usize> {
    let response = client.call(12, request).await;
    let partitions = &response.responses[0].partitions;
    partitions
        .iter()
        .map(|p| p.records.as_ref().unwrap().len())
        .collect()
}

async fn filled(settings: Settings) -> (Embedded, Client) {
    let broker = settings.start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 4).await;
    for partition in 0..4 {
        for _ in 0..5 {
            client
                .produce_values("t", partition, &[vec![1u8; 1000]])
                .await;
        }
    }
    (broker, client)
}

// C31
#[tokio::test]
async fn an_answer_keeps_within_the_clients_limits_unless_a_single_batch_is_larger() {
    let (_broker, mut client) = filled(Settings::new()).await;
    let batch = sizes(&mut client, &wide(1, i32::MAX)).await;
    // One batch whole, so that the consumer gets on; nothing behind it.
    assert!(batch[0] > 1000 && batch[1..] == [0, 0, 0], "{batch:?}");
    let one = batch[0] as i32;
    for max in [
        0,
        1,
        one - 1,
        one,
        one + 1,
        2 * one - 1,
        2 * one,
        7 * one,
        20 * one,
        i32::MAX,
    ] {
        let got = sizes(&mut client, &wide(max, i32::MAX)).await;
        let total: usize = got.iter().sum();
        assert!(
            total <= max.max(one) as usize,
            "{total} bytes for at most {max}: {got:?}"
        );
        assert!(
            total >= (max / one).clamp(1, 20) as usize * one as usize,
            "{got:?} of {max}"
        );
    }
    for max in [1, one, 3 * one] {
        let got = sizes(&mut client, &wide(i32::MAX, max)).await;
        assert!(
            got.iter().all(|&size| size <= max.max(one) as usize),
            "{got:?}, {max} each"
        );
    }
}

// C31
#[tokio::test]
async fn the_brokers_own_limit_holds_whatever_the_client_asks_for() {
    let (_broker, mut client) = filled(Settings::new().set("fetch.max.bytes", "2500")).await;
    let got = sizes(&mut client, &wide(i32::MAX, i32::MAX)).await;
    assert!(got.iter().sum::<usize>() <= 2500, "{got:?}");
}
