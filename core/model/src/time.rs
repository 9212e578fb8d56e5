//! Instants, spans and work: three quantities that must not be mixed.
//!
//! All three are unsigned 64-bit counts of the same tick, but a sum of two instants or a comparison
//! of a deadline with an amount of work is a mistake, so they are three types. 2^64 ns are 584
//! years, 2^64 cycles at 4 GHz are 146 years: a timeline that starts at 0 cannot wrap in use, and
//! arithmetic that may leave the range is `checked_` or says that it saturates.

use core::fmt;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(u64);

        impl $name {
            /// Zero ticks.
            pub const ZERO: $name = $name(0);
            /// The largest value.
            pub const MAX: $name = $name(u64::MAX);

            /// `ticks` ticks of the timeline (nanoseconds in files, analyses and virtual time).
            #[inline]
            pub const fn from_ticks(ticks: u64) -> Self {
                $name(ticks)
            }

            /// The count of ticks.
            #[inline]
            pub const fn ticks(self) -> u64 {
                self.0
            }

            /// `ns` nanoseconds on a timeline that counts nanoseconds.
            #[inline]
            pub const fn from_ns(ns: u64) -> Self {
                $name(ns)
            }

            /// `us` microseconds on a timeline that counts nanoseconds; saturates at the largest
            /// value.
            #[inline]
            pub const fn from_us(us: u64) -> Self {
                $name(us.saturating_mul(1_000))
            }

            /// `ms` milliseconds on a timeline that counts nanoseconds; saturates at the largest
            /// value.
            #[inline]
            pub const fn from_ms(ms: u64) -> Self {
                $name(ms.saturating_mul(1_000_000))
            }

            /// The value in nanoseconds, for a timeline that counts nanoseconds.
            #[inline]
            pub const fn as_ns(self) -> u64 {
                self.0
            }

            /// Whether the value is zero.
            #[inline]
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

quantity!(
    /// A point on a timeline, in ticks since its origin (the start of the run).
    Instant
);
quantity!(
    /// The length of an interval of time, in ticks. (Not `Duration`, which is `core`'s.)
    Span
);
quantity!(
    /// Processor service, in ticks of execution. A job that was preempted for 2 ms and ran for 1 ms
    /// has received 1 ms of work in a span of 3 ms.
    Work
);

impl Instant {
    /// The instant `span` later, or `None` past the end of the timeline.
    #[inline]
    pub const fn checked_add(self, span: Span) -> Option<Instant> {
        match self.0.checked_add(span.0) {
            Some(t) => Some(Instant(t)),
            None => None,
        }
    }

    /// The instant `span` later, or the end of the timeline.
    #[inline]
    pub const fn saturating_add(self, span: Span) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }

    /// The instant `span` earlier, or the origin.
    #[inline]
    pub const fn saturating_sub(self, span: Span) -> Instant {
        Instant(self.0.saturating_sub(span.0))
    }

    /// The span from `earlier` to here, or `None` when `earlier` is later.
    #[inline]
    pub const fn checked_since(self, earlier: Instant) -> Option<Span> {
        match self.0.checked_sub(earlier.0) {
            Some(d) => Some(Span(d)),
            None => None,
        }
    }

    /// The span from `earlier` to here, zero when `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Instant) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Signed ticks from `other` to here (lateness when `other` is a deadline); saturates.
    #[inline]
    pub fn signed_since(self, other: Instant) -> i64 {
        if self.0 >= other.0 {
            i64::try_from(self.0 - other.0).unwrap_or(i64::MAX)
        } else {
            i64::try_from(other.0 - self.0).map_or(i64::MIN, |d| -d)
        }
    }
}

impl Span {
    /// The sum, or `None` on overflow.
    #[inline]
    pub const fn checked_add(self, other: Span) -> Option<Span> {
        match self.0.checked_add(other.0) {
            Some(s) => Some(Span(s)),
            None => None,
        }
    }

    /// The sum, at most [`Span::MAX`].
    #[inline]
    pub const fn saturating_add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    #[inline]
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// `n` times the span, or `None` on overflow.
    #[inline]
    pub const fn checked_mul(self, n: u64) -> Option<Span> {
        match self.0.checked_mul(n) {
            Some(s) => Some(Span(s)),
            None => None,
        }
    }

    /// The work that a processor does when it executes for this whole span.
    #[inline]
    pub const fn as_work(self) -> Work {
        Work(self.0)
    }
}

impl Work {
    /// The sum, or `None` on overflow.
    #[inline]
    pub const fn checked_add(self, other: Work) -> Option<Work> {
        match self.0.checked_add(other.0) {
            Some(w) => Some(Work(w)),
            None => None,
        }
    }

    /// The sum, at most [`Work::MAX`].
    #[inline]
    pub const fn saturating_add(self, other: Work) -> Work {
        Work(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    #[inline]
    pub const fn saturating_sub(self, other: Work) -> Work {
        Work(self.0.saturating_sub(other.0))
    }

    /// The span in which an undisturbed processor does this work.
    #[inline]
    pub const fn as_span(self) -> Span {
        Span(self.0)
    }
}

/// How many ticks of a platform make a second: the one place where ticks become nanoseconds.
///
/// Demand is rounded up and supply is rounded down (design note 0002), so both directions exist
/// twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frequency {
    hertz: u64,
}

const NS_PER_SECOND: u128 = 1_000_000_000;

impl Frequency {
    /// A timeline that counts nanoseconds.
    pub const NANOSECONDS: Frequency = Frequency {
        hertz: 1_000_000_000,
    };

    /// A tick rate; `None` for zero.
    pub const fn try_new(hertz: u64) -> Option<Frequency> {
        if hertz == 0 {
            None
        } else {
            Some(Frequency { hertz })
        }
    }

    /// Ticks per second.
    pub const fn hertz(self) -> u64 {
        self.hertz
    }

    /// Nanoseconds to ticks, rounded up (for demand and for instants before which nothing may
    /// happen).
    #[inline]
    pub fn ticks_up(self, ns: u64) -> u64 {
        saturate((u128::from(ns) * u128::from(self.hertz)).div_ceil(NS_PER_SECOND))
    }

    /// Nanoseconds to ticks, rounded down (for supply).
    #[inline]
    pub fn ticks_down(self, ns: u64) -> u64 {
        saturate(u128::from(ns) * u128::from(self.hertz) / NS_PER_SECOND)
    }

    /// Ticks to nanoseconds, rounded up (for observed responses and demand).
    #[inline]
    pub fn ns_up(self, ticks: u64) -> u64 {
        saturate((u128::from(ticks) * NS_PER_SECOND).div_ceil(u128::from(self.hertz)))
    }

    /// Ticks to nanoseconds, rounded down (for supply).
    #[inline]
    pub fn ns_down(self, ticks: u64) -> u64 {
        saturate(u128::from(ticks) * NS_PER_SECOND / u128::from(self.hertz))
    }
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_signed_and_saturates() {
        let t = Instant::from_ticks;
        assert_eq!(t(7).signed_since(t(10)), -3);
        assert_eq!(t(10).signed_since(t(7)), 3);
        assert_eq!(t(u64::MAX).signed_since(t(0)), i64::MAX);
        assert_eq!(t(0).signed_since(t(u64::MAX)), i64::MIN);
    }

    #[test]
    fn conversion_rounds_demand_up_and_supply_down() {
        let f = Frequency::try_new(2_250_000_000).expect("not zero");
        assert_eq!(f.ticks_up(1), 3);
        assert_eq!(f.ticks_down(1), 2);
        assert_eq!(f.ns_up(1), 1);
        assert_eq!(f.ns_down(1), 0);
        assert_eq!(f.ns_up(f.ticks_up(1_000_000)), 1_000_000);
    }

    #[test]
    fn the_ends_of_the_timeline_do_not_wrap() {
        assert_eq!(Instant::MAX.checked_add(Span::from_ticks(1)), None);
        assert_eq!(
            Instant::MAX.saturating_add(Span::from_ticks(1)),
            Instant::MAX
        );
        assert_eq!(Instant::ZERO.checked_since(Instant::from_ticks(1)), None);
        assert_eq!(Frequency::NANOSECONDS.ticks_up(u64::MAX), u64::MAX);
    }
}
