//! A server's budget as its tasks see it: how late each part of it may come
//!
//! A server is shown at its parent to get its budget Q within R of each replenishment while it has
//! work. Seen from inside, the worst window begins when a budget has just been used up, as early as
//! can be; the next replenishment is `wait` away, and then each budget comes as late as R:
//!
//! ```text
//!   replenished        window             replenished         + T
//!   |[####]-----------|------- wait ------|------[####]--------|------[####]
//!    early use                             up to R
//! ```
//!
//! The n-th unit of service, the r-th of its budget (n = m·Q + r, 1 ≤ r ≤ Q), is there after
//! `wait` + m·T + W(r). W(r) is the response of r units at the parent, at most R − (Q − r). The
//! part of a budget that is of no use (`blocking`) comes after the useful part.
//!
//! `wait` is
//! * T − Q for a periodic resource (Shin and Lee 2003, who take R = T), a deferrable and a
//!   constant-bandwidth server. Using the budget up takes at least Q, the next is due T after it
//!   came. (A deferrable server whose tasks wake up late in its period has lost nothing that such a
//!   window would still have had. A constant-bandwidth server keeps its deadline only where what is
//!   left is less than its share until then. Under EDF where the supply has holes this rest may
//!   come late, up to T after it woke up, and the next budget T after that: then `wait` is T.)
//! * T for a polling server: a job that arrives just after it looked waits for a whole period.
//! * T − Q for a sporadic server whose amounts come back each on its own, as its every unit comes
//!   back T after it was there. T where the bounded list may have to merge: while there is work it
//!   merges at most once, at the beginning, and nothing moves past T after the last use before.
//!
//! Where a holder of a lock may overrun a budget by x and pay back from the next (`blocking`), so
//! much of the supply was used before the window began. The budget that was used up then may have
//! paid back for the one before it: using it up takes Q − x, and `wait` is x more, up to T.
//!
//! # Assumptions
//! 1. R ≤ T: shown at the parent, else there is no such supply.
//! 2. Nothing is gained by idling: a window counts only while there is work.
//!
//! Sources: Shin and Lee, RTSS 2003, §4; Davis and Burns, RTSS 2005, §3-4 (servers under fixed
//! priority, polling and deferrable); Sprunt 1990; Abeni and Buttazzo 1998.

use alloc::vec::Vec;

use punctual_model::ServerKind;

use crate::units::{Span, UNIT, Work};
use crate::utilization::Ratio;

/// Up to `service` units of a budget come at most `late` later than if it came at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lateness {
    pub(crate) service: Work,
    pub(crate) late: Span,
}

/// The budget of one server, with the latest instants at which it comes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Budget {
    budget: Work,
    period: Span,
    wait: Span,
    /// W(r) − r, in steps; the last one is for all of the budget.
    steps: Vec<Lateness>,
    /// Work given beyond the last budget before the window, and paid back from the next ones.
    owed: Work,
}

/// The facts about a server at its parent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Served {
    pub(crate) kind: ServerKind,
    /// The budget that its tasks can use; the rest is overhead, or too little for a section.
    pub(crate) usable: Work,
    pub(crate) period: Span,
    /// From a replenishment until all of the budget has been given, at most.
    pub(crate) response: Span,
    /// The lateness of its first parts, each at most as late as the whole; may be empty.
    pub(crate) steps: Vec<Lateness>,
    /// Whether its replenishments may have to be merged.
    pub(crate) merges: bool,
    /// Whether a rest of a budget may come later than its deadline: that of a constant-bandwidth
    /// server which wakes up with it.
    pub(crate) rests_are_late: bool,
    /// Most that it may give beyond a budget.
    pub(crate) overrun: Work,
}

impl Budget {
    /// The supply of such a server; `None` when it gives nothing, or not within its period.
    pub(crate) fn new(served: &Served) -> Option<Budget> {
        let late = served.response.checked_sub(served.usable.as_span())?;
        if served.usable.is_zero() || served.response > served.period {
            return None;
        }
        // What is of no use of the last budget may be what is left of it, and it may have paid
        // back.
        let used = served.usable.saturating_sub(served.overrun);
        let after_use = served.period.saturating_sub(used.as_span());
        let wait = match served.kind {
            ServerKind::Polling => served.period,
            ServerKind::Sporadic if served.merges => served.period,
            ServerKind::ConstantBandwidth if served.rests_are_late => served.period,
            ServerKind::Sporadic
            | ServerKind::Deferrable
            | ServerKind::ConstantBandwidth
            | ServerKind::PeriodicResource => after_use,
        };
        let first = served.steps.iter().filter(|s| s.service < served.usable);
        let mut steps: Vec<Lateness> = first.copied().collect();
        steps.push(Lateness {
            service: served.usable,
            late,
        });
        Some(Budget {
            budget: served.usable,
            period: served.period,
            wait,
            steps,
            owed: served.overrun,
        })
    }

    /// How late the part of a budget up to this unit comes.
    fn late(&self, rest: Work) -> Span {
        let step = self.steps.partition_point(|s| s.service < rest);
        self.steps.get(step).map_or(Span::ZERO, |s| s.late)
    }

    /// How long `work` (above zero) takes; `None` beyond 64 bits. O(log steps).
    pub(crate) fn time_for(&self, work: Work) -> Option<Span> {
        let before = work.checked_add(self.owed)?.checked_sub(UNIT)?;
        let rest = (before % self.budget).saturating_add(UNIT);
        let came = self.period.checked_mul(before / self.budget)?;
        let came = came.checked_add(self.wait)?.checked_add(self.late(rest))?;
        came.checked_add(rest.as_span())
    }

    /// Distance between replenishments.
    pub(crate) fn period(&self) -> Span {
        self.period
    }

    /// Most that is given beyond a budget, and paid back from the next.
    pub(crate) fn owed(&self) -> Work {
        self.owed
    }

    /// Work in each period.
    pub(crate) fn budget(&self) -> Work {
        self.budget
    }

    /// See [`super::Supply::delay`]: just before the first unit of a budget comes, m·Q units have
    /// taken `wait` + `late` + m·T, the work owed among them.
    pub(crate) fn delay(&self) -> Span {
        let owed = u128::from(self.owed.as_ns()) * u128::from(self.period.as_ns());
        let owed = owed.div_ceil(u128::from(self.budget.as_ns()));
        let owed = u64::try_from(owed).map_or(Span::MAX, Span::from_ns);
        let late = self.late(self.budget);
        self.wait.saturating_add(late).saturating_add(owed)
    }

    /// The share that is not supplied.
    pub(crate) fn missing(&self) -> Ratio {
        let missing = self.period.as_work().saturating_sub(self.budget);
        Ratio::of(missing, self.period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supply(kind: ServerKind, budget: u64, period: u64, response: u64) -> Budget {
        let served = Served {
            kind,
            usable: Work::from_ns(budget),
            period: Span::from_ns(period),
            response: Span::from_ns(response),
            steps: Vec::new(),
            merges: false,
            rests_are_late: false,
            overrun: Work::ZERO,
        };
        Budget::new(&served).expect("a budget within its period")
    }

    fn time_for(budget: &Budget, work: u64) -> Option<u64> {
        budget.time_for(Work::from_ns(work)).map(Span::as_ns)
    }

    #[test]
    fn the_periodic_resource_of_shin_and_lee_gives_their_figures() {
        // Γ(5, 3): blackout 2(Π − Θ) = 4, then 3 of every 5.
        let model = supply(ServerKind::PeriodicResource, 3, 5, 5);
        let times: [Option<u64>; 7] = core::array::from_fn(|n| time_for(&model, n as u64 + 1));
        assert_eq!(times, [5, 6, 7, 10, 11, 12, 15].map(Some));
    }

    #[test]
    fn a_poll_missed_costs_a_whole_period() {
        let model = supply(ServerKind::Polling, 2, 10, 3);
        assert_eq!(time_for(&model, 1), Some(10 + 1 + 1));
        assert_eq!(time_for(&model, 3), Some(20 + 1 + 1));
    }

    #[test]
    fn the_first_part_of_a_budget_may_come_sooner_than_the_rest() {
        let served = Served {
            kind: ServerKind::Polling,
            usable: Work::from_ns(4),
            period: Span::from_ns(20),
            response: Span::from_ns(11),
            steps: alloc::vec![Lateness {
                service: Work::from_ns(2),
                late: Span::from_ns(3),
            }],
            merges: false,
            rests_are_late: false,
            overrun: Work::ZERO,
        };
        let model = Budget::new(&served).expect("a budget within its period");
        let times: [Option<u64>; 5] = core::array::from_fn(|n| time_for(&model, n as u64 + 1));
        assert_eq!(times, [20 + 4, 20 + 5, 20 + 10, 20 + 11, 40 + 4].map(Some));
    }

    #[test]
    fn a_budget_that_comes_after_its_period_is_no_supply() {
        let served = Served {
            kind: ServerKind::Deferrable,
            usable: Work::from_ns(2),
            period: Span::from_ns(10),
            response: Span::from_ns(11),
            steps: Vec::new(),
            merges: false,
            rests_are_late: false,
            overrun: Work::ZERO,
        };
        assert_eq!(Budget::new(&served), None);
    }
}
