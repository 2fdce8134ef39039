//! Makes the directory of a Kafka that died with dead letters on their way.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ottla_protocol::messages::CreateTopicsRequest;
use ottla_tests::{ACCEPT, Client, Launch, OK, REJECT, RELEASE, http, soon};

use crate::stage::{Stage, small};
use crate::{KAFKA, OURS, directory};

/// Two brokers of Kafka 4.4.0 and their controller, in one process.
struct Kafka {
    process: Child,
    at: SocketAddr,
    admin: SocketAddr,
}

impl Drop for Kafka {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn port() -> u16 {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

impl Kafka {
    async fn start(dir: &Path) -> Self {
        let ports = [port(), port(), port()];
        let config = dir.join("server.properties");
        let lines = [
            "ottla.brokers=2".to_owned(),
            format!("ottla.listeners.0=PLAINTEXT://127.0.0.1:{}", ports[0]),
            format!("ottla.listeners.1=PLAINTEXT://127.0.0.1:{}", ports[1]),
            format!("ottla.admin.listener=127.0.0.1:{}", ports[2]),
            "inter.broker.listener.name=PLAINTEXT".to_owned(),
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT".to_owned(),
            "metadata.version=33".to_owned(),
            format!("log.dirs={}", dir.join("data").display()),
            "feature.share.version=2".to_owned(),
            "offsets.topic.num.partitions=1".to_owned(),
            "offsets.topic.replication.factor=1".to_owned(),
            "share.coordinator.state.topic.num.partitions=1".to_owned(),
            "share.coordinator.state.topic.replication.factor=1".to_owned(),
            "share.coordinator.state.topic.min.isr=1".to_owned(),
        ];
        std::fs::write(&config, lines.join("\n")).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/reference-broker");
        let log = std::fs::File::create(dir.join("log")).unwrap();
        let process = Command::new(script)
            .arg("--config")
            .arg(config)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let kafka = Self {
            process,
            at: local(ports[0]),
            admin: local(ports[2]),
        };
        // Its admin port opens when all brokers are up.
        soon("a real Kafka", async {
            while tokio::net::TcpStream::connect(kafka.admin).await.is_err() {
                ottla::clock::wire_sleep(100).await;
            }
        })
        .await;
        kafka
    }

    async fn broker(&self, id: i32, what: &str) {
        let answer = http(self.admin, "POST", &format!("/api/brokers/{id}/{what}")).await;
        assert_eq!(answer.status, 204, "{answer:?}");
    }
}

/// Copies what a start needs; indexes are made anew.
fn keep(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            keep(&path, &target);
        } else if !["index", "timeindex", "txnindex", "lock", "ottla-boot"]
            .contains(&extension(&path))
        {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

fn extension(path: &Path) -> &str {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    name.rsplit('.').next().unwrap_or_default()
}

#[tokio::test]
#[ignore = "makes kafka-4.4.0 anew, with a real Kafka"]
async fn make_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let kafka = Kafka::start(dir.path()).await;
    // What is made now lies on the broker that stays.
    kafka.broker(1, "stop").await;
    let mut stage = Stage::open(kafka.at, "up", 2).await;
    let limit = [
        ("share.delivery.count.limit", "2"),
        ("share.record.lock.duration.ms", "60000"),
    ];
    stage.configure(&limit).await;
    stage.copying().await;
    stage.produce(0, &small(20)).await;
    stage.produce(1, &small(6)).await;
    let mut member = stage.member().await;
    kafka.broker(1, "start").await;
    let mut admin = Client::connect(kafka.at).await;
    let flag = [("errors.deadletterqueue.group.enable", "true")];
    let topic = Client::new_topic(&stage.dlq, -1, &flag);
    let topic = topic.with_replication_factor(-1).with_assignments(vec![
        ottla_protocol::messages::create_topics_request::CreatableReplicaAssignment::default()
            .with_partition_index(0)
            .with_broker_ids(vec![ottla_protocol::messages::BrokerId(1)]),
    ]);
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(10_000);
    let made = soon("the DLQ topic", async {
        loop {
            // The broker that came back has to be registered first.
            let answer = admin.call(7, &request).await;
            if answer.topics[0].error_code == 0 {
                break answer;
            }
            stage.look().await;
        }
    })
    .await;
    assert_eq!(made.topics[0].error_code, 0, "{made:?}");
    stage.known(&stage.dlq.clone(), 1).await;
    kafka.broker(1, "stop").await;

    let got = stage.take(&mut member, 0, 20).await;
    assert_eq!(member.ack(stage.at(0), got[0], got[4], ACCEPT).await, OK);
    assert_eq!(member.ack(stage.at(0), got[5], got[9], REJECT).await, OK);
    assert_eq!(member.ack(stage.at(0), got[10], got[11], RELEASE).await, OK);
    for _ in 0..2 {
        let got = stage.take(&mut member, 1, 6).await;
        assert_eq!(member.ack(stage.at(1), got[0], got[5], RELEASE).await, OK);
    }
    for _ in 0..20 {
        stage.look().await;
    }
    let (_, left) = stage
        .admin
        .start_and_lag(&stage.group, &stage.source, 1)
        .await;
    assert_eq!(left, 6, "the letters are not under way");
    drop(kafka);
    replace(&dir.path().join("data/0"), &directory(KAFKA));
}

fn replace(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    keep(from, to);
}

#[tokio::test]
#[ignore = "makes ottla-0.1.0 anew, with the binary that OTTLA_BIN names: one before dead letters"]
async fn make_our_older_directory() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let broker = Launch::new()
        .data_dir(&data)
        .set("offsets.topic.num.partitions", "1")
        .set("share.coordinator.state.topic.num.partitions", "1")
        .start()
        .await;
    let mut stage = Stage::open(broker.address(), "up", 1).await;
    stage.produce(0, &small(20)).await;
    let mut member = stage.member().await;
    let got = stage.take(&mut member, 0, 20).await;
    let at = stage.at(0);
    assert_eq!(member.ack(at, got[0], got[4], ACCEPT).await, OK);
    assert_eq!(member.ack(at, got[5], got[6], REJECT).await, OK);
    assert_eq!(member.ack(at, got[7], got[9], RELEASE).await, OK);
    broker.kill().await;
    replace(&data, &directory(OURS));
}
