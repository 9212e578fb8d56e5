//! A policy takes the place of another, some places per entry.
//!
//! Threads keep their jobs, their budgets, what they hold and what they inherit: those are the
//! core's. Only their order is built anew, beside the old one, which decides until then.

use punctual_model::{PolicyKind, Span};
use punctual_order::{Member, NodeId, Policy, Refusal};

use super::{ConfigError, Shard};
use crate::effective::WaitOrder;
use crate::thread::State;
use crate::trace::{Sink, TraceEvent};

/// Most places of which a policy that comes is told in one entry; the rest is told in the next,
/// which is armed at once.
pub const MAX_PLACES_PER_ENTRY: usize = 64;

impl<P: Policy> Shard<P> {
    /// A scheduler that decides on its own supply has its policy here for when it does not: when it
    /// has been asked for `patience` and has not answered lawfully, or has failed. Before the run
    /// starts.
    ///
    /// # Errors
    /// No such scheduler, or it does not decide on its own supply.
    pub fn set_fallback(
        &mut self,
        node: NodeId,
        policy: PolicyKind,
        patience: Span,
    ) -> Result<(), ConfigError> {
        Ok(self.tree.set_fallback(node, policy, patience)?)
    }

    /// Puts a policy, with room for [`crate::Capacity::entities`] and nothing to order, beside a
    /// scheduler: [`crate::Request::Replace`] installs it. One at a time; comes between two
    /// entries, and allocates nothing.
    ///
    /// # Errors
    /// The policy, when there is no such scheduler or another policy stands there.
    pub fn shelve(&mut self, node: NodeId, policy: P) -> Result<(), P> {
        self.tree.shelve(node, policy)
    }

    /// Puts policies in stock before a run, each with room for [`crate::Capacity::entities`] and
    /// nothing to order, by the order that they keep: [`crate::Request::Replace`] takes one where
    /// nothing was put beside the scheduler.
    pub fn stock(&mut self, policies: impl IntoIterator<Item = (PolicyKind, P)>) {
        self.tree.stock(policies);
    }

    /// Takes away what stands beside a scheduler, unless it is about to decide: a policy that was
    /// not asked for or was refused, or the one that was replaced.
    pub fn unshelve(&mut self, node: NodeId) -> Option<P> {
        self.tree.unshelve(node)
    }

    /// Whether a policy that was asked for does not decide yet.
    pub fn is_replacing(&self) -> bool {
        self.tree.is_replacing()
    }

    /// Whether a replacement there would wait for locks of a runtime: somebody waits for one in the
    /// order of the CPU's own policy, which another would change. O(threads).
    pub fn waits_for_locks(&self, node: NodeId, policy: PolicyKind) -> bool {
        node == NodeId::ROOT
            && WaitOrder::of(policy) != self.wait_order
            && (self.locks.has_contended() || self.threads.iter().any(|t| t.has_ceiling))
    }

    /// What threads of the scheduler share is handed on in the order of its policy, which must stay
    /// that order: ceilings and what is inherited are compared by it. O(resources).
    pub(super) fn permit_order(&self, node: NodeId, policy: PolicyKind) -> Result<(), Refusal> {
        match self.locks.differs_in_order(node, WaitOrder::of(policy)) {
            true => Err(Refusal::NotReplaceable(node)),
            false => Ok(()),
        }
    }

    /// Policies that come are told of some places more; those that know everything decide.
    #[cold]
    #[inline(never)]
    pub(super) fn replace_some<S: Sink>(&mut self, sink: &mut S) {
        while let Some((node, cause)) = self.tree.next_fallback() {
            sink.trace(self.now, TraceEvent::FellBack { node, cause });
        }
        let mut most = MAX_PLACES_PER_ENTRY;
        let (threads, rares) = (&self.threads, &self.rares);
        let member = |index: usize| {
            let t = threads.get(index).filter(|t| t.state != State::Dead)?;
            let ready = t.queued.then(|| (t.effective(rares).attributes, t.place));
            let thread = t.id(index);
            Some(Member { thread, ready })
        };
        let mut root_waits = false;
        while let Some((node, policy)) = self.tree.build_some(&mut most, member) {
            // Waiters for locks of a runtime are in the old order: not while there are any.
            if self.waits_for_locks(node, policy) {
                if root_waits {
                    // It has come round: nobody else is left.
                    return;
                }
                root_waits = true;
                self.tree.put_off();
                continue;
            }
            if node == NodeId::ROOT {
                self.wait_order = WaitOrder::of(policy);
            }
            self.tree.install(self.now);
            sink.trace(self.now, TraceEvent::PolicyReplaced { node, policy });
        }
        self.more |= self.tree.is_replacing();
    }
}
