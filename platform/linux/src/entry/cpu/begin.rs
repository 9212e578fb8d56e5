//! A thread that was let go on begins: it executes before its budget is enforced.
//!
//! An entry is charged to the thread that goes on. Where one takes longer than that thread's budget
//! lasts (a budget of a few microseconds, a cold processor, a build without optimization), its
//! timer is overdue when it is set, and fires before the gate opens. The next entry would take the
//! processor away from a thread that has not executed one instruction, and so would every later
//! one: it never ended, and those who wait for it waited for good.
//!
//! INV-B1: a thread that an entry has let go on executes before its budget is enforced, unless
//! something else falls due meanwhile, or it has slots, which end on time. Once for each entry; the
//! debt is charged as any other.

use core::sync::atomic::Ordering;

use punctual_kern::{Event, Policy, Sink};
use punctual_model::{Instant, Span};

use super::Core;
use crate::record::per_cpu::PerCpu;

/// A thread executes for so long at least.
const LEAST_NS: u64 = 10_000;

impl<P: Policy, S: Sink> Core<P, S> {
    /// Lets the running thread go on without an entry (INV-B1), if the signal that met the closed
    /// gate came from a timer that was overdue when it was set, and for this thread's budget alone.
    /// To set it took up to now, and will again: many times what it takes to leave the scheduler,
    /// on a virtual machine.
    #[cold]
    pub(super) fn lets_begin(&self, host: &PerCpu, now: Instant, event: Event) -> bool {
        let left = Instant::from_ticks(host.left.load(Ordering::Relaxed));
        let least = host.clock().ticks(LEAST_NS);
        let least = least + 2 * now.since(left).ticks().min(host.limits.late);
        let was_overdue = host.armed_for().is_some_and(|armed| armed <= left);
        if event != Event::Tick || !was_overdue || !self.is_budget_alone(host, now, least) {
            return false;
        }
        host.retry_in(host.clock().ns(least));
        true
    }

    /// Whether what a decision is to be followed up by is due already, though it was not at `now`:
    /// more than the end of a budget, which is not enforced before its thread has begun.
    #[inline]
    pub(super) fn has_overdue(&self, host: &PerCpu, now: Instant, arm: Option<Instant>) -> bool {
        let near = now.saturating_add(host.limits.near);
        arm.is_some_and(|at| at <= near && self.is_followed_up(host, now, at))
    }

    /// The same of what is near. A policy that comes is told of all there is before anybody goes
    /// on, so that nobody executes in an order that is about to end.
    #[cold]
    #[inline(never)]
    fn is_followed_up(&self, host: &PerCpu, now: Instant, arm: Instant) -> bool {
        let is_past = |at| at <= host.clock().now();
        self.shard.is_replacing() && arm <= now
            || is_past(arm) && self.shard.next_timer().is_some_and(is_past)
    }

    /// Whether nothing but budgets ends within so many ticks.
    fn is_budget_alone(&self, host: &PerCpu, now: Instant, least: u64) -> bool {
        // SAFETY: records of light threads outlive the run (INV-L1 of `light`).
        let light = unsafe { host.current.get().as_ref() };
        let is_alone = light.is_some_and(|light| {
            self.shard.running() == Some(light.id())
                && light.group().is_none()
                && !self.shard.tree().has_slots(light.id())
        });
        let near = now.saturating_add(Span::from_ticks(least));
        is_alone
            && !host.shared.post.waits(host.index)
            && host.pool.waking.get().is_null()
            && self.shard.next_timer().is_none_or(|at| at > near)
            && self.next_due(host, now, None, false, false) > near
    }
}
