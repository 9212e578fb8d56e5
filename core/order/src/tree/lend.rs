//! A scheduler lends budget to a sibling: time moves, it is not made.
//!
//! What is lent counts as used by the lender, whose rule brings it back as if its own subtree had
//! executed it, and is there for the borrower until the end of the lender's budget: so in any
//! window the two together execute no more than their servers give. Their parent sees it. Source:
//! the delegation of temporal capabilities (Slite paper §V.A), on servers.

use punctual_model::{Instant, Span, Work};

use super::Tree;
use super::node::{NONE, Node, ROOT, Supply};
use crate::node::NodeId;
use crate::policy::Policy;
use crate::refusal::Refusal;
use crate::server::Server;

impl<P: Policy> Tree<P> {
    /// Moves `work` from the budget of `by` to that of its sibling `to`.
    ///
    /// # Errors
    /// No siblings, no budgets, or too little; nothing has changed then.
    pub fn lend(
        &mut self,
        now: Instant,
        by: NodeId,
        to: NodeId,
        work: Work,
    ) -> Result<(), Refusal> {
        let (by_at, to_at) = (self.node(by)?, self.node(to)?);
        let parent = self.nodes[usize::from(by_at)].parent;
        if by_at == to_at || parent == NONE || self.nodes[usize::from(to_at)].parent != parent {
            return Err(Refusal::NotASibling(to));
        }
        if self.nodes[usize::from(to_at)].budget().is_none() {
            return Err(Refusal::NotGrantable(to));
        }
        let until = self.give(now, by_at, work)?;
        let lent_below = &mut self.nodes[usize::from(parent)].lent_below;
        *lent_below = lent_below.saturating_add(work);
        let borrowed = &mut self.nodes[usize::from(to_at)].borrowed;
        // Two loans end together, with the first: that may lose time and never gains any.
        borrowed.until = match borrowed.left.is_zero() {
            true => until,
            false => borrowed.until.min(until),
        };
        borrowed.left = borrowed.left.saturating_add(work);
        self.nodes[usize::from(to_at)].book.borrows(work);
        for at in [by_at, to_at] {
            self.supply_changed(at);
            self.offer(now, now, at);
        }
        Ok(())
    }

    /// Takes `work` out of a budget. Returns until when that budget would have been.
    fn give(&mut self, now: Instant, at: u16, work: Work) -> Result<Instant, Refusal> {
        let node = &mut self.nodes[usize::from(at)];
        let id = node.id(at);
        let Supply::Server(server) = &mut node.supply else {
            return Err(Refusal::NotGrantable(id));
        };
        // A server that sleeps does not know what time it is.
        let asleep = !node.awake;
        if asleep {
            server.wake(now, now);
        }
        let until = server.deadline();
        let enough = !work.is_zero() && server.budget() >= work && until > now;
        if enough {
            server.charge(now, work);
        }
        if asleep {
            server.idle(now);
        }
        match enough {
            true => Ok(until),
            false => Err(Refusal::TooLittleBudget(id)),
        }
    }

    /// Until when budget that a scheduler lends now is there; or, as an error, when to ask again,
    /// because it has too little left. `None`: it never lends that much. O(1).
    pub fn lends_until(&self, by: NodeId, work: Work) -> Option<Result<Instant, Instant>> {
        let node = &self.nodes[usize::from(self.node(by).ok()?)];
        let Supply::Server(mut server) = node.supply else {
            return None;
        };
        if !node.awake {
            server.wake(self.now, self.now);
        }
        let until = server.deadline();
        if server.budget() >= work && until > self.now {
            return Some(Ok(until));
        }
        // A server that falls idle in this entry hears of its new period in the next one.
        let soon = self.now.saturating_add(Span::from_ticks(1));
        let again = server.next().map_or(soon, |next| next.max(soon));
        (server.capacity() >= work).then_some(Err(again))
    }

    /// How much the children of a scheduler have lent each other since the start.
    pub fn lent_below(&self, parent: NodeId) -> Option<Work> {
        let at = self.node(parent).ok()?;
        Some(self.nodes[usize::from(at)].lent_below)
    }

    /// What is borrowed and was not used is gone.
    pub(super) fn end_loan(&mut self, limit: Instant, at: u16) {
        let node = &mut self.nodes[usize::from(at)];
        if at != ROOT && node.borrowed.until <= limit {
            node.book.forgoes(node.borrowed.left);
            node.borrowed.left = Work::ZERO;
        }
    }
}

/// The budget of a node that has executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Paid {
    /// Its supply has none.
    Nothing,
    /// This much is left, and nothing else has changed.
    Some(Work),
    /// More may have changed than how much is left.
    More,
}

impl<P> Node<P> {
    /// Pays for work executed up to `now`, out of a budget if its supply has one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn pay(&mut self, now: Instant, work: Work) -> Paid {
        let left = match &mut self.supply {
            Supply::Server(server) if self.borrowed.left.is_zero() => server.spend(now, work),
            Supply::Server(_) => {
                self.pay_with_loan(now, work);
                None
            }
            Supply::Shared | Supply::Slots => return Paid::Nothing,
        };
        match left {
            Some(left) => {
                self.reported = self.reported.saturating_sub(work);
                Paid::Some(left)
            }
            None => Paid::More,
        }
    }

    /// The budget that there is for work executed up to now; `None`: its supply has none.
    #[inline]
    pub(super) fn budget_until(&self, now: Instant, work: Work) -> Option<Work> {
        let Supply::Server(server) = &self.supply else {
            return None;
        };
        match self.borrowed.left.is_zero() {
            true => Some(server.budget()),
            false => Some(server.budget().saturating_add(self.covered(now, work))),
        }
    }

    /// How much of the work executed up to now is borrowed: work after the loan is not.
    fn covered(&self, now: Instant, work: Work) -> Work {
        let after: Span = now.since(self.borrowed.until);
        self.borrowed.left.min(work.saturating_sub(after.as_work()))
    }

    /// With what is borrowed first, which is gone first.
    #[inline(never)]
    fn pay_with_loan(&mut self, now: Instant, work: Work) {
        let mut own = work;
        if !self.borrowed.left.is_zero() {
            let after: Span = now.since(self.borrowed.until);
            let covered = self.covered(now, work);
            self.borrowed.left = self.borrowed.left.saturating_sub(covered);
            self.book.uses(covered);
            own = work.saturating_sub(covered);
            if !after.is_zero() {
                // The loan is over: its rest is no budget any more.
                self.book.forgoes(self.borrowed.left);
                self.borrowed.left = Work::ZERO;
            }
        }
        if let Supply::Server(server) = &mut self.supply
            && !own.is_zero()
        {
            server.charge(now, own);
        }
    }
}
