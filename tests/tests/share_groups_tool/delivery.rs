//! `--pause`, `--resume` and `--describe --circuit-breaker`.

use serde_json::json;

use crate::scene::Scene;

#[tokio::test]
async fn a_group_is_paused_and_resumed_with_reasons() {
    let scene = Scene::start().await;
    let line = "--pause --group live --group empty --reason moving";
    assert_eq!(
        scene.out(line).await,
        "Delivery of share group 'empty' is paused.\nDelivery of share group 'live' is paused.\n"
    );
    let text = scene.out("--describe --group live --circuit-breaker").await;
    assert_eq!(
        text,
        "
Share group 'live': PAUSED (ADMIN) since 2026-01-01T00:00:00.000Z
  note:          moving
  breaker:       off
  letters to:    none
  letters:       0 written, 0 given up (0 in the window), 0 timed out, 0 written late
"
    );
    // The tables stay Kafka's; what is paused is said beside them.
    let printed = scene.tool("--describe --group live --members").await;
    let says = "Share group 'live' is PAUSED (ADMIN) since 2026-01-01T00:00:00.000Z: moving\n";
    assert_eq!((printed.status, &*printed.err), (0, says));
    let state = scene.json("--describe --group live --state").await;
    let delivery = json!({
        "state": "PAUSED", "reason": "ADMIN", "pausedSinceMs": ottla_tests::START_MS,
        "lastResumeReason": null, "note": "moving",
    });
    assert_eq!(state["groups"][0]["delivery"], delivery);
    let document = scene.json("--resume --group live --reason moved").await;
    let group = json!({ "group": "live", "state": "RUNNING", "reason": "moved" });
    assert_eq!(document, json!({ "groups": [group] }));
    let text = scene.out("--describe --group live --circuit-breaker").await;
    let head = "\nShare group 'live': RUNNING\n  last resume:   moved\n  breaker:       off\n";
    assert!(text.starts_with(head), "{text}");
}

#[tokio::test]
async fn what_cannot_be_paused_or_resumed_is_said_for_each_group() {
    let mut scene = Scene::start().await;
    let (out, err) = scene.fails("--pause --group nosuch --group live").await;
    assert_eq!(out, "Delivery of share group 'live' is paused.\n");
    assert_eq!(
        err,
        "Error: share group 'nosuch': GROUP_ID_NOT_FOUND: Group nosuch not found.\n"
    );
    let (_, err) = scene.fails("--resume --group empty").await;
    assert!(
        err.starts_with("Error: share group 'empty': INVALID_REQUEST: "),
        "{err}"
    );
    assert!(err.contains("not paused"), "{err}");
    let config = [("ottla.share.delivery.paused", "true")];
    scene.admin.configure_group("live", &config).await;
    let (_, err) = scene.fails("--resume --group live").await;
    assert!(err.contains("ottla.share.delivery.paused"), "{err}");
    let (_, err) = scene
        .fails("--describe --group nosuch --circuit-breaker")
        .await;
    assert_eq!(err, "Error: GROUP_ID_NOT_FOUND: Group nosuch not found.\n");
}

#[tokio::test]
async fn a_breaker_is_described_with_its_rule_and_its_buckets() {
    let mut scene = Scene::start().await;
    let breaker = |key: &str| format!("share.group.dlq.circuit.breaker.{key}");
    let (enable, threshold) = (breaker("enable"), breaker("threshold"));
    let configs = [
        (&*enable, "true"),
        (&threshold, "0.2"),
        ("errors.deadletterqueue.topic.name", "dlq.orders"),
    ];
    scene.admin.configure_group("live", &configs).await;
    let text = scene.out("--describe --group live --circuit-breaker").await;
    for line in [
        "  breaker:       on; rate at or above 0.2 of at least 100 messages\n",
        "  window:        60000 ms in 6 buckets\n",
        "  rate:          0.0000\n",
        "  letters to:    dlq.orders\n",
        "\nBUCKET                   DELIVERED  DLQ-WRITTEN  GIVEN-UP\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let document = scene
        .json("--describe --all-groups --circuit-breaker")
        .await;
    let groups = document["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 3);
    let live = &groups[2];
    assert_eq!(live["breaker"]["enabled"], true);
    assert_eq!(live["letters"]["topic"], "dlq.orders");
    assert_eq!(groups[0]["letters"]["topic"], json!(null));
}
