//! How long preemptions waited for code that must be left first.
//!
//! A wait begins with the signal that finds such code and ends with the entry that takes the
//! preemption.

use core::cell::Cell;

use punctual_model::{Instant, Span};

use super::distribution::Distribution;

/// The waits of one CPU. To be used with its gate closed.
#[derive(Debug)]
pub(crate) struct Deferral {
    since: Cell<Option<Instant>>,
    waits: Distribution,
}

impl Deferral {
    /// No wait so far. Allocates 4 KiB.
    pub(crate) fn new() -> Deferral {
        Deferral {
            since: Cell::new(None),
            waits: Distribution::new(),
        }
    }

    /// Whether a preemption waits.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.since.get().is_some()
    }

    /// A preemption has to wait (still): how long it has so far, and whether it is a new one.
    pub(crate) fn go_on(&self, now: Instant) -> (Span, bool) {
        let since = self.since.get().unwrap_or(now);
        let is_new = self.since.replace(Some(since)).is_none();
        (now.since(since), is_new)
    }

    /// The wait, if there is one, is over. O(1).
    #[inline]
    pub(crate) fn end(&self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.waits.keep(now.since(since));
        }
    }

    /// The waits that are over.
    pub(crate) fn waits(&self) -> &Distribution {
        &self.waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_lasts_from_the_first_signal_to_its_end() {
        let deferral = Deferral::new();
        for n in 0..100_u64 {
            let start = Instant::from_ticks(1_000_000 * n);
            assert_eq!(deferral.go_on(start), (Span::ZERO, true));
            let again = start.saturating_add(Span::from_ticks(n / 2));
            assert_eq!(deferral.go_on(again), (Span::from_ticks(n / 2), false));
            assert!(deferral.is_open());
            deferral.end(start.saturating_add(Span::from_ticks(n)));
            deferral.end(start.saturating_add(Span::from_ticks(900_000)));
        }
        assert!(!deferral.is_open());
        assert_eq!(deferral.waits().count(), 100);
        assert_eq!(deferral.waits().longest(), Span::from_ticks(99));
    }
}
