//! Clocks that differ: one CPU reads this, another that, at the same instant.

use crate::time::Instant;

/// How the clock of a CPU differs from the true one: an offset, and a drift from the start of the
/// run on.
///
/// # Examples
///
/// ```
/// use punctual_model::{Clock, Instant};
///
/// let clock = Clock { offset_ns: 500, drift_ppb: 10_000 };
/// let second = Instant::from_ticks(1_000_000_000);
/// assert_eq!(clock.reads(1_000_000_000), 1_000_010_500);
/// assert_eq!(clock.truly(clock.reads(1_000_000_000)), 1_000_000_000);
/// assert!(clock.reading(second) > second);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// It is ahead by so many nanoseconds at the start; behind, if negative.
    pub offset_ns: i64,
    /// It gains so many nanoseconds in each true second.
    pub drift_ppb: i64,
}

const BILLION: i128 = 1_000_000_000;

impl Clock {
    /// Whether it is the true one.
    pub const fn is_true(self) -> bool {
        self.offset_ns == 0 && self.drift_ppb == 0
    }

    /// The nanoseconds that it shows at a true instant, rounded down.
    pub fn reads(self, truly_ns: i64) -> i64 {
        let truly = i128::from(truly_ns);
        let gained = (truly * i128::from(self.drift_ppb)).div_euclid(BILLION);
        narrow(truly + gained + i128::from(self.offset_ns))
    }

    /// The first true instant at which it shows so many nanoseconds, or more.
    pub fn truly(self, reads_ns: i64) -> i64 {
        let since = (i128::from(reads_ns) - i128::from(self.offset_ns)) * BILLION;
        let rate = (BILLION + i128::from(self.drift_ppb)).max(1);
        narrow(-(-since).div_euclid(rate))
    }

    /// The instant that it shows at a true one; the beginning of all time where that is before.
    pub fn reading(self, truly: Instant) -> Instant {
        let truly = i64::try_from(truly.ticks()).unwrap_or(i64::MAX);
        Instant::from_ticks(u64::try_from(self.reads(truly)).unwrap_or(0))
    }
}

fn narrow(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}
