//! ElectLeaders, and the return of leadership by itself.

use ottla_protocol::ErrorCode;
use ottla_tests::{Embedded, Settings, values};

use super::{fine, only};

async fn three() -> Embedded {
    Settings::new().brokers(3).start().await
}

#[tokio::test]
async fn the_preferred_replica_leads_again_when_it_is_asked_to() {
    let broker = three().await;
    let mut client = broker.client_of(2).await;
    client.create_topic_on("t", &[&[0, 1], &[2, 1]]).await;
    assert_eq!(client.produce_values("t", 1, &["stays"]).await, 0);
    broker.stop_node(0).await;
    let unavailable = only(ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE);
    assert_eq!(
        client.elect(0, Some(&[("t", 0)])).await,
        [("t-0".to_owned(), unavailable)]
    );
    broker.start_node(0).await;
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader 1@1, replicas 0,1, isr 1,0"
    );
    let needless = only(ErrorCode::ELECTION_NOT_NEEDED);
    let elected = client.elect(0, Some(&[("t", 0), ("t", 1)])).await;
    assert_eq!(
        elected,
        [("t-0".to_owned(), fine()), ("t-1".to_owned(), needless)]
    );
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader 0@2, replicas 0,1, isr 1,0"
    );
    let mut one = broker.client_of(1).await;
    let moved = ErrorCode::NOT_LEADER_OR_FOLLOWER.0;
    assert_eq!(one.list_offset("t", 0, -1).await.error_code, moved);
}

#[tokio::test]
async fn without_a_list_all_that_need_it_are_elected_and_named() {
    let broker = three().await;
    let mut client = broker.client_of(2).await;
    client.create_topic_on("a", &[&[0, 1], &[1, 2]]).await;
    client.create_topic_on("b", &[&[2, 0], &[0, 2]]).await;
    broker.stop_node(0).await;
    broker.start_node(0).await;
    let elected = client.elect(0, None).await;
    let names: Vec<_> = elected.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a-0", "b-1"]);
    assert!(elected.iter().all(|(_, outcome)| *outcome == fine()));
    assert_eq!(client.elect(0, None).await, []);
    assert_eq!(client.elect(1, None).await, []);
    assert_eq!(client.elect(0, Some(&[])).await, []);
}

#[tokio::test]
async fn what_is_not_there_and_what_is_no_election_is_refused() {
    let broker = three().await;
    let mut client = broker.client().await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    for election_type in [0, 1] {
        let wanted = [("t", 5), ("nope", 0), ("t", 0)];
        let answers = client.elect(election_type, Some(&wanted)).await;
        let expected = [
            ("t-5", (unknown, "No such partition as t-5".to_owned())),
            ("nope-0", (unknown, "No such topic as nope".to_owned())),
            ("t-0", only(ErrorCode::ELECTION_NOT_NEEDED)),
        ];
        assert_eq!(
            answers,
            expected.map(|(name, told)| (name.to_owned(), told))
        );
    }
    let response = client.elect_at(2, 7, Some(&[("t", 0)])).await;
    let partition = &response.replica_election_results[0].partition_result[0];
    let invalid = ErrorCode::INVALID_REQUEST.0;
    assert_eq!(
        (response.error_code, partition.error_code),
        (invalid, invalid)
    );
    let message = partition.error_message.as_deref();
    assert_eq!(message, Some("Unknown election type 7"));
    // The first version knows preferred elections only.
    let response = client.elect_at(0, 0, Some(&[("t", 0)])).await;
    let code = response.replica_election_results[0].partition_result[0].error_code;
    assert_eq!(code, ErrorCode::ELECTION_NOT_NEEDED.0);
}

#[tokio::test]
async fn a_replica_that_may_miss_records_leads_only_when_it_is_asked_for() {
    let broker = three().await;
    let mut client = broker.client_of(2).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    let mut zero = broker.client_of(0).await;
    assert_eq!(zero.produce_values("t", 0, &["a"]).await, 0);
    broker.stop_node(1).await;
    assert_eq!(zero.produce_values("t", 0, &["b"]).await, 1);
    broker.stop_node(0).await;
    let unclean = |told| [("t-0".to_owned(), told)];
    assert_eq!(
        client.elect(1, Some(&[("t", 0)])).await,
        unclean(only(ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE))
    );
    broker.start_node(1).await;
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader -1@1, replicas 0,1, isr , elr 0, last 0, offline 0"
    );
    assert_eq!(
        client.elect(0, Some(&[("t", 0)])).await,
        unclean(only(ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE))
    );
    assert_eq!(client.elect(1, None).await, unclean(fine()));
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader 1@2, replicas 0,1, isr 1, offline 0"
    );
    let mut one = broker.client_of(1).await;
    assert_eq!(values(&one.fetch_all("t", 0, 0).await), ["a", "b"]);
    assert_eq!(one.produce_values("t", 0, &["c"]).await, 2);
}

#[tokio::test]
async fn a_topic_that_allows_it_gets_its_leader_without_being_asked() {
    let broker = three().await;
    let mut client = broker.client_of(2).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    for stop in [1, 0] {
        broker.stop_node(stop).await;
    }
    broker.start_node(1).await;
    let leaderless = "leader -1@1, replicas 0,1, isr , elr 0, last 0, offline 0";
    assert_eq!(client.partition_line("t", 0).await, leaderless);
    let unclean = [("unclean.leader.election.enable", "true")];
    assert_eq!(client.alter_configs(2, "t", &unclean).await.error_code, 0);
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader 1@2, replicas 0,1, isr 1, offline 0"
    );
    broker.start_node(0).await;
    broker.stop_node(0).await;
    broker.stop_node(1).await;
    broker.start_node(0).await;
    assert_eq!(
        client.partition_line("t", 0).await,
        "leader 0@4, replicas 0,1, isr 0, offline 1"
    );
}

#[tokio::test]
async fn leadership_returns_by_itself_after_the_check_interval() {
    let broker = three().await;
    let mut client = broker.client_of(2).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    broker.stop_node(0).await;
    broker.advance(300_000).await;
    assert!(
        client
            .partition_line("t", 0)
            .await
            .starts_with("leader 1@1")
    );
    broker.start_node(0).await;
    broker.advance(299_999).await;
    assert!(
        client
            .partition_line("t", 0)
            .await
            .starts_with("leader 1@1")
    );
    broker.advance(1).await;
    assert!(
        client
            .partition_line("t", 0)
            .await
            .starts_with("leader 0@2")
    );
}

#[tokio::test]
async fn leadership_stays_where_the_return_is_off() {
    let settings = Settings::new().brokers(3);
    let settings = settings.set("auto.leader.rebalance.enable", "false");
    let broker = settings.start().await;
    let mut client = broker.client_of(2).await;
    client.create_topic_on("t", &[&[0, 1]]).await;
    broker.stop_node(0).await;
    broker.start_node(0).await;
    broker.advance(3_600_000).await;
    assert!(
        client
            .partition_line("t", 0)
            .await
            .starts_with("leader 1@1")
    );
}
