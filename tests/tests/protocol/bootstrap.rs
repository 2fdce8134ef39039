//! The first requests of a client, and the addresses that it is told.

use std::net::{Ipv6Addr, SocketAddr};

use ottla_protocol::messages::{ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest};
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_tests::{Client, Embedded, Launch, Settings, http};

async fn told(client: &mut Client) -> (String, i32) {
    let metadata = client
        .call(12, &MetadataRequest::default().with_topics(Some(vec![])))
        .await;
    let broker = &metadata.brokers[0];
    (broker.host.to_string(), broker.port)
}

// C3
#[tokio::test]
async fn metadata_of_the_first_versions_is_answered_without_a_question_about_versions() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 2).await;
    for version in 0..=13 {
        let mut old = broker.client().await;
        let topics = (version > 0).then(Vec::new).or(Some(vec![]));
        let request = MetadataRequest::default().with_topics(topics);
        let response = old.call(version, &request).await;
        assert_eq!(response.brokers.len(), 1, "v{version}");
        // No topics named: all of them in version 0, none of them since.
        assert_eq!(
            response.topics.len(),
            usize::from(version == 0),
            "v{version}"
        );
        if version > 0 {
            let all = old
                .call(version, &MetadataRequest::default().with_topics(None))
                .await;
            assert_eq!(all.topics.len(), 1, "v{version}");
        }
    }
}

// C10
#[tokio::test]
async fn localhost_is_served_on_both_loopbacks_and_clients_are_told_the_one_they_used() {
    let broker = Settings::new()
        .set("listeners", "PLAINTEXT://localhost:0")
        .start()
        .await;
    let port = broker.address().port();
    let mut client = broker.client().await;
    assert_eq!(
        told(&mut client).await,
        ("127.0.0.1".to_owned(), i32::from(port))
    );
    // A machine without IPv6 has only the one.
    let six = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    if std::net::TcpListener::bind(six).is_ok() {
        let mut client = Client::connect(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await;
        assert_eq!(told(&mut client).await, ("::1".to_owned(), i32::from(port)));
    }
}

// C11
#[tokio::test]
async fn each_listener_has_an_advertised_address_of_its_own() {
    let broker = Settings::new()
        .set("listeners", "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0")
        .set(
            "advertised.listeners",
            "INSIDE://broker:9092,OUTSIDE://kafka.example.com:19092",
        )
        .set(
            "listener.security.protocol.map",
            "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        )
        .set("inter.broker.listener.name", "INSIDE")
        .start()
        .await;
    let node = broker.process.broker.nodes().next().unwrap().clone();
    let want = [("broker", 9092), ("kafka.example.com", 19092)];
    for (listener, (host, port)) in node.listeners.iter().zip(want) {
        let mut client = Client::connect(([127, 0, 0, 1], listener.port()).into()).await;
        assert_eq!(told(&mut client).await, (host.to_owned(), port));
        let request = FindCoordinatorRequest::default()
            .with_key_type(0)
            .with_coordinator_keys(vec![StrBytes::from_static_str("g")]);
        let found = client.call(6, &request).await.coordinators.remove(0);
        assert_eq!(
            (found.error_code, &*found.host, found.port),
            (0, host, port)
        );
    }
}

// C61
#[tokio::test]
async fn a_port_that_accepts_answers_and_one_that_is_not_ready_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let ready = dir.path().join("ready");
    let child = Launch::new()
        .arg("--ready-file")
        .arg(ready.display().to_string())
        .start()
        .await;
    let mut client = child.client().await;
    let response = client.call(3, &named(ApiVersionsRequest::default())).await;
    assert_eq!(response.error_code, 0);
    assert_eq!(http(child.admin(), "GET", "/api/ready").await.status, 200);
    // The file is written after the line that the harness waited for.
    let mut text = String::new();
    for _ in 0..1000 {
        text = std::fs::read_to_string(&ready).unwrap_or_default();
        if text.ends_with('\n') {
            break;
        }
        client.call(0, &ApiVersionsRequest::default()).await;
    }
    assert_eq!(text.trim(), child.address().to_string());
}

fn named(mut request: ApiVersionsRequest) -> ApiVersionsRequest {
    request.client_software_name = StrBytes::from_static_str("tests");
    request.client_software_version = StrBytes::from_static_str("1");
    request.node_id = -1;
    request
}

#[tokio::test]
async fn the_first_question_for_a_coordinator_is_answered_with_one() {
    let broker = Settings::new().brokers(3).start().await;
    let mut client = broker.client_of(1).await;
    let keys: Vec<StrBytes> = (0..20)
        .map(|n| StrBytes::from_string(format!("group-{n}")))
        .collect();
    let request = FindCoordinatorRequest::default()
        .with_key_type(0)
        .with_coordinator_keys(keys.clone());
    let found = client.call(6, &request).await.coordinators;
    assert_eq!(found.len(), 20);
    for (coordinator, key) in found.iter().zip(&keys) {
        assert_eq!(&coordinator.key, key);
        assert_eq!(
            ErrorCode(coordinator.error_code),
            ErrorCode::NONE,
            "{coordinator:?}"
        );
        let at = broker.address_of(coordinator.node_id.0);
        assert_eq!(coordinator.port, i32::from(at.port()));
    }
    // The versions before batches say the same.
    let request = FindCoordinatorRequest::default()
        .with_key_type(0)
        .with_key(keys[3].clone());
    for version in 1..=3 {
        let one = client.call(version, &request).await;
        assert_eq!(
            (one.error_code, one.node_id),
            (0, found[3].node_id),
            "v{version}"
        );
    }
}

#[tokio::test]
async fn software_names_are_letters_digits_dots_and_dashes() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    for (name, code) in [
        ("apache-kafka-java", ErrorCode::NONE),
        ("a", ErrorCode::NONE),
        ("", ErrorCode::INVALID_REQUEST),
        ("-a", ErrorCode::INVALID_REQUEST),
        ("a b", ErrorCode::INVALID_REQUEST),
    ] {
        let mut request = named(ApiVersionsRequest::default());
        request.client_software_name = StrBytes::from_static_str(name);
        let response = client.call(3, &request).await;
        assert_eq!(ErrorCode(response.error_code), code, "{name:?}");
    }
}

#[tokio::test]
async fn an_unknown_kind_of_coordinator_is_an_invalid_request() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    for (kind, key) in [(9i8, "g"), (2, "g"), (2, "g:not-an-id:0")] {
        let request = FindCoordinatorRequest::default()
            .with_key_type(kind)
            .with_coordinator_keys(vec![StrBytes::from_static_str(key)]);
        let found = client.call(6, &request).await.coordinators.remove(0);
        assert_eq!(
            ErrorCode(found.error_code),
            ErrorCode::INVALID_REQUEST,
            "{kind} {key}"
        );
        assert_eq!(found.node_id.0, -1);
    }
}
