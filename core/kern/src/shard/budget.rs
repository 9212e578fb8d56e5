//! Budgets: an overrun hurts only its owner.
//!
//! Each release grants its thread one *allotment* (its wcet). A job takes its own allotment when it
//! starts; what it leaves over is gone with it. A job that needs more waits for the next release
//! and lives on that allotment, with that release's deadline as its urgency and its place among
//! equals; the job released there gets what is left. So in any window a thread receives at
//! most one allotment per release, and the analysis' bounds for the others hold whatever it does.
//! It owes to its next allotment what it executed beyond its budget or in its grace, and what it
//! costs to stop it. A
//! backlog that missing time piled up keeps its allotments: it may catch up. A backlog behind a
//! demoted job is of the owner's making: its allotments lapse, and it runs in the background until
//! none is left. A job there that is to be stopped by an overrun still is, once it has received as
//! much as one allotment: else a body that never ends would keep its stream there for good.

use punctual_model::{Class, Instant, OnOverrun, ThreadId};
use punctual_order::{Band, Policy};

use super::Shard;
use crate::thread::{Job, State, Thread};
use crate::timeline::Timer;
use crate::trace::{Outcome, Sink, TraceEvent};
use crate::traits::Traits;

/// Where a CPU has more threads, their debts last over idle times.
pub const MAX_LOOKED_AT: usize = 256;

impl<P: Policy> Shard<P> {
    /// A thread runs. If its job preempts another for the first time on its allotment, the part
    /// of that for cold caches is the other's now. If less is left, the thread owes the rest. Where
    /// the other has no budget, nobody has a guarantee to lose.
    #[cold]
    #[inline(never)]
    pub(super) fn move_cache_delay(&mut self, preempted: Option<ThreadId>, to: Option<ThreadId>) {
        let Some(to) = to else { return };
        let owes = core::mem::take(&mut self.threads[to.index()].owes_delay);
        let Some(preempted) = preempted.filter(|_| owes) else {
            return;
        };
        let part = self.costs.cache_delay;
        let preempted = &mut self.threads[preempted.index()];
        if preempted.is_budgeted() {
            preempted.budget = preempted.budget.saturating_add(part);
            let t = &mut self.threads[to.index()];
            t.owed = t.owed.saturating_add(part.saturating_sub(t.budget));
            t.budget = t.budget.saturating_sub(part);
        }
    }

    /// A job of `released` comes by the clock, in an entry that is charged to the thread that runs.
    /// The analysis counts the entry with the release, so the thread gets it back: once for all
    /// releases of an instant. Below other schedulers the entry is charged to a server, too, which
    /// gets nothing back: there it stays with the thread.
    #[cold]
    #[inline(never)]
    pub(super) fn spare(&mut self, released: usize) {
        let entry = self.costs.entry;
        let is_job = self.threads[released].traits.has(Traits::RUNS_PER_JOB);
        let is_flat = self.tree.capacity().nodes == 0;
        let running = self.running.filter(|_| is_job && is_flat);
        let Some(id) = running.filter(|_| self.spared < self.now) else {
            return;
        };
        let Some(t) = self.threads.get_mut(id.index()) else {
            return;
        };
        if t.generation == id.generation() && t.is_budgeted() && t.traits.has(Traits::RUNS_PER_JOB)
        {
            self.spared = self.now;
            t.give_back(entry);
        }
    }

    /// Nobody runs. Where no job could go on with the budget that it has, every busy window ends
    /// here, and a grace and a stop are counted once in each: nothing is owed any more. Looks at
    /// [`MAX_LOOKED_AT`] threads at most.
    #[cold]
    #[inline(never)]
    pub(super) fn end_busy_window(&mut self) {
        let capacity = self.tree.capacity();
        if capacity.threads > MAX_LOOKED_AT || capacity.nodes > 0 {
            return;
        }
        let could_go_on = |t: &Thread| {
            let unsettled = t.job.as_ref().is_some_and(|job| !job.settled);
            unsettled && t.is_budgeted() && !matches!(t.state, State::Throttled | State::Dead)
        };
        if !self.threads.iter().any(could_go_on) {
            self.costs.window += 1;
        }
    }

    /// The budget of `thread` is used up and its job is not done; or it has none, and its job has
    /// received as much as one.
    pub(super) fn exhaust<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        match self.threads[thread].constraint.class {
            Class::Reservation { .. } => {
                self.settle(thread, Outcome::Done, sink);
                self.throttle(thread, sink);
            }
            Class::Once { .. } => {
                self.settle(thread, Outcome::Done, sink);
                self.demote(thread);
            }
            Class::Periodic { .. } | Class::Sporadic { .. } => self.overrun(thread, sink),
            Class::Aperiodic => {}
        }
    }

    fn overrun<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let in_background = !self.threads[thread].is_budgeted();
        let t = &mut self.threads[thread];
        t.owe(self.costs.stop);
        let id = t.id(thread);
        let Some(job) = t.job.as_mut() else { return };
        let index = job.index;
        if !job.overran && !job.received.is_zero() {
            job.overran = true;
            let job = index;
            sink.trace(self.now, TraceEvent::Overran { thread: id, job });
        }
        match t.constraint.on_overrun {
            OnOverrun::Throttle | OnOverrun::Signal => {
                if t.taken < t.granted {
                    self.take_next_allotment(thread, sink);
                } else {
                    self.throttle(thread, sink);
                }
            }
            rule @ (OnOverrun::Demote | OnOverrun::Stop) => {
                // A job whose allotment lapsed has not begun: it may run, but in the background.
                job.stop = rule == OnOverrun::Stop && job.overran;
                if !in_background {
                    let job = index;
                    sink.trace(self.now, TraceEvent::Demoted { thread: id, job });
                    self.demote(thread);
                }
            }
        }
    }

    fn demote(&mut self, thread: usize) {
        self.dequeue(thread);
        self.threads[thread].band = Band::Background;
        self.enqueue(thread);
    }

    /// No budget until the next release grants some.
    fn throttle<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        self.dequeue(thread);
        self.threads[thread].state = State::Throttled;
        self.tell(sink, thread, |thread, t| TraceEvent::Throttled {
            thread,
            job: t.job_index(),
        });
        // No release may ever come for a policed thread: its next place in the stream will do.
        let t = &self.threads[thread];
        let policed = matches!(t.constraint.class, Class::Sporadic { .. });
        if policed && !self.timeline.is_set(thread, Timer::Release) {
            let at = t.next_release.max(self.now);
            self.set_timer(thread, Timer::Release, at);
        }
    }

    /// A throttled job receives the allotment of the release that happens now.
    pub(super) fn replenish<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let t = &mut self.threads[thread];
        if t.taken == t.granted {
            t.granted += 1;
        }
        self.take_next_allotment(thread, sink);
    }

    fn take_next_allotment<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        self.leave_section(thread);
        let t = &mut self.threads[thread];
        t.take_allotment(t.taken + 1, self.costs, true);
        let (id, budget) = (t.id(thread), t.budget);
        sink.trace(self.now, TraceEvent::Replenished { thread: id, budget });
        self.move_back(thread);
        self.report_deferral(thread, sink);
        if budget.is_zero() {
            // The debt swallowed it whole: wait for one more.
            self.throttle(thread, sink);
        } else if self.threads[thread].queued {
            let t = &mut self.threads[thread];
            let effective = t.effective(&self.rares);
            if t.place == effective.band {
                t.gave_way = false;
                let place = t.place;
                self.tree.renew(id, &effective.attributes, place);
                self.key_changed(thread);
            } else {
                self.reposition(thread);
            }
        } else {
            self.enqueue(thread);
        }
    }

    /// A job that lives on a later release's allotment is as urgent as that release: it has the
    /// later deadline, and its place among equals.
    pub(super) fn move_back(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        let deadline = t.deadline_of(t.last_arrival);
        if let Some(job) = t.job.as_mut() {
            job.scheduling_deadline = job.scheduling_deadline.max(deadline);
            job.scheduling_arrival = job.scheduling_arrival.max(t.last_arrival);
        }
    }

    /// Reports the release by which a deferred job counts.
    pub(super) fn report_deferral<S: Sink>(&self, thread: usize, sink: &mut S) {
        let deferred = self.threads.get(thread).filter(|t| t.is_deferred());
        if let Some(job) = deferred.and_then(|t| t.job.as_ref()) {
            self.tell(sink, thread, |thread, _| TraceEvent::Deferred {
                thread,
                release: job.scheduling_arrival,
                deadline: job.scheduling_deadline,
            });
        }
    }

    /// A period of a reservation is over: what became of its slice.
    pub(super) fn end_period<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let t = &self.threads[thread];
        let Some(job) = &t.job else { return };
        // A slice that ends with its period is whole.
        let wanted_more = !job.gave_up && t.queued && !t.budget.is_zero();
        let outcome = match wanted_more {
            true => Outcome::Short,
            false => Outcome::Done,
        };
        self.settle(thread, outcome, sink);
    }

    /// A new period of a reservation: settle the old one, grant the slice.
    pub(super) fn renew<S: Sink>(&mut self, thread: usize, arrival: Instant, sink: &mut S) {
        self.end_period(thread, sink);
        let blocked = self.threads[thread].state == State::Blocked;
        // A body that waits goes on waiting: it changes with the first period that it is ready in.
        let t = &self.threads[thread];
        if t.changes && !blocked && t.held == 0 {
            self.dequeue(thread);
            self.threads[thread].job = None;
            self.threads[thread].state = State::Idle;
            self.commit_change(thread, sink);
            return;
        }
        let t = &self.threads[thread];
        let in_section = t.in_section && t.queued && !t.budget.is_zero();
        let shielded = t.shields && t.queued;
        let (id, band) = (t.id(thread), t.place);
        let held = self.tree.holds(id);
        self.dequeue(thread);
        // The policy hears of a new deadline; the section lasts as long as there is budget.
        self.threads[thread].in_section = in_section;
        if held && (in_section || shielded) {
            self.tree.hold(id, band);
        }
        let t = &mut self.threads[thread];
        let index = t.next_index;
        t.next_index += 1;
        t.last_arrival = arrival;
        t.granted += 1;
        t.take_allotment(t.granted, self.costs, false);
        let job = Job::new(index, arrival, t.deadline_of(arrival));
        t.job = Some(Job {
            gave_up: blocked,
            ..job
        });
        self.report_release(thread, index, arrival, sink);
        self.report_start(thread, sink);
        if !blocked {
            self.enqueue(thread);
        } else {
            // It may wait for a resource: whoever holds that is as urgent as the new period.
            self.inherit(thread);
        }
    }
}
