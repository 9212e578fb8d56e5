//! What a run leaves of a CPU to the rest of the system, so that the kernel takes nothing by force.
//!
//! The kernel's fair server takes 50 ms in one piece from real-time threads when normal ones got
//! less than that in a second, and the throttling of the class stops it after 950 ms. A CPU that
//! sleeps 62.5 ms in each second meets neither. Most sleep more of their own will. What is lacking
//! is given in slices: in holes, where background work runs, and out of the time of others only
//! where admission found that guaranteed work may leave less (`measure::share`).

use punctual_kern::{MissingCause, Taker, Uncharged};
use punctual_model::{Instant, Span};

use crate::record::input::{GiveBack, SHORTEST_DISTANCE_NS};
use crate::record::limits::WAKE_MARGIN_NS;
use crate::time::clock::Clock;

/// The part of time that is left: one in so many, which is 62.5 ms in each second.
pub(crate) const ONE_IN: u64 = 16;
/// The length of a slice, the wake-up at its end included.
pub(crate) const SLICE_NS: u64 = 600_000;
/// Sleep is credited for so long at most: in any 950 ms at least 50 ms are slept, though the kernel
/// counts from an instant that nobody here knows.
const CREDIT_NS: u64 = 120_000_000;
/// More is never owed: the kernel has taken it meanwhile.
const DEBT_NS: u64 = 750_000_000;
/// Who owes this much gives slices out of anybody's time: the machine took more than admission knew
/// of, and the kernel would take 50 ms at once, once a second, for good.
const PATIENCE_NS: u64 = 700_000_000;
/// From the start of one such slice to that of the next: then they are a sixteenth.
const HURRIED_NS: u64 = SHORTEST_DISTANCE_NS;
/// A hole that is shorter than this is not worth leaving.
const SHORTEST_NS: u64 = 30_000;
/// The last part of a slice, and of a hole that is no shorter than a few of them, is spent awake.
pub(crate) const AWAKE_NS: u64 = WAKE_MARGIN_NS;

/// For whom a CPU works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Runs {
    /// For nobody.
    Nobody,
    /// Work without a guarantee.
    Background,
    Urgent,
}

/// What a CPU owes to the rest of the system, and when it gives it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owed {
    /// The rest has had its part up to here; afterwards a slice is due.
    pub(crate) due: Instant,
    /// Background work runs up to here before it gives the next slice: news ends a slice early, and
    /// may do so each time.
    rested: Instant,
    /// The start of the last slice out of the time of guaranteed work.
    last: Instant,
    /// From there to the start of the next, at least, as admission counts them.
    every: Span,
    /// The same for one who owes more than `patience`.
    hurried: Span,
    patience: Span,
    slice: Span,
    shortest: Span,
    credit: Span,
    debt: Span,
}

impl Owed {
    /// From the start of a run on. `None`: nothing is ever given.
    pub(crate) fn new(how: GiveBack, clock: &Clock) -> Option<Owed> {
        let ticks = |ns| Span::from_ticks(clock.ticks(ns));
        let every = match how {
            GiveBack::Nothing => return None,
            GiveBack::Holes => Span::MAX,
            GiveBack::Slices { every_ns } => ticks(every_ns),
        };
        Some(Owed {
            due: Instant::ZERO.saturating_add(ticks(SLICE_NS).saturating_mul(ONE_IN)),
            rested: Instant::ZERO,
            last: Instant::ZERO,
            every,
            hurried: ticks(HURRIED_NS),
            patience: ticks(PATIENCE_NS),
            slice: ticks(SLICE_NS),
            shortest: ticks(SHORTEST_NS),
            credit: ticks(CREDIT_NS),
            debt: ticks(DEBT_NS),
        })
    }

    /// The end of the slice that is given now, on a CPU that works for such a one and has nothing
    /// else to do before `due`. `None`: none is. (A CPU that idles sleeps anyway.)
    pub(crate) fn slice(&mut self, now: Instant, runs: Runs, due: Instant) -> Option<Instant> {
        if !self.gives(now, runs) {
            return None;
        }
        let end = now.saturating_add(self.slice);
        if runs == Runs::Background {
            if due.since(now) < self.shortest {
                return None;
            }
            let end = end.min(due);
            self.rested = end.saturating_add(self.slice);
            return Some(end);
        }
        self.last = now;
        Some(end)
    }

    /// Whether a slice is due on a CPU that works for such a one.
    pub(crate) fn gives(&self, now: Instant, runs: Runs) -> bool {
        match runs {
            Runs::Nobody => false,
            Runs::Background => self.due <= now && self.rested <= now,
            Runs::Urgent => self.due_of_urgent() <= now,
        }
    }

    /// When the next slice out of the time of guaranteed work is due.
    fn due_of_urgent(&self) -> Instant {
        let counted = self.due.max(self.last.saturating_add(self.every));
        let owing = self.due.saturating_add(self.patience);
        counted.min(owing.max(self.last.saturating_add(self.hurried)))
    }

    /// When a CPU that works looks again whether a slice is due: when it owes one, and when one is
    /// to be given out of the time of others.
    pub(crate) fn next(&self, now: Instant) -> Instant {
        if self.due > now {
            return self.due;
        }
        // What was due and did not fit is looked at when something else comes up.
        let next = [self.rested, self.due_of_urgent()].into_iter();
        next.filter(|at| *at > now).min().unwrap_or(Instant::MAX)
    }

    /// The CPU slept from `from` to `to`.
    pub(crate) fn note_sleep(&mut self, from: Instant, to: Instant) {
        let least = Instant::from_ticks(to.ticks().saturating_sub(self.debt.ticks()));
        let paid = to.since(from).saturating_mul(ONE_IN);
        let due = self.due.max(least).saturating_add(paid);
        self.due = due.min(to.saturating_add(self.credit));
    }
}

/// What was nobody's in an interval in which the CPU was left for so long: that, and what was taken
/// beyond it. A wake-up that is late by less than `late` belongs to the slice.
pub(crate) fn of_slice(interval: Span, planned: Span, late: Span) -> Uncharged {
    let beyond = interval.saturating_sub(planned);
    if beyond <= late {
        return Uncharged::of(MissingCause::GivenBack, interval);
    }
    Uncharged {
        given_back: planned,
        ..Uncharged::by(Taker::LateSlice, beyond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::clock::{ClockRate, ClockSource};
    use punctual_model::Frequency;

    #[test]
    fn a_slice_that_does_not_come_back_is_given_as_planned_and_taken_beyond() {
        let of = |interval| {
            let span = Span::from_ticks;
            let missing = of_slice(span(interval), span(600), span(50));
            (missing.given_back.ticks(), missing.stolen.ticks())
        };
        assert_eq!(of(580), (580, 0));
        assert_eq!(of(650), (650, 0));
        assert_eq!(of(651), (600, 51));
        assert_eq!(of(49_000), (600, 48_400));
        let late = of_slice(Span::from_ticks(49_000), Span::from_ticks(600), Span::ZERO);
        assert_eq!(late.taker, Taker::LateSlice);
    }

    const MS: u64 = 1_000_000;

    fn at(ns: u64) -> Instant {
        Instant::from_ticks(ns)
    }

    fn owed(how: GiveBack) -> Owed {
        let rate = ClockRate {
            source: ClockSource::KernelClock,
            frequency: Frequency::NANOSECONDS,
            error_ppm: 0,
        };
        Owed::new(how, &Clock::starting_in(rate, 0)).expect("something is given")
    }

    #[test]
    fn background_work_gives_its_time_and_urgent_work_gives_none() {
        let mut owed = owed(GiveBack::Holes);
        let due = owed.due;
        assert!((9 * MS..=10 * MS).contains(&due.ticks()));
        assert_eq!(owed.next(at(0)), due);
        let owing = due.saturating_add(Span::from_ticks(PATIENCE_NS));
        assert_eq!(owed.next(due), owing);
        let far = Instant::MAX;
        assert_eq!(owed.slice(at(due.ticks() - 1), Runs::Background, far), None);
        let end = due.saturating_add(Span::from_ticks(SLICE_NS));
        assert_eq!(owed.slice(due, Runs::Background, far), Some(end));
        // Then it runs for as long, whatever ended the slice.
        let rested = end.saturating_add(Span::from_ticks(SLICE_NS));
        assert_eq!(owed.next(due), rested);
        assert_eq!(owed.slice(end, Runs::Background, far), None);
        assert!(owed.slice(rested, Runs::Background, far).is_some());
        // It ends with the hole, and a small one is left alone.
        let mut owed = self::owed(GiveBack::Holes);
        let sooner = due.saturating_add(Span::from_ticks(20_000));
        assert_eq!(owed.slice(due, Runs::Background, sooner), None);
        let soon = due.saturating_add(Span::from_ticks(300_000));
        assert_eq!(owed.slice(due, Runs::Background, soon), Some(soon));
        let mut owed = self::owed(GiveBack::Holes);
        assert_eq!(owed.slice(due, Runs::Urgent, far), None);
        assert_eq!(owed.slice(due, Runs::Nobody, far), None);
        // But for one whose time the kernel is about to take at once.
        assert_eq!(owed.slice(at(owing.ticks() - 1), Runs::Urgent, far), None);
        let end = owing.saturating_add(Span::from_ticks(SLICE_NS));
        assert_eq!(owed.slice(owing, Runs::Urgent, far), Some(end));
        assert_eq!(owed.slice(end, Runs::Urgent, far), None);
        let next = owing.saturating_add(Span::from_ticks(HURRIED_NS));
        assert!(owed.slice(next, Runs::Urgent, far).is_some());
    }

    #[test]
    fn urgent_work_gives_a_slice_where_admission_counts_on_it_and_no_sooner() {
        let every_ns = 30 * MS;
        let mut owed = owed(GiveBack::Slices { every_ns });
        let far = Instant::MAX;
        assert_eq!(owed.next(owed.due), at(every_ns));
        assert_eq!(owed.slice(at(every_ns - 1), Runs::Urgent, far), None);
        let end = Some(at(every_ns + SLICE_NS));
        assert_eq!(owed.slice(at(every_ns), Runs::Urgent, far), end);
        owed.note_sleep(at(every_ns), at(every_ns + SLICE_NS));
        assert_eq!(owed.slice(at(2 * every_ns - 1), Runs::Urgent, far), None);
        // A CPU that has slept meanwhile owes nothing.
        owed.note_sleep(at(40 * MS), at(50 * MS));
        assert_eq!(owed.slice(at(2 * every_ns), Runs::Urgent, far), None);
    }

    /// In any 950 ms at least 50 ms are slept, whatever the CPU does of its own will: else the
    /// kernel would take them.
    #[test]
    fn every_window_of_the_kernel_has_its_share() {
        let mut dice = punctual_generate::Dice::new(3);
        for _ in 0..200 {
            let mut owed = owed(GiveBack::Holes);
            let mut sleeps: Vec<(u64, u64)> = Vec::new();
            let mut now = 0;
            while now < 4_000 * MS {
                // Urgent work and holes of their own lengths, of which the CPU sleeps in some.
                let busy = dice.below(8 * MS);
                now += busy;
                let hole = dice.below(9 * MS) + MS;
                let end = now + hole;
                if dice.below(3) == 0 {
                    sleeps.push((now, end));
                    owed.note_sleep(at(now), at(end));
                    now = end;
                }
                while now < end {
                    let due = at(end);
                    match owed.slice(at(now), Runs::Background, due) {
                        Some(until) => {
                            sleeps.push((now, until.ticks()));
                            owed.note_sleep(at(now), until);
                            now = until.ticks();
                        }
                        None => now = owed.next(at(now)).min(due).ticks(),
                    }
                }
            }
            let slept = |from: u64| -> u64 {
                let to = from + 950 * MS;
                let part = |&(a, b): &(u64, u64)| b.min(to).saturating_sub(a.max(from));
                sleeps.iter().map(part).sum()
            };
            for &(_, from) in sleeps.iter().filter(|s| s.1 < 3_000 * MS) {
                assert!(slept(from) >= 50 * MS, "{} in 950 ms", slept(from));
            }
        }
    }
}
