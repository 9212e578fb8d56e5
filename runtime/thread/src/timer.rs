//! Instants that come again: periodic and one-shot timeouts for threads that wait for them.

use punctual_model::{Instant, Ns, Span};

use crate::thread::{now, sleep_until};

/// Instants at a fixed distance, counted from its making: late or not, the next one is where it
/// belongs.
///
/// A thread that has a guarantee for its work uses a periodic constraint instead; this is for a
/// thread that only wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timer {
    next: Instant<Ns>,
    period: Span<Ns>,
}

impl Timer {
    /// Once, `span` from now; `None` outside of a run.
    pub fn after(span: Span<Ns>) -> Option<Timer> {
        Some(Timer {
            next: now()?.saturating_add(span),
            period: Span::ZERO,
        })
    }

    /// Every `period`, for the first time one period from now; `None` outside of a run. A period of
    /// zero is once, at once.
    pub fn every(period: Span<Ns>) -> Option<Timer> {
        let timer = Timer::after(period)?;
        Some(Timer { period, ..timer })
    }

    /// For the first time at `next`, an instant of the run in nanoseconds, then every `period`;
    /// once if that is zero.
    pub const fn starting(next: Instant<Ns>, period: Span<Ns>) -> Timer {
        Timer { next, period }
    }

    /// The next instant, in nanoseconds of the run, for the `_until` calls.
    pub fn next(&self) -> Instant<Ns> {
        self.next
    }

    /// Sleeps until the next instant; returns how many have passed since the last call, 1 when none
    /// was missed. A one-shot timer that has passed returns 0 at once.
    pub fn wait(&mut self) -> u64 {
        if self.next == Instant::MAX {
            return 0;
        }
        sleep_until(self.next);
        self.pass(now().unwrap_or(self.next).max(self.next))
    }

    /// It is `now`, at or after the next instant.
    fn pass(&mut self, now: Instant<Ns>) -> u64 {
        if self.period.is_zero() {
            self.next = Instant::MAX;
            return 1;
        }
        let passed = 1 + now.since(self.next).as_ns() / self.period.as_ns();
        let ahead = self.period.as_ns().saturating_mul(passed);
        self.next = self.next.saturating_add(Span::from_ns(ahead));
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_stay_where_they_belong_and_missed_ones_are_counted() {
        let at = Instant::from_ns;
        let mut timer = Timer {
            next: at(100),
            period: Span::from_ns(100),
        };
        assert_eq!((timer.pass(at(100)), timer.next()), (1, at(200)));
        assert_eq!((timer.pass(at(299)), timer.next()), (1, at(300)));
        assert_eq!((timer.pass(at(555)), timer.next()), (3, at(600)));
        let mut once = Timer {
            next: at(5),
            period: Span::ZERO,
        };
        assert_eq!((once.pass(at(7)), once.wait()), (1, 0));
        assert_eq!(Timer::every(Span::from_ns(1)), None, "outside of a run");
    }
}
