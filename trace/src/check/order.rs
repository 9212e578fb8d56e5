//! Which ready thread the policy must choose.

use std::cmp::Reverse;
use std::collections::VecDeque;

use punctual_model::{Instant, PolicyKind, ThreadId};

use super::Rule;
use super::cpu::CpuCheck;
use super::thread::Thread;

/// What policies remember beyond the attributes of ready threads.
#[derive(Debug)]
pub(super) struct Order {
    policy: PolicyKind,
    /// Without preemption: who executed last and has not left the ready set since.
    holder: Option<ThreadId>,
    /// Round robin: ready threads by turn, and what the first has left of its turn.
    turns: VecDeque<ThreadId>,
    left: u64,
}

impl Order {
    pub(super) fn new(policy: PolicyKind) -> Order {
        let mut order = Order {
            policy,
            holder: None,
            turns: VecDeque::new(),
            left: 0,
        };
        order.left = order.timeslice();
        order
    }

    fn timeslice(&self) -> u64 {
        match self.policy {
            PolicyKind::RoundRobin { timeslice } => timeslice.ticks().max(1),
            _ => u64::MAX,
        }
    }

    pub(super) fn enter(&mut self, thread: ThreadId) {
        if matches!(self.policy, PolicyKind::RoundRobin { .. }) {
            self.turns.push_back(thread);
        }
    }

    pub(super) fn leave(&mut self, thread: ThreadId) {
        if self.holder == Some(thread) {
            self.holder = None;
        }
        if self.turns.front() == Some(&thread) {
            self.left = self.timeslice();
        }
        self.turns.retain(|&t| t != thread);
    }

    pub(super) fn charge(&mut self, thread: ThreadId, executed: u64) {
        if executed > 0 && self.is_sticky() {
            self.holder = Some(thread);
        }
        if self.turns.front() != Some(&thread) {
            return;
        }
        self.left = self.left.saturating_sub(executed);
        if self.left == 0 {
            self.rotate();
        }
    }

    pub(super) fn give_way(&mut self, thread: ThreadId) {
        if self.turns.front() == Some(&thread) {
            self.rotate();
        }
        if self.holder == Some(thread) && self.policy != PolicyKind::Fifo {
            self.holder = None;
        }
    }

    fn rotate(&mut self) {
        self.left = self.timeslice();
        self.turns.rotate_left(1);
    }

    fn is_sticky(&self) -> bool {
        matches!(
            self.policy,
            PolicyKind::Fifo | PolicyKind::FixedPriority { preemptive: false }
        )
    }
}

/// Urgency as a range: smaller is more urgent, the two ends differ where a log cannot tell.
type Urgency = (Reverse<u32>, Instant, Instant, u32);

fn urgency(policy: PolicyKind, t: &Thread) -> (Urgency, Urgency) {
    let c = &t.constraint;
    let (arrival, (from, until)) = match &t.current {
        Some(current) => (current.job.arrival, current.urgency),
        None => (Instant::ZERO, (Instant::MAX, Instant::MAX)),
    };
    let key = |deadline: Instant| match policy {
        PolicyKind::FixedPriority { .. } => {
            let priority = Reverse(c.priority.number());
            (priority, Instant::ZERO, arrival, c.order)
        }
        PolicyKind::EarliestDeadlineFirst => (Reverse(0), deadline, arrival, c.order),
        PolicyKind::Fifo | PolicyKind::RoundRobin { .. } | PolicyKind::Tdm { .. } => {
            (Reverse(0), Instant::ZERO, arrival, c.order)
        }
    };
    (key(from), key(until))
}

impl CpuCheck<'_> {
    /// Holds the choice of an entry against the ready threads; `None` is idle.
    pub(super) fn choice(&mut self, chosen: Option<usize>) {
        let ready = |t: &&Thread| t.ready && !t.dead;
        let Some(chosen) = chosen else {
            if let Some(t) = self.threads.iter().find(ready) {
                let name = self.name(t.id.index());
                let what = format!("idle while {name} is ready");
                self.violation(Rule::WorkConserving, what);
            }
            return;
        };
        let t = &self.threads[chosen];
        if !ready(&t) {
            let what = format!("{} runs and is not ready", self.name(chosen));
            return self.violation(Rule::OnlyReadyRuns, what);
        }
        if self.protected && self.running == Some(t.id) {
            return;
        }
        self.protected = false;
        let better = if t.background {
            self.threads
                .iter()
                .filter(ready)
                .find(|o| {
                    !o.background || o.constraint.priority.is_higher_than(t.constraint.priority)
                })
                .map(|o| o.id)
        } else {
            self.more_urgent(t)
        };
        if let Some(better) = better {
            let (is, should) = (self.name(chosen), self.name(better.index()));
            let what = format!("{is} runs while {should} is ready and comes first");
            self.violation(Rule::PolicyOrder, what);
        }
    }

    /// A real-time thread that certainly comes before `t`.
    fn more_urgent(&self, t: &Thread) -> Option<ThreadId> {
        let policy = self.order.policy;
        if let PolicyKind::RoundRobin { .. } = policy {
            return self
                .order
                .turns
                .front()
                .copied()
                .filter(|&first| first != t.id);
        }
        if let Some(holder) = self.order.holder {
            return (holder != t.id).then_some(holder);
        }
        let earliest = urgency(policy, t).0;
        let others = self.threads.iter();
        let mut others = others.filter(|o| o.ready && !o.dead && !o.background && o.id != t.id);
        let better = others.find(|o| urgency(policy, o).1 < earliest);
        better.map(|o| o.id)
    }
}
