//! What sections mean to the schedulers above their threads.
//!
//! A resource that threads of several schedulers share raises its holder's branch: at the closest
//! common scheduler to the ceiling, and below that before everything else, down to the thread. And
//! a holder may go on when the budgets above it are used up, for as long as its sections may take.

use punctual_model::{AtBudgetEnd, Instant, Priority, Protocol, Work};
use punctual_order::{NodeId, Policy};

use super::Shard;
use crate::lock::{Hold, Use};
use crate::trace::{Sink, TraceEvent};

/// Before everything else.
const FIRST: Priority = Priority::new(u32::MAX);

impl<P: Policy> Shard<P> {
    /// No thread ran: a scheduler may have, to decide on its own supply.
    #[cold]
    pub(super) fn charge_nobody<S: Sink>(&mut self, now: Instant, executed: Work, sink: &mut S) {
        if let Some(child) = self.deciding
            && self.tree.epoch(child).is_some()
        {
            let charged = TraceEvent::ChildCharged {
                node: child,
                work: executed,
            };
            sink.trace(now, charged);
            self.tree
                .charge_child(now, child, executed, &mut |node, budget| {
                    sink.trace(now, TraceEvent::budget(node, budget));
                });
        }
    }

    /// Whether who holds this delays threads of schedulers other than its own.
    pub(super) fn reaches_out(&self, of: u32) -> bool {
        self.spans(self.locks.get(of))
    }

    pub(super) fn spans(&self, user: &Use) -> bool {
        let terms = self.locks.terms(user.terms.resource);
        let thread = user.thread as usize;
        let id = self.threads[thread].id(thread);
        terms.spans_schedulers && self.tree.child_towards(terms.common, id).is_some()
    }

    /// Whether who holds this keeps its siblings away.
    pub(super) fn shields(&self, of: u32) -> bool {
        let terms = self.locks.terms(self.locks.get(of).terms.resource);
        matches!(terms.protocol, Protocol::NonPreemptive | Protocol::Spin)
    }

    /// A section has begun, ended or lapsed.
    pub(super) fn tell_tree(&mut self, of: u32) {
        let user = self.locks.get(of);
        let terms = *self.locks.terms(user.terms.resource);
        let thread = user.thread as usize;
        if terms.at_budget_end == AtBudgetEnd::Overrun {
            let id = self.threads[thread].id(thread);
            let most = self.may_overrun(thread);
            self.tree.overrun(self.now, id, most);
        }
        if self.reaches_out(of) && self.threads[thread].queued {
            self.raise_branch(of, true);
        }
    }

    /// What the sections of a thread may still take that go on without budget.
    fn may_overrun(&self, thread: usize) -> Option<Work> {
        let overruns = |of: &u32| {
            let terms = self.locks.terms(self.locks.get(*of).terms.resource);
            terms.at_budget_end == AtBudgetEnd::Overrun
        };
        let sections = self.locks.uses_of(thread).filter(overruns);
        sections.filter_map(|of| self.left_of(of)).max()
    }

    /// A thread becomes ready (`up`), or is about not to be: so do the claims of its branch.
    /// O(1) for who holds nothing that spans schedulers, else [`Shard::raise_branch`] for each.
    #[inline]
    pub(super) fn raise(&mut self, thread: usize, up: bool) {
        if self.rares.reach(&self.threads[thread]) == 0 {
            return;
        }
        let mut next = self.locks.first_use(thread);
        while let Some(of) = next {
            next = self.locks.next_use(of);
            if self.locks.get(of).hold.is_some() && self.reaches_out(of) {
                self.raise_branch(of, up);
            }
        }
    }

    /// Sets the urgency of the schedulers from the common one of a resource down to the home of its
    /// holder, by all that ready threads below them have locked. O(uses · depth³): it asks for each
    /// level, of all uses of the shard, on which way from their common scheduler it lies.
    fn raise_branch(&mut self, of: u32, up: bool) {
        let user = self.locks.get(of);
        let (thread, common) = (
            user.thread as usize,
            self.locks.terms(user.terms.resource).common,
        );
        let id = self.threads[thread].id(thread);
        let mut above = common;
        while let Some(child) = self.tree.child_towards(above, id) {
            let ready = |holder: usize| match holder == thread {
                true => up,
                false => self.threads[holder].queued,
            };
            let held = self.locks.held();
            let held = held.filter(|(user, _)| ready(user.thread as usize));
            let claims = held.filter_map(|held| self.claim_of(held, (above, child)));
            let priority = claims.reduce(|a, b| if b.is_higher_than(a) { b } else { a });
            self.tree.raise(child, priority);
            above = child;
        }
    }

    /// How urgent what a thread holds makes a scheduler below `above`.
    fn claim_of(
        &self,
        (user, hold): (&Use, Hold),
        (above, child): (NodeId, NodeId),
    ) -> Option<Priority> {
        let terms = self.locks.terms(user.terms.resource);
        if hold.lapsed || !terms.spans_schedulers {
            return None;
        }
        let thread = user.thread as usize;
        let id = self.threads[thread].id(thread);
        let mut at = terms.common;
        while at != above {
            at = self.tree.child_towards(at, id)?;
        }
        let below = self.tree.child_towards(above, id)? == child;
        let priority = if above == terms.common {
            terms.ceiling
        } else {
            FIRST
        };
        below.then_some(priority)
    }
}
