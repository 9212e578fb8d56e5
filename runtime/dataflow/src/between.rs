//! The decisions of a tile between its slots

use punctual_firing::TaskScheduler;
use punctual_model::Instant;

use crate::slots::Slots;

pub(crate) type AnyScheduler = Box<dyn TaskScheduler + Send>;

/// The decisions of a tile between its slots.
pub(crate) struct Between {
    pub(crate) slots: Slots,
    /// The start of the last slot that has had its decision, or that a firing went on into.
    pub(crate) decided: Option<Instant>,
    pub(crate) passes_over: bool,
}

impl Between {
    pub(crate) fn new(slots: Slots, passes_over: bool) -> Between {
        Between {
            slots,
            decided: None,
            passes_over,
        }
    }

    /// Whether a slot has begun that has had no decision. From now on it has.
    pub(crate) fn begins(&mut self, now: Instant) -> bool {
        let (start, end) = self.slots.around(now);
        let is_new = end > start && self.decided != Some(start);
        if is_new {
            self.decided = Some(start);
        }
        is_new
    }
}
