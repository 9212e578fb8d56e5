//! Loans between schedulers, as the analysis counts them.
//!
//! Budget moves to a sibling until the end of the lender's period. Two systems stand for the time
//! of a loan, and both must be admitted:
//! * *For all others*: the borrower has its own budget, and once as much work as was lent, at its
//!   own place in their parent's order. The lender has its whole budget, since its other periods
//!   are as ever.
//! * *For the threads below the lender*: its budget is smaller by what it lent.
//!
//! Only a parent that orders by fixed priority is covered: under deadlines, what is borrowed is
//! executed under the deadline of the borrower's own budget, which may be close.

use punctual_analysis::Verdict;
use punctual_kern::NodeId;
use punctual_model::{
    Class, CpuId, Instant, Ns, PolicyKind, SchedulerId, Span, Supply, System, Task, Work,
};

use super::{Admission, Moved, NotAdmitted, State};

/// The deadline of work that has none, and its analysis wants one.
pub(super) const NEVER: Span<Ns> = Span::from_ms(3_600_000);

/// A loan while it counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loan {
    from: NodeId,
    pub(super) to: NodeId,
    pub(super) work: Work<Ns>,
    /// It is over: the end of the lender's next period at the latest.
    pub(super) ends: Instant<Ns>,
}

impl Admission {
    /// Judges that `from` lends budget to `to`. `None`: it cannot, and the core will say why.
    pub(crate) fn lends(
        &mut self,
        (from, to): (NodeId, NodeId),
        work: Work<Ns>,
        now: Instant<Ns>,
    ) -> Result<Option<Moved>, NotAdmitted> {
        self.forget_until(now);
        let mut changed = self.state.clone();
        let (lender, borrower) = (changed.place_of(from)?, changed.place_of(to)?);
        let (Some(lender), Some(borrower)) = (lender, borrower) else {
            return Ok(None);
        };
        let parent = changed.parent(lender);
        let supply = |id: SchedulerId| match changed.system.schedulers[id.index()].supply {
            Supply::Server(server) => Some(server),
            Supply::Shared | Supply::Slots(_) => None,
        };
        let servers = supply(lender).zip(supply(borrower));
        let siblings = lender != borrower && changed.parent(borrower) == parent;
        let Some((server, _)) = servers.filter(|_| siblings) else {
            return Ok(None);
        };
        let policy = match parent {
            None => changed.system.cpus[0].policy,
            Some(id) => changed.system.schedulers[id.index()].policy,
        };
        if policy != (PolicyKind::FixedPriority { preemptive: true }) {
            let what = "loans are analysed where the parent orders by preemptive fixed priority";
            return Err(NotAdmitted::NoSafeInstant(what.to_owned()));
        }
        changed.loans.push(Loan {
            from,
            to,
            work,
            ends: now.saturating_add(server.period.saturating_add(server.period)),
        });
        let verdict = self.state.judge(&changed, now)?;
        Ok(Some(Moved::staying(changed, verdict, now)))
    }
}

impl State {
    /// Borrowed work is a job of its own beside the borrower.
    pub(super) fn count_loans(&self, system: &mut System) {
        for (number, loan) in self.loans.iter().enumerate() {
            let Ok(Some(borrower)) = self.place_of(loan.to) else {
                continue;
            };
            let borrower = &system.schedulers[borrower.index()];
            let class = Class::Once {
                size: loan.work,
                relative_deadline: NEVER,
            };
            let mut task = Task::new(format!("loan:{number}:work"), CpuId(0), class);
            task.scheduler = borrower.parent;
            task.priority = borrower.priority;
            system.tasks.push(task);
        }
    }

    /// Takes what was lent from the budgets of the lenders.
    pub(super) fn take_loans(&self, system: &mut System) -> Result<(), NotAdmitted> {
        for loan in &self.loans {
            let Ok(Some(lender)) = self.place_of(loan.from) else {
                continue;
            };
            let below = self.below(Some(lender));
            let former = self.former.iter().map(|former| &former.task);
            let has_promises = self.system.tasks.iter().chain(former).any(|task| {
                let home = task.scheduler.map(SchedulerId::index);
                home.is_some_and(|home| below[home])
            });
            let lender = system.schedulers.get_mut(lender.index());
            let supply = lender.map(|lender| &mut lender.supply);
            if let (true, Some(Supply::Server(server))) = (has_promises, supply) {
                server.budget = server.budget.saturating_sub(loan.work);
                if server.budget.is_zero() {
                    let what = "the lender's threads have guarantees, and no budget would be left";
                    return Err(NotAdmitted::NoSafeInstant(what.to_owned()));
                }
            }
        }
        Ok(())
    }
}

/// Takes the larger bound of each task; `None` is larger than all.
pub(super) fn less_favourable(verdict: &mut Verdict, other: Verdict) {
    for (task, other) in verdict.tasks.iter_mut().zip(other.tasks) {
        let bounds = task.response_bound.zip(other.response_bound);
        if bounds.is_none_or(|(one, other)| other > one) && task.response_bound.is_some() {
            *task = other;
        }
    }
}
