//! Dead letters of a share partition: which records become some, their three outcomes, and what may
//! happen in between; the samples for the breaker, and pauses.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use ottla_coordinator::share::letters::{LetterCause, LetterUnit, Reports, Written};
use ottla_coordinator::share::types::{AckError, AcquireMode, OffsetRange, PersistedState};
use support::{ACCEPT, Bench, GAP, REJECT, RELEASE, RENEW, batch, batches};

const TIMEOUT: i64 = 5000;

/// 0-9 held by a, at most two deliveries, letters with a timeout.
fn held() -> Bench {
    let mut bench = Bench::new(&[10]);
    bench.limits.dead_letters = true;
    bench.limits.delivery_count_limit = 2;
    bench.limits.dlq_write_timeout_ms = Some(TIMEOUT);
    bench.whole("a", 500);
    bench
}

impl Bench {
    fn reports(&mut self) -> Reports {
        self.part.take_reports()
    }

    fn letters(&mut self) -> Vec<LetterUnit> {
        self.reports().letters
    }

    fn written(&mut self, unit: &LetterUnit, first: i64, last: i64) -> (i64, i64) {
        let range = OffsetRange::new(first, last);
        let written = self
            .part
            .letters_written(unit.id, range, self.now, &self.limits);
        self.settle_all(true);
        let Written { counted, late } = written;
        (counted, late)
    }

    fn given_up(&mut self, unit: &LetterUnit) -> bool {
        let given_up = self
            .part
            .letters_given_up(unit.id, unit.range, self.now, &self.limits);
        self.settle_all(true);
        given_up
    }

    fn wants(&self, unit: &LetterUnit) -> bool {
        self.part.claim_letters(unit.id, unit.range)
    }
}

/// Units as text: `0-1 rejected #1`.
fn text(units: &[LetterUnit]) -> Vec<String> {
    let unit = |unit: &LetterUnit| {
        let cause = match unit.cause {
            LetterCause::Rejected => "rejected",
            LetterCause::DeliveryLimit => "limit",
        };
        let range = unit.range;
        format!(
            "{}-{} {cause} #{}",
            range.first, range.last, unit.delivery_count
        )
    };
    units.iter().map(unit).collect()
}

#[test]
fn rejects_and_the_delivery_limit_make_letters_and_gaps_do_not() {
    let mut bench = held();
    bench.acked("a", 0, 1, REJECT);
    bench.acked("a", 2, 2, GAP);
    bench.acked("a", 3, 4, RELEASE);
    assert_eq!(text(&bench.letters()), ["0-1 rejected #1"]);
    assert_eq!(bench.window(), "0-1g1 2-2v1 3-4a1 5-9q1");
    assert_eq!(bench.exact("b", 1), "3-3#2");
    bench.acked("b", 3, 3, RELEASE);
    assert_eq!(text(&bench.letters()), ["3-3 limit #2"]);
    assert_eq!(bench.exact("b", 1), "4-4#2");
    bench.advance(1000);
    assert_eq!(text(&bench.letters()), ["4-4 limit #2"]);
    assert_eq!(bench.window(), "0-1g1 2-2v1 3-4g2 5-9a1");
    bench.whole("b", 5);
    bench.release_member("b");
    assert_eq!(text(&bench.letters()), ["5-9 limit #2"]);
    assert_eq!(bench.part.delivery_complete_count(), 1);
}

#[test]
fn a_unit_is_consecutive_and_of_one_cause_one_count_and_one_generation() {
    let mut bench = held();
    bench.acked("a", 2, 2, RELEASE);
    bench.part.set_delivery(false, 1);
    assert_eq!(bench.exact("a", 1), "2-2#2");
    bench.acked("a", 6, 6, ACCEPT);
    bench
        .propose(
            "a",
            &[
                (0, 5, &[REJECT, REJECT, RELEASE, REJECT, REJECT, REJECT]),
                (7, 9, &[REJECT]),
            ],
        )
        .unwrap();
    bench.settle_all(true);
    let letters = bench.letters();
    let expected = [
        "0-1 rejected #1",
        "2-2 limit #2",
        "3-5 rejected #1",
        "7-9 rejected #1",
    ];
    assert_eq!(text(&letters), expected);
    let generations: Vec<_> = letters.iter().map(|unit| unit.generation).collect();
    assert_eq!(generations, [Some(0), Some(1), Some(0), Some(0)]);
    assert!(letters.windows(2).all(|pair| pair[0].id < pair[1].id));
}

#[test]
fn a_letter_can_neither_be_acquired_nor_acknowledged_and_holds_the_start() {
    let mut bench = held();
    bench.acked("a", 0, 3, REJECT);
    for kind in [ACCEPT, RELEASE, REJECT, RENEW] {
        let refused = bench.ack("a", 0, 0, kind);
        assert!(matches!(
            refused,
            Err(AckError::InvalidRecordState(Some(_)))
        ));
    }
    assert_eq!(bench.whole("b", 500), "");
    bench.acked("a", 4, 9, ACCEPT);
    assert_eq!(bench.part.start_offset(), 0);
    let unit = bench.letters()[0];
    assert_eq!(bench.written(&unit, 0, 3), (4, 0));
    assert_eq!(bench.part.start_offset(), 10);
    assert!(bench.part.take_wake());
}

#[test]
fn a_unit_may_be_written_in_parts() {
    let mut bench = held();
    bench.acked("a", 0, 9, REJECT);
    let unit = bench.letters()[0];
    assert_eq!(bench.written(&unit, 0, 3), (4, 0));
    assert!(!bench.wants(&unit));
    assert!(bench.part.claim_letters(unit.id, OffsetRange::new(4, 9)));
    assert_eq!(bench.window(), "4-9g1");
    assert_eq!(bench.written(&unit, 6, 9), (4, 0));
    assert_eq!(bench.window(), "4-5g1 6-9v1");
    assert_eq!(
        bench.written(&unit, 4, 6),
        (2, 1),
        "one of them a second time"
    );
    assert_eq!(bench.part.start_offset(), 10);
    assert_eq!(bench.reports().written, 10);
}

#[test]
fn what_comes_after_the_timeout_is_late() {
    let mut bench = held();
    bench.acked("a", 0, 3, REJECT);
    let unit = bench.letters()[0];
    bench.acked("a", 4, 9, ACCEPT);
    assert_eq!(bench.part.next_deadline(&bench.limits), Some(TIMEOUT));
    bench.advance(TIMEOUT - 1);
    assert!(bench.wants(&unit));
    bench.advance(1);
    assert!(!bench.wants(&unit));
    assert_eq!(bench.part.start_offset(), 10);
    assert_eq!(bench.written(&unit, 0, 3), (0, 4));
    assert!(!bench.given_up(&unit));
    let reports = bench.reports();
    assert_eq!(reports.timed_out, [(unit, unit.range)]);
    assert_eq!(reports.written, 0);
    assert_eq!(bench.part.next_deadline(&bench.limits), None);
}

#[test]
fn a_write_that_is_told_at_the_deadline_is_late_and_a_millisecond_before_it_counts() {
    for (at, expected) in [(TIMEOUT - 1, (1, 0)), (TIMEOUT, (0, 1))] {
        let mut bench = held();
        bench.acked("a", 0, 0, REJECT);
        let unit = bench.letters()[0];
        bench.now = at;
        assert_eq!(bench.written(&unit, 0, 0), expected);
        assert_eq!(bench.reports().timed_out.len() as i64, expected.1);
    }
}

#[test]
fn only_what_has_no_outcome_times_out() {
    let mut bench = held();
    bench.acked("a", 0, 9, REJECT);
    let unit = bench.letters()[0];
    assert_eq!(bench.written(&unit, 3, 5), (3, 0));
    bench.advance(TIMEOUT);
    let left = [OffsetRange::new(0, 2), OffsetRange::new(6, 9)];
    assert_eq!(bench.reports().timed_out, left.map(|range| (unit, range)));
    assert_eq!(bench.part.start_offset(), 10);
}

#[test]
fn a_timeout_that_is_set_during_an_outage_frees_what_is_overdue() {
    let mut bench = held();
    bench.limits.dlq_write_timeout_ms = None;
    bench.acked("a", 0, 0, REJECT);
    bench.acked("a", 9, 9, ACCEPT);
    bench.advance(60_000);
    bench.whole("a", 500);
    bench.acked("a", 1, 1, REJECT);
    bench.acked("a", 2, 8, ACCEPT);
    assert_eq!(bench.part.next_deadline(&bench.limits), None);
    bench.limits.dlq_write_timeout_ms = Some(10_000);
    assert_eq!(bench.part.next_deadline(&bench.limits), Some(10_000));
    bench.advance(0);
    assert_eq!(bench.window(), "1-1g2 2-8c2 9-9c1");
    assert_eq!(bench.part.next_deadline(&bench.limits), Some(70_000));
    bench.limits.dlq_write_timeout_ms = Some(20_000);
    assert_eq!(bench.part.next_deadline(&bench.limits), Some(80_000));
    bench.limits.dlq_write_timeout_ms = Some(i64::MAX);
    assert_eq!(bench.part.next_deadline(&bench.limits), Some(i64::MAX));
    bench.limits.dlq_write_timeout_ms = None;
    bench.advance(1_000_000);
    assert_eq!(bench.part.start_offset(), 1);
}

#[test]
fn time_runs_from_the_write_that_made_the_letter() {
    let mut bench = held();
    bench.propose("a", &[(0, 0, &[REJECT])]).unwrap();
    bench.take();
    bench.now = 700;
    assert_eq!(bench.letters(), []);
    assert_eq!(
        bench.part.next_deadline(&bench.limits),
        Some(1000),
        "the lock of the others"
    );
    bench.settle(true);
    assert_eq!(bench.letters()[0].since, 700);
}

#[test]
fn a_reject_that_is_not_written_makes_no_letter_and_a_lock_that_ends_makes_one_all_the_same() {
    let mut bench = held();
    bench.propose("a", &[(0, 3, &[REJECT])]).unwrap();
    bench.settle_all(false);
    assert_eq!(bench.letters(), []);
    assert_eq!(bench.window(), "0-9q1");
    bench.limits.delivery_count_limit = 1;
    bench.now = 1000;
    bench.part.on_deadline(1000, &bench.limits);
    bench.settle_all(false);
    assert_eq!(bench.window(), "0-9g1");
    let letters = bench.letters();
    assert_eq!(text(&letters), ["0-9 limit #1"]);
    // Its outcome takes effect too when it cannot be written.
    let unit = letters[0];
    assert!(
        bench
            .part
            .letters_given_up(unit.id, unit.range, 1000, &bench.limits)
    );
    bench.settle_all(false);
    assert_eq!(bench.part.start_offset(), 10);
}

#[test]
fn a_reject_whose_write_fails_after_the_lock_has_ended_is_a_letter_of_the_limit() {
    let mut bench = held();
    bench.limits.delivery_count_limit = 1;
    bench.propose("a", &[(0, 9, &[REJECT])]).unwrap();
    bench.take();
    bench.now = 1000;
    bench.part.on_deadline(1000, &bench.limits);
    bench.settle(false);
    assert_eq!(bench.letters(), []);
    bench.settle_all(true);
    let letters = bench.letters();
    assert_eq!(text(&letters), ["0-9 limit #1"]);
    assert_eq!(letters[0].generation, Some(0));
}

#[test]
fn a_letter_outlives_its_record_when_the_log_start_moves() {
    let mut bench = held();
    bench.acked("a", 0, 3, REJECT);
    let unit = bench.letters()[0];
    bench.part.log_start_moved(2);
    assert_eq!(bench.window(), "2-3g1 4-9q1");
    assert!(bench.wants(&unit));
    assert_eq!(bench.written(&unit, 0, 3), (4, 0));
    assert_eq!(bench.writes.last().unwrap().batches[0].first, 2);
    assert_eq!(bench.reports().written, 4);
    bench.acked("a", 4, 5, REJECT);
    let unit = bench.letters()[0];
    bench.part.log_start_moved(8);
    let writes = bench.writes.len();
    bench.advance(TIMEOUT);
    assert_eq!(bench.reports().timed_out, [(unit, unit.range)]);
    assert!(
        bench.writes[writes..]
            .iter()
            .all(|write| write.batches[0].first >= 8)
    );
}

#[test]
fn a_record_that_the_log_start_passes_before_its_reject_is_written_makes_no_letter() {
    let mut bench = held();
    bench.propose("a", &[(0, 3, &[REJECT])]).unwrap();
    bench.take();
    bench.part.log_start_moved(2);
    bench.settle(true);
    assert_eq!(text(&bench.letters()), ["2-3 rejected #1"]);
}

#[test]
fn letters_are_archived_once_dead_letters_are_switched_off_only_by_their_outcome() {
    let mut bench = held();
    bench.acked("a", 0, 0, REJECT);
    bench.limits.dead_letters = false;
    bench.acked("a", 1, 1, REJECT);
    assert_eq!(bench.window(), "0-0g1 1-1v1 2-9q1");
    let letters = bench.letters();
    assert_eq!(text(&letters), ["0-0 rejected #1"]);
    assert!(bench.given_up(&letters[0]));
    assert_eq!(bench.part.start_offset(), 2);
}

#[test]
fn loaded_letters_have_their_cause_from_the_delivery_count_and_begin_anew() {
    let state = PersistedState {
        start_offset: 0,
        batches: vec![
            batch(0, 1, 3, 5),
            batch(2, 3, 3, 1),
            batch(4, 4, 2, 1),
            batch(5, 6, 3, 7),
        ],
        ..PersistedState::default()
    };
    let mut bench = Bench::over(batches(&[10]), &state);
    assert_eq!(bench.window(), "0-1g5 2-3g1 4-4c1 5-6g7");
    let letters = bench.letters();
    assert_eq!(
        text(&letters),
        ["0-1 limit #5", "2-3 rejected #1", "5-6 limit #7"]
    );
    assert!(
        letters
            .iter()
            .all(|unit| unit.generation.is_none() && unit.since == 0)
    );
    bench.limits.dlq_write_timeout_ms = Some(TIMEOUT);
    assert_eq!(bench.part.next_deadline(&bench.limits), Some(TIMEOUT));
    assert_eq!(bench.written(&letters[0], 0, 1), (2, 0));
    assert_eq!(
        bench.reports().written,
        0,
        "no sample: acquired in another life"
    );
    bench.advance(TIMEOUT);
    assert_eq!(bench.part.start_offset(), 7);
}

#[test]
fn samples_are_data_records_accepted_in_the_generation_that_runs() {
    let mut bench = Bench::new(&[4, 2, 4]);
    bench.non_data = vec![
        OffsetRange::new(1, 2),
        OffsetRange::new(4, 5),
        OffsetRange::new(9, 9),
    ];
    bench.whole("a", 500);
    bench.acked("a", 0, 3, ACCEPT);
    assert_eq!(bench.reports().delivered, 2);
    bench.propose("a", &[(4, 6, &[ACCEPT])]).unwrap();
    assert_eq!(bench.reports().delivered, 0, "not committed yet");
    bench.settle_all(false);
    assert_eq!(bench.reports().delivered, 0);
    bench.acked("a", 4, 6, ACCEPT);
    assert_eq!(bench.reports().delivered, 1);
    bench.part.set_delivery(true, 1);
    bench.acked("a", 7, 7, ACCEPT);
    bench.part.set_delivery(false, 1);
    bench.acked("a", 8, 8, RENEW);
    bench.acked("a", 8, 8, ACCEPT);
    assert_eq!(
        bench.reports(),
        Reports::default(),
        "acquired before the pause"
    );
}

#[test]
fn a_renewed_lock_stays_in_the_generation_of_its_delivery() {
    let mut bench = held();
    bench.acked("a", 4, 5, RELEASE);
    bench.part.set_delivery(false, 7);
    assert_eq!(bench.exact("a", 2), "4-5#2");
    bench.acked("a", 0, 9, RENEW);
    bench.acked("a", 3, 4, ACCEPT);
    assert_eq!(bench.reports().delivered, 1);
    bench.acked("a", 5, 6, REJECT);
    let letters = bench.letters();
    let generations: Vec<_> = letters.iter().map(|unit| unit.generation).collect();
    assert_eq!(generations, [Some(7), Some(0)]);
    assert_eq!(bench.written(&letters[0], 5, 5), (1, 0));
    assert_eq!(bench.written(&letters[1], 6, 6), (1, 0));
    assert_eq!(bench.reports().written, 1);
}

#[test]
fn a_pause_changes_nothing_but_that_nothing_is_acquired() {
    let mut bench = held();
    bench.acked("a", 0, 4, RELEASE);
    bench.part.take_wake();
    bench.part.set_delivery(true, 1);
    assert_eq!(bench.part.next_fetch_offset(&bench.limits), None);
    assert!(bench.fetch("b", AcquireMode::RecordLimit, 5).is_empty());
    assert_eq!(bench.window(), "0-4a1 5-9q1");
    assert!(!bench.part.take_wake());
    bench.acked("a", 5, 5, ACCEPT);
    bench.acked("a", 6, 6, REJECT);
    bench.acked("a", 7, 9, RENEW);
    assert_eq!(bench.letters().len(), 1, "letters go on");
    bench.advance(1000);
    assert_eq!(bench.window(), "0-4a1 5-5c1 6-6g1 7-9a1");
    bench.part.take_wake();
    bench.part.set_delivery(false, 1);
    assert!(bench.part.take_wake());
    assert_eq!(bench.whole("b", 500), "0-4#2 7-9#2");
}

#[test]
fn letters_leave_no_memory_and_no_report_behind() {
    let mut bench = Bench::new(&[10; 30]);
    bench.limits.dead_letters = true;
    let round = |bench: &mut Bench| {
        let first = bench.part.start_offset();
        assert_eq!(bench.exact("a", 10), format!("{first}-{}#1", first + 9));
        bench.acked("a", first, first + 9, REJECT);
        let unit = bench.letters()[0];
        bench.written(&unit, first, first + 9);
        assert_eq!(bench.reports().written, 10);
        assert_eq!(bench.reports(), Reports::default());
        bench.part.heap_bytes()
    };
    let once = round(&mut bench);
    for _ in 0..20 {
        assert_eq!(round(&mut bench), once);
    }
}
