//! One CPU's scheduler: events in, decisions out; the only writer of thread states.
//!
//! An entry does, in this order: charge the interval to the thread that ran, take what became due
//! before the event, the event, what becomes due with it, then the decision. The parts are in
//! `release` (jobs come), `job` (jobs start and end), `budget` (jobs use more than they may),
//! `block` (threads wait), `lock` (threads lock), `inherit` (and inherit priorities), `agenda`
//! (segments of a plan), `manage` (schedulers of a tree), `replace` (their policies), `setup`;
//! `fast`: entries with nothing due, `front`, `hand` and `come`: those that change the front of a
//! queue; `due`: timers that the last decision named, `turn`: a job comes to an idle CPU or ends.

mod agenda;
mod block;
mod budget;
mod check;
mod come;
mod due;
mod fast;
mod front;
mod hand;
mod inherit;
mod job;
mod keys;
mod lock;
mod manage;
mod outcome;
mod release;
mod replace;
mod setup;
mod supply;
mod turn;

use alloc::boxed::Box;
use alloc::vec::Vec;

use punctual_model::{Constraint, Instant, Span, ThreadId, Work};
use punctual_order::{Choice, Next, NodeId, Policy, Refusal, Tree};

use crate::agenda::Agenda;
use crate::effective::WaitOrder;
use crate::event::{Decision, Entry, Event};
use crate::free::Free;
use crate::lock::Locks;
use crate::pending::Pool;
use crate::precedence::Precedences;
use crate::rare::Rares;
use crate::thread::{Costs, JobStamp, JobView, Key, State, Thread};
use crate::timeline::{Timeline, Timer};
use crate::trace::{Sink, TraceEvent};

pub use budget::MAX_LOOKED_AT;
pub use outcome::{Counters, FastOutcome, Front, Turn};
pub use replace::MAX_PLACES_PER_ENTRY;
pub use setup::ConfigError;

/// Most timers that one entry serves; the rest is served by the next entry, which is armed at once.
/// Bounds the length of an entry. The analysis counts one timer entry per instant, and a sixteenth
/// for each release that falls on one of another task: four times what it may be of an entry.
pub const MAX_RELEASES_PER_ENTRY: usize = 64;

/// The scheduler of one CPU, specialised for the policy that orders it.
///
/// Invariants, checked in debug builds at every exit:
/// * I1: a thread is in exactly one state, and in a ready set exactly when it is `Ready`,
///   `Running` or `Woken`.
/// * I2: at most one thread is `Running`, the one of the last decision.
/// * I4: no thread takes a budget that was not granted.
/// * I5: a lock has one exclusive holder, or readers only.
/// * I6: a thread that waits for a lock waits for something that is held.
/// * I7: a thread is exactly as urgent as it is by itself or by what it holds.
/// * I8: a lock of a runtime is known while somebody waits for it, and no longer.
/// * I10: what few threads have is in a table of its own, and each thread says what it has there.
/// * I9: a job that arrived before the horizon counts as unsettled until its guarantee is settled.
#[derive(Debug)]
pub struct Shard<P> {
    threads: Box<[Thread]>,
    free: Free,
    rares: Rares,
    pool: Pool,
    timeline: Timeline,
    precedences: Precedences,
    /// Its part of a plan, where it may have one.
    agenda: Option<Box<Agenda>>,
    locks: Locks,
    tree: Tree<P>,
    /// By what threads are ordered that wait for a lock of their runtime.
    wait_order: WaitOrder,
    running: Option<ThreadId>,
    now: Instant,
    /// Since when the work that is being released has been due: `now`, or earlier when its timer is
    /// served late.
    since: Instant,
    /// Jobs that arrived before this instant are counted in `unsettled`.
    horizon: Instant,
    /// Released jobs with a deadline whose guarantee is not settled yet.
    unsettled: u64,
    /// Before these, entries may take the fast path (`fast`): of one policy, of a tree.
    fast_until: Instant,
    tree_until: Instant,
    /// The event of the current entry is a yield.
    yields: bool,
    counters: Counters,
    /// More timers were due than one entry serves.
    more: bool,
    /// Threads whose keys are to be reported (at most once each).
    rekeyed: Vec<u32>,
    last_created: Option<ThreadId>,
    last_promoted: Option<NodeId>,
    /// The scheduler that decides on its own supply since the last decision.
    deciding: Option<NodeId>,
    costs: Costs,
    /// The last instant at which the running thread got back the cost of an entry.
    spared: Instant,
    /// How many threads wait for predecessors; the latest deadline of those since one does.
    awaiting: (u32, Instant),
}

impl<P: Policy> Shard<P> {
    /// Handles an entry with nothing but an event ([`Shard::handle_entry`]).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn handle<S: Sink>(&mut self, now: Instant, event: Event, sink: &mut S) -> Decision {
        self.handle_plain(now, &event, sink)
    }

    /// Handles one entry. Its instant is clamped so that time never runs backwards, its missing
    /// time to the interval since the last entry. O(log n) for n threads; k releases together cost
    /// k·log n, a completion with s successors s·log n.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn handle_entry<S: Sink>(&mut self, entry: &Entry<'_>, sink: &mut S) -> Decision {
        match entry.is_plain() {
            true => self.handle_plain(entry.now, entry.event, sink),
            false => self.handle_slowly(*entry, sink),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn handle_plain<S: Sink>(&mut self, now: Instant, event: &Event, sink: &mut S) -> Decision {
        if let Some(outcome) = self.handle_fast(now, event, sink) {
            return outcome.decision();
        }
        match self.handle_when_due(now, event, sink) {
            Some(decision) => decision,
            None => self.handle_closed(now, event, sink),
        }
    }

    /// Handles an entry on the slow path, whether or not the fast one is open.
    #[inline]
    pub fn handle_slowly<S: Sink>(&mut self, mut entry: Entry<'_>, sink: &mut S) -> Decision {
        entry.now = entry.now.max(self.now);
        let now = entry.now;
        if !entry.missing.is_zero() {
            entry.missing = entry.missing.within(now.since(self.now));
        }
        sink.begin(&entry);
        self.yields = matches!(entry.event, Event::Yield);
        let (arm, refused) = self.enter(&entry, sink);
        self.counters.decisions += 1;
        let next = self.next();
        let decision = Decision { next, arm, refused };
        sink.decision(now, &decision);
        debug_assert_eq!(self.check(), Ok(()));
        decision
    }

    /// The slow path through an entry, which looks for everything that might be due: when to enter
    /// again, and why the event was refused.
    #[inline(never)]
    fn enter<S: Sink>(
        &mut self,
        entry: &Entry<'_>,
        sink: &mut S,
    ) -> (Option<Instant>, Option<Refusal>) {
        let Entry { now, event, .. } = *entry;
        self.tree.begin(now);
        self.charge(now, entry.missing.total(), sink);
        if let Some(ceiling) = entry.ceiling {
            self.set_ceiling(ceiling);
        }
        let quota = self.serve_earlier(now, event, sink);
        let refused = self.apply(now, event, sink).err();
        let _ = self.serve_timers(now, false, quota, sink);
        if self.agenda.is_some() {
            self.serve_agenda(now, sink);
        }
        self.serve_parked(now, sink);
        // A thread that ends a section with its last tick of budget may complete with it; if it
        // does not, the timer that is armed for this very instant enters again.
        let of_section = matches!(
            event,
            Event::Protect | Event::Unprotect | Event::Lock { .. } | Event::Unlock { .. }
        );
        if !of_section {
            self.enforce_budget(now, sink);
            self.enforce_sections(now, sink);
        }
        (self.decide(now, sink), refused)
    }

    /// Serves what became due before the event. How much may be served after it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn serve_earlier<S: Sink>(&mut self, now: Instant, event: &Event, sink: &mut S) -> usize {
        let due = self.next_timer();
        let quota = self.serve_timers(now, true, MAX_RELEASES_PER_ENTRY, sink);
        if due.is_some_and(|due| due < now) && *event != Event::Tick {
            sink.trace(now, TraceEvent::CaughtUp);
        }
        quota
    }

    /// The thread that runs since the last decision.
    #[inline]
    pub fn running(&self) -> Option<ThreadId> {
        self.running
    }

    /// The thread that the last [`Event::Create`] made.
    pub fn last_created(&self) -> Option<ThreadId> {
        self.last_created
    }

    /// When something is due by itself next, whoever runs: a release, a replenishment, a timeout.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        let own = Choice::earlier(self.timeline.next(), self.tree.next_timer());
        match &self.agenda {
            Some(agenda) => Choice::earlier(own, agenda.due().filter(|&due| due > self.now)),
            None => own,
        }
    }

    /// How many threads there can be at any one time; their indices are smaller.
    pub fn places(&self) -> usize {
        self.threads.len()
    }

    /// The instant of the last entry.
    #[inline]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The state of a thread; `Dead` for a stale id.
    pub fn state(&self, thread: ThreadId) -> State {
        match self.thread(thread) {
            Ok(t) if t.queued && t.wake_pending => State::Woken,
            Ok(t) => t.state,
            Err(_) => State::Dead,
        }
    }

    /// Whether no guarantee of a job of this thread is open; background work is always quiet. O(1).
    pub fn is_quiet(&self, thread: ThreadId) -> bool {
        let Ok(t) = self.thread(thread) else {
            return true;
        };
        let settled = t.job.as_ref().is_none_or(|job| job.settled);
        (settled && t.backlog.is_empty()) || !t.constraint.class.is_real_time()
    }

    /// The constraint of a thread that is in force; `None` for a stale id.
    pub fn constraint(&self, thread: ThreadId) -> Option<&Constraint> {
        self.thread(thread).ok().map(|t| &t.constraint)
    }

    /// The current job of a thread, if it has one.
    #[inline]
    pub fn job(&self, thread: ThreadId) -> Option<JobView> {
        let t = self.thread(thread).ok()?;
        let job = t.job.as_ref()?;
        Some(JobView {
            index: job.index,
            arrival: job.arrival,
            absolute_deadline: job.absolute_deadline,
            received: job.received,
            budget: t.is_budgeted().then_some(t.budget),
            overran: job.overran,
            stop: job.stop,
        })
    }

    /// What tells two answers of [`Shard::job`] apart, but for what was received and what budget is
    /// left: as long as it is the same, so is the job, and whether it overran or is to stop. O(1).
    #[inline]
    pub fn job_stamp(&self, thread: ThreadId) -> JobStamp {
        match self.thread(thread) {
            Ok(t) => JobStamp::of(t),
            Err(_) => JobStamp::NONE,
        }
    }

    /// Jobs with a deadline that arrived before the horizon and are not done (reservations: in the
    /// current period). After the horizon a run is over when none is left.
    pub fn unsettled(&self) -> u64 {
        self.unsettled
    }

    /// Jobs that arrive at `horizon` or later do not count as unsettled. To be set before the first
    /// release; until then, all count.
    pub fn set_horizon(&mut self, horizon: Instant) {
        self.horizon = horizon;
    }

    /// How many decisions, switches and preemptions there have been.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether the guarantee of a job that arrived then counts as unsettled until it is over.
    fn counts(&self, thread: usize, arrival: Instant) -> bool {
        arrival < self.horizon && self.threads[thread].constraint.class.is_real_time()
    }

    /// What orders this CPU, for inspection.
    pub fn tree(&self) -> &Tree<P> {
        &self.tree
    }

    #[inline]
    fn thread(&self, id: ThreadId) -> Result<&Thread, Refusal> {
        match self.threads.get(id.index()) {
            Some(t) if t.generation == id.generation() && t.state != State::Dead => Ok(t),
            _ => Err(Refusal::StaleThread(id)),
        }
    }

    fn apply<S: Sink>(&mut self, now: Instant, event: &Event, sink: &mut S) -> Result<(), Refusal> {
        let running = self.running.ok_or(Refusal::NobodyRuns).map(ThreadId::index);
        match *event {
            Event::Tick => {}
            Event::Complete => self.complete(now, running?, sink),
            Event::Block { until } => self.block(now, running?, until, sink),
            Event::BlockOn { holder, key, until } => {
                self.may_block_on(running?, holder, key)?;
                self.block_on(now, running?, (holder, key, until), sink);
            }
            Event::HandOver { key, from, to } => {
                self.thread(from)?;
                self.thread(to)?;
                self.hand_on(now, (from, to, key), sink);
            }
            Event::Yield => self.give_way(running?, sink),
            Event::Protect => self.threads[running?].in_section = true,
            Event::Unprotect => self.leave_section(running?),
            Event::Lock {
                resource,
                mode,
                until,
            } => self.lock(running?, (resource, mode, until), sink)?,
            Event::Unlock { resource } => self.unlock(running?, resource, sink)?,
            Event::Exit => self.end(running?, sink),
            Event::Wake(id) => {
                self.thread(id)?;
                self.tree.permit_wake(id)?;
                self.wake(now, id.index(), sink);
            }
            Event::Arrive { thread, arrival } => {
                self.thread(thread)?;
                self.arrive(thread, arrival.min(now), sink)?;
            }
            Event::Create(constraint) => {
                self.tree.permit_threads()?;
                self.create(NodeId::ROOT, constraint, sink)?;
            }
            Event::Change { thread, constraint } => {
                self.thread(thread)?;
                self.change(thread.index(), constraint, sink)?;
            }
            Event::Kill(id) => {
                self.thread(id)?;
                self.end(id.index(), sink);
            }
            Event::Manage { by, request } => self.manage(by, &request, sink)?,
            Event::ChildPicked(pick) => self.child_picked(&pick)?,
            Event::ChildFailed(child) => self.child_failed(child)?,
            Event::Agenda(ref step) => self.set_agenda(step)?,
            Event::Remote(message) => self.hear(message, sink)?,
        }
        Ok(())
    }

    /// Charges the interval since the last entry to the thread that ran, less missing time.
    ///
    /// A non-preemptive section begins with its first executed tick, so that what happens at one
    /// instant does not depend on the order in which a platform tells it.
    #[inline]
    fn charge<S: Sink>(&mut self, now: Instant, missing: Span, sink: &mut S) {
        let interval = now.since(self.now);
        self.now = now;
        self.since = now;
        let executed = interval.saturating_sub(missing).as_work();
        if executed.is_zero() {
            return;
        }
        let Some(id) = self.running else {
            self.charge_nobody(now, executed, sink);
            return;
        };
        let t = &mut self.threads[id.index()];
        t.book(executed);
        let (band, held) = (t.place, t.held);
        if t.in_section || t.shields {
            self.tree.hold(id, band);
        }
        self.tree
            .charge(now, id, band, executed, &mut |node, budget| {
                sink.trace(now, TraceEvent::budget(node, budget));
            });
        if held > 0 {
            self.charge_sections(id.index(), executed, sink);
        }
    }

    /// The last decision's choice, which the slow path leaves here: to read at once what has been
    /// written to memory in pieces stalls the processor for longer than the fast path takes.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn next(&self) -> Next {
        match (self.running, self.deciding) {
            (Some(thread), _) => Next::Thread(thread),
            (None, Some(child)) => Next::RunChild(child),
            (None, None) => Next::Idle,
        }
    }

    #[inline]
    fn enforce_budget<S: Sink>(&mut self, now: Instant, sink: &mut S) {
        debug_assert_eq!(now, self.now);
        let Some(id) = self.running else { return };
        let t = &self.threads[id.index()];
        if t.queued && t.allowance().is_some_and(Work::is_zero) {
            self.exhaust(id.index(), sink);
        }
    }

    /// Chooses who runs; returns when to enter again.
    #[inline(never)]
    fn decide<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Option<Instant> {
        let Choice { next, until } = self.choose(now, sink);
        let (chosen, deciding) = match next {
            Next::Thread(thread) => (Some(thread), None),
            Next::RunChild(child) => (None, Some(child)),
            Next::Idle => (None, None),
        };
        if next == Next::Idle && !self.costs.stop.is_zero() {
            self.end_busy_window();
        }
        self.deciding = deciding;
        self.report_keys(sink);
        self.switch_to(now, chosen, sink);
        let arm = self.next_instant(now, until);
        self.open_fast_path(arm);
        arm
    }

    /// The tree's choice. A chosen thread with a lock to be tried runs only if it gets it;
    /// each round settles one such lock, or takes one budget for it. Where a policy names a thread
    /// that is not ready, nobody runs.
    #[inline]
    fn choose<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Choice {
        loop {
            let choice = self.tree.pick(now);
            let Next::Thread(id) = choice.next else {
                return choice;
            };
            let ready = self.threads.get(id.index()).filter(|t| t.is_ready_as(id));
            match ready.map(|t| t.asks) {
                None => {
                    let (next, until) = (Next::Idle, choice.until);
                    return Choice { next, until };
                }
                Some(false) => return choice,
                Some(true) => self.try_lock(id.index(), sink),
            }
        }
    }

    /// `to` runs from now on. Told unless it did before.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn switch_to<S: Sink>(&mut self, now: Instant, to: Option<ThreadId>, sink: &mut S) {
        let from = self.running;
        if let Some(id) = to {
            self.threads[id.index()].state = State::Running;
        }
        if from == to {
            return;
        }
        let mut preempted = false;
        if let Some(id) = from {
            let t = &mut self.threads[id.index()];
            if t.queued && t.generation == id.generation() {
                t.state = State::Ready;
                preempted = true;
            }
        }
        self.running = to;
        self.count_switch(preempted && !self.yields);
        if !self.costs.cache_delay.is_zero() {
            self.move_cache_delay(from.filter(|_| preempted && !self.yields), to);
        }
        let switched = TraceEvent::Switched {
            from,
            to,
            preempted,
        };
        sink.trace(now, switched);
    }

    /// The earliest instant at which something is due by itself, or the choice ends.
    #[inline]
    fn next_instant(&self, now: Instant, until: Option<Instant>) -> Option<Instant> {
        if self.more {
            return Some(now);
        }
        let budget_end = self.running.and_then(|id| {
            let t = &self.threads[id.index()];
            let section = match t.held {
                0 => None,
                _ => self.section_left(id.index()),
            };
            let left = t.allowance().into_iter().chain(section).min();
            left.map(|left| now.saturating_add(left.as_span()))
        });
        Choice::earlier(self.next_timer(), Choice::earlier(budget_end, until))
    }

    /// Tells something of a thread.
    #[inline]
    fn tell<S: Sink, F>(&self, sink: &mut S, thread: usize, event: F)
    where
        F: FnOnce(ThreadId, &Thread) -> TraceEvent,
    {
        // Without an index that could panic, so that nothing is left of it where nobody listens.
        if let Some(t) = self.threads.get(thread) {
            sink.trace(self.now, event(t.id(thread), t));
        }
    }

    fn set_timer(&mut self, thread: usize, timer: Timer, at: Instant) {
        let order = self.threads[thread].constraint.order;
        self.timeline.set(thread, timer, at, order);
    }

    fn set_timeout(&mut self, thread: usize, until: Option<Instant>) {
        if let Some(until) = until {
            self.set_timer(thread, Timer::Timeout, until);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn count_switch(&mut self, preempts: bool) {
        self.counters.switches += 1;
        self.counters.preemptions += u64::from(preempts);
    }

    fn enqueue(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        debug_assert!(!t.queued, "already ready");
        t.state = State::Ready;
        t.queued = true;
        t.gave_way = false;
        let effective = t.effective(&self.rares);
        t.place = effective.band;
        if t.key == Key::Differs {
            self.key_changed(thread);
        }
        let t = &self.threads[thread];
        let (id, now, since) = (t.id(thread), self.now, self.since);
        let band = effective.band;
        self.tree.wake(now, since, id, &effective.attributes, band);
        self.raise(thread, true);
    }

    fn leave_section(&mut self, thread: usize) {
        self.threads[thread].in_section = false;
        self.stop_holding(thread);
    }

    /// The thread keeps nobody away any more, unless something of it still does.
    fn stop_holding(&mut self, thread: usize) {
        let t = &self.threads[thread];
        if !t.shields && !t.in_section {
            self.tree.release(t.id(thread));
        }
    }

    fn dequeue(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        if !t.queued {
            return;
        }
        let alone = core::mem::take(&mut t.in_section) || t.shields;
        t.queued = false;
        let (id, band) = (t.id(thread), t.place);
        self.raise(thread, false);
        if alone {
            // A section with a lock goes on when the thread executes again.
            self.tree.release(id);
        }
        self.tree.block(self.now, id, band);
    }
}
