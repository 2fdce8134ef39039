//! The admin port: readiness, metrics, the clock, logical brokers, and a look inside.
//!
//! Plain HTTP/1.1 on a loopback address (`--admin-listen`). Bodies are JSON, errors too.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::broker::Broker;
use crate::process::Process;
use crate::records;
use crate::start_error::StartError;

type Admin = State<Arc<Process>>;

/// The routes.
pub fn router(process: Arc<Process>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/metrics", get(metrics))
        .route("/api/ready", get(ready))
        .route("/api/clock", get(clock))
        .route("/api/clock/advance", post(advance))
        .route("/api/brokers", get(brokers))
        .route("/api/brokers/{id}/stop", post(stop))
        .route("/api/brokers/{id}/start", post(start))
        .route("/api/topics", get(topics))
        .route("/api/share-groups/{group}", get(share_group))
        .fallback(nothing)
        .method_not_allowed_fallback(wrong_method)
        .with_state(process)
}

fn problem(status: StatusCode, message: impl Into<String>) -> Response {
    (status, Json(json!({ "error": message.into() }))).into_response()
}

async fn nothing() -> Response {
    problem(
        StatusCode::NOT_FOUND,
        "there is nothing here; the list is on /",
    )
}

async fn wrong_method() -> Response {
    problem(
        StatusCode::METHOD_NOT_ALLOWED,
        "this path answers another method",
    )
}

async fn page(State(process): Admin) -> Html<String> {
    Html(render_page(&process.broker))
}

async fn metrics(State(process): Admin) -> Response {
    let broker = &process.broker;
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    (
        [(header::CONTENT_TYPE, content_type)],
        broker.metrics.render(broker),
    )
        .into_response()
}

async fn ready(State(process): Admin) -> Response {
    if process.is_ready() {
        Json(json!({ "ready": true, "bootstrap": process.bootstrap() })).into_response()
    } else {
        problem(StatusCode::SERVICE_UNAVAILABLE, "starting")
    }
}

async fn clock(State(process): Admin) -> Json<Value> {
    let clock = &process.broker.clock;
    Json(json!({ "now_ms": clock.now(), "session_now_ms": clock.session_now() }))
}

async fn advance(
    State(process): Admin,
    Query(query): Query<std::collections::HashMap<String, String>>,
) -> Response {
    let Some(ms) = query
        .get("ms")
        .and_then(|ms| ms.parse::<i64>().ok())
        .filter(|&ms| ms >= 0)
    else {
        return problem(
            StatusCode::BAD_REQUEST,
            "say how far: ?ms=N, a number of milliseconds from 0",
        );
    };
    let hold = match query.get("hold").map(String::as_str) {
        None => false,
        Some("sessions") => true,
        Some(_) => return problem(StatusCode::BAD_REQUEST, "hold can only be: sessions"),
    };
    // Walking many deadlines is work for a blocking thread.
    let walk = Arc::clone(&process);
    let moved = tokio::task::spawn_blocking(move || {
        walk.broker.deadlines.advance(&walk.broker.clock, ms, hold)
    });
    match moved.await {
        Ok(now) => Json(json!({ "now_ms": now })).into_response(),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

async fn brokers(State(process): Admin) -> Json<Value> {
    let states = process.broker.cluster.brokers();
    let list: Vec<Value> = process
        .broker
        .nodes()
        .map(|node| {
            let alive = states.get(&node.id).is_some_and(|state| state.alive);
            let listeners: Vec<_> = node
                .listeners
                .iter()
                .map(|l| json!({ "name": l.name, "port": l.port() }))
                .collect();
            json!({
                "id": node.id, "alive": alive, "rack": node.rack, "listeners": listeners,
                "connections": node.connection_count(), "share_sessions": node.sessions().len(),
                "fetch_sessions": node.fetch_sessions().len(),
            })
        })
        .collect();
    Json(json!({ "brokers": list }))
}

async fn stop(State(process): Admin, Path(id): Path<String>) -> Response {
    match broker_id(&id) {
        Ok(id) => answer(process.stop_node(id).await),
        Err(refusal) => refusal,
    }
}

async fn start(State(process): Admin, Path(id): Path<String>) -> Response {
    match broker_id(&id) {
        Ok(id) => answer(process.start_node(id).await),
        Err(refusal) => refusal,
    }
}

#[expect(clippy::result_large_err, reason = "the response is the error")]
fn broker_id(text: &str) -> Result<i32, Response> {
    let number = text.parse();
    number.map_err(|_| {
        problem(
            StatusCode::BAD_REQUEST,
            format!("{text} is not a broker's id"),
        )
    })
}

fn answer(result: Result<(), StartError>) -> Response {
    match result {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => problem(StatusCode::CONFLICT, error.to_string()),
    }
}

async fn topics(State(process): Admin) -> Json<Value> {
    let image = process.broker.cluster.image();
    let list: Vec<Value> = image
        .topics
        .values()
        .map(|topic| {
            let partitions: Vec<Value> = topic
                .partitions()
                .iter()
                .map(|p| {
                    let leadership = p.leadership();
                    json!({
                        "partition": p.index, "leader": leadership.leader, "isr": leadership.isr,
                        "leader_epoch": leadership.leader_epoch, "log_start_offset": p.log.start_offset(),
                        "high_watermark": p.log.end_offset(), "bytes": p.log.size_bytes(),
                    })
                })
                .collect();
            json!({ "name": &*topic.name, "id": records::topic_id(topic.id).to_string(), "partitions": partitions })
        })
        .collect();
    Json(json!({ "topics": list }))
}

async fn share_group(State(process): Admin, Path(group): Path<String>) -> Response {
    let partitions = process.broker.shares.inspect(&process.broker, &group);
    Json(json!({ "group": group, "share_partitions": partitions })).into_response()
}

fn render_page(broker: &Broker) -> String {
    use std::fmt::Write;
    let mut rows = String::new();
    for topic in broker.cluster.image().topics.values() {
        let partitions = topic.partitions();
        let records: i64 = partitions
            .iter()
            .map(|p| p.log.end_offset() - p.log.start_offset())
            .sum();
        // Topic names hold no character that HTML would read as markup.
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td>{}</td><td>{records}</td></tr>",
            topic.name,
            partitions.len()
        );
    }
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Ottla</title>\
         <style>body{{font:16px system-ui;margin:2em auto;max-width:50em}}td,th{{text-align:left;padding:.2em 1em}}</style>\
         <h1>Ottla</h1><p>Cluster {}.</p>\
         <table><tr><th>Topic</th><th>Partitions</th><th>Offsets</th></tr>{rows}</table>\
         <p><a href=\"/metrics\">/metrics</a> · <a href=\"/api/topics\">/api/topics</a> · \
         <a href=\"/api/brokers\">/api/brokers</a> · <a href=\"/api/clock\">/api/clock</a> · /api/share-groups/NAME</p></html>",
        broker.cluster_id()
    )
}
