//! The quantities of the analysis: spans and work, in nanoseconds
//!
//! A tick is one nanosecond here: the smallest amount that the tests tell apart. An instant of a
//! busy window, of a frame or of the common release at 0 is the [`Span`] since then.
//!
//! # Assumptions
//! 1. None of its own.

use punctual_model::Ns;

/// The length of an interval, in nanoseconds.
pub(crate) type Span = punctual_model::Span<Ns>;
/// Processor service, in nanoseconds of execution.
pub(crate) type Work = punctual_model::Work<Ns>;

/// The shortest span.
pub(crate) const TICK: Span = Span::from_ns(1);
/// The least work.
pub(crate) const UNIT: Work = Work::from_ns(1);

/// A quantity with a middle.
pub(crate) trait Midpoint: Copy + Eq {
    /// The value halfway between two, rounded down.
    fn middle(self, other: Self) -> Self;
}

macro_rules! midpoint {
    ($($quantity:ty),*) => {$(
        impl Midpoint for $quantity {
            fn middle(self, other: Self) -> Self {
                self.midpoint(other)
            }
        }
    )*};
}

midpoint!(u64, Span, Work);

/// The value next to the `refused` ones that holds, towards `admitted`, which holds: bisection.
/// O(log distance) calls.
///
/// # Errors
/// Those of `holds`.
pub(crate) fn border<T: Midpoint, E>(
    mut refused: T,
    mut admitted: T,
    mut holds: impl FnMut(T) -> Result<bool, E>,
) -> Result<T, E> {
    loop {
        let middle = refused.middle(admitted);
        if middle == refused || middle == admitted {
            return Ok(admitted);
        }
        if holds(middle)? {
            admitted = middle;
        } else {
            refused = middle;
        }
    }
}

/// The count of nanoseconds, for differences that may be negative.
pub(crate) fn signed(span: Span) -> i128 {
    i128::from(span.as_ns())
}

/// The part of `work` in every `period` (above zero) that falls into `span`, rounded down; `None`
/// beyond 64 bits.
pub(crate) fn share(work: Work, span: Span, period: Span) -> Option<Work> {
    let share = u128::from(work.as_ns()) * u128::from(span.as_ns()) / u128::from(period.as_ns());
    u64::try_from(share).ok().map(Work::from_ns)
}
