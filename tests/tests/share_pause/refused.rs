//! What cannot be done, in clear words.

use ottla_protocol::messages::{DescribeShareGroupDeliveryRequest, GroupId};
use ottla_protocol::{ErrorCode, StrBytes};
use ottla_tests::{Ask, OK, Queue, Settings};

use super::{PAUSED, at, contains, pause, resume};

const FEATURE: &str = "share.pause.version";

#[tokio::test]
async fn a_group_that_does_not_exist_can_be_neither_paused_nor_resumed_nor_described() {
    let mut queue = Queue::start().await;
    let not_found = ErrorCode::GROUP_ID_NOT_FOUND.0;
    assert_eq!(queue.admin.pause("nobody", None).await.0, not_found);
    assert_eq!(queue.admin.resume("nobody", None).await.0, not_found);
    assert_eq!(
        queue.admin.try_delivery("nobody").await.error_code,
        not_found
    );
    let invalid = ErrorCode::INVALID_GROUP_ID.0;
    assert_eq!(queue.admin.pause("", None).await.0, invalid);
    assert_eq!(queue.admin.try_delivery("").await.error_code, invalid);
}

#[tokio::test]
async fn a_group_of_another_type_is_not_found() {
    let queue = Queue::start().await;
    let mut consumer = ottla_tests::Consumer::new(queue.broker.client().await, "c", "m");
    consumer.join(&[Queue::TOPIC]).await;
    let mut admin = queue.broker.client().await;
    let (code, text) = admin.pause("c", None).await;
    assert_eq!(code, ErrorCode::GROUP_ID_NOT_FOUND.0);
    assert!(contains(text.as_ref(), "not a share group"), "{text:?}");
    // Offsets alone make a classic group.
    admin.commit("simple", Queue::TOPIC, &[(0, 0)]).await;
    for group in ["c", "simple"] {
        assert_eq!(admin.resume(group, None).await.0, code);
        assert_eq!(admin.try_delivery(group).await.error_code, code);
    }
}

#[tokio::test]
async fn a_group_that_is_named_again_and_again_is_described_once() {
    let mut queue = Queue::start().await;
    let _a = queue.member("a").await;
    let names = [Queue::GROUP, "nobody", Queue::GROUP, "nobody"];
    let request = DescribeShareGroupDeliveryRequest {
        group_ids: names
            .map(|name| GroupId(StrBytes::from_static_str(name)))
            .to_vec(),
        ..Default::default()
    };
    let told = queue.admin.call(0, &request).await.groups;
    let told: Vec<_> = told.iter().map(|told| &**told.group_id).collect();
    assert_eq!(told, [Queue::GROUP, "nobody"]);
}

#[tokio::test]
async fn a_running_group_cannot_be_resumed() {
    let mut queue = Queue::start().await;
    let _a = queue.member("a").await;
    let (code, text) = queue.admin.resume(Queue::GROUP, None).await;
    assert_eq!(code, ErrorCode::INVALID_REQUEST.0);
    assert!(contains(text.as_ref(), "not paused"), "{text:?}");
    pause(&mut queue).await;
    resume(&mut queue).await;
    assert_eq!(queue.admin.resume(Queue::GROUP, None).await.0, code);
}

#[tokio::test]
async fn a_reason_has_at_most_256_characters() {
    let mut queue = Queue::start().await;
    let _a = queue.member("a").await;
    let long = "ü".repeat(257);
    for (code, text) in [
        queue.admin.pause(Queue::GROUP, Some(&long)).await,
        queue.admin.resume(Queue::GROUP, Some(&long)).await,
    ] {
        assert_eq!(code, ErrorCode::INVALID_REQUEST.0);
        assert!(contains(text.as_ref(), "257"), "{text:?}");
    }
    assert_eq!(
        queue.admin.delivery_line(Queue::GROUP).await,
        "RUNNING - -1"
    );
    let longest = "ü".repeat(256);
    assert_eq!(queue.admin.pause(Queue::GROUP, Some(&longest)).await, OK);
    let note = queue.admin.delivery(Queue::GROUP).await.note;
    assert_eq!(note.as_deref(), Some(&*longest));
}

#[tokio::test]
async fn only_the_coordinator_pauses_resumes_and_describes() {
    let broker = Settings::new().brokers(3).start().await;
    let mut admin = broker.client_of(0).await;
    admin.create_topic(Queue::TOPIC, 1).await;
    let right = *admin.find_coordinator(0, Queue::GROUP).await.node_id;
    let mut a = ottla_tests::Member::new(broker.client_of(right).await, Queue::GROUP, "a");
    a.join(&[Queue::TOPIC]).await;
    for node in (0..3).filter(|&node| node != right) {
        let mut client = broker.client_of(node).await;
        let code = ErrorCode::NOT_COORDINATOR.0;
        assert_eq!(client.pause(Queue::GROUP, None).await.0, code);
        assert_eq!(client.resume(Queue::GROUP, None).await.0, code);
        assert_eq!(client.try_delivery(Queue::GROUP).await.error_code, code);
    }
    assert_eq!(a.client.pause(Queue::GROUP, None).await, OK);
}

#[tokio::test]
async fn without_the_feature_nothing_is_paused_and_with_it_live_the_config_holds() {
    let settings = Settings::new().set("feature.share.pause.version", "0");
    let mut queue = Queue::of(1, settings, &[]).await;
    queue.fill().await;
    let mut a = queue.member("a").await;
    let (code, text) = queue.admin.pause(Queue::GROUP, None).await;
    assert_eq!(code, ErrorCode::UNSUPPORTED_VERSION.0);
    assert!(contains(text.as_ref(), FEATURE), "{text:?}");
    let group = queue.admin.describe_share_group(Queue::GROUP).await;
    assert_eq!(group.unknown_tagged_fields.len(), 0);
    assert_eq!(
        queue.admin.delivery_line(Queue::GROUP).await,
        "RUNNING - -1"
    );
    assert_eq!(queue.admin.set_feature(FEATURE, 1, false).await.0, 0);
    let at = at(&queue);
    assert_eq!(a.fetch(&Ask::of(at).exactly(1)).await.acquired(at), "0-0#1");
    pause(&mut queue).await;
    assert_eq!(a.fetch(&Ask::new()).await.acquired(at), "");
}

#[tokio::test]
async fn a_default_that_needs_the_feature_is_at_work_once_the_feature_is() {
    let default = format!("ottla.group.default.{PAUSED}");
    let settings = Settings::new()
        .set("feature.share.pause.version", "0")
        .set(&default, "true");
    let mut queue = Queue::of(1, settings, &[]).await;
    queue.fill().await;
    let mut a = queue.member("a").await;
    let at = at(&queue);
    assert_eq!(a.fetch(&Ask::of(at).exactly(1)).await.acquired(at), "0-0#1");
    assert_eq!(queue.admin.set_feature(FEATURE, 1, false).await.0, 0);
    assert_eq!(
        queue.admin.delivery_line(Queue::GROUP).await,
        "PAUSED ADMIN -1"
    );
    assert_eq!(a.fetch(&Ask::new()).await.acquired(at), "");
    let (code, text) = queue.admin.set_feature(FEATURE, 0, true).await;
    assert_eq!(code, ErrorCode::INVALID_UPDATE_VERSION.0, "{text:?}");
    queue.configure(&[(PAUSED, "false")]).await;
    assert_eq!(a.fetch(&Ask::new().exactly(1)).await.acquired(at), "1-1#1");
}

#[tokio::test]
async fn the_feature_is_not_lowered_while_it_is_in_use() {
    let mut queue = Queue::start().await;
    let _a = queue.member("a").await;
    let breaker = "share.group.dlq.circuit.breaker.enable";
    for (what, off) in [("paused", false), ("paused", true), ("breaker", true)] {
        match (what, off) {
            ("paused", false) => pause(&mut queue).await,
            ("paused", true) => queue.configure(&[(PAUSED, "true")]).await,
            _ => queue.configure(&[(breaker, "true")]).await,
        }
        let (code, text) = queue.admin.set_feature(FEATURE, 0, true).await;
        assert_eq!(code, ErrorCode::INVALID_UPDATE_VERSION.0);
        assert!(contains(text.as_ref(), "group g"), "{text:?}");
        assert!(contains(text.as_ref(), what), "{text:?}");
        if off {
            queue
                .configure(&[(PAUSED, "false"), (breaker, "false")])
                .await;
        } else {
            resume(&mut queue).await;
        }
    }
    assert_eq!(queue.admin.set_feature(FEATURE, 0, true).await.0, 0);
    let code = queue.admin.pause(Queue::GROUP, None).await.0;
    assert_eq!(code, ErrorCode::UNSUPPORTED_VERSION.0);
}
