//! The end of the fast path: the instant that the last decision named, or an idle CPU.
//!
//! A timer is due at this instant and none before it, a budget ends with it, or nobody runs. What
//! else the slow path looks for cannot be there: the running thread holds nothing, one policy
//! orders the CPU, and there is no plan. All jobs of a simulation that use up their budgets come
//! and end so. A tick may come later, as the signal of a timer does: nothing happens between what
//! is due and the tick. The parts are those of the other paths; `tests/kern/fast_path.rs` compares
//! them.

use punctual_model::Instant;
use punctual_order::{Next, Policy};

use super::{Front, MAX_RELEASES_PER_ENTRY, Shard};
use crate::event::{Decision, Entry, Event};
use crate::trace::Sink;

impl<P: Policy> Shard<P> {
    /// Handles an event as [`Shard::handle`] does, up to the instant that the last decision named,
    /// and a tick also behind it; also while nobody runs. `None`: something else may be due, and
    /// nothing has happened.
    #[inline]
    pub fn handle_when_due<S: Sink>(
        &mut self,
        now: Instant,
        event: &Event,
        sink: &mut S,
    ) -> Option<Decision> {
        let now = now.max(self.now);
        // The first instant stands for a path that is closed.
        let is_late = now > self.fast_until && *event != Event::Tick;
        if is_late || self.fast_until == Instant::ZERO {
            return None;
        }
        let arm = self.enter_when_due(now, event, sink)?;
        let (next, refused) = (self.next(), None);
        Some(Decision { next, arm, refused })
    }

    /// Whether nothing is due before `now`, and one policy orders the CPU.
    #[inline]
    pub(super) fn may_be_due(&self, now: Instant) -> bool {
        // The first instant stands for a path that is closed.
        now <= self.fast_until && self.fast_until != Instant::ZERO
    }

    /// Handles an entry for which the fast path was closed, or not tried: at its end, or on the
    /// slow path.
    #[inline]
    pub fn handle_apart<S: Sink>(&mut self, entry: Entry<'_>, sink: &mut S) -> Decision {
        let due = match entry.is_plain() {
            true => self.handle_when_due(entry.now, entry.event, sink),
            false => None,
        };
        match due {
            Some(decision) => decision,
            None => self.handle_slowly(entry, sink),
        }
    }

    /// When to enter again; `None`: not an event of this path, or one to be refused.
    #[inline(never)]
    fn enter_when_due<S: Sink>(
        &mut self,
        now: Instant,
        event: &Event,
        sink: &mut S,
    ) -> Option<Option<Instant>> {
        match *event {
            Event::Tick => match self.release_front(now, sink) {
                Front::Turn(turn) => return Some(Some(turn.arm)),
                Front::Chosen(arm) => return Some(arm),
                Front::Closed => self.go_on_to(now, event, sink),
            },
            Event::Complete => {
                let id = self.running?;
                if let Front::Chosen(arm) = self.complete_front(now, sink) {
                    return Some(arm);
                }
                self.go_on_to(now, event, sink);
                self.complete(now, id.index(), sink);
            }
            Event::Block { until } => {
                let id = self.running?;
                self.go_on_to(now, event, sink);
                self.block(now, id.index(), until, sink);
            }
            Event::Wake(other) => {
                self.thread(other).ok()?;
                self.go_on_to(now, event, sink);
                self.wake(now, other.index(), sink);
            }
            _ => return None,
        }
        if self.timeline.next().is_some_and(|at| at <= now) {
            let _ = self.serve_own_timers(false, MAX_RELEASES_PER_ENTRY, sink);
        }
        self.enforce_budget(now, sink);
        let arm = self.decide_when_due(now, sink);
        debug_assert_eq!(self.check(), Ok(()));
        Some(arm)
    }

    /// The entry begins; the thread that runs, if any, is charged.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn go_on_to<S: Sink>(&mut self, now: Instant, event: &Event, sink: &mut S) {
        sink.begin(&Entry::at(now, event));
        self.yields = false;
        match self.running {
            Some(id) => self.charge_fast(now, id),
            None => (self.now, self.since) = (now, now),
        }
    }

    /// Chooses who runs, and reports it; returns when to enter again.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn decide_when_due<S: Sink>(
        &mut self,
        now: Instant,
        sink: &mut S,
    ) -> Option<Instant> {
        if self.more {
            return self.decide_slowly(now, sink);
        }
        let choice = self.tree.pick(now);
        if !self.rekeyed.is_empty() {
            return self.rekey_and_run::<_, false>(now, sink);
        }
        if let Some((next, budget, _)) = self.may_run(choice) {
            return self.run::<_, false>(now, (next, budget, choice.until), sink);
        }
        if choice.next != Next::Idle || !self.costs.stop.is_zero() {
            return self.decide_slowly(now, sink);
        }
        let arm = self.set_arm::<false>(now, choice.until, None);
        self.switch_to(now, None, sink);
        self.counters.decisions += 1;
        let (next, refused) = (Next::Idle, None);
        sink.decision(now, &Decision { next, arm, refused });
        arm
    }
}
