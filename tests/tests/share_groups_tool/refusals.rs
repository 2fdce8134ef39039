//! Command lines, files and brokers that are not what they should be.

use bytes::Bytes;
use ottla_protocol::messages::api_versions_response::ApiVersion;
use ottla_protocol::messages::find_coordinator_response::Coordinator;
use ottla_protocol::messages::{ApiVersionsResponse, BrokerId, FindCoordinatorResponse};
use ottla_protocol::{StrBytes, api_key, frame};
use ottla_tests::{Launch, soon};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::scene::{Scene, tool_at};

#[tokio::test]
async fn the_binary_runs_the_tool() {
    let scene = Scene::start().await;
    let address = scene.broker.address().to_string();
    let launch = Launch::bare().arg("share-groups").arg("--bootstrap-server");
    let exited = launch.arg(address).arg("--list").run_to_its_end().await;
    assert_eq!(exited.stdout, "alpha-with-a-long-group-name\nempty\nlive\n");
    assert!(
        exited.status.success() && exited.stderr.is_empty(),
        "{exited:?}"
    );
    let exited = Launch::bare()
        .arg("share-groups")
        .arg("--list")
        .run_to_its_end()
        .await;
    let says = "Missing required argument \"[bootstrap-server]\"\n`ottla share-groups --help` lists the flags\n";
    assert_eq!((exited.status.code(), &*exited.stderr), (Some(1), says));
}

#[tokio::test]
async fn settings_come_from_the_file_that_is_named() {
    let scene = Scene::start().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display().to_string();
    let line = format!("--list --command-config {path}");
    std::fs::write(
        file.path(),
        "client.id=me\nrequest.timeout.ms=5000\nmetadata.max.age.ms=1\n",
    )
    .unwrap();
    let printed = scene.tool(&line).await;
    assert_eq!(printed.status, 0);
    assert_eq!(
        printed.err,
        format!("{path}: metadata.max.age.ms has no meaning for this tool\n")
    );
    for (text, says) in [
        (
            "security.protocol=SSL",
            "security.protocol=SSL: this tool speaks PLAINTEXT only; use a PLAINTEXT listener, or Kafka's own tool",
        ),
        (
            "request.timeout.ms=soon",
            "request.timeout.ms=soon: a number of milliseconds is wanted, 0 or more",
        ),
    ] {
        std::fs::write(file.path(), text).unwrap();
        let (_, err) = scene.fails(&line).await;
        assert_eq!(err, format!("Error: --command-config {path}: {says}\n"));
    }
    let (_, err) = scene.fails("--list --command-config no-such-file").await;
    assert_eq!(
        err,
        "Error: --command-config no-such-file: there is no such file\n"
    );
}

#[tokio::test]
async fn addresses_that_lead_to_no_broker_are_named() {
    let scene = Scene::start().await;
    let http = scene.broker.admin().to_string();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = silent.local_addr().unwrap().to_string();
    for (address, says) in [
        (
            "127.0.0.1",
            "Error: --bootstrap-server 127.0.0.1: write HOST:PORT",
        ),
        (
            "127.0.0.1:1",
            "Error: no broker could be reached: 127.0.0.1:1: ",
        ),
        (&http, "Error: no broker could be reached: "),
        (&silent, "Error: no broker could be reached: "),
    ] {
        let printed = soon(address, tool_at(address, "--list --timeout 300")).await;
        assert!(printed.err.starts_with(says), "{address}: {printed:?}");
        assert_eq!((printed.status, &*printed.out), (1, ""), "{address}");
    }
}

/// Answers ApiVersions without the APIs of Ottla's own, and names itself as every coordinator.
async fn other_broker(mut stream: TcpStream, port: u16) {
    let mut prefix = [0; 4];
    while stream.read_exact(&mut prefix).await.is_ok() {
        let mut body = vec![0; u32::from_be_bytes(prefix) as usize];
        stream.read_exact(&mut body).await.unwrap();
        let header = frame::request_header(&mut Bytes::from(body)).unwrap();
        let (id, version) = (header.correlation_id, header.api_version);
        let answer = if header.api_key == api_key::API_VERSIONS {
            let api = |api_key: i16, max_version: i16| ApiVersion {
                api_key,
                max_version,
                ..Default::default()
            };
            let served = [
                api(api_key::FIND_COORDINATOR, 6),
                api(api_key::API_VERSIONS, 4),
            ];
            let response = ApiVersionsResponse {
                api_keys: served.to_vec(),
                ..Default::default()
            };
            frame::encode_response(id, &response, version, &[])
        } else {
            let coordinator = Coordinator::default()
                .with_node_id(BrokerId(7))
                .with_host(StrBytes::from_static_str("127.0.0.1"))
                .with_port(i32::from(port));
            let response = FindCoordinatorResponse::default().with_coordinators(vec![coordinator]);
            frame::encode_response(id, &response, version, &[])
        };
        stream.write_all_buf(&mut answer.unwrap()).await.unwrap();
    }
}

#[tokio::test]
async fn what_a_broker_lacks_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(other_broker(stream, address.port()));
        }
    });
    let lacks = |what: &str| format!("Error: the broker at {address} does not serve {what}\n");
    for (line, what) in [
        (
            "--pause --group g",
            "AlterShareGroupDelivery (API key 20000): Apache Kafka does not have pausing and resuming share groups (KIP-1249)",
        ),
        (
            "--resume --group g --reason x",
            "AlterShareGroupDelivery (API key 20000): Apache Kafka does not have pausing and resuming share groups (KIP-1249)",
        ),
        (
            "--describe --group g --circuit-breaker",
            "DescribeShareGroupDelivery (API key 20001): Apache Kafka does not have circuit breaker, delivery state and letter counts (KIP-1316, KIP-1249)",
        ),
        ("--describe --group g", "ShareGroupDescribe (API key 77)"),
        ("--list", "Metadata (API key 3)"),
    ] {
        let printed = tool_at(&address.to_string(), line).await;
        assert_eq!((printed.status, printed.err), (1, lacks(what)), "{line}");
    }
}
