//! Random histories with compaction at random points, against the last value of each key.

use std::collections::BTreeMap;

use ottla_protocol::batch::{BatchOptions, records};
use ottla_protocol::compression::Compression;
use ottla_storage::{Bound, CleanerOptions, Log};
use proptest::prelude::*;

use super::{Row, batches, bed, by, compacted, end_txn, keyed, put_as, rows};
use crate::bed::{Bed, Kind, NOW, options, try_append_as};

#[derive(Debug, Clone)]
enum Step {
    /// Keys, `None` for a deletion each; and the codec.
    Put(Vec<(u8, bool)>, u8),
    /// A producer's batch, outside or inside of a transaction.
    Produce(u8, Vec<(u8, bool)>),
    End(u8, bool),
    /// The keys that fit the map, and the time that passes.
    Clean(u64, i64),
    Trim(u8),
    Restart(u8),
}

fn keys() -> impl Strategy<Value = Vec<(u8, bool)>> {
    prop::collection::vec((0u8..12, prop::bool::weighted(0.8)), 1..4)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (keys(), 0u8..5).prop_map(|(keys, codec)| Step::Put(keys, codec)),
        8 => (0u8..4, keys()).prop_map(|(producer, keys)| Step::Produce(producer, keys)),
        4 => (2u8..4, any::<bool>()).prop_map(|(producer, commit)| Step::End(producer, commit)),
        4 => (1u64..40, 0i64..1500).prop_map(|(keys, ms)| Step::Clean(keys, ms)),
        1 => any::<u8>().prop_map(Step::Trim),
        2 => (0u8..3).prop_map(Step::Restart),
    ]
}

#[derive(Debug, Default)]
struct Model {
    /// Every record that was ever appended, control records left out.
    rows: Vec<Row>,
    /// For each row, the producer whose transaction decides on it, until it does; and whether it
    /// was aborted.
    open: Vec<Option<u8>>,
    aborted: Vec<bool>,
    sequences: BTreeMap<u8, i32>,
    /// What each producer sent last.
    last: BTreeMap<u8, (Vec<(u8, bool)>, i64)>,
    start: i64,
    end: i64,
    now: i64,
}

/// Producers from 2 on write in transactions.
fn options_of(producer: u8, sequence: i32) -> BatchOptions {
    by(i64::from(producer), sequence, producer >= 2)
}

impl Model {
    fn pairs(keys: &[(u8, bool)], base: i64) -> Vec<(String, Option<String>)> {
        let pair = |(index, &(key, full)): (usize, &(u8, bool))| {
            let value = full.then(|| format!("v{}", base + index as i64));
            (format!("k{key}"), value)
        };
        keys.iter().enumerate().map(pair).collect()
    }

    fn append(&mut self, log: &Log, keys: &[(u8, bool)], how: BatchOptions, producer: Option<u8>) {
        let owned = Self::pairs(keys, self.end);
        let pairs: Vec<_> = owned
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_deref()))
            .collect();
        let info = put_as(log, &pairs, how);
        assert_eq!(info.base_offset, self.end);
        for (key, value) in owned {
            self.rows.push((self.end, key, value));
            self.open.push(producer.filter(|&producer| producer >= 2));
            self.aborted.push(false);
            self.end += 1;
        }
    }

    fn end_txn(&mut self, log: &Log, producer: u8, commit: bool) {
        let mine = Some(producer);
        if !self.open.contains(&mine) {
            return;
        }
        assert_eq!(end_txn(log, i64::from(producer), commit), self.end);
        self.end += 1;
        for (at, open) in self.open.iter_mut().enumerate() {
            if *open == mine {
                *open = None;
                self.aborted[at] = !commit;
            }
        }
    }

    fn live(&self) -> impl Iterator<Item = (usize, &Row)> {
        let start = self.start;
        let rows = self.rows.iter().enumerate();
        rows.filter(move |(_, row)| row.0 >= start)
    }

    /// The last decided and committed value of each key.
    fn values(&self) -> BTreeMap<&str, &Row> {
        let mut values = BTreeMap::new();
        for (at, row) in self.live() {
            if !self.aborted[at] && self.open[at].is_none() {
                values.insert(row.1.as_str(), row);
            }
        }
        values
    }

    fn check(&self, log: &Log, what: &str) {
        assert_eq!(
            (log.start_offset(), log.end_offset()),
            (self.start, self.end),
            "{what}"
        );
        let stable = self.open.iter().position(Option::is_some);
        let stable = stable.map_or(self.end, |at| self.rows[at].0.max(self.start));
        assert_eq!(log.last_stable_offset(), stable, "{what}");
        let found: BTreeMap<i64, Row> = rows(log).into_iter().map(|row| (row.0, row)).collect();
        let by_offset: BTreeMap<i64, (usize, &Row)> = self
            .rows
            .iter()
            .enumerate()
            .map(|(at, row)| (row.0, (at, row)))
            .collect();
        for (offset, row) in &found {
            assert_eq!(by_offset[offset].1, row, "{what}: a record changed");
        }
        for (at, row) in self.live() {
            if self.open[at].is_some() {
                assert!(
                    found.contains_key(&row.0),
                    "{what}: {row:?} is not decided and gone"
                );
            }
        }
        for (key, row) in self.values() {
            match found.get(&row.0) {
                Some(_) => {}
                None => assert!(row.2.is_none(), "{what}: {row:?} is gone"),
            }
            if row.2.is_none() && !found.contains_key(&row.0) {
                let older = found.values().any(|found| {
                    found.1 == key && found.0 < row.0 && !self.aborted[by_offset[&found.0].0]
                });
                assert!(!older, "{what}: a tombstone went before what it deletes");
            }
        }
        self.check_committed(log, stable, what);
    }

    /// What `read_committed` gets: no aborted record.
    fn check_committed(&self, log: &Log, stable: i64, what: &str) {
        let mut from = self.start;
        let by_offset: BTreeMap<i64, usize> = self
            .rows
            .iter()
            .enumerate()
            .map(|(at, row)| (row.0, at))
            .collect();
        loop {
            let slice = log.read(from, 500, true, Bound::LastStable).unwrap();
            if slice.bytes.is_empty() {
                // Between here and the first undecided transaction there may be a hole.
                let left = rows(log)
                    .into_iter()
                    .find(|row| (from..stable).contains(&row.0));
                assert_eq!(left, None, "{what}: a reader stands still at {from}");
                return;
            }
            let mut ahead = slice.aborted.clone();
            let mut aborted = std::collections::BTreeSet::new();
            for item in ottla_protocol::batch::Batches::new(&slice.bytes) {
                let (header, bytes) = item.unwrap();
                while ahead
                    .first()
                    .is_some_and(|t| t.first_offset <= header.last_offset())
                {
                    aborted.insert(ahead.remove(0).producer_id);
                }
                if header.is_control() {
                    aborted.remove(&header.producer_id);
                    continue;
                }
                let skip = header.is_transactional() && aborted.contains(&header.producer_id);
                for record in &records(bytes).unwrap() {
                    let record = record.unwrap();
                    if record.offset >= from {
                        assert_eq!(skip, self.aborted[by_offset[&record.offset]], "{what}");
                    }
                }
            }
            from = slice.next_offset;
        }
    }
}

fn run(kind: Kind, steps: &[Step]) {
    let mut bed = bed(kind);
    let mut model = Model {
        now: NOW,
        ..Model::default()
    };
    let on_disk = matches!(kind, Kind::Disk | Kind::PortableDisk);
    for (index, step) in steps.iter().enumerate() {
        let log = bed.log();
        match step {
            Step::Put(keys, codec) => {
                let how = BatchOptions {
                    compression: Compression::from_code(*codec).unwrap(),
                    ..BatchOptions::default()
                };
                model.append(&log, keys, how, None);
            }
            Step::Produce(producer, keys) => {
                let sequence = model.sequences.entry(*producer).or_insert(0);
                let how = options_of(*producer, *sequence);
                *sequence += keys.len() as i32;
                model.last.insert(*producer, (keys.clone(), model.end));
                model.append(&log, keys, how, Some(*producer));
            }
            Step::End(producer, commit) => model.end_txn(&log, *producer, *commit),
            Step::Clean(keys, ms) => {
                model.now += ms;
                let options = CleanerOptions {
                    dedupe_buffer_bytes: keys * 24,
                    load_factor: 0.9,
                };
                bed.store.clean(model.now, &options);
            }
            Step::Trim(share) => {
                let stable = log.last_stable_offset();
                let offset = stable * i64::from(*share) / 600;
                model.start = model.start.max(offset);
                assert_eq!(log.delete_records_before(offset, NOW).unwrap(), model.start);
                bed.store.checkpoint().unwrap();
            }
            Step::Restart(how) if on_disk => {
                drop(log);
                bed = match how {
                    0 => bed.restart(),
                    1 => bed.crash(),
                    _ => bed.power_off(),
                };
            }
            Step::Restart(_) => {}
        }
        let log = bed.log();
        log.set_config(compacted());
        model.check(&log, &format!("{index}: {step:?}"));
    }
    check_producers(&bed, &model);
}

/// Each producer's last batch is known, and the next one follows.
fn check_producers(bed: &Bed, model: &Model) {
    let log = bed.log();
    for (&producer, (keys, base)) in &model.last {
        let next = model.sequences[&producer];
        let owned = Model::pairs(keys, *base);
        let pairs: Vec<_> = owned
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_deref()))
            .collect();
        let again = keyed(&pairs, NOW, options_of(producer, next - keys.len() as i32));
        let info = try_append_as(&log, &again, options()).unwrap();
        assert!(info.duplicate && info.base_offset == *base, "{producer}");
        put_as(&log, &[("k0", Some("next"))], options_of(producer, next));
    }
    assert!(!batches(&log).is_empty() || model.end == 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn compaction_in_memory_keeps_the_last_value_of_each_key(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        run(Kind::Memory, &steps);
    }

    #[test]
    fn compaction_on_a_disk_keeps_the_last_value_of_each_key_over_restarts_and_crashes(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        run(Kind::Disk, &steps);
    }

    #[test]
    fn so_it_does_on_a_portable_disk(steps in prop::collection::vec(step(), 1..80)) {
        run(Kind::PortableDisk, &steps);
    }
}
