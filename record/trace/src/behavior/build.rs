//! From records to segments and jobs.

use std::collections::VecDeque;

use punctual_kern::{
    Event, MissingCause, Next, NodeId, Outcome, Request, Taker, TraceEvent, Uncharged, WakeCause,
};
use punctual_model::{Instant, Server, Span, ThreadId, Work};

use super::supply::{Tree, server_of};
use super::{
    Behavior, BudgetLeft, Deciding, Hold, JobRecord, Missing, Segment, WaitReason, Waiting,
};
use crate::log::Log;
use crate::record::{Record, RecordedEntry};

pub(super) fn build(log: &Log, cpu: usize) -> Behavior {
    let mut builder = Builder::default();
    let (Some(tables), Some(cpu)) = (log.tables.cpus.get(cpu), log.cpus.get(cpu)) else {
        return builder.behavior;
    };
    builder.tree = Tree::new(tables);
    for (now, record) in &cpu.records {
        builder.take(now, record);
    }
    builder.finish(cpu.lost_from.unwrap_or(log.header.end))
}

/// What is known about a thread at the instant of the current record.
#[derive(Default)]
struct ThreadState {
    /// Its released jobs that are not over, oldest first.
    open: VecDeque<usize>,
    /// The job that it is working on.
    current: Option<usize>,
    waiting: Option<(Instant, WaitReason)>,
    /// It was created while the run went on.
    created: bool,
}

#[derive(Default)]
struct Builder {
    behavior: Behavior,
    threads: Vec<ThreadState>,
    running: Option<ThreadId>,
    /// The scheduler that decides on its own supply.
    deciding: Option<NodeId>,
    tree: Tree,
    /// Resources that are held now: since when, and whether for longer than declared.
    held: Vec<Hold>,
    event: Option<Event>,
    /// The last entry, and the end of what is accounted for before it.
    last: Instant,
    armed: Option<Instant>,
}

impl Builder {
    fn take(&mut self, now: Instant, record: Record) {
        match record {
            Record::Entry(entry) => self.entry(now, &entry),
            Record::Trace(event) => self.trace(now, event),
            Record::Decision(decision) => {
                self.behavior.decisions += 1;
                self.armed = decision.arm;
                (self.running, self.deciding) = match decision.next {
                    Next::Thread(thread) => (Some(thread), None),
                    Next::RunChild(node) => (None, Some(node)),
                    _ => (None, None),
                };
                if let Some(Event::ChildPicked(pick)) = self.event
                    && let Some(node) = self.tree.record(pick.child)
                {
                    let count = match decision.refused {
                        None => &mut node.decisions,
                        Some(_) => &mut node.refused,
                    };
                    *count += 1;
                }
            }
        }
    }

    fn entry(&mut self, now: Instant, entry: &RecordedEntry) {
        if let Some(late) = self.armed.and_then(|armed| now.checked_since(armed)) {
            self.behavior.late_max = self.behavior.late_max.max(late);
        }
        self.event = Some(entry.event);
        self.account(now, entry.missing);
    }

    /// Divides the interval since the last entry between execution and missing time.
    fn account(&mut self, now: Instant, missing: Uncharged) {
        let mut at = now.saturating_sub(missing.total()).max(self.last);
        let current = |thread: ThreadId| self.threads.get(thread.index())?.current;
        let job = self.running.and_then(current);
        if let Some(thread) = self.running
            && at > self.last
        {
            let home = self.tree.home(thread.index());
            self.tree
                .execute(home, at.since(self.last).as_work(), false);
            self.execute(thread, job, self.last, at);
            let is_promised = job
                .and_then(|job| self.behavior.jobs.get(job))
                .is_some_and(|job| job.demoted.is_none() && job.absolute_deadline != Instant::MAX);
            if !is_promised {
                let work = at.since(self.last).as_work();
                self.tree.execute_in_background(home, work);
            }
        }
        if let Some(child) = self.deciding.filter(|_| at > self.last) {
            let (node, start) = (child.index(), self.last);
            self.tree.execute(node, at.since(start).as_work(), true);
            let decides = Deciding {
                node,
                start,
                end: at,
            };
            self.behavior.deciding.push(decides);
        }
        for (cause, span) in missing.by_cause() {
            let end = at.saturating_add(span).min(now);
            if end > at {
                self.behavior.missing.push(Missing {
                    start: at,
                    end,
                    cause,
                    taker: match cause {
                        MissingCause::Stolen => missing.taker,
                        MissingCause::GivenBack => Taker::Unknown,
                    },
                    during: job,
                    entry: now,
                });
            }
            at = end;
        }
        self.last = now;
    }

    fn execute(&mut self, thread: ThreadId, job: Option<usize>, start: Instant, end: Instant) {
        if let Some(last) = self.behavior.segments.last_mut()
            && (last.thread, last.job, last.end) == (thread, job, start)
        {
            last.end = end;
        } else {
            self.behavior.segments.push(Segment {
                thread,
                job,
                start,
                end,
            });
        }
    }

    fn state(&mut self, thread: ThreadId) -> &mut ThreadState {
        let index = thread.index();
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, ThreadState::default);
            self.behavior.places = index + 1;
        }
        &mut self.threads[index]
    }

    /// Where the open job `index` of `thread` stands. O(open jobs of the thread).
    fn find(&self, thread: ThreadId, index: u64) -> Option<usize> {
        let open = &self.threads.get(thread.index())?.open;
        let mut open = open.iter().copied();
        open.find(|&at| self.behavior.jobs[at].index == index)
    }

    fn job(&mut self, thread: ThreadId, index: u64) -> Option<&mut JobRecord> {
        let at = self.find(thread, index)?;
        self.behavior.jobs.get_mut(at)
    }

    fn trace(&mut self, now: Instant, event: TraceEvent) {
        match event {
            TraceEvent::Switched { preempted, .. } => {
                self.behavior.switches += 1;
                let preempted = preempted && self.event != Some(Event::Yield);
                self.behavior.preemptions += u64::from(preempted);
            }
            TraceEvent::Released {
                thread,
                job,
                arrival,
                deadline,
            } => self.released(now, thread, (job, arrival, deadline)),
            TraceEvent::Skipped { thread, .. } => {
                self.state(thread);
                self.behavior.threads.entry(thread).or_default().skipped += 1;
            }
            TraceEvent::Lost { thread, .. } => {
                self.state(thread);
                self.behavior.threads.entry(thread).or_default().lost += 1;
            }
            TraceEvent::Completed {
                thread,
                job,
                outcome,
                received,
                ..
            } => self.completed(now, thread, job, (outcome, received)),
            TraceEvent::Ended { thread } => {
                let state = self.state(thread);
                state.open.clear();
                state.current = None;
                state.waiting = None;
            }
            TraceEvent::Created { thread } => {
                self.state(thread).created = true;
                let home = match self.event {
                    Some(Event::Manage {
                        request: Request::Create { home, .. },
                        ..
                    }) => home,
                    _ => NodeId::ROOT,
                };
                self.tree.move_to(thread.index(), home);
            }
            TraceEvent::Changed { thread } => {
                self.state(thread);
            }
            TraceEvent::Locked { .. }
            | TraceEvent::Unlocked { .. }
            | TraceEvent::SectionOverran { .. } => self.section(now, event),
            TraceEvent::ServerReplenished { .. }
            | TraceEvent::ServerExhausted { .. }
            | TraceEvent::Queued { .. }
            | TraceEvent::Unqueued { .. }
            | TraceEvent::Lent { .. }
            | TraceEvent::Moved { .. }
            | TraceEvent::FellBack { .. }
            | TraceEvent::PolicyReplaced { .. }
            | TraceEvent::Supplied { .. }
            | TraceEvent::SchedulerEnded { .. }
            | TraceEvent::Promoted { .. } => self.supply(now, event),
            other => self.progress(now, other),
        }
    }

    fn section(&mut self, now: Instant, event: TraceEvent) {
        match event {
            TraceEvent::Locked {
                thread, resource, ..
            } => self.held.push(Hold {
                thread,
                resource,
                start: now,
                end: now,
                overran: false,
            }),
            TraceEvent::SectionOverran { thread, resource } => {
                let mut held = self.held.iter_mut();
                let hold = held.find(|h| (h.thread, h.resource) == (thread, resource));
                if let Some(hold) = hold {
                    hold.overran = true;
                }
            }
            TraceEvent::Unlocked { thread, resource } => {
                let is_it = |h: &Hold| (h.thread, h.resource) == (thread, resource);
                if let Some(at) = self.held.iter().position(is_it) {
                    let hold = self.held.swap_remove(at);
                    self.behavior.holds.push(Hold { end: now, ..hold });
                }
            }
            _ => {}
        }
    }

    fn supply(&mut self, now: Instant, event: TraceEvent) {
        let left = match event {
            TraceEvent::ServerReplenished { node, budget } => Some((node, budget)),
            TraceEvent::ServerExhausted { node } => Some((node, Work::ZERO)),
            TraceEvent::Queued { node, budget, .. } | TraceEvent::Unqueued { node, budget } => {
                budget.map(|budget| (node, budget))
            }
            _ => None,
        };
        self.behavior
            .budgets
            .extend(left.map(|(node, budget)| BudgetLeft {
                node: node.index(),
                at: now,
                budget,
            }));
        match event {
            TraceEvent::ServerReplenished { node, .. } => {
                if let Some(record) = self.tree.record(node) {
                    record.replenished += 1;
                }
                let starved = self.tree.replenished(node.index(), now);
                self.behavior.starved.extend(starved);
            }
            TraceEvent::ServerExhausted { node } => self.tree.exhausted(node, now),
            TraceEvent::Lent { from, work, .. } => {
                if let Some(record) = self.tree.record(from) {
                    record.lent = record.lent.saturating_add(work);
                }
            }
            TraceEvent::Moved { thread, home } => self.tree.move_to(thread.index(), home),
            TraceEvent::Promoted { node, parent } => {
                self.tree.promote(node, parent);
                let server = self.asked_server();
                self.tree.serve(node.index(), now, server);
            }
            TraceEvent::Supplied { node } => {
                let server = self.asked_server();
                self.tree.serve(node.index(), now, server);
            }
            TraceEvent::SchedulerEnded { node } => self.tree.end(node.index(), now),
            TraceEvent::FellBack { node, cause } => {
                if let Some(record) = self.tree.record(node) {
                    record.fell_back = Some((now, cause));
                }
            }
            TraceEvent::PolicyReplaced { node, policy } => {
                if let Some(record) = self.tree.record(node) {
                    record.replaced += 1;
                    record.policy = Some(policy);
                }
            }
            _ => {}
        }
    }

    /// The server that the request of this entry is about.
    fn asked_server(&self) -> Option<Server> {
        let Some(Event::Manage { request, .. }) = self.event else {
            return None;
        };
        match request {
            Request::Promote(terms) => server_of(terms.supply),
            Request::Supply { supply, .. } => server_of(supply),
            _ => None,
        }
    }

    fn released(&mut self, now: Instant, thread: ThreadId, job: (u64, Instant, Instant)) {
        let at = self.behavior.jobs.len();
        let home = self.tree.home(thread.index());
        self.state(thread).open.push_back(at);
        self.behavior.jobs.push(JobRecord {
            thread,
            index: job.0,
            arrival: job.1,
            absolute_deadline: job.2,
            released: now,
            started: None,
            ended: None,
            outcome: None,
            last: false,
            received: punctual_model::Work::ZERO,
            overran: false,
            demoted: None,
            suspended: Span::ZERO,
            held_back: Span::ZERO,
            throttled: Span::ZERO,
            locked_out: Span::ZERO,
            postponed: Span::ZERO,
            home,
        });
    }

    fn completed(
        &mut self,
        now: Instant,
        thread: ThreadId,
        index: u64,
        end: (Outcome, punctual_model::Work),
    ) {
        self.stop_waiting(now, thread);
        let Some(at) = self.find(thread, index) else {
            return;
        };
        let created = self.state(thread).created;
        let left = self.event == Some(Event::Exit) && end.0 == Outcome::Aborted;
        let now = match end.0 == Outcome::Done && self.running != Some(thread) {
            true => self.over_without_running(now, at),
            false => now,
        };
        let job = &mut self.behavior.jobs[at];
        job.last = created && left && self.running == Some(thread);
        job.ended = Some(now);
        (job.outcome, job.received) = (Some(end.0), end.1);
        self.state(thread).open.retain(|&open| open != at);
    }

    /// When a job was over that was done without running: a reservation that wanted no more of its
    /// slice, at the end of its period. The entry that found it may have come later.
    fn over_without_running(&self, found: Instant, at: usize) -> Instant {
        let job = &self.behavior.jobs[at];
        let segments = self.behavior.segments.iter().rev();
        let mut late = segments.take_while(|segment| segment.end > job.absolute_deadline);
        let worked = late.find(|segment| segment.job == Some(at));
        let over = worked.map_or(job.absolute_deadline, |segment| segment.end);
        found.min(over.max(job.released))
    }

    fn progress(&mut self, now: Instant, event: TraceEvent) {
        match event {
            TraceEvent::Started { thread, job, .. } => {
                let waiting = self.state(thread).waiting;
                self.stop_waiting(now, thread);
                let at = self.find(thread, job);
                self.state(thread).current = at;
                if let Some(at) = at {
                    self.behavior.jobs[at].started = Some(now);
                }
                // A reservation that waits by its own request waits on in its next period.
                if let Some((_, WaitReason::Request)) = waiting {
                    self.wait(now, thread, WaitReason::Request);
                }
            }
            TraceEvent::Overran { thread, job } => {
                if let Some(job) = self.job(thread, job) {
                    job.overran = true;
                }
            }
            TraceEvent::Demoted { thread, job } => {
                if let Some(job) = self.job(thread, job) {
                    job.demoted = Some(now);
                }
            }
            TraceEvent::Throttled { thread, .. } => self.wait(now, thread, WaitReason::Budget),
            TraceEvent::Replenished { thread, .. } => self.stop_waiting(now, thread),
            TraceEvent::Blocked {
                thread,
                job,
                for_predecessors,
            } => {
                let why = if for_predecessors {
                    self.state(thread).current = self.find(thread, job);
                    WaitReason::Predecessors
                } else {
                    WaitReason::Request
                };
                self.wait(now, thread, why);
            }
            TraceEvent::Waits {
                thread, resource, ..
            } => self.wait(now, thread, WaitReason::Resource(resource)),
            TraceEvent::Postponed { thread, .. } => self.wait(now, thread, WaitReason::Supply),
            TraceEvent::Woken { thread, cause } if cause != WakeCause::EarlyWake => {
                self.stop_waiting(now, thread);
            }
            _ => {}
        }
    }

    fn wait(&mut self, now: Instant, thread: ThreadId, why: WaitReason) {
        self.stop_waiting(now, thread);
        self.state(thread).waiting = Some((now, why));
    }

    fn stop_waiting(&mut self, now: Instant, thread: ThreadId) {
        let state = self.state(thread);
        let Some((since, why)) = state.waiting.take() else {
            return;
        };
        let Some(current) = state.current else { return };
        let span = now.since(since);
        if let Some(job) = self.behavior.jobs.get_mut(current) {
            let total = match why {
                WaitReason::Request => &mut job.suspended,
                WaitReason::Predecessors => &mut job.held_back,
                WaitReason::Budget => &mut job.throttled,
                WaitReason::Resource(_) => &mut job.locked_out,
                WaitReason::Supply => &mut job.postponed,
            };
            *total = total.saturating_add(span);
            self.behavior.waits.push(Waiting {
                job: current,
                start: since,
                end: now,
                reason: why,
            });
        }
    }

    fn finish(mut self, end: Instant) -> Behavior {
        let end = end.max(self.last);
        self.account(end, Uncharged::NONE);
        for index in 0..self.threads.len() {
            let id = u32::try_from(index).unwrap_or(u32::MAX);
            self.stop_waiting(end, ThreadId::new(id, 0));
        }
        for hold in std::mem::take(&mut self.held) {
            self.behavior.holds.push(Hold { end, ..hold });
        }
        for node in 0..self.tree.nodes.len() {
            let starved = self.tree.replenished(node, end);
            self.behavior.starved.extend(starved);
            self.tree.serve(node, end, None);
        }
        self.behavior.nodes = self.tree.nodes;
        self.behavior.end = end;
        self.behavior
    }
}
