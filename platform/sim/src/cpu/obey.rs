//! A virtual CPU executes the plan that its planner tells it.

use punctual_kern::{AgendaStep, AgendaView, Event, Policy, Sink};
use punctual_model::{Instant, ThreadId, Work};

use super::Cpu;
use crate::agendas::Order;

impl<P: Policy, S: Sink> Cpu<'_, P, S> {
    /// A change of the plan of this CPU.
    pub(super) fn obey(&mut self, now: Instant, order: Order) {
        if let AgendaStep::Stage(segment) = order.step {
            self.segments.insert(segment.number, order.executes);
        }
        let decision = self.enter_once(now, Event::Agenda(order.step));
        debug_assert_eq!(decision.refused, None, "{order:?} does not follow");
    }

    /// An order of the planner, obeyed when this processor sees anything again.
    pub(crate) fn tell(&mut self, now: Instant, order: Order) {
        self.orders.push_back((now, order));
    }

    /// Whether it has obeyed all orders.
    pub(crate) fn has_obeyed(&self) -> bool {
        self.orders.is_empty()
    }

    /// Where it is in its plan.
    pub(crate) fn agenda(&self) -> AgendaView {
        self.shard.agenda()
    }

    /// The work of the segment that begins as a job of this thread.
    pub(super) fn segment_work(&self, thread: ThreadId) -> Option<Work> {
        let view = self.shard.agenda();
        let number = view
            .thread
            .filter(|of| *of == thread)
            .map(|_| view.frontier)?;
        let work = self.segments.get(&number).copied()?;
        let class = self.shard.constraint(thread).map(|c| c.class);
        let budget = class.and_then(|class| class.budget()).unwrap_or(work);
        Some(if view.cleans { budget } else { work })
    }
}
