//! A thread that may be waiting for a lock inside the C library, by what signals find.
//!
//! A wait in the kernel shows in the registers. A wait that looks again and again does not: the
//! thread is in a function that spins each time a signal comes. The record is the thread's own,
//! because others run between the signals, and a preemption may be taken while it spins.

use core::cell::Cell;

use punctual_model::{Instant, Span};

/// A waiting thread tries again after this, then after twice the time, and so on.
const FIRST_LOOK_NS: u64 = 100_000;
const LOOK_DOUBLINGS: u32 = 4;
/// A thread that was found in a function that spins for so long is taken to be waiting for a lock
/// there, maybe one of a less urgent thread, that will not run before this one makes room.
pub(crate) const SPIN_LIMIT_NS: u64 = 20_000;
/// The time between two signals counts up to this: two calls of such a function, far apart, are no
/// wait.
pub(crate) const LONGEST_STEP_NS: u64 = SPIN_LIMIT_NS / 2;

/// What the signals found. To be used with the gate closed.
#[derive(Debug, Default)]
pub(crate) struct LibraryWait {
    /// When the last signal found it in a function that spins.
    found: Cell<Option<Instant>>,
    spun: Cell<Span>,
    /// How often in a row it was found waiting.
    looks: Cell<u32>,
}

impl LibraryWait {
    /// A signal found the thread in a function that spins, or elsewhere: for how long every signal
    /// has found it in one, no step counted for longer than `longest_step`.
    pub(crate) fn spins(&self, now: Instant, spins: bool, longest_step: Span) -> Span {
        let spun = match self.found.get() {
            Some(last) if spins => self
                .spun
                .get()
                .saturating_add(now.since(last).min(longest_step)),
            _ => Span::ZERO,
        };
        self.found.set(spins.then_some(now));
        self.spun.set(spun);
        spun
    }

    /// Whether the last signal found it in a function that spins.
    pub(crate) fn may_spin(&self) -> bool {
        self.found.get().is_some()
    }

    /// Whether the last signal found it waiting.
    pub(crate) fn is_open(&self) -> bool {
        self.looks.get() > 0
    }

    /// A signal found it waiting, or not: after how many nanoseconds it is to try again.
    pub(crate) fn next_try(&self, waits: bool) -> Option<u64> {
        let before = self.looks.get();
        self.looks.set(if waits { before + 1 } else { 0 });
        waits.then(|| FIRST_LOOK_NS << before.min(LOOK_DOUBLINGS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Span = Span::from_ticks(10);

    fn found(wait: &LibraryWait, at: u64, spins: bool) -> u64 {
        wait.spins(Instant::from_ticks(at), spins, STEP).ticks()
    }

    #[test]
    fn spinning_counts_from_its_own_beginning() {
        let wait = LibraryWait::default();
        assert_eq!(found(&wait, 900, true), 0);
        assert_eq!(found(&wait, 904, true), 4);
        assert_eq!(found(&wait, 909, true), 9);
        // Out of the function, and into it again.
        assert_eq!(found(&wait, 910, false), 0);
        assert!(!wait.may_spin());
        assert_eq!(found(&wait, 911, true), 0);
        assert!(wait.may_spin());
    }

    #[test]
    fn signals_far_apart_are_no_wait_until_there_are_many() {
        let wait = LibraryWait::default();
        let spun = [0, 1_000, 50_000, 51_000].map(|at| found(&wait, at, true));
        assert_eq!(spun, [0, 10, 20, 30]);
    }

    #[test]
    fn each_try_waits_for_twice_the_time_up_to_a_limit() {
        let wait = LibraryWait::default();
        let tries = [true; 7].map(|waits| wait.next_try(waits).expect("it waits"));
        assert_eq!(tries.map(|ns| ns / FIRST_LOOK_NS), [1, 2, 4, 8, 16, 16, 16]);
        assert!(wait.is_open());
        assert_eq!(wait.next_try(false), None);
        assert!(!wait.is_open());
        assert_eq!(wait.next_try(true), Some(FIRST_LOOK_NS));
    }
}
