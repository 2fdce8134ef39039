//! The scenarios. Whatever a scenario notes has to be the same everywhere.

use std::net::SocketAddr;

use ottla_protocol::ErrorCode;
use ottla_protocol::StrBytes;
use ottla_protocol::compression::Compression;
use ottla_protocol::messages::UpdateFeaturesRequest;
use ottla_protocol::messages::update_features_request::FeatureUpdateKey;
use ottla_tests::{ACCEPT, GAP, OK, REJECT, RELEASE};

use crate::stage::{Stage, record, records_of, small};

/// What was seen.
pub(crate) type Seen = Vec<String>;

/// Two batches of the source, rejected by one acknowledgement: one batch of letters.
pub(crate) async fn reject(at: SocketAddr) -> Seen {
    let mut stage = Stage::open(at, "reject", 1).await;
    stage.dlq_topic(1, &[]).await;
    stage.produce(0, &small(10)).await;
    stage.produce(0, &small(5)).await;
    let mut member = stage.member().await;
    stage.reject_all(&mut member, 0, 15).await;
    stage.settled(0).await;
    stage.batches("fifteen at once, without a copy", 1).await;
    stage.seen
}

/// Keys, values, nulls and the source's own headers, copied or not.
pub(crate) async fn copies(at: SocketAddr) -> Seen {
    let mut stage = Stage::open(at, "copies", 1).await;
    stage.dlq_topic(1, &[]).await;
    stage.copying().await;
    let odd = [
        record("key", "value"),
        record("", "no key").keyless(),
        record("no value", "").tombstone(),
        record("", "").keyless().tombstone(),
        record("", ""),
        record("with headers", "v")
            .header("a", Some("1"))
            .header("b", None),
        record("schlüssel", "wert ✓"),
    ];
    stage.produce(0, &odd).await;
    let mut member = stage.member().await;
    stage.reject_all(&mut member, 0, odd.len()).await;
    stage.settled(0).await;
    stage.batches("copied", 1).await;
    stage
        .configure(&[("errors.deadletterqueue.copy.record.enable", "false")])
        .await;
    stage.produce(0, &odd).await;
    stage.reject_all(&mut member, 0, odd.len()).await;
    stage.settled(0).await;
    stage.letters("and not copied", 1).await;
    stage.seen
}

/// The delivery limit: reached by releases, by the end of the lock, and by the end of the connection.
pub(crate) async fn delivery_limit(at: SocketAddr) -> Seen {
    let mut stage = Stage::open(at, "delivery-limit", 3).await;
    stage.dlq_topic(3, &[]).await;
    stage.copying().await;
    stage
        .configure(&[
            ("share.delivery.count.limit", "2"),
            ("share.record.lock.duration.ms", "1000"),
        ])
        .await;
    for partition in 0..3 {
        stage.produce(partition, &small(3)).await;
    }
    let mut member = stage.member().await;
    for _ in 0..2 {
        let got = stage.take(&mut member, 0, 3).await;
        assert_eq!(member.ack(stage.at(0), got[0], got[2], RELEASE).await, OK);
    }
    member.close_session().await;
    let mut second = stage.member().await;
    for _ in 0..2 {
        stage.take(&mut second, 1, 3).await;
        // The locks run out while nobody asks.
    }
    for _ in 0..2 {
        let mut third = stage.member().await;
        stage.take(&mut third, 2, 3).await;
    }
    for partition in 0..3 {
        stage.settled(partition).await;
    }
    stage.letters("released, run out, gone", 3).await;
    stage.seen
}

/// Compressed sources are copied as what they were compressed from.
pub(crate) async fn codecs(at: SocketAddr) -> Seen {
    let mut stage = Stage::open(at, "codecs", 1).await;
    stage.dlq_topic(1, &[]).await;
    stage.copying().await;
    let mut member = stage.member().await;
    for codec in [
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ] {
        stage.produce_as(0, &records_of(3, 500), codec).await;
        stage.reject_all(&mut member, 0, 3).await;
        stage.settled(0).await;
    }
    stage.batches("from gzip, snappy, lz4, zstd", 1).await;
    stage.seen
}

/// The DLQ topic's own compression and its own time.
pub(crate) async fn stored(at: SocketAddr) -> Seen {
    let mut stage = Stage::open(at, "stored", 1).await;
    stage.dlq_topic(1, &[("compression.type", "gzip")]).await;
    stage.copying().await;
    stage.produce(0, &records_of(3, 500)).await;
    let mut member = stage.member().await;
    stage.reject_all(&mut member, 0, 3).await;
    stage.settled(0).await;
    stage
        .configure_dlq(&[
            ("compression.type", "producer"),
            ("message.timestamp.type", "LogAppendTime"),
        ])
        .await;
    stage.produce(0, &records_of(3, 500)).await;
    stage.reject_all(&mut member, 0, 3).await;
    stage.settled(0).await;
    stage
        .batches("with gzip, then with the time of the append", 1)
        .await;
    stage.seen
}

/// Five partitions into three, whatever the keys; then into more.
pub(crate) async fn partitions(at: SocketAddr) -> Seen {
    let mut stage = Stage::open(at, "partitions", 5).await;
    stage.dlq_topic(3, &[]).await;
    stage.copying().await;
    let mut member = stage.member().await;
    for partition in 0..5 {
        stage.produce(partition, &small(2)).await;
        stage.reject_all(&mut member, partition, 2).await;
        stage.settled(partition).await;
    }
    stage.letters("five into three", 3).await;
    let dlq = stage.dlq.clone();
    stage.admin.grow_topic(&dlq, 7).await;
    stage.known(&dlq, 7).await;
    stage.look().await;
    for partition in 0..5 {
        stage.produce(partition, &small(1)).await;
        stage.reject_all(&mut member, partition, 1).await;
        stage.settled(partition).await;
    }
    stage.letters("five into seven", 7).await;
    stage.seen
}

/// One acknowledgement of every kind at once.
pub(crate) async fn mixed(at: SocketAddr) -> Seen {
    let mut stage = Stage::open(at, "mixed", 1).await;
    stage.dlq_topic(1, &[]).await;
    stage.copying().await;
    stage.produce(0, &small(12)).await;
    let mut member = stage.member().await;
    let got = stage.take(&mut member, 0, 12).await;
    let kinds = [
        ACCEPT, REJECT, REJECT, GAP, REJECT, ACCEPT, RELEASE, REJECT, RELEASE, ACCEPT, REJECT,
        REJECT,
    ];
    let at = stage.at(0);
    assert_eq!(member.acks(at, got[0], got[11], &kinds).await, OK);
    let again = stage.take(&mut member, 0, 2).await;
    assert_eq!(again, [6, 8]);
    assert_eq!(member.ack(at, 6, 6, REJECT).await, OK);
    assert_eq!(member.ack(at, 8, 8, ACCEPT).await, OK);
    stage.settled(0).await;
    stage
        .letters("rejects among others, then one at its second delivery", 1)
        .await;
    stage.seen
}

/// The DLQ named, cleared and named again, and another one named.
pub(crate) async fn switched(at: SocketAddr) -> Seen {
    let mut stage = Stage::open(at, "switched", 1).await;
    stage.dlq_topic(1, &[]).await;
    let dlq = stage.dlq.clone();
    let mut member = stage.member().await;
    for name in ["", &dlq, "", &dlq] {
        stage
            .configure(&[("errors.deadletterqueue.topic.name", name)])
            .await;
        stage.produce(0, &small(2)).await;
        stage.reject_all(&mut member, 0, 2).await;
        stage.settled(0).await;
    }
    stage.letters("off, on, off, on", 1).await;
    // What counts is the name at the time of the write, not that of the acquisition.
    stage.produce(0, &small(2)).await;
    stage.dlq = format!("{dlq}.other");
    stage.dlq_topic(1, &[]).await;
    let got = stage.take(&mut member, 0, 2).await;
    let other = stage.dlq.clone();
    stage
        .configure(&[("errors.deadletterqueue.topic.name", &other)])
        .await;
    assert_eq!(member.ack(stage.at(0), got[0], got[1], REJECT).await, OK);
    stage.settled(0).await;
    stage
        .letters("the other one, named after the acquisition", 1)
        .await;
    stage.seen
}

/// Letters that do not fit: without the copy, and not at all; the limit raised meanwhile.
pub(crate) async fn sizes(at: SocketAddr) -> Seen {
    let mut stage = Stage::open(at, "sizes", 1).await;
    stage.dlq_topic(1, &[("max.message.bytes", "1000")]).await;
    stage.copying().await;
    let mut member = stage.member().await;
    for (limit, count, size) in [
        ("1000", 1, 2000),
        ("100", 1, 10),
        ("5000", 1, 2000),
        ("1500", 6, 400),
    ] {
        stage.configure_dlq(&[("max.message.bytes", limit)]).await;
        stage.produce(0, &records_of(count, size)).await;
        stage.reject_all(&mut member, 0, count).await;
        stage.settled(0).await;
    }
    stage
        .batches(
            "2000 B at 1000, 10 B at 100, 2000 B at 5000, six of 400 B at 1500",
            1,
        )
        .await;
    stage.seen
}

/// Three records of 700 kB, where a batch may have 1 MiB.
pub(crate) async fn large(at: SocketAddr) -> Seen {
    let mut stage = Stage::open(at, "large", 1).await;
    stage.dlq_topic(1, &[]).await;
    stage.copying().await;
    let mut member = stage.member().await;
    for one in records_of(3, 700_000) {
        stage.produce(0, &[one]).await;
    }
    stage.reject_all(&mut member, 0, 3).await;
    stage.settled(0).await;
    stage.batches("three of 700 kB", 1).await;
    stage.seen
}

/// A topic that does not take letters, and one that does from now on.
pub(crate) async fn flag(at: SocketAddr) -> Seen {
    let mut stage = Stage::open(at, "flag", 1).await;
    stage.topic_with(1, &[]).await;
    let mut member = stage.member().await;
    for enable in ["false", "true", "false"] {
        stage
            .configure_dlq(&[("errors.deadletterqueue.group.enable", enable)])
            .await;
        stage.produce(0, &small(2)).await;
        stage.reject_all(&mut member, 0, 2).await;
        stage.settled(0).await;
    }
    stage.letters("off, on, off", 1).await;
    stage.seen
}

/// A compacted DLQ topic takes no letters without a key; more replicas asked in sync than there are replicas.
pub(crate) async fn refused(at: SocketAddr) -> Seen {
    let mut stage = Stage::open(at, "refused", 1).await;
    stage
        .dlq_topic(
            1,
            &[("cleanup.policy", "compact"), ("min.insync.replicas", "2")],
        )
        .await;
    let mut member = stage.member().await;
    for policy in ["compact", "delete"] {
        stage.configure_dlq(&[("cleanup.policy", policy)]).await;
        stage.produce(0, &small(2)).await;
        stage.reject_all(&mut member, 0, 2).await;
        stage.settled(0).await;
    }
    stage.letters("compact, delete", 1).await;
    stage.seen
}

/// Topics that are made for letters, and those that are not. Changes configurations of the cluster.
pub(crate) async fn auto_creation(at: SocketAddr) -> Seen {
    const AUTO: &str = "errors.deadletterqueue.auto.create.topics.enable";
    const PREFIX: &str = "errors.deadletterqueue.topic.name.prefix";
    let mut stage = Stage::open(at, "auto", 3).await;
    let mut member = stage.member().await;
    let steps = [
        ("false", "dlq.", "dlq.auto.missing", 0),
        ("true", "dlq.", "other.auto", 0),
        ("true", "dlq.", "dlq.auto.made", 1),
        ("true", "parked.", "dlq.auto.late", 0),
        ("true", "parked.", "parked.auto", 1),
        ("true", "", "anything", 1),
        ("true", "dlq.", "dlq.not/legal", 0),
    ];
    for (auto, prefix, name, made) in steps {
        stage.set(4, "", &[(AUTO, auto), (PREFIX, prefix)]).await;
        stage
            .configure(&[("errors.deadletterqueue.topic.name", name)])
            .await;
        stage.dlq = name.to_owned();
        for partition in 0..3 {
            stage.produce(partition, &small(1)).await;
            stage.reject_all(&mut member, partition, 1).await;
            stage.settled(partition).await;
        }
        let there = stage
            .admin
            .topic_names()
            .await
            .iter()
            .any(|topic| topic == name);
        stage
            .seen
            .push(format!("{auto} {prefix:?} {name:?}: made {there}"));
        if made == 1 && there {
            stage.letters("made for its letters", 1).await;
            let configs = stage.own_configs(name).await;
            stage.seen.push(configs);
        }
    }
    stage.set(4, "", &[(AUTO, "false"), (PREFIX, "dlq.")]).await;
    stage.seen
}

/// share.version 1 knows no letters. Changes a feature of the cluster.
pub(crate) async fn feature(at: SocketAddr) -> Seen {
    const SAFE_DOWNGRADE: i8 = 2;
    const UPGRADE: i8 = 1;
    let mut stage = Stage::open(at, "feature", 1).await;
    stage.dlq_topic(1, &[]).await;
    let mut member = stage.member().await;
    for (level, how) in [(1, SAFE_DOWNGRADE), (2, UPGRADE)] {
        let key = FeatureUpdateKey::default()
            .with_feature(StrBytes::from_static_str("share.version"))
            .with_max_version_level(level)
            .with_upgrade_type(how);
        let request = UpdateFeaturesRequest::default()
            .with_feature_updates(vec![key])
            .with_timeout_ms(10_000);
        let answer = stage.admin.call(1, &request).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
        for _ in 0..4 {
            stage.look().await;
        }
        stage.produce(0, &small(2)).await;
        stage.reject_all(&mut member, 0, 2).await;
        stage.settled(0).await;
        stage.letters(&format!("at level {level}"), 1).await;
    }
    stage.seen
}
