//! The processor time that a node of the tree gets, at worst
//!
//! A *supply bound* says how much service a node gets in any window throughout which it has work:
//! `provided(window)` rounds down, `time_for(work)` is its inverse. A demand is
//! done at the least t with t ≥ `time_for`(demand in t).
//!
//! # Assumptions
//! 1. The node has work throughout the window (a server may take its budget away from an idle one).
//! 2. A promised supply comes: a server has been shown to get its budget by the end of each
//!    period ([`budget`]), a slot table is kept by time alone ([`slots`]).
//! 3. A window with several worst beginnings (after each slot) is examined from each: a *phase*.
//!
//! Source: Shin and Lee 2003 (supply bound functions); Mok, Feng and Chen 2001 (bounded delay).

pub(crate) mod budget;
pub(crate) mod slots;

use crate::error::{Checked, in_range};
use crate::units::{Span, TICK, UNIT, Work, border};
use crate::utilization::Ratio;
use budget::Budget;
use slots::SlotTable;

const WHAT: &str = "supply";

/// The supply of one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Supply {
    /// The whole processor.
    Dedicated,
    /// A server's budget.
    Budget(Budget),
    /// Fixed intervals of a frame.
    Slots(SlotTable),
    /// Nothing is sure: the node above is refused itself.
    Nothing,
}

impl Supply {
    /// How many beginnings of a window are to be examined.
    pub(crate) fn phases(&self) -> usize {
        match self {
            Supply::Slots(table) => table.phases(),
            Supply::Dedicated | Supply::Budget(_) | Supply::Nothing => 1,
        }
    }

    /// How long `work` takes from the beginning of a window in this phase; `None`: for ever.
    /// O(log of slots or steps).
    pub(crate) fn time_in(&self, phase: usize, work: Work) -> Checked<Option<Span>> {
        if work.is_zero() {
            return Ok(Some(Span::ZERO));
        }
        match self {
            Supply::Dedicated => Ok(Some(work.as_span())),
            Supply::Budget(budget) => in_range(budget.time_for(work), WHAT).map(Some),
            Supply::Slots(table) => in_range(table.time_for(phase, work), WHAT).map(Some),
            Supply::Nothing => Ok(None),
        }
    }

    /// How long `work` takes at worst; `None`: for ever. O(phases · log).
    pub(crate) fn time_for(&self, work: Work) -> Checked<Option<Span>> {
        self.longest(|phase| self.time_in(phase, work))
    }

    /// The longest span of all phases; `None` where one has none.
    pub(crate) fn longest(
        &self,
        mut span_in: impl FnMut(usize) -> Checked<Option<Span>>,
    ) -> Checked<Option<Span>> {
        let mut longest = Span::ZERO;
        for phase in 0..self.phases() {
            let Some(span) = span_in(phase)? else {
                return Ok(None);
            };
            longest = longest.max(span);
        }
        Ok(Some(longest))
    }

    /// The most work that is surely done within `window` in this phase. O(log · log window).
    pub(crate) fn provided_in(&self, phase: usize, window: Span) -> Checked<Work> {
        if *self == Supply::Dedicated {
            return Ok(window.as_work());
        }
        let too_much = in_range(window.as_work().checked_add(UNIT), WHAT)?;
        border(too_much, Work::ZERO, |work| {
            // What takes longer than 64 bits takes longer than the window.
            let time = self.time_in(phase, work).unwrap_or(None);
            Ok(time.is_some_and(|time| time <= window))
        })
    }

    /// The share of the processor that is missing in the long run; `None`: none is.
    pub(crate) fn missing(&self) -> Option<Ratio> {
        match self {
            Supply::Dedicated => None,
            Supply::Budget(budget) => Some(budget.missing()),
            Supply::Slots(table) => Some(table.missing()),
            Supply::Nothing => Some(Ratio::of(UNIT, TICK)),
        }
    }

    /// After this time the supply repeats itself, from [`Supply::delay`] on.
    pub(crate) fn period(&self) -> Option<Span> {
        match self {
            Supply::Dedicated | Supply::Nothing => None,
            Supply::Budget(budget) => Some(budget.period()),
            Supply::Slots(table) => Some(table.frame()),
        }
    }

    /// A delay after which the supply is never behind its long-run rate: with rate α,
    /// `provided(t)` ≥ α·(t − delay).
    pub(crate) fn delay(&self) -> Span {
        match self {
            Supply::Dedicated | Supply::Nothing => Span::ZERO,
            Supply::Budget(budget) => budget.delay(),
            Supply::Slots(table) => table.frame(),
        }
    }
}
