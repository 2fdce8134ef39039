#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use uuid::{Uuid, uuid};

use super::*;

/// Numbers that samples are made of; zeros when they run out.
pub(super) struct Choices(std::vec::IntoIter<u64>);

impl Choices {
    fn next(&mut self) -> u64 {
        self.0.next().unwrap_or(0)
    }
}

/// Any value of a type of the schemas.
pub(super) trait Sample {
    fn sample(from: &mut Choices) -> Self;
}

macro_rules! sample_numbers {
    ($($number:ty)*) => {$(
        impl Sample for $number {
            fn sample(from: &mut Choices) -> Self {
                from.next() as Self
            }
        }
    )*};
}

sample_numbers! { i8 i16 u16 i32 i64 f64 }

impl Sample for bool {
    fn sample(from: &mut Choices) -> Self {
        from.next() % 2 == 1
    }
}

impl Sample for Uuid {
    fn sample(from: &mut Choices) -> Self {
        Self::from_u64_pair(from.next(), from.next())
    }
}

impl Sample for String {
    fn sample(from: &mut Choices) -> Self {
        "zü".repeat(from.next() as usize % 100)
    }
}

impl Sample for Bytes {
    fn sample(from: &mut Choices) -> Self {
        let n = from.next();
        vec![n as u8; n as usize % 200].into()
    }
}

impl Sample for Tags {
    fn sample(from: &mut Choices) -> Self {
        let mut tags = Self::default();
        for _ in 0..from.next() % 3 {
            tags.set(9000 + from.next() as u32 % 1000, Bytes::sample(from));
        }
        tags
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(from: &mut Choices) -> Self {
        (0..from.next() % 4).map(|_| T::sample(from)).collect()
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(from: &mut Choices) -> Self {
        (!from.next().is_multiple_of(4)).then(|| T::sample(from))
    }
}

fn choices() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(any::<u64>(), 0..400)
}

/// Reads `bytes` cut off in many places, made longer, and with one byte changed: an error or a value, no panic.
fn batter(bytes: &[u8], place: usize, flip: u8, decode: impl Fn(&[u8]) -> bool) {
    for cut in (0..bytes.len()).step_by(1 + bytes.len() / 50) {
        assert!(
            !decode(&bytes[..cut]),
            "{cut} of {} bytes were taken",
            bytes.len()
        );
    }
    let mut longer = bytes.to_vec();
    longer.push(0);
    assert!(!decode(&longer));
    let mut damaged = bytes.to_vec();
    let place = place % damaged.len();
    damaged[place] ^= flip;
    let _ = decode(&damaged);
}

macro_rules! keyed_properties {
    ($($test:ident: $record:ty,)*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(40))]
            $(
                #[test]
                fn $test(choices in choices(), place in any::<usize>(), flip in 1u8..) {
                    for record in <$record>::samples(&mut Choices(choices.into_iter())) {
                        let (key, value) = record.encode();
                        let read = <$record>::decode(&key, value.as_deref()).unwrap();
                        prop_assert_eq!(read.encode(), (key.clone(), value.clone()));
                        prop_assert_eq!(read.is_tombstone(), value.is_none());
                        // What the written version has no room for is gone after one round.
                        let again = <$record>::decode(&key, value.as_deref()).unwrap();
                        prop_assert_eq!(&read, &again);
                        for old in record.in_every_version() {
                            let read = <$record>::decode(&key, Some(&old)).unwrap();
                            let version = i16::from_be_bytes([old[0], old[1]]);
                            prop_assert_eq!(&read.in_every_version()[version as usize], &old);
                            batter(&old, place, flip, |bytes| <$record>::decode(&key, Some(bytes)).is_ok());
                        }
                        batter(&key, place, flip, |bytes| <$record>::decode(bytes, None).is_ok());
                    }
                }
            )*
        }
    };
}

keyed_properties! {
    consumer_offsets_records_survive_a_round_trip: ConsumerOffsetsRecord,
    share_state_records_survive_a_round_trip: ShareGroupStateRecord,
    transaction_records_survive_a_round_trip: TransactionStateRecord,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn metadata_records_survive_a_round_trip(
        choices in choices(),
        place in any::<usize>(),
        flip in 1u8..,
    ) {
        let decode = ClusterMetadataRecord::decode;
        for record in ClusterMetadataRecord::samples(&mut Choices(choices.into_iter())) {
            prop_assert_eq!(&decode(&record.encode()).unwrap(), &record);
            for (version, old) in record.in_every_version().iter().enumerate() {
                let read = decode(old).unwrap();
                prop_assert_eq!(&read.in_every_version()[version], old);
                batter(old, place, flip, |bytes| decode(bytes).is_ok());
            }
        }
    }

    #[test]
    fn share_state_of_the_written_version_loses_nothing(choices in choices()) {
        for record in ShareGroupStateRecord::samples(&mut Choices(choices.into_iter())) {
            let (key, value) = record.encode();
            prop_assert_eq!(ShareGroupStateRecord::decode(&key, value.as_deref()), Ok(record));
        }
    }

    #[test]
    fn noise_is_never_a_panic(noise in proptest::collection::vec(any::<u8>(), 0..100), kind in 0u8..20) {
        let key = [&[0, kind][..], &noise].concat();
        let good_key = [0, kind, 0, 1, b'g', 0, 1, b'm', 0, 0, 0, 0];
        for value in [&[0, 0][..], &[0, 3], &[0, 4]] {
            let value = [value, &noise].concat();
            let _ = ConsumerOffsetsRecord::decode(&good_key[..5], Some(&value));
            let _ = ConsumerOffsetsRecord::decode(&good_key[..8], Some(&value));
            let _ = ConsumerOffsetsRecord::decode(&good_key, Some(&value));
            let _ = ShareGroupStateRecord::decode(&key, Some(&value));
            let _ = TransactionStateRecord::decode(&good_key[..5], Some(&value));
        }
        let _ = ConsumerOffsetsRecord::decode(&key, None);
        let _ = ClusterMetadataRecord::decode(&[&[1, kind, 0][..], &noise].concat());
        let _ = ClusterMetadataRecord::decode(&noise);
    }
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
        .collect()
}

const TOPIC: Uuid = uuid!("70e441da-775f-42e8-b35b-585b75cd04eb");

/// Keys and values from the logs of an Apache Kafka 4.4.0.
const KAFKAS_CONSUMER_OFFSETS: &[(&str, &str)] = &[
    // A share group: first heartbeat, initialisation, leaving.
    (
        "000a000273670016523451746779456f5163537866516d586d77516a3951",
        "00000017636f6e736f6c652d73686172652d636f6e73756d65720b2f3132372e302e302e310207676f6c64656e00",
    ),
    ("000b00027367", "000000000002b681f8417597af3f00"),
    (
        "000d000273670016523451746779456f5163537866516d586d77516a3951",
        "00000100",
    ),
    ("000c00027367", "000000000002010008000001a22dcc01e8"),
    ("000c00027367", "00000000000400"),
    (
        "000e000273670016523451746779456f5163537866516d586d77516a3951",
        "00000000000200000000000100",
    ),
    (
        "000e000273670016523451746779456f5163537866516d586d77516a3951",
        "00000000000300000002000270e441da775f42e8b35b585b75cd04eb0300000000000000010000",
    ),
    (
        "000f00027367",
        "0000010270e441da775f42e8b35b585b75cd04eb07676f6c64656e030000000000000001000100",
    ),
    (
        "000a000273670016523451746779456f5163537866516d586d77516a3951",
        "",
    ),
    // A classic group.
    (
        "000200026367",
        "0003000000000000ffffffff000001a22dcc213300000000",
    ),
    (
        "000200026367",
        "00030008636f6e73756d657200000001000572616e67650035636f6e736f6c652d636f6e73756d65722d61636163613030322d343337662d343161382d613330372d643735336131666530363461000001a22dcc2d0f000000010035636f6e736f6c652d636f6e73756d65722d61636163613030322d343337662d343161382d613330372d643735336131666530363461ffff0010636f6e736f6c652d636f6e73756d6572000a2f3132372e302e302e31000493e00000afc80000001c0003000000010006676f6c64656effffffff00000000ffffffffffff0000001e0003000000010006676f6c64656e000000020000000000000001ffffffff",
    ),
    (
        "0001000263670006676f6c64656e00000001",
        "00040000000000000002ffffffff01000001a22dcc2ea101001070e441da775f42e8b35b585b75cd04eb",
    ),
    // A consumer group.
    (
        "00050003726367001634487168676d6b575149694744436c7a6a4932796467",
        "0000000011636f6e736f6c652d636f6e73756d65720b2f3132372e302e302e310207676f6c64656e01000493e00001000100",
    ),
    ("00030003726367", "000000000002010008b681f8417597af3f"),
    ("00030003726367", "00000000000300"),
    (
        "00070003726367001634487168676d6b575149694744436c7a6a4932796467",
        "00000270e441da775f42e8b35b585b75cd04eb0300000000000000010000",
    ),
    ("00060003726367", "000000000002010008000001a22dcc531b"),
    (
        "00080003726367001634487168676d6b575149694744436c7a6a4932796467",
        "00000000000200000000000270e441da775f42e8b35b585b75cd04eb0300000000000000010100090300000002000000020100",
    ),
];

const KAFKAS_SHARE_STATE: &[(&str, &str)] = &[
    (
        "00000002736770e441da775f42e8b35b585b75cd04eb00000001",
        "0000000000000000000200000000ffffffffffffffff000001a22dcc0a7c000001a22dcc0a7c0100",
    ),
    (
        "00010002736770e441da775f42e8b35b585b75cd04eb00000001",
        "00000000000000000000000000000000000002000000000000000000000000000000020200010001000400000003",
    ),
    (
        "00010002736770e441da775f42e8b35b585b75cd04eb00000001",
        "00000000000000000000000000000000000302000000000000000300000000000000030000010001000400000000",
    ),
];

const KAFKAS_TRANSACTIONS: &[(&str, &str)] = &[
    (
        "00000003747831",
        "0001000000000000000100000000ea600000000001a22dccd6cfffffffffffffffff0100080000000000000001",
    ),
    (
        "00000003747831",
        "0001000000000000000100000000ea60010207676f6c64656e020000000000000001a22dccd7c5000001a22dccd7c5020008000000000000000102020002",
    ),
    (
        "00000003747831",
        "0001000000000000000100010000ea600401000001a22dccd83f000001a22dccd7c5020008000000000000000102020002",
    ),
];

const KAFKAS_METADATA: &[&str] = &[
    "01170001001212426f6f747374726170207265636f726473",
    "010c00116d657461646174612e76657273696f6e002100",
    "0104000401146d696e2e696e73796e632e7265706c69636173023100",
    "01180000",
    "011b00000000014a5c9e68774841779c7f6dbc1d85bdc400020b434f4e54524f4c4c45520a3132372e302e302e316a39000000080e67726f75702e76657273696f6e00000001000e6b726166742e76657273696f6e0000000100116d657461646174612e76657273696f6e00070021000e73686172652e76657273696f6e00000002001073747265616d732e76657273696f6e0000000100147472616e73616374696f6e2e76657273696f6e000000020021656c696769626c652e6c65616465722e7265706c696361732e76657273696f6e000000010000",
    "01140000",
    "0100040000000100af69fc1ca9914577891f5a81d2fb2ef3000000000000000e020a504c41494e544558540a3132372e302e302e316a38000000080e67726f75702e76657273696f6e00000001001073747265616d732e76657273696f6e0000000100147472616e73616374696f6e2e76657273696f6e000000020021656c696769626c652e6c65616465722e7265706c696361732e76657273696f6e0000000100116d657461646174612e76657273696f6e00070021000e73686172652e76657273696f6e00000002000e6b726166742e76657273696f6e00000001000001000100110250d0a781894f4deabc6027ac7615c233",
    "01110300000001000000000000000e01030101",
    "0102000276bc7ba14e073a4117a9475252c5c1852e00",
    "01030200000000bc7ba14e073a4117a9475252c5c1852e0200000001020000000101010000000100000000000000000250d0a781894f4deabc6027ac7615c23300",
    "010400200373671873686172652e6175746f2e6f66667365742e7265736574096561726c6965737400",
    "010f0000000001000000000000000e00000000000003e800",
    "011c00145f5f73686172655f67726f75705f737461746500",
    "01090099bba2270ef44c0aabf6442b41c4111200",
];

/// What Kafka wrote is read, and written again byte for byte.
macro_rules! assert_kafkas {
    ($record:ty, $golden:expr) => {
        for (key, value) in $golden {
            let (key, value) = (hex(key), (!value.is_empty()).then(|| hex(value)));
            let record = <$record>::decode(&key, value.as_deref()).unwrap();
            let (our_key, our_value) = record.encode();
            assert_eq!(our_key, key);
            assert_eq!(our_value.as_deref(), value.as_deref(), "{record:?}");
        }
    };
}

#[test]
fn kafkas_own_records_are_written_again_byte_for_byte() {
    assert_kafkas!(ConsumerOffsetsRecord, KAFKAS_CONSUMER_OFFSETS);
    assert_kafkas!(ShareGroupStateRecord, KAFKAS_SHARE_STATE);
    assert_kafkas!(TransactionStateRecord, KAFKAS_TRANSACTIONS);
    for text in KAFKAS_METADATA {
        let record = ClusterMetadataRecord::decode(&hex(text)).unwrap();
        assert_eq!(record.encode(), hex(text), "{record:?}");
    }
}

#[test]
fn kafkas_share_records_mean_what_happened() {
    let (key, value) = KAFKAS_SHARE_STATE[1];
    let read = ShareGroupStateRecord::decode(&hex(key), Some(&hex(value))).unwrap();
    let key = SharePartitionKey {
        group_id: "sg".into(),
        topic_id: TOPIC,
        partition: 1,
    };
    let update = ShareUpdateValue {
        start_offset: 0,
        delivery_complete_count: 3,
        state_batches: vec![StateBatch {
            last_offset: 2,
            delivery_state: 2,
            delivery_count: 1,
            ..StateBatch::default()
        }],
        ..ShareUpdateValue::default()
    };
    assert_eq!(read, ShareGroupStateRecord::ShareUpdate(key, Some(update)));

    let (key, value) = KAFKAS_CONSUMER_OFFSETS[7];
    let read = ConsumerOffsetsRecord::decode(&hex(key), Some(&hex(value))).unwrap();
    let initialized = NamedTopicPartitions {
        topic_id: TOPIC,
        topic_name: "golden".into(),
        partitions: vec![0, 1],
        ..NamedTopicPartitions::default()
    };
    let ConsumerOffsetsRecord::ShareGroupStatePartitionMetadata(key, Some(value)) = read else {
        panic!("{read:?}")
    };
    assert_eq!(key.group_id, "sg");
    assert_eq!(value.initialized_topics, [initialized]);
    assert!(value.initializing_topics.is_empty());
}

#[test]
fn older_versions_of_metadata_records_are_read() {
    let change = ClusterMetadataRecord::decode(&hex("01110000000001000000000000000e010001ff"));
    let expected = BrokerRegistrationChangeRecord {
        broker_id: 1,
        broker_epoch: 14,
        fenced: -1,
        ..BrokerRegistrationChangeRecord::default()
    };
    assert_eq!(change, Ok(expected.into()));
}

#[test]
fn tags_that_the_schema_does_not_name_are_kept() {
    let mut value = ShareSnapshotValue {
        delivery_complete_count: 7,
        ..ShareSnapshotValue::default()
    };
    value.tags.set(9001, Bytes::from_static(b"ours"));
    value.tags.set(9000, Bytes::from_static(b"too"));
    let key = SharePartitionKey {
        group_id: "g".into(),
        topic_id: TOPIC,
        partition: 0,
    };
    let record = ShareGroupStateRecord::ShareSnapshot(key, Some(value));
    let (key, encoded) = record.encode();
    let read = ShareGroupStateRecord::decode(&key, encoded.as_deref()).unwrap();
    assert_eq!(read, record);
    let ShareGroupStateRecord::ShareSnapshot(_, Some(mut value)) = read else {
        panic!()
    };
    assert_eq!(value.tags.get(9001).unwrap(), "ours");
    assert_eq!(
        value.tags.iter().map(|(tag, _)| tag).collect::<Vec<_>>(),
        [9000, 9001]
    );
    value.tags.remove(9000);
    assert!(value.tags.get(9000).is_none() && !value.tags.is_empty());
}

#[test]
fn what_is_unknown_is_named() {
    let decode = ConsumerOffsetsRecord::decode;
    assert_eq!(
        decode(&[0, 17, 0, 0], None),
        Err(InternalError::UnknownType(17))
    );
    let error = decode(&hex("000b00027367"), Some(&[0, 1, 0, 0])).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("version 1 of ShareGroupMetadata"),
        "{error}"
    );
    assert_eq!(
        ClusterMetadataRecord::decode(&[2, 2, 0]),
        Err(InternalError::FrameVersion(2))
    );
    assert_eq!(
        ClusterMetadataRecord::decode(&[1, 6, 0]),
        Err(InternalError::UnknownType(6))
    );
    assert!(ClusterMetadataRecord::decode(&[1, 2, 1]).is_err());
}

#[test]
fn tags_must_ascend_and_have_their_contents_size() {
    let key = hex(KAFKAS_SHARE_STATE[1].0);
    let update = |tags: &str| {
        let value = hex(&format!("{}01{tags}", "00".repeat(18)));
        ShareGroupStateRecord::decode(&key, Some(&value))
    };
    assert!(update("00").is_ok());
    assert!(update("01000400000003").is_ok());
    assert_eq!(update("0100050000000300"), Err(InternalError::TagSize(0)));
    assert!(update("010003000000").is_err());
    assert_eq!(update("0201000100"), Err(InternalError::TagOrder(1)));
    assert!(update("ffffffff0f").is_err());
    assert!(update("0101ffffffff0f").is_err());
}

#[test]
fn declared_counts_reserve_nothing() {
    // 2^31 partitions, and as many batches.
    let key = hex("000d00027367000161");
    assert!(ConsumerOffsetsRecord::decode(&key, Some(&hex("0000ffffffff0f00"))).is_err());
    let key = hex(KAFKAS_SHARE_STATE[1].0);
    let value = hex(&format!("{}ffffffff0f", "00".repeat(18)));
    assert!(ShareGroupStateRecord::decode(&key, Some(&value)).is_err());
}
