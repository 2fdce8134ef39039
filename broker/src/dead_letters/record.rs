//! Dead letters as records: six headers that say where the record was, and its key and value if wanted.
//! Letters of one batch are of consecutive offsets.

use bytes::Bytes;
use ottla_coordinator::share::types::OffsetRange;
use ottla_coordinator::types::Ts;
use ottla_protocol::batch::{self, BatchBuilder, BatchError};

use super::copy::Copied;

/// Above this a batch takes no more letters, whatever the topic allows: memory.
const BATCH_BYTES: usize = 1 << 20;

/// What the headers of all letters of a unit say.
#[derive(Debug, Clone)]
pub(super) struct Stamp {
    topic: String,
    partition: String,
    group: String,
    delivery_count: String,
    message: &'static str,
}

/// The headers of one letter, in Kafka's order.
type Headers<'a> = [(&'a [u8], Option<&'a [u8]>); 6];

impl Stamp {
    /// Letters of records that `group` has given up after `delivery_count` deliveries.
    pub(super) fn new(
        topic: &str,
        partition: i32,
        group: &str,
        delivery_count: i16,
        message: &'static str,
    ) -> Self {
        Self {
            topic: topic.to_owned(),
            partition: partition.to_string(),
            group: group.to_owned(),
            delivery_count: delivery_count.to_string(),
            message,
        }
    }

    fn headers<'a>(&'a self, offset: &'a str) -> Headers<'a> {
        [
            ("__dlq.errors.topic", self.topic.as_str()),
            ("__dlq.errors.partition", &self.partition),
            ("__dlq.errors.offset", offset),
            ("__dlq.errors.group", &self.group),
            ("__dlq.errors.delivery.count", &self.delivery_count),
            ("__dlq.errors.message", self.message),
        ]
        .map(|(key, value)| (key.as_bytes(), Some(value.as_bytes())))
    }

    /// The size of the batch of nothing but the letter of `offset`, without its copy. No letter of a
    /// later offset makes a smaller one.
    pub(super) fn least_size(&self, offset: i64, now: Ts) -> usize {
        let text = offset.to_string();
        BatchBuilder::default().size_with(now, None, None, self.headers(&text))
    }
}

/// One record batch of letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Letters {
    /// The batch, with offsets from 0.
    pub(super) records: Bytes,
    /// The source's offsets.
    pub(super) range: OffsetRange,
}

/// Packs letters into batches that the dead letter topic takes.
pub(super) struct Packer<'a> {
    stamp: &'a Stamp,
    now: Ts,
    limit: usize,
    builder: BatchBuilder,
    range: OffsetRange,
}

impl<'a> Packer<'a> {
    /// Letters written at `now`, in batches of at most `limit` bytes.
    pub(super) fn new(stamp: &'a Stamp, now: Ts, limit: usize) -> Self {
        Self {
            stamp,
            now,
            limit,
            builder: BatchBuilder::default(),
            range: OffsetRange::new(0, -1),
        }
    }

    /// Adds the letter of the next offset, without its copy if it is too large with it. Returns the
    /// batch that was full before.
    pub(super) fn push(
        &mut self,
        offset: i64,
        copied: Copied<'_>,
    ) -> Result<Option<Letters>, BatchError> {
        let (stamp, text) = (self.stamp, offset.to_string());
        let headers = stamp.headers(&text);
        let size_in = |builder: &BatchBuilder, copied: Copied<'_>| {
            builder.size_with(self.now, copied.key, copied.value, headers)
        };
        let alone = size_in(&BatchBuilder::default(), copied);
        let copied = if alone > self.limit {
            Copied::default()
        } else {
            copied
        };
        let full = size_in(&self.builder, copied) > self.limit.min(BATCH_BYTES);
        let before = if full { self.take()? } else { None };
        if self.builder.is_empty() {
            self.range = OffsetRange::new(offset, offset);
        }
        self.range.last = offset;
        self.builder
            .push_with_headers(self.now, copied.key, copied.value, headers);
        Ok(before)
    }

    /// The batch so far, unless it is empty.
    pub(super) fn take(&mut self) -> Result<Option<Letters>, BatchError> {
        let builder = std::mem::take(&mut self.builder);
        if builder.is_empty() {
            return Ok(None);
        }
        let records = builder.build()?;
        let range = self.range;
        Ok(Some(Letters { records, range }))
    }
}

/// What to write in the place of letters that the topic refused as too large: their halves, or the one
/// letter without its copy. Nothing where it has none.
pub(super) fn smaller(letters: &Letters) -> Result<Vec<Letters>, BatchError> {
    let set = batch::records(&letters.records)?;
    let records = set.iter().collect::<Result<Vec<_>, _>>()?;
    if let [record] = &*records
        && record.key.is_none()
        && record.value.is_none()
    {
        return Ok(vec![]);
    }
    let half = records.len().div_ceil(2);
    let keep_copies = records.len() > 1;
    let mut first = letters.range.first;
    let mut halves = vec![];
    for part in records.chunks(half) {
        let mut builder = BatchBuilder::default();
        for record in part {
            let key = record.key.filter(|_| keep_copies);
            let value = record.value.filter(|_| keep_copies);
            builder.push_with_headers(record.timestamp, key, value, &record.headers);
        }
        let last = first + part.len() as i64 - 1;
        halves.push(Letters {
            records: builder.build()?,
            range: OffsetRange::new(first, last),
        });
        first = last + 1;
    }
    Ok(halves)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn stamp() -> Stamp {
        Stamp::new("t", 3, "g", 2, "because")
    }

    fn pack(limit: usize, values: &[usize]) -> Vec<Letters> {
        let stamp = stamp();
        let mut packer = Packer::new(&stamp, 5, limit);
        let mut all = vec![];
        for (offset, &size) in (10..).zip(values) {
            let value = vec![b'v'; size];
            let copied = Copied {
                key: None,
                value: Some(&value),
            };
            all.extend(packer.push(offset, copied).unwrap());
        }
        all.extend(packer.take().unwrap());
        all
    }

    /// `10-11: 400 400, 12-12: -`, the sizes of values.
    fn told(all: &[Letters]) -> String {
        let one = |letters: &Letters| {
            let set = batch::records(&letters.records).unwrap();
            let sizes: Vec<String> = set
                .iter()
                .map(|record| {
                    let value = record.unwrap().value;
                    value.map_or("-".to_owned(), |value| value.len().to_string())
                })
                .collect();
            let OffsetRange { first, last } = letters.range;
            format!("{first}-{last}: {}", sizes.join(" "))
        };
        all.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_letter_says_where_its_record_was_in_kafkas_order() {
        let stamp = stamp();
        let headers = stamp.headers("17");
        let text: Vec<String> = headers
            .iter()
            .map(|(key, value)| {
                let value = String::from_utf8_lossy(value.unwrap());
                format!("{}={value}", String::from_utf8_lossy(key))
            })
            .collect();
        assert_eq!(
            text,
            [
                "__dlq.errors.topic=t",
                "__dlq.errors.partition=3",
                "__dlq.errors.offset=17",
                "__dlq.errors.group=g",
                "__dlq.errors.delivery.count=2",
                "__dlq.errors.message=because",
            ]
        );
    }

    #[test]
    fn a_batch_has_no_producer_no_codec_and_the_time_of_the_write() {
        let all = pack(1 << 20, &[1, 2]);
        let set = batch::records(&all[0].records).unwrap();
        let header = set.header();
        assert_eq!((header.attributes, header.magic), (0, 2));
        assert_eq!((header.producer_id, header.base_sequence), (-1, -1));
        assert_eq!((header.base_timestamp, header.max_timestamp), (5, 5));
    }

    #[test]
    fn letters_are_split_where_the_topic_takes_no_more() {
        let told_of = |limit, values: &[usize]| told(&pack(limit, values));
        assert_eq!(
            told_of(1500, &[400; 6]),
            "10-11: 400 400, 12-13: 400 400, 14-15: 400 400"
        );
        assert_eq!(
            told_of(1_048_588, &[700_000; 3]),
            "10-10: 700000, 11-11: 700000, 12-12: 700000"
        );
    }

    #[test]
    fn a_record_that_is_too_large_costs_its_own_copy_only() {
        assert_eq!(told(&pack(1000, &[100, 2000, 100])), "10-12: 100 - 100");
    }

    #[test]
    fn no_batch_exceeds_the_limit() {
        for limit in [300, 500, 1000, 1024, 4000] {
            let all = pack(limit, &[10, 500, 3, 900, 0, 77, 78, 79, 400, 120, 121]);
            let sizes = all.iter().map(|letters| letters.records.len());
            assert!(sizes.max().unwrap() <= limit, "{limit}: {}", told(&all));
        }
    }

    #[test]
    fn what_is_refused_is_halved_until_only_the_headers_are_left() {
        let all = pack(1 << 20, &[1, 2, 3]);
        let halves = smaller(&all[0]).unwrap();
        assert_eq!(told(&halves), "10-11: 1 2, 12-12: 3");
        let bare = smaller(&halves[1]).unwrap();
        assert_eq!(told(&bare), "12-12: -");
        assert_eq!(smaller(&bare[0]).unwrap(), []);
        let quarters = smaller(&halves[0]).unwrap();
        assert_eq!(told(&quarters), "10-10: 1, 11-11: 2");
    }
}
