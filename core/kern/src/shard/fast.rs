//! The fast path through an entry: nothing is due, and the running thread holds nothing.
//!
//! Most entries of a busy CPU find the same: no timer is due, the running thread has budget left,
//! one policy orders the CPU. Then an entry is: charge, do what the thread asked for, choose. The
//! slow path says at its end until when the fast path is open ([`Shard::open_fast_path`]). Both
//! paths lead to the same decisions; `tests/kern/fast_path.rs` compares them.
//!
//! Where several schedulers order the CPU, the same instant holds, and charge and choice are one
//! way through the tree ([`Shard::handle_in_tree`]).
//!
//! The parts are inlined in optimized builds only: otherwise the frame of the caller would be as
//! large as all of them together (20 KiB), on the stack of every thread.

mod birth;

use punctual_model::{Instant, ThreadId, Work};
use punctual_order::{Band, Choice, Next, Policy};

use super::{FastOutcome, Front, MAX_RELEASES_PER_ENTRY, Shard};
use crate::event::{Decision, Entry, Event};
use crate::thread::{JobStamp, State, Thread};
use crate::trace::{Sink, TraceEvent};

impl<P: Policy> Shard<P> {
    /// Handles an event as [`Shard::handle`] does, if the fast path is open; `None`: it is closed,
    /// and nothing has happened. A platform calls this where most of its entries pass: the code is
    /// inlined there, without a copy of the event. Where the event is a constant, only the code
    /// for that event is left.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn handle_fast<S: Sink>(
        &mut self,
        now: Instant,
        event: &Event,
        sink: &mut S,
    ) -> Option<FastOutcome> {
        let now = now.max(self.now);
        let id = self.running.filter(|_| now < self.fast_until)?;
        let outcome = match event {
            Event::Tick => self.go_on(now, id, event, sink),
            Event::Yield => {
                let t = &self.threads[id.index()];
                if t.is_reservation() || t.keeps_its_place() {
                    return None;
                }
                let band = t.place;
                match self.yield_turn(now, (id, band), Thread::is_budgeted, sink) {
                    Front::Closed => {
                        let arm = self.give_way_to_pick(now, id, event, true, sink);
                        self.outcome(arm)
                    }
                    front => self.outcome_of(front),
                }
            }
            Event::Block { until: None } => match self.block_turn(now, id, sink) {
                Front::Closed => self.change_fast::<_, false>(now, id, event, sink),
                front => self.outcome_of(front),
            },
            Event::Complete => match self.complete_front(now, sink) {
                Front::Closed => self.change_fast::<_, false>(now, id, event, sink),
                front => self.outcome_of(front),
            },
            Event::Block { .. } => self.change_fast::<_, false>(now, id, event, sink),
            // What is to be refused is refused on the slow path.
            Event::Wake(other) => {
                self.thread(*other).ok()?;
                match self.wake_turn(now, id, *other, sink) {
                    Front::Closed => self.change_fast::<_, false>(now, id, event, sink),
                    front => self.outcome_of(front),
                }
            }
            Event::BlockOn { holder, key, until } => {
                self.may_block_on(id.index(), *holder, *key).ok()?;
                let front = match until {
                    None => self.inherit_turn(now, id, (*holder, *key), sink),
                    Some(_) => Front::Closed,
                };
                match front {
                    Front::Closed => self.change_fast::<_, false>(now, id, event, sink),
                    front => self.outcome_of(front),
                }
            }
            Event::HandOver { from, to, key } => {
                self.thread(*from).and(self.thread(*to)).ok()?;
                let front = match *from == id {
                    true => self.hand_turn(now, (id, *to), *key, sink),
                    false => Front::Closed,
                };
                match front {
                    Front::Closed => self.change_fast::<_, false>(now, id, event, sink),
                    front => self.outcome_of(front),
                }
            }
            _ => return None,
        };
        debug_assert_eq!(self.check(), Ok(()));
        Some(outcome)
    }

    /// The same in a tree of schedulers; `None` also where one policy orders the CPU.
    #[inline]
    pub fn handle_in_tree<S: Sink>(
        &mut self,
        now: Instant,
        event: &Event,
        sink: &mut S,
    ) -> Option<FastOutcome> {
        if !self.is_open_in_tree(now) {
            return None;
        }
        let arm = self.enter_in_tree(now.max(self.now), event, sink)?;
        Some(self.outcome(arm))
    }

    /// The fast path of one policy is closed, or not for this event: that of a birth, that of a
    /// tree, or the slow one.
    #[inline]
    pub(super) fn handle_closed<S: Sink>(
        &mut self,
        now: Instant,
        event: &Event,
        sink: &mut S,
    ) -> Decision {
        if Self::is_birth(event)
            && let Some(outcome) = self.handle_birth(now, event, sink)
        {
            return outcome.decision();
        }
        match self.handle_in_tree(now, event, sink) {
            Some(outcome) => outcome.decision(),
            None => self.handle_slowly(Entry::at(now, event), sink),
        }
    }

    /// Whether several schedulers order the CPU and nothing is due up to `now`.
    #[inline]
    pub fn is_open_in_tree(&self, now: Instant) -> bool {
        now.max(self.now) < self.tree_until
    }

    /// Each server on the way of the running thread has more budget than has passed, no timer of
    /// the tree is due, and no policy is being replaced. An event by which a thread becomes ready,
    /// or is not any more, may bring budgets and timers at once: those are served as on the slow
    /// path. Returns when to enter again.
    #[inline(never)]
    fn enter_in_tree<S: Sink>(
        &mut self,
        now: Instant,
        event: &Event,
        sink: &mut S,
    ) -> Option<Option<Instant>> {
        let id = self.running?;
        let t = &self.threads[id.index()];
        let arm = match event {
            Event::Tick => self.pass_in_tree(now, id, event, sink),
            Event::Yield if !t.is_reservation() && !t.keeps_its_place() => {
                self.pass_in_tree(now, id, event, sink)
            }
            Event::Yield => self.arm_slowly(now, event, sink),
            Event::Block { .. } | Event::Complete => self.change_in_tree(now, id, event, sink),
            Event::Wake(other) => {
                self.thread(*other).ok()?;
                self.tree.permit_wake(*other).ok()?;
                self.change_in_tree(now, id, event, sink)
            }
            _ => return None,
        };
        debug_assert_eq!(self.check(), Ok(()));
        Some(arm)
    }

    /// Out of the way of yields.
    #[inline(never)]
    fn change_in_tree<S: Sink>(
        &mut self,
        now: Instant,
        id: ThreadId,
        event: &Event,
        sink: &mut S,
    ) -> Option<Instant> {
        self.change_fast::<_, true>(now, id, event, sink).arm
    }

    /// The slow path. Charged up to now already, the thread is charged nothing more.
    #[cold]
    #[inline(never)]
    fn arm_slowly<S: Sink>(
        &mut self,
        now: Instant,
        event: &Event,
        sink: &mut S,
    ) -> Option<Instant> {
        self.handle_slowly(Entry::at(now, event), sink).arm
    }

    /// Nobody becomes ready or ceases to be: charge and choice in one way through the tree.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pass_in_tree<S: Sink>(
        &mut self,
        now: Instant,
        id: ThreadId,
        event: &Event,
        sink: &mut S,
    ) -> Option<Instant> {
        let yields = matches!(event, Event::Yield);
        let (executed, band) = self.book_fast(now, id);
        let Some(choice) = self.tree.pass(now, (id, band), executed, yields) else {
            return self.arm_slowly(now, event, sink);
        };
        self.threads[id.index()].gave_way |= yields;
        self.carry_out::<_, true>(now, id, event, choice, sink).arm
    }

    /// The running thread goes on unless another one goes before it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn go_on<S: Sink>(
        &mut self,
        now: Instant,
        id: ThreadId,
        event: &Event,
        sink: &mut S,
    ) -> FastOutcome {
        self.charge_fast(now, id);
        let choice = self.tree.pick(now);
        self.carry_out::<_, false>(now, id, event, choice, sink)
    }

    /// The running thread lets others of the same urgency go first, where more than the order of a
    /// queue decides who is next. The policy hears of the yield unless
    /// it has heard of it already.
    #[inline(never)]
    pub(super) fn give_way_to_pick<S: Sink>(
        &mut self,
        now: Instant,
        id: ThreadId,
        event: &Event,
        yields: bool,
        sink: &mut S,
    ) -> Option<Instant> {
        let t = &mut self.threads[id.index()];
        t.gave_way = true;
        let band = t.place;
        if yields {
            self.charge_fast(now, id);
            self.tree.yield_now(id, band);
        } else {
            // `yield_to_next` stands for the charge, too.
            self.book_fast(now, id);
        }
        let choice = self.tree.pick(now);
        self.carry_out::<_, false>(now, id, event, choice, sink).arm
    }

    /// Carries out a choice before which nothing has been reported, unless something speaks
    /// against it: then chooses again on the slow path.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn carry_out<S: Sink, const IN_TREE: bool>(
        &mut self,
        now: Instant,
        id: ThreadId,
        event: &Event,
        choice: Choice,
        sink: &mut S,
    ) -> FastOutcome {
        let Some((next, budget, stamp)) = self.may_run(choice) else {
            let arm = self.choose_slowly(now, event, sink);
            return self.outcome(arm);
        };
        let arm = self.set_arm::<IN_TREE>(now, choice.until, budget);
        let mut left = None;
        if next != id {
            self.threads[id.index()].state = State::Ready;
            self.threads[next.index()].state = State::Running;
            self.running = Some(next);
            left = Some(id);
            self.count_switch(!matches!(event, Event::Yield));
        }
        self.counters.decisions += 1;
        sink.entry(now, event, left, (next, arm));
        FastOutcome {
            next: Next::Thread(next),
            arm,
            stamp,
        }
    }

    /// Something speaks against the choice: chooses again on the slow path.
    #[cold]
    #[inline(never)]
    fn choose_slowly<S: Sink>(
        &mut self,
        now: Instant,
        event: &Event,
        sink: &mut S,
    ) -> Option<Instant> {
        sink.begin(&Entry::at(now, event));
        self.yields = matches!(event, Event::Yield);
        self.decide_slowly(now, sink)
    }

    /// A thread waits, may go on, or has finished its job.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn change_fast<S: Sink, const IN_TREE: bool>(
        &mut self,
        now: Instant,
        id: ThreadId,
        event: &Event,
        sink: &mut S,
    ) -> FastOutcome {
        sink.begin(&Entry::at(now, event));
        self.yields = false;
        let quota = match IN_TREE {
            true => self.charge_in_tree(now, id, event, sink),
            false => {
                self.charge_fast(now, id);
                MAX_RELEASES_PER_ENTRY
            }
        };
        match *event {
            Event::Block { until } => self.block(now, id.index(), until, sink),
            Event::Wake(other) => self.wake(now, other.index(), sink),
            Event::Complete => self.complete(now, id.index(), sink),
            Event::BlockOn { holder, key, until } => {
                self.block_on(now, id.index(), (holder, key, until), sink);
            }
            Event::HandOver { key, from, to } => self.hand_on(now, (from, to, key), sink),
            _ => {}
        }
        let is_due = self.timeline.next().is_some_and(|at| at <= now);
        if is_due || (IN_TREE && !self.tree.is_quiet(now)) {
            let arm = self.catch_up(now, quota, sink);
            return self.outcome(arm);
        }
        self.enforce_budget(now, sink);
        let choice = self.tree.pick(now);
        let may_run = self.may_run(choice).filter(|_| self.rekeyed.is_empty());
        let Some((next, budget, stamp)) = may_run else {
            let arm = self.rekey_and_run::<_, IN_TREE>(now, sink);
            return self.outcome(arm);
        };
        let arm = self.run::<_, IN_TREE>(now, (next, budget, choice.until), sink);
        let next = Next::Thread(next);
        FastOutcome { next, arm, stamp }
    }

    /// The decision, reported: this thread runs, and may execute for so long.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn run<S: Sink, const IN_TREE: bool>(
        &mut self,
        now: Instant,
        (next, budget, mut until): (ThreadId, Option<Work>, Option<Instant>),
        sink: &mut S,
    ) -> Option<Instant> {
        if IN_TREE {
            self.report_keys(sink);
            until = Choice::earlier(until, self.tree.next_timer());
        }
        let arm = self.set_arm::<IN_TREE>(now, until, budget);
        self.switch_to(now, Some(next), sink);
        self.counters.decisions += 1;
        let (next, refused) = (Next::Thread(next), None);
        sink.decision(now, &Decision { next, arm, refused });
        arm
    }

    /// Somebody inherits, or does no more: keys are to be reported. Or something speaks against the
    /// choice. Asks again, so that the way of all others need not keep the choice in memory.
    #[cold]
    #[inline(never)]
    pub(super) fn rekey_and_run<S: Sink, const IN_TREE: bool>(
        &mut self,
        now: Instant,
        sink: &mut S,
    ) -> Option<Instant> {
        let choice = self.tree.pick(now);
        let Some((next, budget, _)) = self.may_run(choice) else {
            return self.decide_slowly(now, sink);
        };
        if !self.rekeyed.is_empty() {
            self.report_each_key(sink);
        }
        self.run::<_, IN_TREE>(now, (next, budget, choice.until), sink)
    }

    /// The event has made something due at once: on with the slow path.
    #[cold]
    fn catch_up<S: Sink>(&mut self, now: Instant, quota: usize, sink: &mut S) -> Option<Instant> {
        let _ = self.serve_timers(now, false, quota, sink);
        self.serve_parked(now, sink);
        self.enforce_budget(now, sink);
        self.enforce_sections(now, sink);
        self.decide_slowly(now, sink)
    }

    /// The decision of the slow path, reported.
    #[cold]
    #[inline(never)]
    pub(super) fn decide_slowly<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Option<Instant> {
        let arm = self.decide(now, sink);
        let (next, refused) = (self.next(), None);
        self.counters.decisions += 1;
        sink.decision(now, &Decision { next, arm, refused });
        arm
    }

    /// What the slow path decided. It hands out in registers when to enter again; the rest is read
    /// where it was written (see [`Shard::next`]).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn outcome(&self, arm: Option<Instant>) -> FastOutcome {
        let running = self.running.map(|id| &self.threads[id.index()]);
        FastOutcome {
            next: self.next(),
            arm,
            stamp: running.map_or(JobStamp::NONE, JobStamp::of),
        }
    }

    /// What a try of the shortest way came to, if it did not find it closed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn outcome_of(&self, front: Front) -> FastOutcome {
        match front {
            Front::Turn(turn) => turn.outcome(),
            Front::Chosen(arm) => self.outcome(arm),
            Front::Closed => self.outcome(None),
        }
    }

    /// Time goes on to `now`; the thread and the policy are charged what has been executed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn charge_fast(&mut self, now: Instant, id: ThreadId) {
        let (executed, band) = self.book_fast(now, id);
        if !executed.is_zero() {
            self.tree.charge(now, id, band, executed, &mut |_, _| {});
        }
    }

    /// The same in a tree, where a server may have budget by the charge itself, or be told that it
    /// sleeps: what is due by that is served. How much may be served after the event.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn charge_in_tree<S: Sink>(
        &mut self,
        now: Instant,
        id: ThreadId,
        event: &Event,
        sink: &mut S,
    ) -> usize {
        self.tree.begin(now);
        let (executed, band) = self.book_fast(now, id);
        if !executed.is_zero() {
            let mut tell = |node, budget| sink.trace(now, TraceEvent::budget(node, budget));
            self.tree.charge(now, id, band, executed, &mut tell);
        }
        match self.tree.is_quiet(now) {
            true => MAX_RELEASES_PER_ENTRY,
            false => self.serve_earlier_apart(now, event, sink),
        }
    }

    #[cold]
    #[inline(never)]
    fn serve_earlier_apart<S: Sink>(&mut self, now: Instant, event: &Event, sink: &mut S) -> usize {
        self.serve_earlier(now, event, sink)
    }

    /// Time goes on to `now`; the thread is charged. What it has executed, and the band in which it
    /// is queued.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn book_fast(&mut self, now: Instant, id: ThreadId) -> (Work, Band) {
        let executed = now.since(self.now).as_work();
        (self.now, self.since) = (now, now);
        let t = &mut self.threads[id.index()];
        debug_assert!(t.queued && t.state == State::Running, "I1, I2");
        t.book(executed);
        (executed, t.place)
    }

    /// The thread that a choice runs, what it may execute and the stamp of its job, if nothing
    /// speaks against it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn may_run(&self, choice: Choice) -> Option<(ThreadId, Option<Work>, JobStamp)> {
        let Next::Thread(id) = choice.next else {
            return None;
        };
        let t = self.threads.get(id.index())?;
        if !t.is_ready_as(id) || !t.may_run_fast() {
            return None;
        }
        Some((id, t.allowance(), JobStamp::of(t)))
    }

    /// When to enter again, at the latest; until then the fast path is open.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn set_arm<const IN_TREE: bool>(
        &mut self,
        now: Instant,
        until: Option<Instant>,
        budget: Option<Work>,
    ) -> Option<Instant> {
        let budget_end = budget.map(|left| now.saturating_add(left.as_span()));
        let due = Choice::earlier(self.timeline.next(), budget_end);
        let arm = Choice::earlier(due, until);
        let open_until = arm.unwrap_or(Instant::MAX);
        match IN_TREE {
            true => self.tree_until = open_until,
            false => self.fast_until = open_until,
        }
        arm
    }

    /// At the end of the slow path: until when entries may take the fast one. Nobody that runs
    /// holds nothing; a tree may let a scheduler run instead.
    #[inline]
    pub(super) fn open_fast_path(&mut self, arm: Option<Instant>) {
        let plain = match self.running {
            Some(id) => {
                let t = &self.threads[id.index()];
                t.held == 0 && !t.in_section
            }
            None => self.tree.is_flat(),
        };
        let is_open = plain && self.agenda.is_none() && !self.more;
        let until = match is_open {
            true => arm.unwrap_or(Instant::MAX),
            false => Instant::ZERO,
        };
        if self.tree.is_flat() {
            self.fast_until = until;
        } else {
            self.fast_until = Instant::ZERO;
            self.tree_until = match self.tree.is_replacing() {
                true => Instant::ZERO,
                false => until,
            };
        }
    }
}
