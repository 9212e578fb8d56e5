//! Slices of a CPU that a run gives back to the rest of the system.

use punctual_kern::{MissingCause, Uncharged};
use punctual_model::{Instant, Span};

/// When slices are given back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GiveBack {
    /// The next one.
    pub(crate) due: Instant,
    /// From the end of one to the start of the next.
    pub(crate) distance: Span,
    /// How long a sleep must be to count as one.
    pub(crate) slice: Span,
}

impl GiveBack {
    /// Whether a slice is given back now, on a CPU that idles until `due` or does not. One that
    /// will idle for long need not: its sleep is one. One that will idle for a moment gives early
    /// what it would else give out of somebody's time, in the holes of a frame above all. That
    /// delays nobody: who comes later meets the next slice a whole distance after this one.
    pub(crate) fn is_now(&self, now: Instant, idle: bool, due: Instant) -> bool {
        if !idle {
            return self.due <= now;
        }
        let long = self.slice.saturating_add(self.slice);
        self.due <= due && due.since(now) <= long
    }
}

/// What was nobody's since a slice began: the slice as planned, and what was taken beyond it. A
/// wake-up that is late by less than `late` belongs to the slice.
pub(crate) fn of_slice(interval: Span, slice: Span, late: Span) -> Uncharged {
    let beyond = interval.saturating_sub(slice);
    if beyond <= late {
        return Uncharged::of(MissingCause::GivenBack, interval);
    }
    Uncharged {
        stolen: beyond,
        given_back: slice,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    #[test]
    fn a_slice_goes_into_a_hole_that_is_too_short_to_sleep_in() {
        let at = Instant::from_ticks;
        let g = GiveBack {
            due: at(1_000),
            distance: Span::from_ticks(940),
            slice: Span::from_ticks(60),
        };
        // Somebody runs: when it is due, not before.
        assert!(!g.is_now(at(999), false, at(999)));
        assert!(g.is_now(at(1_000), false, at(1_000)));
        // A hole at whose end it would be due, or overdue; one that ends before.
        assert!(g.is_now(at(910), true, at(1_000)));
        assert!(g.is_now(at(950), true, at(1_010)));
        assert!(!g.is_now(at(910), true, at(999)));
        // A hole in which to sleep is a slice itself.
        assert!(!g.is_now(at(910), true, at(1_031)));
    }
}
