//! How long a question may take: the only place of this crate that reads time.

use std::time::Duration;

use tokio::time::Instant;

/// The latest moment at which an answer is still wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// So many milliseconds from now.
    pub(crate) fn after(ms: u64) -> Self {
        // Far enough for anybody, and no overflow.
        let ms = ms.min(365 * 24 * 3_600_000);
        Self(Instant::now() + Duration::from_millis(ms))
    }

    /// The earlier of the two.
    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// `None` once it has passed, and the future is dropped.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place of this crate that reads time"
    )]
    pub(crate) async fn bound<F: Future>(self, future: F) -> Option<F::Output> {
        tokio::time::timeout_at(self.0, future).await.ok()
    }

    /// Lets time pass before the next attempt; `false`, at once, if there is no time for another one.
    #[expect(
        clippy::disallowed_methods,
        reason = "a broker that asks for patience is asked again a moment later"
    )]
    pub(crate) async fn pause(self, ms: u64) -> bool {
        let until = Instant::now() + Duration::from_millis(ms);
        if until >= self.0 {
            return false;
        }
        tokio::time::sleep_until(until).await;
        true
    }
}
