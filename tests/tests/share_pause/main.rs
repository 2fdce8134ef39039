//! Pausing and resuming share groups (KIP-1249, a draft).

mod durable;
mod paused;
mod refused;
mod ways;

use ottla_tests::{At, Queue};

/// The config that pauses a group.
const PAUSED: &str = "ottla.share.delivery.paused";

/// What every in-flight record is, without how long its lock has left.
fn records(queue: &Queue) -> String {
    let broker = &queue.broker.process.broker;
    let mut all = broker.shares.inspect(broker, Queue::GROUP);
    for partition in &mut all {
        let Some(records) = partition["in_flight"].as_array_mut() else {
            continue;
        };
        for record in records {
            record["lock_expires_in_ms"].take();
        }
    }
    format!("{all:?}")
}

/// Says yes once: for asserts on texts.
fn contains(text: Option<&String>, part: &str) -> bool {
    text.is_some_and(|text| text.contains(part))
}

/// Pauses the usual group.
async fn pause(queue: &mut Queue) {
    let told = queue.admin.pause(Queue::GROUP, Some("why")).await;
    assert_eq!(told, ottla_tests::OK);
}

/// Resumes the usual group.
async fn resume(queue: &mut Queue) {
    let told = queue.admin.resume(Queue::GROUP, Some("done")).await;
    assert_eq!(told, ottla_tests::OK);
}

/// Partition 0 of the usual topic.
fn at(queue: &Queue) -> At {
    queue.at
}
