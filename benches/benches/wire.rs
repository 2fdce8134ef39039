//! The wire: the guard and the decoder on a Produce request, and a Fetch response around 1 MiB of
//! records that are not copied.

#![allow(clippy::unwrap_used, missing_docs, reason = "benchmarks")]

use bytes::{Bytes, BytesMut};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ottla_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use ottla_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use ottla_protocol::messages::{FetchResponse, ProduceRequest};
use ottla_protocol::{Encodable, Uuid, frame, guard};

fn kernels(c: &mut Criterion) {
    let partition = |index| {
        PartitionProduceData::default()
            .with_index(index)
            .with_records(Some(Bytes::from(vec![7; 16 << 10])))
    };
    let topic = TopicProduceData::default()
        .with_topic_id(Uuid::from_u128(1))
        .with_partition_data((0..4).map(partition).collect());
    let request = ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic]);
    let mut body = BytesMut::new();
    request.encode(&mut body, 13).unwrap();
    let body = body.freeze();
    let mut group = c.benchmark_group("wire");
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function(
        "Produce v13, 4 partitions of 16 KiB: guard and decode",
        |b| {
            b.iter(|| guard::decode::<ProduceRequest>(body.clone(), 13).unwrap());
        },
    );
    let records = Bytes::from(vec![7; 1 << 20]);
    let data = PartitionData::default().with_records(Some(records.clone()));
    let topic = FetchableTopicResponse::default().with_partitions(vec![data]);
    let response = FetchResponse::default().with_responses(vec![topic]);
    group.throughput(Throughput::Bytes(records.len() as u64));
    group.bench_function("Fetch v18, 1 MiB of records: encode", |b| {
        b.iter(|| {
            frame::encode_response(1, &response, 18, std::slice::from_ref(&records)).unwrap()
        });
    });
    group.finish();
}

criterion_group!(benches, kernels);
criterion_main!(benches);
