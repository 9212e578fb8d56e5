//! Timers of releases that are set early: the lateness of a timer is not that of a release.
//!
//! From the instant for which a timer is set to the scheduler's entry it takes some microseconds,
//! on a virtual machine some tens. The timer of a thread that comes by the clock is set that much
//! earlier, and the handler waits for the instant where it comes too early. The margin follows the
//! lateness of the timers before: three in four come late by a little, one waits a little, so
//! hardly any time is spent on waiting.
//!
//! The end of a budget is not such an instant: a thread has all of its budget.
//!
//! The margin has a limit ([`early_ns`]): the part before the release and the part behind it are
//! together no longer than admission counts for a preemption. That time lasts from the instant for
//! which a timer is set to the successor's first instruction.

use core::cell::Cell;

use punctual_model::Instant;

/// More than this is not worth the waiting.
const LARGEST_NS: u64 = 40_000;
/// A late timer adds this to the margin; one that comes early takes [`EARLY_STEPS`] times as much
/// off it. So one in four is early.
pub(crate) const STEP_NS: u64 = 500;
const EARLY_STEPS: u64 = 3;

/// How much earlier than a release its timer may be set, in nanoseconds, where a preemption takes
/// `preemption` from the instant that its timer is set for to the successor's first instruction,
/// `dispatch` of that from the scheduler's entry on. Then both parts, before the release and behind
/// it, are no longer than `preemption`, however late the timer comes.
pub(crate) fn early_ns(preemption: u64, dispatch: u64) -> u64 {
    (preemption / 2)
        .min(preemption.saturating_sub(dispatch))
        .min(LARGEST_NS)
}

/// The margin of one CPU, in ticks. Gate closed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Early {
    limit: u64,
    step: u64,
    margin: Cell<u64>,
    /// How much earlier than armed for the timer was set.
    ahead: Cell<u64>,
}

impl Early {
    /// Up to `limit`, following by `step`.
    pub(crate) fn new(limit: u64, step: u64) -> Early {
        Early {
            limit,
            step,
            ..Early::default()
        }
    }

    /// The instant to set the timer for, so that a release at `due` is in time.
    pub(crate) fn before(&self, due: Instant, now: Instant) -> Instant {
        let margin = self.margin.get();
        let is_far = due.since(now).ticks() > margin;
        self.ahead.set(if is_far { margin } else { 0 });
        Instant::from_ticks(due.ticks() - self.ahead.get())
    }

    /// The timer is set for this very instant.
    pub(crate) fn exactly(&self, due: Instant) -> Instant {
        self.ahead.set(0);
        due
    }

    /// A timer for `due` has come at `now`. Returns for how long it may be waited for here.
    pub(crate) fn came(&self, due: Instant, now: Instant) -> u64 {
        let ahead = self.ahead.get();
        // One that is late by much more says nothing about the next.
        let margin = if due > now {
            self.margin.get().saturating_sub(EARLY_STEPS * self.step)
        } else {
            self.margin.get() + self.step
        };
        if ahead > 0 || self.margin.get() == 0 {
            self.margin.set(margin.min(self.limit));
        }
        ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: u64) -> Instant {
        Instant::from_ticks(ticks)
    }

    /// Timers every 1,000 ticks that come so late; returns how many came early, and how late the
    /// others were at most, of the last hundred.
    fn after(early: &Early, rounds: u64, lateness: impl Fn(u64) -> u64) -> (usize, u64) {
        let mut last = Vec::new();
        for round in 1..=rounds {
            let due = at(1_000 * round);
            let fires = early.before(due, at(due.ticks() - 1_000));
            let came = at(fires.ticks() + lateness(round));
            let waits = early.came(due, came);
            assert!(due.since(came).ticks() <= waits, "it may wait for as long");
            last.push((came < due, came.since(due).ticks()));
        }
        let last = &last[last.len().saturating_sub(100)..];
        let early = last.iter().filter(|(early, _)| *early).count();
        let late = last.iter().map(|(_, late)| *late).max();
        (early, late.unwrap_or(0))
    }

    #[test]
    fn the_margin_follows_the_lateness_and_one_in_four_comes_early() {
        let early = Early::new(100, 1);
        let (first, late) = after(&early, 400, |_| 45);
        assert_eq!((first, late), (25, 2));
        let (then, late) = after(&early, 400, |_| 7);
        assert_eq!((then, late), (25, 2));
    }

    #[test]
    fn the_margin_has_a_limit_and_without_one_nothing_is_early() {
        let early = Early::new(20, 1);
        assert_eq!(after(&early, 400, |_| 45), (0, 25));
        let never = Early::new(0, 1);
        assert_eq!(after(&never, 400, |_| 45), (0, 45));
    }

    #[test]
    fn what_is_due_sooner_than_the_margin_is_set_for_the_instant() {
        let early = Early::new(100, 1);
        let _ = after(&early, 400, |_| 45);
        assert_eq!(early.before(at(1_000), at(990)), at(1_000));
        assert_eq!(early.came(at(1_000), at(1_045)), 0);
        assert!(early.before(at(1_000), at(0)) < at(960));
        assert_eq!(early.exactly(at(1_000)), at(1_000));
        assert_eq!(early.came(at(1_000), at(1_045)), 0);
    }

    #[test]
    fn before_and_behind_the_release_are_together_no_longer_than_a_preemption() {
        assert_eq!(early_ns(30_000, 10_000), 15_000);
        assert_eq!(
            early_ns(30_000, 20_000),
            10_000,
            "the longer part is behind it"
        );
        assert_eq!(early_ns(900_000, 10_000), LARGEST_NS);
        assert_eq!([early_ns(0, 0), early_ns(10_000, 12_000)], [0, 0]);
    }
}
