//! What orders a CPU of a file: one built-in policy.

use punctual_kern::{Attributes, Band, Choice, CpuPlan, Hierarchy, OneLevel, Sink};
use punctual_model::{Instant, ThreadId, Work};

use crate::AnyPolicy;

/// The hierarchy of a CPU that a file describes.
#[derive(Debug)]
pub enum AnyHierarchy {
    /// One policy: the common case, at full speed.
    OneLevel(OneLevel<AnyPolicy>),
}

impl AnyHierarchy {
    /// What orders the CPU of this plan. O(threads).
    pub fn new(plan: &CpuPlan) -> Self {
        let capacity = plan.capacity;
        let policy = AnyPolicy::new(plan.policy, capacity.threads, |ticks| ticks);
        AnyHierarchy::OneLevel(OneLevel::new(capacity, policy))
    }
}

/// Runs `$body` with `$h` bound to whichever hierarchy it is.
macro_rules! each {
    ($any:expr, $h:ident => $body:expr) => {
        match $any {
            AnyHierarchy::OneLevel($h) => $body,
        }
    };
}

impl Hierarchy for AnyHierarchy {
    #[inline]
    fn begin(&mut self, now: Instant) {
        each!(self, h => h.begin(now));
    }
    fn attach(&mut self, thread: ThreadId) {
        each!(self, h => h.attach(thread));
    }
    fn detach(&mut self, thread: ThreadId) {
        each!(self, h => h.detach(thread));
    }
    #[inline]
    fn wake(&mut self, now: Instant, since: Instant, t: ThreadId, a: &Attributes, band: Band) {
        each!(self, h => h.wake(now, since, t, a, band));
    }
    #[inline]
    fn block(&mut self, now: Instant, thread: ThreadId, band: Band) {
        each!(self, h => h.block(now, thread, band));
    }
    fn update(&mut self, thread: ThreadId, attributes: &Attributes, band: Band) {
        each!(self, h => h.update(thread, attributes, band));
    }
    fn yield_now(&mut self, thread: ThreadId, band: Band) {
        each!(self, h => h.yield_now(thread, band));
    }
    #[inline]
    fn charge<S: Sink>(&mut self, now: Instant, t: ThreadId, band: Band, work: Work, s: &mut S) {
        each!(self, h => h.charge(now, t, band, work, s));
    }
    fn hold(&mut self, thread: ThreadId, band: Band) {
        each!(self, h => h.hold(thread, band));
    }
    #[inline]
    fn release(&mut self, thread: ThreadId) {
        each!(self, h => h.release(thread));
    }
    fn holds(&self, thread: ThreadId) -> bool {
        each!(self, h => h.holds(thread))
    }
    #[inline]
    fn serve_timers<S: Sink>(&mut self, now: Instant, strictly: bool, sink: &mut S) {
        each!(self, h => h.serve_timers(now, strictly, sink));
    }
    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        each!(self, h => h.next_timer())
    }
    #[inline]
    fn pick(&mut self, now: Instant) -> Choice {
        each!(self, h => h.pick(now))
    }
    fn check(&self) -> Result<(), &'static str> {
        each!(self, h => h.check())
    }
}
