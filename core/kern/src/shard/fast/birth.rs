//! The fast path where a thread comes or goes.
//!
//! Apart from that of all other events: their code is inlined where entries are many, and does not
//! grow by this.

use punctual_model::Instant;
use punctual_order::{Next, NodeId, Policy};

use super::FastOutcome;
use crate::event::{Entry, Event};
use crate::shard::{MAX_RELEASES_PER_ENTRY, Shard};
use crate::trace::Sink;

impl<P: Policy> Shard<P> {
    /// Whether [`Shard::handle_birth`] is for this event.
    #[inline]
    pub(super) fn is_birth(event: &Event) -> bool {
        matches!(event, Event::Create(_) | Event::Exit)
    }

    /// Handles the creation of a thread, or the end of the running one, as [`Shard::handle`] does,
    /// if the fast path of one policy is open and the event is not refused; `None`: that is not so,
    /// and nothing has happened. O(log n).
    #[inline(never)]
    pub fn handle_birth<S: Sink>(
        &mut self,
        now: Instant,
        event: &Event,
        sink: &mut S,
    ) -> Option<FastOutcome> {
        let now = now.max(self.now);
        let id = self.running.filter(|_| now < self.fast_until)?;
        let created = match event {
            Event::Create(constraint) => Some(constraint),
            Event::Exit => None,
            _ => return None,
        };
        if let Some(constraint) = created {
            let is_possible = constraint.is_valid() && self.free.first().is_some();
            let permitted = self.tree.permit_create(NodeId::ROOT, NodeId::ROOT);
            permitted.ok().filter(|()| is_possible)?;
        }
        sink.begin(&Entry::at(now, event));
        self.yields = false;
        self.charge_fast(now, id);
        match created {
            // Nothing refuses it.
            Some(constraint) => {
                let created = self.create_alone(NodeId::ROOT, *constraint, sink);
                debug_assert!(created.is_ok());
            }
            None => self.end(id.index(), sink),
        }
        if self.timeline.next().is_some_and(|at| at <= now) {
            let arm = self.catch_up(now, MAX_RELEASES_PER_ENTRY, sink);
            debug_assert_eq!(self.check(), Ok(()));
            return Some(self.outcome(arm));
        }
        self.enforce_budget(now, sink);
        let choice = self.tree.pick(now);
        let may_run = self.may_run(choice).filter(|_| self.rekeyed.is_empty());
        let outcome = match may_run {
            Some((next, budget, stamp)) => {
                let arm = self.run::<_, false>(now, (next, budget, choice.until), sink);
                let next = Next::Thread(next);
                FastOutcome { next, arm, stamp }
            }
            None => {
                let arm = self.rekey_and_run::<_, false>(now, sink);
                self.outcome(arm)
            }
        };
        debug_assert_eq!(self.check(), Ok(()));
        Some(outcome)
    }
}
