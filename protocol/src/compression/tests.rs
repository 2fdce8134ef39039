#![allow(clippy::unwrap_used, reason = "tests")]
use super::*;
use proptest::prelude::*;

const CODECS: [Compression; 4] = [
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];

fn data() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..3000),
        proptest::collection::vec(0u8..3, 0..3000),
        (any::<u8>(), 0usize..200_000).prop_map(|(byte, n)| vec![byte; n]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_codec_gives_back_what_it_was_given(data in data(), level in -3i32..25) {
        for codec in Compression::ALL {
            let packed = compress(codec, Some(level), &data).unwrap();
            prop_assert_eq!(&decompress(codec, &packed, data.len()).unwrap(), &data, "{}", codec);
            if !data.is_empty() {
                let limit = data.len() - 1;
                prop_assert_eq!(
                    decompress(codec, &packed, limit),
                    Err(CompressionError::TooLarge { codec, limit })
                );
            }
        }
    }

    #[test]
    fn cut_data_is_refused_and_damaged_data_is_bounded(
        data in proptest::collection::vec(0u8..4, 1..2000),
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
    ) {
        for codec in CODECS {
            let packed = compress(codec, None, &data).unwrap();
            let cut = at.index(packed.len());
            let nothing = match codec {
                Compression::Zstd => Some(0),
                Compression::Snappy => Some(16),
                _ => None,
            };
            if nothing != Some(cut) {
                prop_assert!(decompress(codec, &packed[..cut], 1 << 20).is_err(), "{}", codec);
            }
            let mut damaged = packed;
            damaged[cut] ^= flip;
            if let Ok(out) = decompress(codec, &damaged, 1 << 20) {
                prop_assert!(out.len() <= 1 << 20);
            }
        }
    }

    #[test]
    fn noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
        for codec in CODECS {
            for head in [&b""[..], b"\x1f\x8b\x08", b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01", b"\x04\x22\x4d\x18\x60\x40\x82", b"\x28\xb5\x2f\xfd"] {
                let _ = decompress(codec, &[head, &noise].concat(), 1 << 16);
            }
        }
    }
}

#[test]
fn names_and_codes_match_kafkas() {
    for (code, codec) in Compression::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(codec.code()), code);
        assert_eq!(Compression::from_code(codec.code()), Some(codec));
        assert_eq!(Compression::from_name(codec.name()), Some(codec));
    }
    assert_eq!(Compression::from_code(5), None);
    assert_eq!(
        Compression::from_name("uncompressed"),
        Some(Compression::None)
    );
    assert_eq!(Compression::from_name("producer"), None);
}

#[test]
fn raw_snappy_and_joined_framings_are_read() {
    let raw = snap::raw::Encoder::new().compress_vec(b"records").unwrap();
    assert_eq!(
        decompress(Compression::Snappy, &raw, 100).unwrap(),
        b"records"
    );
    let framed = compress(Compression::Snappy, None, b"records").unwrap();
    let joined = [&framed[..], &framed].concat();
    assert_eq!(
        decompress(Compression::Snappy, &joined, 100).unwrap(),
        b"recordsrecords"
    );
    assert_eq!(
        decompress(Compression::Snappy, &framed[..16], 100).unwrap(),
        b""
    );
    assert!(decompress(Compression::Snappy, b"", 100).is_err());
}

#[test]
fn a_snappy_block_that_lies_about_its_length_reserves_nothing() {
    let lie = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, b'a'];
    let error = decompress(Compression::Snappy, &lie, usize::MAX).unwrap_err();
    assert!(
        error.to_string().contains("more bytes than it can hold"),
        "{error}"
    );
}

#[test]
fn joined_gzip_members_and_zstd_frames_are_read() {
    for codec in [Compression::Gzip, Compression::Zstd] {
        let one = compress(codec, None, b"rec").unwrap();
        let two = compress(codec, None, b"ords").unwrap();
        assert_eq!(
            decompress(codec, &[one, two].concat(), 100).unwrap(),
            b"records"
        );
    }
}

#[test]
fn lz4_that_kafkas_readers_would_not_take_is_refused() {
    let frame = compress(Compression::Lz4, None, b"records").unwrap();
    let refuse = |bytes: &[u8], why: &str| {
        let error = decompress(Compression::Lz4, bytes, 100)
            .unwrap_err()
            .to_string();
        assert!(error.contains(why), "{error}");
    };
    refuse(&[&frame[..], &frame].concat(), "bytes follow");
    refuse(&frame[..frame.len() - 4], "no end");
    let mut linked = frame.clone();
    linked[4] &= !0x20;
    refuse(&linked, "depend on each other");
    let mut dictionary = frame.clone();
    dictionary[4] |= 1;
    refuse(&dictionary, "dictionary");
    let mut header = frame.clone();
    header[6] ^= 1;
    assert!(decompress(Compression::Lz4, &header, 100).is_err());
    refuse(b"\x02\x21\x4c\x18\0\0\0\0", "does not begin with a frame");
}

#[test]
fn bytes_behind_the_compressed_data_are_refused() {
    for codec in CODECS {
        let mut packed = compress(codec, None, b"records").unwrap();
        packed.extend_from_slice(b"abc");
        assert!(decompress(codec, &packed, 100).is_err(), "{codec}");
    }
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let zeros = vec![0; 64 << 20];
    for codec in CODECS {
        let bomb = compress(codec, None, &zeros).unwrap();
        assert_eq!(
            decompress(codec, &bomb, 1 << 20),
            Err(CompressionError::TooLarge {
                codec,
                limit: 1 << 20
            })
        );
    }
}
