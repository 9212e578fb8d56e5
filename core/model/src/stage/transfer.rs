//! Budget of a scheduler that goes to a sibling for the rest of a period.

use alloc::format;
use alloc::string::{String, ToString};

use super::{Stage, mistake};
use crate::change::{Change, Mistake, Step, Subject};
use crate::id::SchedulerId;
use crate::scheduler::{PolicyKind, ServerKind, Supply};
use crate::time::{Ns, Work};

/// A transfer that stands beside other steps. It waits until the lender has that much left, and
/// nothing else may wait for that.
pub(super) fn beside_others(change: &Change) -> Option<Mistake> {
    let transfers = |step: &Step| matches!(step, Step::Transfer { .. });
    let step = change.steps.iter().position(transfers)?;
    (change.steps.len() > 1).then(|| Mistake {
        step,
        message: "a change that transfers budget does nothing else".to_string(),
        help: "put the other parts into a change of their own".to_string(),
    })
}

impl Stage<'_> {
    pub(super) fn transfer(
        &self,
        (from, to): (SchedulerId, SchedulerId),
        budget: Work<Ns>,
        name: &str,
    ) -> Result<(), (String, String)> {
        self.must_be_there_to_borrow(to, name)?;
        let (Some(lender), Some(borrower)) = (self.scheduler(from), self.scheduler(to)) else {
            return Ok(());
        };
        let other = self.name(Subject::Scheduler(to));
        let siblings = from != to && lender.cpu == borrower.cpu;
        if !siblings || lender.parent != borrower.parent {
            return mistake(
                format!("{name} would transfer budget to {other}, which is no sibling of it"),
                "name two schedulers that one scheduler orders",
            );
        }
        for (id, who) in [(from, name), (to, other.as_str())] {
            if self.receiver(id).is_some() {
                return mistake(
                    format!("{who} has no name of its own in a transfer"),
                    "name schedulers; in a program, slices transfer, too",
                );
            }
        }
        let policy = match lender.parent {
            Some(parent) => self.scheduler(parent).map(|s| s.policy),
            None => self.cpus.get(lender.cpu.index()).map(|c| c.policy),
        };
        if policy != Some(PolicyKind::FixedPriority { preemptive: true }) {
            return mistake(
                format!("{name} and {other} are not ordered by preemptive fixed priority"),
                "under deadlines the budget would go under a deadline that may be close: transfer \
                 where priorities order",
            );
        }
        if !matches!(borrower.supply, Supply::Server(_)) {
            return mistake(
                format!("{other} has no server that could take budget"),
                "declare it with a `server`",
            );
        }
        match lender.supply {
            Supply::Server(server) if server.kind == ServerKind::Deferrable => {
                if budget.is_zero() || budget > server.budget {
                    let most = server.budget.as_span().readable();
                    return Err((
                        format!("{name} cannot transfer that: its budget is {most}"),
                        "transfer more than 0, and no more than one budget".to_string(),
                    ));
                }
                Ok(())
            }
            _ => mistake(
                format!("{name} keeps no budget to the end of a period"),
                "transfer from a scheduler with a `deferrable` server",
            ),
        }
    }

    fn must_be_there_to_borrow(&self, to: SchedulerId, name: &str) -> Result<(), (String, String)> {
        if self.declared.schedulers.get(to.index()).is_none() {
            return mistake(
                format!("{name} would transfer budget to no scheduler"),
                "name a declared scheduler",
            );
        }
        if self.scheduler(to).is_some() {
            return Ok(());
        }
        let other = self.name(Subject::Scheduler(to));
        mistake(
            format!("{name} would transfer budget to {other}, which is not there at that time"),
            "start the borrower in an earlier change",
        )
    }
}
