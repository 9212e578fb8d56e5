//! The least fixed point of a monotone function, with a limit on the work spent
//!
//! # Assumptions
//! 1. The function is monotone (never decreasing) and integer.
//! 2. The start is at or below its least fixed point, and the function is at or above the identity
//!    from the start up to that point.
//!
//! Source: Knaster and Tarski; used for response times since Joseph and Pandya 1986.

use core::cell::Cell;

use crate::error::{AnalysisError, Checked};
use crate::units::Span;

/// Steps left for a whole query, however many searches it takes: an answer that takes longer
/// than anyone waits is an error. One step looks at one task once (a few nanoseconds).
#[derive(Debug)]
pub(crate) struct StepBudget {
    left: Cell<u64>,
}

impl StepBudget {
    /// So many steps.
    pub(crate) const fn new(steps: u64) -> StepBudget {
        StepBudget {
            left: Cell::new(steps),
        }
    }

    /// For one search of at most `steps`, which are taken from here.
    pub(crate) fn search_steps(&self, steps: u64) -> SearchSteps<'_> {
        SearchSteps {
            left: steps,
            whole: self,
        }
    }

    /// The steps that are left.
    pub(crate) fn left(&self) -> u64 {
        self.left.get()
    }

    /// Takes `steps` away; false, and nothing is left, when there are fewer.
    pub(crate) fn take(&self, steps: u64) -> bool {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }
}

/// Steps left for one search of a query.
#[derive(Debug)]
pub(crate) struct SearchSteps<'a> {
    left: u64,
    whole: &'a StepBudget,
}

impl<'a> SearchSteps<'a> {
    /// Another search of the same query, of at most `steps`.
    pub(crate) fn apart(&self, steps: u64) -> SearchSteps<'a> {
        self.whole.search_steps(steps)
    }

    /// Whether there are none left.
    pub(crate) fn are_spent(&self) -> bool {
        self.left == 0 || self.whole.left() == 0
    }

    /// Takes `steps` away.
    pub(crate) fn spend(&mut self, steps: usize, what: &'static str) -> Checked<()> {
        let left = self.left.checked_sub(steps as u64);
        self.left = left.unwrap_or(0);
        if left.is_some() && self.whole.take(steps as u64) {
            Ok(())
        } else {
            Err(AnalysisError::TooLong { what })
        }
    }
}

/// The least `t >= start` with `f(t) <= t`; `None` when it lies beyond `limit`.
/// O(iterations · cost of `f`).
pub(crate) fn least_fixed_point(
    start: Span,
    limit: Span,
    mut f: impl FnMut(Span) -> Checked<Span>,
) -> Checked<Option<Span>> {
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
                let span = Span::from_ns;
                let found = least_fixed_point(span(c), span(200), |t| Ok(span(f(t.as_ns()))));
                assert_eq!(found, Ok(brute_force(c, 200, f).map(span)));
            }
        }
    }

    #[test]
    fn a_spent_step_budget_is_an_error_and_stays_one() {
        let query = StepBudget::new(100);
        let mut search_steps = query.search_steps(10);
        assert!(search_steps.spend(10, "x").is_ok());
        assert!(search_steps.spend(1, "x").is_err());
        assert!(search_steps.spend(1, "x").is_err());
    }

    #[test]
    fn all_searches_of_a_query_share_its_steps() {
        let query = StepBudget::new(15);
        assert!(query.search_steps(10).spend(10, "x").is_ok());
        let mut second = query.search_steps(10);
        assert!(second.spend(6, "x").is_err(), "only 5 are left");
        assert!(second.apart(10).spend(1, "x").is_err());
        assert_eq!(query.left(), 0);
    }
}
