//! Random histories against a plain vector.

use ottla_storage::{Bound, LogConfig};
use proptest::prelude::*;

use crate::bed::{Bed, Kind, NOW, append, batch, read_all, small};

#[derive(Debug, Clone)]
enum Step {
    Append { count: usize, time: i64 },
    Trim { share: u8 },
    Read { limit: usize },
    Find { time: i64 },
    Tick,
    Restart,
    Crash,
    PowerOff,
    SegmentBytes(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (1usize..6, 0i64..50).prop_map(|(count, time)| Step::Append { count, time }),
        1 => any::<u8>().prop_map(|share| Step::Trim { share }),
        4 => (1usize..2000).prop_map(|limit| Step::Read { limit }),
        3 => (0i64..60).prop_map(|time| Step::Find { time }),
        1 => Just(Step::Tick),
        1 => Just(Step::Restart),
        1 => Just(Step::Crash),
        1 => Just(Step::PowerOff),
        1 => (400u32..3000).prop_map(Step::SegmentBytes),
    ]
}

fn run(kind: Kind, steps: &[Step]) {
    let on_disk = matches!(kind, Kind::Disk | Kind::PortableDisk);
    let mut bed = Bed::new(kind);
    // Offset, time; and where the log starts.
    let mut model: Vec<(i64, i64)> = Vec::new();
    let mut start = 0;
    for (index, step) in steps.iter().enumerate() {
        let log = bed.log();
        let live = |start: i64| model.iter().copied().filter(move |r| r.0 >= start);
        match *step {
            Step::Append { count, time } => {
                let base = model.len() as i64;
                let info = append(&log, &batch(count, NOW + time));
                assert_eq!(info.base_offset, base);
                model.extend((0..count as i64).map(|i| (base + i, NOW + time + i)));
            }
            Step::Trim { share } => {
                let offset = model.len() as i64 * i64::from(share) / 255;
                start = start.max(offset);
                assert_eq!(log.delete_records_before(offset, NOW).unwrap(), start);
            }
            Step::Read { limit } => {
                let found = read_all(&log, limit, Bound::LogEnd);
                assert_eq!(found, live(start).collect::<Vec<_>>());
            }
            Step::Find { time } => {
                let wanted = NOW + time;
                let expected = live(start).find(|r| r.1 >= wanted);
                assert_eq!(log.offset_for_timestamp(wanted), expected);
            }
            Step::Tick => bed.store.tick(NOW + index as i64 * 100_000),
            Step::SegmentBytes(segment_bytes) => log.set_config(LogConfig {
                segment_bytes,
                ..small()
            }),
            Step::Restart | Step::Crash | Step::PowerOff if !on_disk => {}
            Step::Restart => {
                drop(log);
                bed = bed.restart();
            }
            Step::Crash | Step::PowerOff => {
                drop(log);
                bed.store.checkpoint().unwrap();
                bed = if matches!(step, Step::Crash) {
                    bed.crash()
                } else {
                    bed.power_off()
                };
            }
        }
        let bounds = bed.log().bounds();
        assert_eq!(
            (bounds.start, bounds.end),
            (start, model.len() as i64),
            "{index}"
        );
    }
    let found = read_all(&bed.log(), 700, Bound::LogEnd);
    assert_eq!(found, model[start as usize..]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_log_in_memory_is_a_vector(steps in prop::collection::vec(step(), 1..80)) {
        run(Kind::Memory, &steps);
    }

    #[test]
    fn a_log_on_a_disk_is_a_vector_over_restarts_and_crashes(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        run(Kind::Disk, &steps);
    }

    #[test]
    fn so_is_one_on_a_portable_disk(steps in prop::collection::vec(step(), 1..60)) {
        run(Kind::PortableDisk, &steps);
    }
}
