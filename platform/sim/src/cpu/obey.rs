//! A virtual CPU executes the plan that its planner tells it, and the changes of its tree.

use punctual_kern::{AgendaStep, AgendaView, Event, Policy, Sink};
use punctual_model::{Instant, ThreadId, Work};

use super::Cpu;
use crate::agendas::Order;
use crate::body::{Act, Step};
use crate::child::recode;
use crate::requests::Misplanning;

impl<P: Policy, S: Sink> Cpu<'_, P, S> {
    /// The entries of changes whose time it is.
    #[cold]
    #[inline(never)]
    pub(super) fn enter_planned(&mut self, now: Instant) {
        while let Some(event) = self.plan.next(now, &self.shard) {
            let decision = self.enter_apart(now, &event);
            recode(&mut self.children, &event, &decision);
            self.plan.hear(&decision);
        }
    }

    /// A change of the plan of this CPU.
    pub(super) fn obey(&mut self, now: Instant, order: Order) {
        if let AgendaStep::Stage(segment) = order.step {
            self.segments.insert(segment.number, order.executes);
        }
        let kills = matches!(order.step, AgendaStep::Kill { .. });
        if kills && order.misplanned == Some(Misplanning::Cuts) {
            self.cut(now);
        }
        let decision = self.enter_apart(now, &Event::Agenda(order.step));
        let follows = decision.refused.is_none() || order.misplanned.is_some();
        debug_assert!(follows, "{order:?} does not follow");
    }

    /// The segment that executes ends where it is.
    fn cut(&mut self, now: Instant) {
        let planned = self.shard.agenda().thread;
        if let Some(id) = self.running.filter(|id| planned == Some(*id)) {
            let (work, act) = (Some(Work::ZERO), Act::Complete);
            self.doing[id.index()].step = Some(Step { work, act });
            self.section_end = now;
        }
    }

    /// An order of the planner, obeyed when this processor sees anything again.
    pub(crate) fn tell(&mut self, now: Instant, order: Order) {
        self.is_plain = false;
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
