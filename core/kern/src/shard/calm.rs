//! The short way through an entry at which nothing is due.
//!
//! Most entries of a busy CPU find the same: no timer is due, the running thread has budget left
//! and holds nothing, one policy orders the CPU. Then all that the long way would look for is known
//! not to be there, and an entry is: charge, do what the thread asked for, choose. The long way
//! says at its end until when that will be so ([`Shard::set_calm`]). Both ways lead to the same
//! decisions, which the tests of this crate hold them to.
//!
//! What must be inlined for this to be short is inlined in optimized builds only: else the frame of
//! whoever calls it would be as large as all of it together (20 KiB), on every thread's stack.

use punctual_model::{Class, Instant, ThreadId, Work};
use punctual_order::{Choice, Next, Policy};

use super::{MAX_RELEASES_PER_ENTRY, Shard};
use crate::event::{Decision, Event};
use crate::thread::{JobStamp, State};
use crate::trace::Sink;

/// What a calm entry consists of, with the running thread.
#[derive(Clone, Copy, Debug)]
enum Calm {
    /// It goes on unless somebody else is to run.
    GoOn(ThreadId),
    /// It lets others of the same urgency go first.
    GiveWay(ThreadId),
    /// The event changes who is ready.
    Change(ThreadId),
}

/// What has become of a yield that was a matter of order alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passed {
    /// Who runs now.
    pub next: ThreadId,
    /// When to enter again, at the latest.
    pub arm: Instant,
    /// What [`Shard::job_stamp`] says of it.
    pub stamp: JobStamp,
}

/// Who runs, and when to enter again at the latest.
type Outcome = (Next, Option<Instant>);

impl<P: Policy> Shard<P> {
    /// Handles an event as [`Shard::handle`] does, if the short way is open; `None`: it is not, and
    /// nothing has happened. What goes the short way is never refused. For the one place of a
    /// platform through which most entries go: inlined there, without a copy of the event, and
    /// without a [`crate::Decision`] that would have to be put together first.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn handle_calmly<S: Sink>(
        &mut self,
        now: Instant,
        event: &Event,
        sink: &mut S,
    ) -> Option<(Next, Option<Instant>)> {
        let now = now.max(self.now);
        let way = self.calm_way(now, event)?;
        let (next, arm) = match way {
            Calm::GoOn(id) => self.go_on(now, id, event, false, sink),
            Calm::GiveWay(id) => self.go_on(now, id, event, true, sink),
            Calm::Change(id) => self.change_calmly(now, id, event, sink),
        };
        debug_assert_eq!(self.check(), Ok(()));
        Some((next, arm))
    }

    /// A yield, as [`Shard::handle`] handles it, where it is a matter of order alone: the running
    /// thread is of an ordinary class, holds nothing and inherits nothing, and whoever is next
    /// among its equals may run at once on a budget of its own. `None`: it is another yield, and
    /// nothing has happened. For the one place of a platform through which most switches go.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn pass_on_calmly<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Option<Passed> {
        let now = now.max(self.now);
        let id = self.running.filter(|_| now < self.calm_until)?;
        let t = self.threads.get(id.index())?;
        // A reservation gives up its slice.
        let is_simple = !matches!(t.constraint.class, Class::Reservation { .. });
        if !is_simple || t.keeps_its_place() || !t.is_budgeted() {
            return None;
        }
        let band = t.place;
        let next = self.tree.heir(id, band)?;
        let both = [id.index(), next.index()];
        let [t, heir] = self.threads.get_disjoint_mut(both).ok()?;
        // What a policy names that is not ready is left to the long way.
        let is_ready = heir.queued && heir.generation == next.generation();
        if !is_ready || !heir.may_run_calmly() || !heir.is_budgeted() {
            return None;
        }
        debug_assert!(t.queued && t.state == State::Running, "I1, I2");
        // Nothing is written before this: what has been looked at need not be loaded again.
        self.tree.pass_on(id);
        debug_assert_eq!(
            self.tree.pick(now).next,
            Next::Thread(next),
            "whom a thread passes on to is picked"
        );
        t.book(now.since(self.now).as_work());
        t.gave_way = true;
        t.state = State::Ready;
        heir.state = State::Running;
        let (budget, stamp) = (heir.budget, JobStamp::of(heir));
        (self.now, self.since) = (now, now);
        self.running = Some(next);
        let budget_end = now.saturating_add(budget.as_span());
        let due = self.timeline.next();
        let arm = due.map_or(budget_end, |due| due.min(budget_end));
        self.calm_until = arm;
        sink.entry(now, &Event::Yield, Some(id), (next, Some(arm)));
        debug_assert_eq!(self.check(), Ok(()));
        Some(Passed { next, arm, stamp })
    }

    /// How to take an entry the short way; `None`: the long way.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn calm_way(&self, now: Instant, event: &Event) -> Option<Calm> {
        let id = self.running.filter(|_| now < self.calm_until)?;
        match event {
            Event::Tick => Some(Calm::GoOn(id)),
            Event::Yield => {
                let t = &self.threads[id.index()];
                // A reservation gives up its slice.
                let is_simple = !matches!(t.constraint.class, Class::Reservation { .. });
                (is_simple && !t.keeps_its_place()).then_some(Calm::GiveWay(id))
            }
            Event::Block { .. } | Event::Complete => Some(Calm::Change(id)),
            // One for a thread that has ended is refused, the long way.
            Event::Wake(other) => self.thread(*other).is_ok().then_some(Calm::Change(id)),
            _ => None,
        }
    }

    /// The running thread goes on, or lets others of the same urgency go first. Until somebody is
    /// chosen nothing changes that a sink would hear of.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn go_on<S: Sink>(
        &mut self,
        now: Instant,
        id: ThreadId,
        event: &Event,
        gives_way: bool,
        sink: &mut S,
    ) -> Outcome {
        let executed = self.advance_to(now);
        let t = &mut self.threads[id.index()];
        debug_assert!(t.queued && t.state == State::Running, "I1, I2");
        t.book(executed);
        t.gave_way |= gives_way;
        let band = t.place;
        if !executed.is_zero() {
            self.tree.charge(now, id, band, executed, &mut |_, _| {});
        }
        if gives_way {
            self.tree.yield_now(id, band);
        }
        let choice = self.tree.pick(now);
        let Some((next, budget)) = self.may_run(choice) else {
            let arm = self.go_on_carefully(now, event, sink);
            return (self.next(), arm);
        };
        let arm = self.set_arm(now, choice.until, budget);
        let mut left = None;
        if next != id {
            self.threads[id.index()].state = State::Ready;
            self.threads[next.index()].state = State::Running;
            self.running = Some(next);
            left = Some(id);
        }
        sink.entry(now, event, left, (next, arm));
        (Next::Thread(next), arm)
    }

    /// Something speaks against the choice: chooses again the long way.
    #[cold]
    #[inline(never)]
    fn go_on_carefully<S: Sink>(
        &mut self,
        now: Instant,
        event: &Event,
        sink: &mut S,
    ) -> Option<Instant> {
        sink.event(now, event);
        let arm = self.decide(now, sink);
        let (next, refused) = (self.next(), None);
        sink.decision(now, &Decision { next, arm, refused });
        arm
    }

    /// A thread waits, may go on, or has finished its job.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn change_calmly<S: Sink>(
        &mut self,
        now: Instant,
        id: ThreadId,
        event: &Event,
        sink: &mut S,
    ) -> Outcome {
        sink.event(now, event);
        let executed = self.advance_to(now);
        let t = &mut self.threads[id.index()];
        t.book(executed);
        let band = t.place;
        if !executed.is_zero() {
            self.tree.charge(now, id, band, executed, &mut |_, _| {});
        }
        match *event {
            Event::Block { until } => self.block(now, id.index(), until, sink),
            Event::Wake(other) => self.wake(now, other.index(), sink),
            Event::Complete => self.complete(now, id.index(), sink),
            _ => {}
        }
        let (next, arm) = if self.timeline.next().is_some_and(|at| at <= now) {
            let arm = self.catch_up(now, sink);
            (self.next(), arm)
        } else {
            self.enforce_budget(now, sink);
            let choice = self.tree.pick(now);
            self.conclude(now, choice, sink)
        };
        let refused = None;
        sink.decision(now, &Decision { next, arm, refused });
        (next, arm)
    }

    /// The event has made something due at once: on with the long way.
    #[cold]
    fn catch_up<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Option<Instant> {
        let _ = self.serve_timers(now, false, MAX_RELEASES_PER_ENTRY, sink);
        self.enforce_budget(now, sink);
        self.enforce_sections(now, sink);
        self.decide(now, sink)
    }

    /// Time goes on to `now`; returns what has been executed since the last entry.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn advance_to(&mut self, now: Instant) -> Work {
        let executed = now.since(self.now).as_work();
        self.now = now;
        self.since = now;
        executed
    }

    /// Carries out a choice, if nothing speaks against it; else chooses again the long way.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn conclude<S: Sink>(&mut self, now: Instant, choice: Choice, sink: &mut S) -> Outcome {
        let may_run = self.may_run(choice).filter(|_| self.rekeyed.is_empty());
        let Some((next, budget)) = may_run else {
            let arm = self.decide(now, sink);
            return (self.next(), arm);
        };
        let arm = self.set_arm(now, choice.until, budget);
        self.switch_to(now, Some(next), sink);
        (Next::Thread(next), arm)
    }

    /// Who runs by a choice, and what it may execute, if nothing speaks against it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn may_run(&self, choice: Choice) -> Option<(ThreadId, Option<Work>)> {
        let Next::Thread(id) = choice.next else {
            return None;
        };
        let t = &self.threads[id.index()];
        t.may_run_calmly().then(|| (id, t.allowance()))
    }

    /// When to enter again, at the latest; before that an entry may take the short way.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn set_arm(
        &mut self,
        now: Instant,
        until: Option<Instant>,
        budget: Option<Work>,
    ) -> Option<Instant> {
        let budget_end = budget.map(|left| now.saturating_add(left.as_span()));
        let due = Choice::earlier(self.timeline.next(), budget_end);
        let arm = Choice::earlier(due, until);
        self.calm_until = arm.unwrap_or(Instant::MAX);
        arm
    }

    /// Notes at the end of the long way until when entries may take the short one.
    #[inline]
    pub(super) fn set_calm(&mut self, arm: Option<Instant>) {
        let running = self.running.map(|id| &self.threads[id.index()]);
        let is_calm = self.tree.is_flat() && running.is_some_and(|t| t.held == 0 && !t.in_section);
        self.calm_until = if is_calm {
            arm.unwrap_or(Instant::MAX)
        } else {
            Instant::ZERO
        };
    }
}
