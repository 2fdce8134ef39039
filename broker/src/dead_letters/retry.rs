//! When a failed attempt to write letters is made again. Pure.
//!
//! Without a write timeout as Kafka 4.4: five attempts, 2, 4, 8 and 16 s apart, give or take a fifth,
//! and only where nobody leads the partition. With one (KIP-1316, a draft) also where the ISR is too
//! small or the disk fails, without a limit on attempts, at most 30 s apart, and once more shortly
//! before the deadline.

use ottla_coordinator::types::Ts;

/// Attempts without a write timeout.
const MAX_ATTEMPTS: u32 = 5;
/// The first wait, in milliseconds; each is twice the one before.
const FIRST_WAIT_MS: i64 = 2000;
/// The longest wait, in milliseconds.
const MAX_WAIT_MS: i64 = 30_000;
/// How long before the deadline the last attempt is made, in milliseconds.
const LAST_MS: i64 = 100;

/// Why letters could not be written, where another attempt may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// Nobody leads the partition, or it went while it was written.
    NoLeader,
    /// The ISR is too small, or the log does not take it.
    Unavailable,
}

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Another one at this time.
    At(Ts),
    /// None before the deadline, unless something changes.
    Deadline,
    /// None.
    Never,
}

/// The attempts of one unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Attempts(u32);

impl Attempts {
    /// How many were made.
    pub(super) fn made(self) -> u32 {
        self.0
    }

    /// An attempt failed at `now`. `deadline` is that of the write timeout, where one is set; `jitter`
    /// is from 0 to 1.
    pub(super) fn failed(
        &mut self,
        now: Ts,
        obstacle: Obstacle,
        deadline: Option<Ts>,
        jitter: f64,
    ) -> Next {
        self.0 = self.0.saturating_add(1);
        let wait = MAX_WAIT_MS.min(FIRST_WAIT_MS << (self.0 - 1).min(16));
        let wait = (wait as f64 * (0.8 + 0.4 * jitter)) as i64;
        let next = now.saturating_add(wait.min(MAX_WAIT_MS));
        let Some(deadline) = deadline else {
            let again = obstacle == Obstacle::NoLeader && self.0 < MAX_ATTEMPTS;
            return if again { Next::At(next) } else { Next::Never };
        };
        let last = deadline.saturating_sub(LAST_MS);
        if next <= last {
            Next::At(next)
        } else if now < last {
            Next::At(last)
        } else {
            Next::Deadline
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_timeout_there_are_five_attempts_in_thirty_seconds() {
        let mut attempts = Attempts::default();
        let (mut now, mut times) = (0, vec![]);
        while let Next::At(next) = attempts.failed(now, Obstacle::NoLeader, None, 0.5) {
            now = next;
            times.push(now);
        }
        assert_eq!(times, [2000, 6000, 14_000, 30_000]);
        assert_eq!(attempts.made(), 5);
    }

    #[test]
    fn waits_differ_by_a_fifth() {
        for (jitter, wait) in [(0.0, 1600), (0.5, 2000), (1.0, 2400)] {
            let next = Attempts::default().failed(0, Obstacle::NoLeader, None, jitter);
            assert_eq!(next, Next::At(wait));
        }
    }

    #[test]
    fn without_a_timeout_only_a_missing_leader_is_waited_for() {
        let next = Attempts::default().failed(0, Obstacle::Unavailable, None, 0.5);
        assert_eq!(next, Next::Never);
    }

    #[test]
    fn with_a_timeout_attempts_go_on_until_shortly_before_the_deadline() {
        let mut attempts = Attempts::default();
        let (mut now, mut times) = (0, vec![]);
        let deadline = Some(100_000);
        while let Next::At(next) = attempts.failed(now, Obstacle::Unavailable, deadline, 0.5) {
            now = next;
            times.push(now);
        }
        assert_eq!(times, [2000, 6000, 14_000, 30_000, 60_000, 90_000, 99_900]);
        let next = attempts.failed(now, Obstacle::NoLeader, deadline, 0.5);
        assert_eq!(next, Next::Deadline);
    }

    #[test]
    fn waits_never_exceed_half_a_minute() {
        let mut attempts = Attempts(40);
        let next = attempts.failed(0, Obstacle::NoLeader, Some(Ts::MAX), 1.0);
        assert_eq!(next, Next::At(30_000));
    }

    #[test]
    fn a_deadline_that_is_near_leaves_no_attempt() {
        let next = Attempts::default().failed(0, Obstacle::NoLeader, Some(1), 0.5);
        assert_eq!(next, Next::Deadline);
    }
}
