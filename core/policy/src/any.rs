//! The built-in policies behind one type, for policies that a file chooses.
//!
//! An enum rather than a pointer: the choice is a jump that predicts well, and each arm is inlined.
//! Programs that know their policy use it directly and do not pay even that. All arms of `pick` are
//! inlined: one that were not would have every answer go through memory.

use punctual_model::{Instant, PolicyKind, ThreadId, Work};
use punctual_order::{Attributes, Pick, Policy, SlotTerms};

use crate::{EarliestDeadlineFirst, Fifo, FixedPriority, RoundRobin, Tdm};

/// One of the built-in policies. Which is a byte of its own: to tell it from a word of one of them
/// takes longer.
#[derive(Debug)]
#[repr(u8)]
pub enum AnyPolicy {
    /// First come, first served.
    Fifo(Fifo),
    /// In turn.
    RoundRobin(RoundRobin),
    /// By priority.
    FixedPriority(FixedPriority),
    /// By deadline.
    EarliestDeadlineFirst(EarliestDeadlineFirst),
    /// Slots in a frame.
    Tdm(Tdm),
}

impl AnyPolicy {
    /// The policy of a CPU or scheduler in a file, for entities with an index below `capacity`.
    /// The spans of `kind` count ticks of the platform; `slots` are those of a policy that divides
    /// time.
    pub fn new(kind: PolicyKind, capacity: usize, slots: &[SlotTerms]) -> Self {
        match kind {
            // Between its segments a planned node has background work only.
            PolicyKind::Fifo | PolicyKind::Planned => AnyPolicy::Fifo(Fifo::new(capacity)),
            PolicyKind::Tdm { frame, .. } => AnyPolicy::Tdm(Tdm::new(capacity, frame, slots)),
            PolicyKind::RoundRobin { timeslice } => {
                AnyPolicy::RoundRobin(RoundRobin::new(capacity, timeslice))
            }
            PolicyKind::FixedPriority { preemptive: true } => {
                AnyPolicy::FixedPriority(FixedPriority::new(capacity))
            }
            PolicyKind::FixedPriority { preemptive: false } => {
                AnyPolicy::FixedPriority(FixedPriority::non_preemptive(capacity))
            }
            PolicyKind::EarliestDeadlineFirst => {
                AnyPolicy::EarliestDeadlineFirst(EarliestDeadlineFirst::new(capacity))
            }
        }
    }
}

/// Runs `$body` with `$policy` bound to whichever policy it is.
macro_rules! each {
    ($any:expr, $policy:ident => $body:expr) => {
        match $any {
            AnyPolicy::Fifo($policy) => $body,
            AnyPolicy::RoundRobin($policy) => $body,
            AnyPolicy::FixedPriority($policy) => $body,
            AnyPolicy::EarliestDeadlineFirst($policy) => $body,
            AnyPolicy::Tdm($policy) => $body,
        }
    };
}

impl AnyPolicy {
    #[inline(never)]
    fn charge_turn(&mut self, thread: ThreadId, work: Work) {
        each!(self, p => p.charge(thread, work));
    }
}

impl Policy for AnyPolicy {
    fn attach(&mut self, thread: ThreadId) {
        each!(self, p => p.attach(thread));
    }
    fn detach(&mut self, thread: ThreadId) {
        each!(self, p => p.detach(thread));
    }
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        each!(self, p => p.wake(thread, attributes));
    }
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn block(&mut self, thread: ThreadId) {
        each!(self, p => p.block(thread));
    }
    fn update(&mut self, thread: ThreadId, attributes: &Attributes) {
        each!(self, p => p.update(thread, attributes));
    }
    fn renew(&mut self, thread: ThreadId, attributes: &Attributes) {
        each!(self, p => p.renew(thread, attributes));
    }
    #[inline]
    fn yield_now(&mut self, thread: ThreadId) {
        each!(self, p => p.yield_now(thread));
    }
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn yield_to_next(&mut self, thread: ThreadId) -> Option<ThreadId> {
        // The others answer `None`; and two comparisons are shorter than a jump to one of five.
        match self {
            AnyPolicy::FixedPriority(p) => p.yield_to_next(thread),
            AnyPolicy::EarliestDeadlineFirst(p) => p.yield_to_next(thread),
            _ => None,
        }
    }
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn wake_to_run(&mut self, thread: ThreadId, attributes: &Attributes) -> bool {
        match self {
            AnyPolicy::FixedPriority(p) => p.wake_to_run(thread, attributes),
            AnyPolicy::EarliestDeadlineFirst(p) => p.wake_to_run(thread, attributes),
            _ => false,
        }
    }
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn block_to_next(&mut self, thread: ThreadId) -> Option<ThreadId> {
        match self {
            AnyPolicy::FixedPriority(p) => p.block_to_next(thread),
            AnyPolicy::EarliestDeadlineFirst(p) => p.block_to_next(thread),
            _ => None,
        }
    }
    #[inline]
    fn let_inherit(&mut self, thread: ThreadId, attributes: &Attributes, to: ThreadId) -> bool {
        match self {
            AnyPolicy::FixedPriority(p) => p.let_inherit(thread, attributes, to),
            AnyPolicy::EarliestDeadlineFirst(p) => p.let_inherit(thread, attributes, to),
            _ => false,
        }
    }
    #[inline]
    fn hand_to(&mut self, from: (ThreadId, &Attributes), to: (ThreadId, &Attributes)) -> bool {
        match self {
            AnyPolicy::FixedPriority(p) => p.hand_to(from, to),
            AnyPolicy::EarliestDeadlineFirst(p) => p.hand_to(from, to),
            _ => false,
        }
    }
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn charge(&mut self, thread: ThreadId, work: Work) {
        // The order of a queue alone does not ask what has been executed.
        match self {
            AnyPolicy::FixedPriority(p) => p.charge(thread, work),
            AnyPolicy::EarliestDeadlineFirst(p) => p.charge(thread, work),
            _ => self.charge_turn(thread, work),
        }
    }
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick(&mut self, now: Instant) -> Pick {
        each!(self, p => p.pick(now))
    }
    #[inline]
    fn orders_background(&self) -> bool {
        each!(self, p => p.orders_background())
    }
    fn urgency(&self, attributes: &Attributes) -> u64 {
        each!(self, p => p.urgency(attributes))
    }
}
