//! The session machine alone: the cache's rules, turns, and that increments add up to full fetches.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};

use ottla_protocol::StrBytes;
use ottla_protocol::messages::TopicName;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

const MINUTE: i64 = 60_000;

fn topic(name: &str, wanted: &[(i32, i64)]) -> FetchTopic {
    let partitions = wanted.iter().map(|&(index, offset)| {
        FetchPartition::default()
            .with_partition(index)
            .with_fetch_offset(offset)
            .with_partition_max_bytes(1000)
    });
    FetchTopic::default()
        .with_topic(TopicName(StrBytes::from_string(name.to_owned())))
        .with_partitions(partitions.collect())
}

fn forgotten(name: &str, partitions: &[i32]) -> ForgottenTopic {
    ForgottenTopic::default()
        .with_topic(TopicName(StrBytes::from_string(name.to_owned())))
        .with_partitions(partitions.to_vec())
}

fn session_of(count: i32) -> Session {
    let wanted: Vec<_> = (0..count).map(|index| (index, 0)).collect();
    Session::new(&[topic("t", &wanted)], false)
}

/// Opens a session of `count` partitions under an id that was never used.
fn open(cache: &mut FetchSessions, now: i64, count: i32) -> Option<i32> {
    static IDS: AtomicI32 = AtomicI32::new(1);
    let session = session_of(count);
    let fresh = || IDS.fetch_add(1, Ordering::Relaxed);
    cache
        .make_room(now, session.len())
        .then(|| cache.open(now, session, fresh))
}

fn news(end: i64, records: bool) -> News {
    News {
        told: Told {
            high_watermark: end,
            log_start_offset: 0,
        },
        records,
        notable: false,
    }
}

fn indexes(session: &Session) -> Vec<i32> {
    session.iter().map(|(_, e)| e.wanted.partition).collect()
}

#[test]
fn nobody_gives_way_while_sessions_are_young_and_used() {
    let mut cache = FetchSessions::new(2);
    let first = open(&mut cache, 0, 1).unwrap();
    assert!(open(&mut cache, 0, 1).is_some());
    for _ in 0..10_000 {
        assert_eq!(open(&mut cache, 1, 50), None);
    }
    assert_eq!(
        (cache.len(), cache.partitions(), cache.evicted()),
        (2, 2, 0)
    );
    assert!(cache.get(first).is_ok());
}

#[test]
fn a_session_that_is_not_used_for_two_minutes_gives_way() {
    let mut cache = FetchSessions::new(2);
    let first = open(&mut cache, 0, 9).unwrap();
    let second = open(&mut cache, 0, 9).unwrap();
    cache.touch(MINUTE, first, 9);
    assert_eq!(open(&mut cache, 2 * MINUTE, 1), None);
    let third = open(&mut cache, 2 * MINUTE + 1, 1);
    assert!(third.is_some());
    let gone = ErrorCode::FETCH_SESSION_ID_NOT_FOUND;
    assert_eq!(cache.get(second).map(|s| s.id), Err(gone));
    assert_eq!(cache.get(first).map(|s| s.id), Ok(first));
    assert_eq!((cache.evicted(), cache.partitions()), (1, 10));
}

#[test]
fn an_old_session_in_use_gives_way_to_a_larger_one_only() {
    let mut cache = FetchSessions::new(2);
    let small = open(&mut cache, 0, 3).unwrap();
    let large = open(&mut cache, 0, 8).unwrap();
    for minute in 1..=3 {
        cache.touch(minute * MINUTE, small, 3);
        cache.touch(minute * MINUTE, large, 8);
    }
    assert_eq!(open(&mut cache, 3 * MINUTE, 3), None);
    assert!(open(&mut cache, 3 * MINUTE, 4).is_some());
    assert!(cache.get(small).is_err() && cache.get(large).is_ok());
    // The newcomer is young: only the old one may go.
    assert_eq!(open(&mut cache, 3 * MINUTE, 8), None);
    assert!(open(&mut cache, 3 * MINUTE, 9).is_some());
    assert!(cache.get(large).is_err());
}

#[test]
fn no_slots_are_no_sessions() {
    assert_eq!(open(&mut FetchSessions::new(0), 0, 1), None);
}

#[test]
fn partitions_over_all_sessions_are_bounded() {
    let mut cache = FetchSessions::bounded(100, 10);
    assert_eq!(open(&mut cache, 0, 11), None);
    let first = open(&mut cache, 0, 6).unwrap();
    assert_eq!(open(&mut cache, 0, 5), None);
    let second = open(&mut cache, 0, 4).unwrap();
    cache.touch(1, second, 3);
    assert_eq!(cache.partitions(), 9);
    // One that grows beyond the bound is closed, nobody else.
    cache.touch(2, second, 5);
    assert!(cache.get(second).is_err() && cache.get(first).is_ok());
    assert_eq!((cache.partitions(), cache.evicted()), (6, 1));
}

#[test]
fn an_id_in_use_is_not_given_twice_and_never_zero() {
    let mut cache = FetchSessions::new(10);
    let mut ids = [0, 7, i32::MIN, 7, 8].into_iter();
    let mut next = || ids.next().unwrap();
    assert_eq!(cache.open(0, session_of(1), &mut next), 7);
    assert_eq!(cache.open(0, session_of(1), &mut next), 8);
    cache.close(7);
    cache.close(7);
    assert_eq!((cache.len(), cache.partitions()), (1, 1));
    cache.clear();
    assert_eq!((cache.len(), cache.partitions()), (0, 0));
}

#[test]
fn epochs_count_up_and_wrap_to_one() {
    let mut session = session_of(1);
    assert_eq!(session.resume(1, false, &[], &[]), Ok(2));
    let wrong = Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
    assert_eq!(session.resume(1, false, &[], &[]), wrong);
    assert_eq!(session.resume(3, false, &[], &[]), wrong);
    session.epoch = i32::MAX;
    assert_eq!(session.resume(i32::MAX, false, &[], &[]), Ok(1));
}

#[test]
fn names_and_ids_do_not_mix() {
    let mut session = session_of(1);
    let error = Err(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
    assert_eq!(session.resume(1, true, &[], &[]), error);
    assert_eq!(session.resume(1, false, &[], &[]), Ok(2));
}

#[test]
fn a_request_adds_changes_and_forgets() {
    let mut session = session_of(3);
    let asked = [topic("t", &[(1, 50), (7, 9)]), topic("u", &[(0, 0)])];
    let gone = [forgotten("t", &[0, 99]), forgotten("nobody", &[0])];
    session.resume(1, false, &asked, &gone).unwrap();
    let all: Vec<_> = session
        .iter()
        .map(|(_, e)| (e.topic.clone(), e.wanted.partition, e.wanted.fetch_offset))
        .collect();
    let key = |name: &str| TopicKey::Name(name.into());
    let wanted = [
        (key("t"), 1, 50),
        (key("t"), 2, 0),
        (key("t"), 7, 9),
        (key("u"), 0, 0),
    ];
    assert_eq!(all, wanted);
    let rest = [forgotten("t", &[1, 2, 7]), forgotten("u", &[0])];
    session.resume(2, false, &[], &rest).unwrap();
    assert!(session.is_empty());
}

#[test]
fn whoever_was_served_goes_to_the_end() {
    let mut session = session_of(4);
    let turns: Vec<Turn> = session.iter().map(|(turn, _)| turn).collect();
    session.settle(turns[1], &news(5, true));
    session.settle(turns[2], &news(5, false));
    assert_eq!(indexes(&session), [0, 2, 3, 1]);
    session.settle_named(&TopicKey::Name("t".into()), 0, &news(5, true));
    assert_eq!(indexes(&session), [2, 3, 1, 0]);
    // A turn that passed is nobody's.
    session.settle(turns[1], &news(9, true));
    assert_eq!(indexes(&session), [2, 3, 1, 0]);
}

#[test]
fn an_error_is_told_until_it_is_gone_and_then_its_end_is_told() {
    let mut session = session_of(1);
    let error = News {
        told: Told::NOTHING,
        records: false,
        notable: true,
    };
    let mut tell = |news: News| {
        let (turn, told) = session
            .iter()
            .map(|(t, e)| (t, e.is_told(&news)))
            .next()
            .unwrap();
        if told {
            session.settle(turn, &news);
        }
        told
    };
    assert!(tell(news(3, false)) && !tell(news(3, false)));
    assert!(tell(error) && tell(error));
    assert!(tell(news(3, false)) && !tell(news(3, false)));
}

/// One partition as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Truth {
    start: i64,
    end: i64,
    broken: bool,
}

/// What a client believes of one partition that it fetches.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Belief {
    position: i64,
    told: Truth,
}

/// Answers one look: what each partition's part would be, with room for `room` reads of records.
fn answer(
    session: &mut Session,
    truths: &BTreeMap<i32, Truth>,
    mut room: usize,
) -> Vec<(i32, Truth, Option<i64>)> {
    let mut kept = vec![];
    for (turn, entry) in session.iter() {
        let truth = truths[&entry.wanted.partition];
        let has = !truth.broken && room > 0 && entry.wanted.fetch_offset < truth.end;
        room -= usize::from(has);
        let found = News {
            told: if truth.broken {
                Told::NOTHING
            } else {
                Told {
                    high_watermark: truth.end,
                    log_start_offset: truth.start,
                }
            },
            records: has,
            notable: truth.broken,
        };
        if entry.is_told(&found) {
            kept.push((
                turn,
                found,
                entry.wanted.partition,
                truth,
                has.then_some(truth.end),
            ));
        }
    }
    for (turn, found, ..) in &kept {
        session.settle(*turn, found);
    }
    kept.into_iter()
        .map(|(_, _, index, truth, next)| (index, truth, next))
        .collect()
}

fn disturb(random: &mut StdRng, truths: &mut BTreeMap<i32, Truth>) {
    for truth in truths.values_mut() {
        match random.random_range(0..12) {
            0..=2 => truth.end += random.random_range(1..5),
            3 => truth.start = random.random_range(truth.start..=truth.end),
            4 => truth.broken = !truth.broken,
            _ => {}
        }
    }
}

#[test]
fn increments_tell_a_client_what_full_fetches_would() {
    for seed in 0..300 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut truths: BTreeMap<i32, Truth> = (0..8).map(|i| (i, Truth::default())).collect();
        let mut beliefs = BTreeMap::from([(0, Belief::default())]);
        let mut session = Session::new(&[topic("t", &[(0, 0)])], false);
        let mut epoch = 1;
        // What the client said last of each partition, so that it only says what changed.
        let mut said = BTreeMap::from([(0, 0)]);
        for round in 0..60 {
            for (index, truth, next) in answer(&mut session, &truths, random.random_range(1..4)) {
                let belief = beliefs.get_mut(&index).unwrap_or_else(|| {
                    panic!("seed {seed} round {round}: {index} is not fetched any more")
                });
                belief.told = truth;
                belief.position = next.unwrap_or(belief.position);
            }
            for (index, belief) in &beliefs {
                let (told, truth) = (belief.told, truths[index]);
                let same = if truth.broken {
                    told.broken
                } else {
                    told == truth
                };
                assert!(
                    same,
                    "seed {seed} round {round} partition {index}: {told:?} {truth:?}"
                );
            }
            disturb(&mut random, &mut truths);
            let index = random.random_range(0..8);
            match random.random_range(0..4) {
                0 => drop(beliefs.entry(index).or_default()),
                1 if beliefs.len() > 1 => drop(beliefs.remove(&index)),
                2 => beliefs.values_mut().take(1).for_each(|b| b.position = 0),
                _ => {}
            }
            let changed: Vec<_> = beliefs
                .iter()
                .filter(|(index, belief)| said.get(*index) != Some(&belief.position))
                .map(|(index, belief)| (*index, belief.position))
                .collect();
            let gone: Vec<i32> = said
                .keys()
                .filter(|i| !beliefs.contains_key(i))
                .copied()
                .collect();
            let asked = [topic("t", &changed)];
            epoch = session
                .resume(epoch, false, &asked, &[forgotten("t", &gone)])
                .unwrap();
            said = beliefs
                .iter()
                .map(|(index, b)| (*index, b.position))
                .collect();
            assert_eq!(session.len(), beliefs.len(), "seed {seed} round {round}");
        }
    }
}

#[test]
fn every_partition_with_records_is_served_in_its_turn() {
    let full = Truth {
        start: 0,
        end: 1_000_000,
        broken: false,
    };
    let truths: BTreeMap<i32, Truth> = (0..7).map(|i| (i, full)).collect();
    let mut session = session_of(7);
    let mut served = [0; 7];
    for _ in 0..70 {
        for (index, _, next) in answer(&mut session, &truths, 2) {
            served[index as usize] += usize::from(next.is_some());
        }
    }
    assert_eq!(served, [20; 7]);
}
