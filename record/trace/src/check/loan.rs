//! Budget that siblings lend each other: used by the lender, there for the borrower, for a while.

use punctual_kern::NodeId;
use punctual_model::{Instant, Work};

use super::Rule;
use super::cpu::CpuCheck;

/// What a server has from a sibling, in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loan {
    pub(super) left: u64,
    until: Instant,
}

impl Loan {
    /// Two loans end with the first of them.
    pub(super) fn add(&mut self, work: u64, until: Instant) {
        self.until = match self.left {
            0 => until,
            _ => self.until.min(until),
        };
        self.left = self.left.saturating_add(work);
    }

    /// Time passes up to `now`, inclusive; whether something ended.
    pub(super) fn pass(&mut self, now: Instant) -> bool {
        let ends = self.left > 0 && self.until <= now;
        if ends {
            self.left = 0;
        }
        ends
    }

    /// Pays for work up to `now`, except what ran after its end; returns what is left to pay.
    pub(super) fn pay(&mut self, now: Instant, work: u64) -> u64 {
        let after = now.since(self.until).ticks();
        let covered = self.left.min(work.saturating_sub(after));
        self.left -= covered;
        work - covered
    }
}

impl CpuCheck<'_> {
    /// The core says that a scheduler has lent budget to a sibling.
    pub(super) fn lent(&mut self, from: NodeId, to: NodeId, work: Work) {
        let (Some(lender), Some(borrower)) = (self.node(from), self.node(to)) else {
            let what = "budget is lent between schedulers that are none".into();
            return self.violation(Rule::SupplyRespected, what);
        };
        let now = self.now;
        let given = self.nodes[lender].budget.as_mut();
        let until = given.and_then(|budget| budget.give(now, work.ticks()));
        let (Some(until), Some(budget)) = (until, self.nodes[borrower].budget.as_mut()) else {
            let (name, work) = (self.node_name(lender), work.ticks());
            let what = format!("{name} lends {work} ticks that it has not, or to no server");
            return self.violation(Rule::SupplyRespected, what);
        };
        budget.borrow(work.ticks(), until);
        for at in [lender, borrower] {
            self.refresh(at);
        }
    }
}
