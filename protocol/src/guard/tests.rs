#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as theirs;

use super::any::every_request;
use super::table::REQUESTS;
use super::*;
use crate::{Encodable, StrBytes, messages};

/// A reproducible stream of choices (splitmix64).
struct Choices(u64);

impl Choices {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % u64::from(bound)) as u32
    }
}

fn sample_of(key: i16, version: i16, tags: bool, seed: u64) -> Sample {
    let mut choices = Choices(seed);
    let variety = Variety {
        tags,
        elements: 3,
        string: 8,
    };
    sample(key, version, variety, &mut |n| choices.below(n)).unwrap()
}

fn encode<R: Request>(request: &R, version: i16) -> Bytes {
    let mut out = BytesMut::new();
    request.encode(&mut out, version).unwrap();
    assert_eq!(out.len(), request.compute_size(version).unwrap());
    out.freeze()
}

/// What the codec writes, the guard accepts to the last byte; and the codec agrees with the table on
/// every field of every version, or a body built by the table would not come back as it was.
fn round_trip<R: Request>() {
    let (min, max) = versions(R::KEY).unwrap();
    assert!(
        min <= R::VERSIONS.min && max >= R::VERSIONS.max,
        "versions of key {}",
        R::KEY
    );
    for version in R::VERSIONS.min..=R::VERSIONS.max {
        for seed in 0..60 {
            let case = format!("key {} version {version} seed {seed}", R::KEY);
            let tags = seed % 2 == 1;
            let body = Bytes::from(sample_of(R::KEY, version, tags, seed).body);
            let request: R =
                decode(body.clone(), version).unwrap_or_else(|e| panic!("{case}: {e}"));
            let encoded = encode(&request, version);
            let end = measure(R::KEY, version, &encoded).unwrap_or_else(|e| panic!("{case}: {e}"));
            assert_eq!(end, encoded.len(), "{case}");
            if !tags {
                assert_eq!(encoded, body, "{case}");
            }
            let again: R =
                decode(encoded.clone(), version).unwrap_or_else(|e| panic!("{case}: {e}"));
            assert_eq!(encode(&again, version), encoded, "{case}");
        }
    }
}

#[test]
fn the_guard_accepts_whatever_the_codec_encodes() {
    macro_rules! all {
        ($($request:ident)*) => { $(round_trip::<messages::$request>();)* };
    }
    every_request!(all);
}

/// Our own types and the codec's, where both have a version, read and write the same bytes.
#[test]
fn own_requests_agree_with_the_codec_on_common_versions() {
    fn same<O: Request + Default, T: Request + Default>() {
        for version in T::VERSIONS.min..=T::VERSIONS.max {
            assert_eq!(
                encode(&O::default(), version),
                encode(&T::default(), version)
            );
            for seed in 0..60 {
                let body = Bytes::from(sample_of(O::KEY, version, seed % 2 == 1, seed).body);
                let ours = O::decode(&mut body.clone(), version).unwrap();
                let theirs = T::decode(&mut body.clone(), version).unwrap();
                assert_eq!(
                    encode(&ours, version),
                    encode(&theirs, version),
                    "seed {seed}"
                );
            }
        }
    }
    same::<messages::ApiVersionsRequest, theirs::ApiVersionsRequest>();
    same::<messages::DeleteGroupsRequest, theirs::DeleteGroupsRequest>();
    same::<messages::DescribeLogDirsRequest, theirs::DescribeLogDirsRequest>();
    same::<messages::DescribeShareGroupOffsetsRequest, theirs::DescribeShareGroupOffsetsRequest>();
    same::<messages::ListOffsetsRequest, theirs::ListOffsetsRequest>();
    same::<messages::ShareAcknowledgeRequest, theirs::ShareAcknowledgeRequest>();
    same::<messages::ShareFetchRequest, theirs::ShareFetchRequest>();
}

/// Every (key, version, sample) of the table.
fn each_sample(seeds: u64, mut visit: impl FnMut(i16, i16, &Sample, u64)) {
    for shape in REQUESTS {
        for version in shape.min..=shape.max {
            for seed in 0..seeds {
                let sample = sample_of(shape.key, version, seed % 2 == 1, seed);
                visit(shape.key, version, &sample, seed);
            }
        }
    }
}

#[test]
fn the_table_lists_every_served_key_once_and_in_order() {
    let keys: Vec<i16> = REQUESTS.iter().map(|shape| shape.key).collect();
    let expected: Vec<i16> = (0..=api_key::MAX)
        .filter(|key| !(4..=7).contains(key))
        .chain(api_key::OWN)
        .collect();
    assert_eq!(keys, expected);
}

#[test]
fn every_shorter_body_is_refused() {
    each_sample(4, |key, version, sample, seed| {
        for end in 0..sample.body.len() {
            let result = check(key, version, &sample.body[..end]);
            assert!(
                result.is_err(),
                "key {key} version {version} seed {seed} cut at {end}"
            );
        }
    });
}

#[test]
fn bytes_behind_the_last_field_are_ignored() {
    each_sample(2, |key, version, sample, _| {
        let longer = [&sample.body[..], &[0, 0, 0]].concat();
        let end = measure(key, version, &longer).map_err(|e| e.to_string());
        assert_eq!(end, Ok(sample.body.len()));
    });
}

#[test]
fn hostile_lengths_are_refused_wherever_they_stand() {
    const VARINTS: &[&[u8]] = &[
        &[0xff, 0xff, 0xff, 0xff, 0x07],
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0xff, 0xff, 0xff, 0xff, 0xff],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        &[0x81, 0x89, 0x7a],
    ];
    each_sample(4, |key, version, sample, seed| {
        for length in &sample.lengths {
            let replacements: Vec<Vec<u8>> = if length.compact {
                VARINTS.iter().map(|v| v.to_vec()).collect()
            } else {
                let plain: &[i32] = if length.width == 2 {
                    &[0x7fff, -0x8000, -2]
                } else {
                    &[i32::MAX, i32::MIN, -2, 2_000_001]
                };
                plain
                    .iter()
                    .map(|n| n.to_be_bytes()[4 - length.width..].to_vec())
                    .collect()
            };
            for bytes in replacements {
                let (before, after) = sample.body.split_at(length.at);
                let hostile = [before, &bytes, &after[length.width..]].concat();
                let result = check(key, version, &hostile);
                assert!(
                    result.is_err(),
                    "key {key} version {version} seed {seed} {bytes:x?}"
                );
            }
        }
    });
}

#[test]
fn flipped_and_random_bytes_never_panic() {
    let mut choices = Choices(7);
    each_sample(8, |key, version, sample, _| {
        let mut body = sample.body.clone();
        if !body.is_empty() {
            let at = choices.below(body.len() as u32) as usize;
            body[at] ^= 1 << choices.below(8);
            let _ = decode_any(key, version, Bytes::from(body));
        }
        let length = choices.below(200);
        let noise: Vec<u8> = (0..length).map(|_| choices.below(256) as u8).collect();
        let _ = decode_any(key, version, Bytes::from(noise));
        // Small numbers reach deeper: they look like lengths.
        let noise: Vec<u8> = (0..length).map(|_| choices.below(4) as u8).collect();
        let _ = decode_any(key, version, Bytes::from(noise));
    });
}

fn problem(result: Result<(), DecodeError>) -> Malformed {
    match result {
        Err(DecodeError::Malformed { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn collections_end_at_a_million_elements() {
    let with = |count: usize| {
        let mut body = vec![0; 4 + 4 * count];
        body[..4].copy_from_slice(&(count as i32).to_be_bytes());
        body
    };
    let fields: &'static [Field] = &[shape::I32S];
    assert!(walk::walk(&with(1_000_000), fields, 0, false).is_ok());
    let refused = walk::walk(&with(1_000_001), fields, 0, false);
    assert_eq!(refused, Err((4, Malformed::Elements(1_000_001))));
}

#[test]
fn structs_end_at_ten_thousand_tags() {
    let with = |tags: u32| {
        let mut body = vec![0; 4];
        body.extend([tags as u8 | 0x80, (tags >> 7) as u8]);
        body.extend((0..tags).flat_map(|_| [100, 0]));
        body
    };
    assert_eq!(check(api_key::UNREGISTER_BROKER, 0, &with(10_000)), Ok(()));
    let refused = problem(check(api_key::UNREGISTER_BROKER, 0, &with(10_001)));
    assert_eq!(refused, Malformed::Tags(10_001));
}

#[test]
fn a_frame_of_the_tiniest_elements_exceeds_the_budget() {
    // DescribeGroups 5: 400,000 empty strings, one byte each, would become 32 bytes each.
    let count = 400_000;
    let mut body = vec![0x81, 0xb5, 0x18];
    body.resize(3 + count, 1);
    body.extend([0, 0]);
    let refused = problem(check(api_key::DESCRIBE_GROUPS, 5, &body));
    assert_eq!(refused, Malformed::Budget(memory_budget(body.len())));
}

#[test]
fn an_ordinary_large_request_stays_within_the_budget() {
    use crate::messages::{MetadataRequest, TopicName, metadata_request::MetadataRequestTopic};
    let topics = (0..100_000).map(|n| {
        let name = TopicName(StrBytes::from_string(format!("t{n}")));
        MetadataRequestTopic::default().with_name(Some(name))
    });
    let request = MetadataRequest::default().with_topics(Some(topics.collect()));
    for version in [1, 9, 13] {
        check(api_key::METADATA, version, &encode(&request, version)).unwrap();
    }
}

#[test]
fn a_known_tag_must_have_the_size_and_the_version_that_it_claims() {
    // Fetch 12 ends with its rack and its tags; tag 0 is the cluster id, tag 1 came with version 15.
    let sound = sample_of(api_key::FETCH, 12, false, 3).body;
    let variety = Variety {
        tags: false,
        elements: 0,
        string: 0,
    };
    let mut body = sample(api_key::FETCH, 12, variety, &mut |_| 0)
        .unwrap()
        .body;
    assert_eq!(body.pop(), Some(0), "no tags in the shortest sample");
    let with = |tags: &[u8]| check(api_key::FETCH, 12, &[&body[..], tags].concat());
    assert_eq!(check(api_key::FETCH, 12, &sound), Ok(()));
    assert_eq!(with(&[1, 0, 3, 3, b'a', b'b']), Ok(()));
    assert_eq!(
        problem(with(&[1, 0, 4, 3, b'a', b'b', 0])),
        Malformed::Tag(0)
    );
    assert_eq!(problem(with(&[1, 1, 0])), Malformed::Tag(1));
}

#[test]
fn strings_must_be_utf8_and_not_null_unless_they_may() {
    let null = [0xff, 0xff];
    assert_eq!(
        problem(check(api_key::SASL_HANDSHAKE, 1, &null)),
        Malformed::Null
    );
    assert_eq!(
        problem(check(api_key::SASL_HANDSHAKE, 1, &[0, 1, 0xff])),
        Malformed::Utf8
    );
    assert_eq!(
        check(api_key::SASL_HANDSHAKE, 1, &[0, 2, 0xc3, 0xa9]),
        Ok(())
    );
}

#[test]
fn versions_outside_of_the_type_are_refused_before_the_walk() {
    let refused = decode::<messages::ProduceRequest>(Bytes::new(), 2);
    assert_eq!(
        refused,
        Err(DecodeError::UnsupportedVersion {
            api: "Produce",
            version: 2
        })
    );
    assert!(check(9_999, 0, &[]).is_err());
}

#[test]
fn consumer_protocol_blobs_are_walked_like_requests() {
    let subscription = ConsumerProtocolSubscription::default()
        .with_topics(vec![StrBytes::from_static_str("orders")])
        .with_user_data(Some(Bytes::from_static(b"u")));
    for version in 0..=3 {
        let mut blob = BytesMut::from(&[0, version as u8][..]);
        subscription.encode(&mut blob, version).unwrap();
        assert_eq!(
            decode_subscription(blob.clone().freeze()).as_ref(),
            Ok(&subscription)
        );
        for end in 0..blob.len() {
            assert!(decode_subscription(blob.clone().freeze().slice(..end)).is_err());
        }
        blob[2] = 0x7f;
        assert!(decode_subscription(blob.freeze()).is_err());
    }
    // A version of the future: known fields are read, the rest is ignored.
    let mut blob = BytesMut::from(&[0, 9][..]);
    subscription.encode(&mut blob, 3).unwrap();
    blob.extend_from_slice(b"more");
    assert_eq!(decode_subscription(blob.freeze()), Ok(subscription));

    let assignment = ConsumerProtocolAssignment::default();
    let mut blob = BytesMut::from(&[0, 0][..]);
    assignment.encode(&mut blob, 0).unwrap();
    assert_eq!(decode_assignment(blob.freeze()), Ok(assignment));
    assert!(decode_assignment(Bytes::from_static(&[0xff, 0xff])).is_err());
    assert!(decode_assignment(Bytes::from_static(&[0])).is_err());
}
