//! The two times of the broker.
//!
//! *State time* decides locks, sessions, retention and back-offs: the wall clock plus an offset that
//! [`Clock::advance_to`] moves, or a frozen value that only moves when told (embedded tests).
//! *Wire waits* (how long a client's request may be parked) always run on tokio's time, so that a
//! frozen or jumping clock never leaves a request hanging.
//!
//! This is the only file that reads a clock.
#![allow(
    clippy::disallowed_methods,
    reason = "the one place that reads a clock and waits"
)]

use std::future::Future;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ottla_coordinator::types::Ts;
use tokio::sync::Notify;

/// Wall-clock milliseconds since the epoch.
fn wall_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_millis() as i64)
}

/// State time in milliseconds since the epoch; never goes backwards.
#[derive(Debug)]
pub struct Clock {
    /// Monotonic origin, so that a step of the wall clock cannot take state time back.
    origin: Instant,
    /// State time at `origin`, moved by `advance_to`.
    base: AtomicI64,
    /// `Some(now)` in a frozen clock.
    frozen: Option<AtomicI64>,
    /// Milliseconds by which session time lags state time (`hold=sessions`).
    held: AtomicI64,
    /// Told whenever the clock was moved, so that the driver looks again.
    moved: Notify,
}

impl Clock {
    /// Real time. Starts at the wall clock.
    pub fn real() -> Self {
        Self::at(wall_ms(), false)
    }

    /// A clock that stands at `now` until it is advanced.
    pub fn frozen(now: Ts) -> Self {
        Self::at(now, true)
    }

    fn at(now: Ts, frozen: bool) -> Self {
        Self {
            origin: Instant::now(),
            base: AtomicI64::new(now),
            frozen: frozen.then(|| AtomicI64::new(now)),
            held: AtomicI64::new(0),
            moved: Notify::new(),
        }
    }

    /// State time now, in milliseconds since the epoch.
    pub fn now(&self) -> Ts {
        match &self.frozen {
            Some(now) => now.load(Ordering::Acquire),
            None => self.base.load(Ordering::Acquire) + self.origin.elapsed().as_millis() as i64,
        }
    }

    /// The time that member sessions see: state time less what was advanced with sessions held.
    pub fn session_now(&self) -> Ts {
        self.now() - self.held.load(Ordering::Acquire)
    }

    /// By how many milliseconds sessions have been held so far: by as many the ends of sessions that
    /// were set before are later.
    pub fn held(&self) -> i64 {
        self.held.load(Ordering::Acquire)
    }

    /// Moves state time forward to `to`; an earlier time is ignored. With `hold_sessions`, session
    /// time stays where it is.
    pub fn advance_to(&self, to: Ts, hold_sessions: bool) {
        let by = to - self.now();
        if by <= 0 {
            return;
        }
        if hold_sessions {
            self.held.fetch_add(by, Ordering::AcqRel);
        }
        match &self.frozen {
            Some(now) => now.fetch_add(by, Ordering::AcqRel),
            None => self.base.fetch_add(by, Ordering::AcqRel),
        };
        self.moved.notify_waiters();
    }

    /// After a restart: state time starts no earlier than the newest time in the data.
    pub fn start_at_least(&self, newest: Ts) {
        self.advance_to(newest, false);
    }

    /// Waits until state time reaches `deadline`, or the clock is moved, or `changed` is told.
    /// `None` waits for the latter two only.
    pub async fn wait(&self, deadline: Option<Ts>, changed: &Notify) {
        let moved = self.moved.notified();
        let sleep = async {
            match deadline {
                Some(at) if self.frozen.is_none() => {
                    let ms = (at - self.now()).max(0) as u64;
                    // One millisecond more: state time is truncated, a wake-up must not come early.
                    tokio::time::sleep(Duration::from_millis(ms + u64::from(ms > 0))).await;
                }
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = changed.notified() => {}
            () = moved => {}
            () = sleep => {}
        }
    }
}

/// A wire wait: `None` if `future` did not finish within `ms` milliseconds of real time.
pub async fn wire_timeout<F: Future>(ms: u64, future: F) -> Option<F::Output> {
    tokio::time::timeout(Duration::from_millis(ms), future)
        .await
        .ok()
}

/// Sleeps on the wire's time, in milliseconds; for pauses that no state depends on.
pub async fn wire_sleep(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// A point on the wire's time, for request deadlines.
#[derive(Debug, Clone, Copy)]
pub struct WireDeadline(tokio::time::Instant);

impl WireDeadline {
    /// `ms` milliseconds from now; negative counts as none.
    pub fn after(ms: i64) -> Self {
        let ms = ms.clamp(0, i64::from(i32::MAX)) as u64;
        Self(tokio::time::Instant::now() + Duration::from_millis(ms))
    }

    /// Whether it has passed.
    pub fn passed(self) -> bool {
        tokio::time::Instant::now() >= self.0
    }

    /// `None` if the deadline passed first.
    pub async fn bound<F: Future>(self, future: F) -> Option<F::Output> {
        tokio::time::timeout_at(self.0, future).await.ok()
    }
}

/// Measures how long something took, for metrics.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since the start.
    pub fn seconds(self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }

    /// Milliseconds since the start.
    pub fn ms(self) -> f64 {
        self.seconds() * 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frozen_clock_moves_only_when_told_and_never_back() {
        let clock = Clock::frozen(1_000);
        clock.advance_to(1_500, false);
        clock.advance_to(1_200, false);
        assert_eq!(clock.now(), 1_500);
    }

    #[test]
    fn held_sessions_see_no_time_pass() {
        let clock = Clock::frozen(1_000);
        clock.advance_to(61_000, true);
        assert_eq!((clock.now(), clock.session_now()), (61_000, 1_000));
        assert_eq!(clock.held(), 60_000);
    }
}
