//! The least fixed point of a monotone function, with a limit on the work spent
//!
//! # Assumptions
//! 1. The function is monotone (never decreasing) and integer.
//! 2. The start is at or below its least fixed point, and the function is at or above the identity
//!    from the start up to that point.
//!
//! Source: Knaster and Tarski; used for response times since Joseph and Pandya 1986.

use crate::error::{AnalysisError, Checked};

/// Steps left for a whole analysis: an answer that takes longer than anyone waits is an error.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    left: u64,
}

impl Meter {
    /// A meter with this many steps; one step looks at one task once (a few nanoseconds).
    pub(crate) const fn new(steps: u64) -> Meter {
        Meter { left: steps }
    }

    /// Takes `steps` away.
    pub(crate) fn spend(&mut self, steps: usize, what: &'static str) -> Checked<()> {
        match self.left.checked_sub(steps as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(AnalysisError::TooLong { what })
            }
        }
    }
}

/// The least `t >= start` with `f(t) <= t`; `None` when it lies beyond `limit`.
/// O(iterations · cost of `f`).
pub(crate) fn least_fixed_point(
    start: u64,
    limit: u64,
    mut f: impl FnMut(u64) -> Checked<u64>,
) -> Checked<Option<u64>> {
    let mut t = start;
    while t <= limit {
        let next = f(t)?;
        if next <= t {
            return Ok(Some(t));
        }
        t = next;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The twin: tries every value.
    fn brute_force(start: u64, limit: u64, f: impl Fn(u64) -> u64) -> Option<u64> {
        (start..=limit).find(|&t| f(t) <= t)
    }

    #[test]
    fn iteration_finds_what_trying_every_value_finds() {
        for c in 1..12_u64 {
            for (c1, t1, c2, t2) in [(1, 3, 2, 7), (2, 5, 3, 11), (1, 2, 1, 4), (3, 8, 2, 9)] {
                let f = |t: u64| c + t.div_ceil(t1) * c1 + t.div_ceil(t2) * c2;
                let found = least_fixed_point(c, 200, |t| Ok(f(t))).expect("small numbers");
                assert_eq!(found, brute_force(c, 200, f));
            }
        }
    }

    #[test]
    fn a_spent_meter_is_an_error_and_stays_one() {
        let mut meter = Meter::new(10);
        assert!(meter.spend(10, "x").is_ok());
        assert!(meter.spend(1, "x").is_err());
        assert!(meter.spend(1, "x").is_err());
    }
}
