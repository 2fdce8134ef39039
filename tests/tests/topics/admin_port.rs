//! The admin port, as a test or a script uses it.

use ottla_tests::{Embedded, Settings, http};

#[tokio::test]
async fn the_clock_is_read_and_moved() {
    let broker = Settings::new().at(1_000_000).start().await;
    let admin = broker.admin();
    let moved = http(admin, "POST", "/api/clock/advance?ms=250").await;
    assert_eq!(
        (moved.status, moved.json()["now_ms"].as_i64()),
        (200, Some(1_000_250))
    );
    let held = http(admin, "POST", "/api/clock/advance?ms=50&hold=sessions").await;
    assert_eq!(held.status, 200);
    let clock = http(admin, "GET", "/api/clock").await.json();
    assert_eq!(clock["now_ms"].as_i64(), Some(1_000_300));
    assert_eq!(clock["session_now_ms"].as_i64(), Some(1_000_250));
    for wrong in ["", "?ms=", "?ms=-1", "?ms=soon", "?ms=1&hold=everything"] {
        let answer = http(admin, "POST", &format!("/api/clock/advance{wrong}")).await;
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
        assert!(
            answer.json()["error"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
    }
    assert_eq!(broker.now(), 1_000_300);
}

#[tokio::test]
async fn brokers_are_stopped_and_started() {
    let broker = Settings::new().brokers(2).start().await;
    let admin = broker.admin();
    assert_eq!(http(admin, "POST", "/api/brokers/1/stop").await.status, 204);
    let list = http(admin, "GET", "/api/brokers").await.json();
    assert_eq!(list["brokers"][1]["alive"].as_bool(), Some(false));
    assert_eq!(http(admin, "POST", "/api/brokers/1/stop").await.status, 409);
    assert_eq!(http(admin, "POST", "/api/brokers/9/stop").await.status, 409);
    assert_eq!(
        http(admin, "POST", "/api/brokers/1/start").await.status,
        204
    );
    assert_eq!(
        http(admin, "POST", "/api/brokers/1/start").await.status,
        409
    );
    broker.client_of(1).await.topic_names().await;
}

#[tokio::test]
async fn topics_and_metrics_are_shown() {
    let broker = Embedded::start().await;
    let mut client = broker.client().await;
    client.create_topic("t", 1).await;
    client.produce_values("t", 0, &["a", "b"]).await;
    let topics = http(broker.admin(), "GET", "/api/topics").await.json();
    assert_eq!(topics["topics"][0]["name"].as_str(), Some("t"));
    assert_eq!(
        topics["topics"][0]["partitions"][0]["high_watermark"].as_i64(),
        Some(2)
    );
    let metrics = http(broker.admin(), "GET", "/metrics").await;
    assert_eq!(metrics.status, 200);
    assert!(
        metrics.body.trim_end().ends_with("# EOF"),
        "{}",
        metrics.body
    );
    let page = http(broker.admin(), "GET", "/").await;
    assert!(page.body.contains("<td>t</td>"));
    assert_eq!(http(broker.admin(), "GET", "/nothing").await.status, 404);
}
