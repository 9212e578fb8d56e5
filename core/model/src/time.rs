//! Instants, spans and work, in nanoseconds or in ticks: quantities that must not be mixed
//!
//! A sum of two instants, or a comparison of a deadline with an amount of work, is a mistake; so is
//! a comparison of nanoseconds of a file with ticks of a platform. So there are three types, each
//! with its unit: [`Ns`] in files, systems and analyses, [`Ticks`] (the default) in the core and on
//! platforms. A [`Frequency`] converts, once, where a system becomes what a platform runs. All are
//! unsigned 64-bit counts: 2^64 ns are 584 years, 2^64 cycles at 4 GHz are 146 years. A timeline
//! that starts at 0 cannot wrap in use, and arithmetic that may leave the range is `checked_` or
//! says that it saturates.

use core::fmt;
use core::hash::Hash;
use core::marker::PhantomData;

use crate::readable::{Readable, readable};

/// The unit of a quantity of time: [`Ns`] or [`Ticks`].
pub trait Unit: Copy + Ord + Hash + Default + fmt::Debug + sealed::Sealed {}

/// Nanoseconds: the unit of files, systems, analyses and reports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Ns;

/// Ticks of a platform's clock: the unit of the core, the policies and the platforms. Virtual time
/// has a tick of one nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Ticks;

impl Unit for Ns {}
impl Unit for Ticks {}

mod sealed {
    /// Nobody else names a unit.
    pub trait Sealed {}
    impl Sealed for super::Ns {}
    impl Sealed for super::Ticks {}
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name<U = Ticks>(u64, PhantomData<U>);

        impl<U: Unit> $name<U> {
            /// Zero.
            pub const ZERO: $name<U> = $name::of(0);
            /// The largest value.
            pub const MAX: $name<U> = $name::of(u64::MAX);

            const fn of(count: u64) -> Self {
                $name(count, PhantomData)
            }

            /// Whether the value is zero.
            #[inline]
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }
        }

        impl $name<Ticks> {
            /// `ticks` ticks of the platform.
            #[inline]
            pub const fn from_ticks(ticks: u64) -> Self {
                $name::of(ticks)
            }

            /// The count of ticks.
            #[inline]
            pub const fn ticks(self) -> u64 {
                self.0
            }

            /// In nanoseconds, rounded up (for observed responses and demand); saturates.
            #[inline]
            pub fn ns_up(self, frequency: Frequency) -> $name<Ns> {
                $name::of(frequency.ns_up(self.0))
            }

            /// In nanoseconds, rounded down (for supply); saturates.
            #[inline]
            pub fn ns_down(self, frequency: Frequency) -> $name<Ns> {
                $name::of(frequency.ns_down(self.0))
            }
        }

        impl $name<Ns> {
            /// `ns` nanoseconds.
            #[inline]
            pub const fn from_ns(ns: u64) -> Self {
                $name::of(ns)
            }

            /// `us` microseconds; saturates at the largest value.
            #[inline]
            pub const fn from_us(us: u64) -> Self {
                $name::of(us.saturating_mul(1_000))
            }

            /// `ms` milliseconds; saturates at the largest value.
            #[inline]
            pub const fn from_ms(ms: u64) -> Self {
                $name::of(ms.saturating_mul(1_000_000))
            }

            /// The count of nanoseconds.
            #[inline]
            pub const fn as_ns(self) -> u64 {
                self.0
            }

            /// As people write it: `2.5ms`.
            pub const fn readable(self) -> Readable {
                readable(self.0)
            }

            /// In ticks, rounded up (for demand and for instants before which nothing may happen);
            /// saturates.
            #[inline]
            pub fn ticks_up(self, frequency: Frequency) -> $name<Ticks> {
                $name::of(frequency.ticks_up(self.0))
            }

            /// In ticks, rounded to the nearest; saturates.
            #[inline]
            pub fn ticks_nearest(self, frequency: Frequency) -> $name<Ticks> {
                $name::of(frequency.ticks_nearest(self.0))
            }
        }

        impl<U> fmt::Debug for $name<U> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

/// Sums, differences and multiples of amounts.
macro_rules! amount {
    ($name:ident) => {
        impl<U: Unit> $name<U> {
            /// The sum, or `None` on overflow.
            #[inline]
            pub const fn checked_add(self, other: Self) -> Option<Self> {
                match self.0.checked_add(other.0) {
                    Some(sum) => Some($name::of(sum)),
                    None => None,
                }
            }

            /// The sum, at most the largest value.
            #[inline]
            pub const fn saturating_add(self, other: Self) -> Self {
                $name::of(self.0.saturating_add(other.0))
            }

            /// The difference, or `None` when it is negative.
            #[inline]
            pub const fn checked_sub(self, other: Self) -> Option<Self> {
                match self.0.checked_sub(other.0) {
                    Some(rest) => Some($name::of(rest)),
                    None => None,
                }
            }

            /// The difference, at least zero.
            #[inline]
            pub const fn saturating_sub(self, other: Self) -> Self {
                $name::of(self.0.saturating_sub(other.0))
            }

            /// `n` times the amount, or `None` on overflow.
            #[inline]
            pub const fn checked_mul(self, n: u64) -> Option<Self> {
                match self.0.checked_mul(n) {
                    Some(product) => Some($name::of(product)),
                    None => None,
                }
            }

            /// `n` times the amount, at most the largest value.
            #[inline]
            pub const fn saturating_mul(self, n: u64) -> Self {
                $name::of(self.0.saturating_mul(n))
            }

            /// The distance between two amounts.
            #[inline]
            pub const fn abs_diff(self, other: Self) -> Self {
                $name::of(self.0.abs_diff(other.0))
            }

            /// The amount halfway between two, rounded down.
            #[inline]
            pub const fn midpoint(self, other: Self) -> Self {
                $name::of(self.0.midpoint(other.0))
            }

            /// How many of `part`, above zero, make the amount, rounded up.
            #[inline]
            pub const fn div_ceil(self, part: Self) -> u64 {
                self.0.div_ceil(part.0)
            }
        }

        impl<U: Unit> core::ops::Div for $name<U> {
            type Output = u64;

            /// How many of `part`, above zero, the amount holds.
            #[inline]
            fn div(self, part: Self) -> u64 {
                self.0 / part.0
            }
        }

        impl<U: Unit> core::ops::Rem for $name<U> {
            type Output = Self;

            /// The rest of the amount after as many of `part`, above zero, as it holds.
            #[inline]
            fn rem(self, part: Self) -> Self {
                $name::of(self.0 % part.0)
            }
        }
    };
}

quantity!(
    /// A point on a timeline, counted from its origin (the start of the run).
    Instant
);
quantity!(
    /// The length of an interval of time. (Not `Duration`, which is `core`'s.)
    Span
);
quantity!(
    /// Processor service: time of execution. A job that was preempted for 2 ms and ran for 1 ms has
    /// received 1 ms of work in a span of 3 ms.
    Work
);
amount!(Span);
amount!(Work);

impl<U: Unit> Instant<U> {
    /// The instant `span` later, or `None` past the end of the timeline.
    #[inline]
    pub const fn checked_add(self, span: Span<U>) -> Option<Instant<U>> {
        match self.0.checked_add(span.0) {
            Some(t) => Some(Instant::of(t)),
            None => None,
        }
    }

    /// The instant `span` later, or the end of the timeline.
    #[inline]
    pub const fn saturating_add(self, span: Span<U>) -> Instant<U> {
        Instant::of(self.0.saturating_add(span.0))
    }

    /// The instant `span` earlier, or the origin.
    #[inline]
    pub const fn saturating_sub(self, span: Span<U>) -> Instant<U> {
        Instant::of(self.0.saturating_sub(span.0))
    }

    /// The span from `earlier` to here, or `None` when `earlier` is later.
    #[inline]
    pub const fn checked_since(self, earlier: Instant<U>) -> Option<Span<U>> {
        match self.0.checked_sub(earlier.0) {
            Some(d) => Some(Span::of(d)),
            None => None,
        }
    }

    /// The span from `earlier` to here, zero when `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Instant<U>) -> Span<U> {
        Span::of(self.0.saturating_sub(earlier.0))
    }

    /// The result of [`Instant::since`], signed, from `other` to here (lateness when `other` is a
    /// deadline); saturates.
    #[inline]
    pub fn signed_since(self, other: Instant<U>) -> i64 {
        if self.0 >= other.0 {
            i64::try_from(self.0 - other.0).unwrap_or(i64::MAX)
        } else {
            i64::try_from(other.0 - self.0).map_or(i64::MIN, |d| -d)
        }
    }
}

impl<U: Unit> Span<U> {
    /// The work that a processor does when it executes for this whole span.
    #[inline]
    pub const fn as_work(self) -> Work<U> {
        Work::of(self.0)
    }
}

impl<U: Unit> Work<U> {
    /// The span in which an undisturbed processor does this work.
    #[inline]
    pub const fn as_span(self) -> Span<U> {
        Span::of(self.0)
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

const NS_PER_SECOND: u64 = 1_000_000_000;

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
        scale::<true>(ns, self.hertz, NS_PER_SECOND)
    }

    /// Nanoseconds to ticks, rounded down (for supply).
    #[inline]
    pub fn ticks_down(self, ns: u64) -> u64 {
        scale::<false>(ns, self.hertz, NS_PER_SECOND)
    }

    /// Nanoseconds to ticks, rounded to the nearest.
    pub fn ticks_nearest(self, ns: u64) -> u64 {
        let (down, up) = (self.ticks_down(ns), self.ticks_up(ns));
        let below = ns - self.ns_down(down).min(ns);
        let above = self.ns_up(up).saturating_sub(ns);
        if above < below || down == 0 { up } else { down }
    }

    /// Ticks to nanoseconds, rounded up (for observed responses and demand).
    #[inline]
    pub fn ns_up(self, ticks: u64) -> u64 {
        scale::<true>(ticks, NS_PER_SECOND, self.hertz)
    }

    /// Ticks to nanoseconds, rounded down (for supply).
    #[inline]
    pub fn ns_down(self, ticks: u64) -> u64 {
        scale::<false>(ticks, NS_PER_SECOND, self.hertz)
    }
}

/// `value · multiplier / divisor`, rounded up or down; saturates. The whole parts of the quotient
/// and the rest are multiplied apart, so that 64 bits are enough for all rates below 18 GHz.
#[inline]
fn scale<const UP: bool>(value: u64, multiplier: u64, divisor: u64) -> u64 {
    let (whole, rest) = (value / divisor, value % divisor);
    let (Some(whole), Some(rest)) = (whole.checked_mul(multiplier), rest.checked_mul(multiplier))
    else {
        return scale_apart::<UP>(value, multiplier, divisor);
    };
    let part = match UP {
        true => rest.div_ceil(divisor),
        false => rest / divisor,
    };
    whole.saturating_add(part)
}

/// The same in 128 bits.
#[cold]
fn scale_apart<const UP: bool>(value: u64, multiplier: u64, divisor: u64) -> u64 {
    let product = u128::from(value) * u128::from(multiplier);
    let quotient = match UP {
        true => product.div_ceil(u128::from(divisor)),
        false => product / u128::from(divisor),
    };
    u64::try_from(quotient).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

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
    fn conversions_in_64_and_in_128_bits_are_the_same() {
        let rates = [
            1,
            3,
            32_768,
            1_000_000_000,
            2_596_123_457,
            1 << 34,
            1 << 35,
            u64::MAX,
        ];
        let near = |at: u64| [at.saturating_sub(1), at, at.saturating_add(1)];
        let powers = (0..64).flat_map(|bit| near(1 << bit));
        let seconds = [1, 7, 18_446_744_073, 1 << 40].map(|n: u64| n.saturating_mul(NS_PER_SECOND));
        let values: Vec<u64> = powers.chain(seconds.into_iter().flat_map(near)).collect();
        for (hertz, &value) in rates
            .iter()
            .flat_map(|&f| values.iter().map(move |v| (f, v)))
        {
            for (to, from) in [(hertz, NS_PER_SECOND), (NS_PER_SECOND, hertz)] {
                let up = (
                    scale::<true>(value, to, from),
                    scale_apart::<true>(value, to, from),
                );
                let down = (
                    scale::<false>(value, to, from),
                    scale_apart::<false>(value, to, from),
                );
                assert_eq!((up.0, down.0), (up.1, down.1), "{value} · {to} / {from}");
            }
        }
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
