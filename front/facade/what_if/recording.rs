//! From the records of one CPU to the work of its threads, in whatever order they ran.
//!
//! ```text
//!   entry        entry   entry            entry
//!     |== job 3 ==|       |==== job 3 =====|          3: 11 ticks, lock 0; 16 ticks, complete
//!                 lock 0                   complete
//! ```
//!
//! Time that was charged to nobody stays where the record says that it was, as far as it says. An
//! entry that came late was delayed by the end of the gap. Else the gap is taken from the beginning
//! of its interval.

use std::collections::BTreeMap;

use punctual_kern::{Event, Next, Outcome, Plan, Planned, TraceEvent, Uncharged, WakeCause};
use punctual_model::{Instant, Span, ThreadId, Work};
use punctual_sim::{Act, Gap, RecordedThread, Recording};
use punctual_tables::CpuTables;
use punctual_trace::{CpuLog, Record, RecordedEntry};

use super::WhatIfError;

/// Why a run whose threads have waited for each other outside the core is not played again.
const LOCKS: &str = "threads waited for locks of their runtime";

/// The recorded work, and how many jobs of it are open at its end: of these the rest is assumed.
pub(super) fn read(
    (tables, log): (&CpuTables, &CpuLog),
    declared: bool,
) -> Result<(Recording, u64), WhatIfError> {
    let mut reader = Reader::new(tables, declared);
    for (now, record) in &log.records {
        match record {
            Record::Entry(entry) => reader.event(&entry)?,
            Record::Trace(event) => reader.trace(now, event),
            Record::Decision(decision) => {
                reader.decided(decision.refused.is_none());
                reader.armed = decision.arm;
                reader.running = match decision.next {
                    Next::Thread(thread) => Some(thread),
                    _ => None,
                };
            }
        }
    }
    Ok(reader.finish(tables))
}

#[derive(Default)]
struct Thread {
    /// The job that it works on, by the last start.
    job: u64,
    /// The job in which the steps below begin.
    begun: Option<u64>,
    steps: Vec<(Work, Act)>,
    /// Work since the last step.
    work: Work,
    /// It has used its budget and was not done: nobody knows what it still wants.
    overran: bool,
    /// The core stopped its job: it had not done all that it wanted.
    stopped: bool,
    /// Since when it waits by its own request, until when, and whether it still does.
    wait: Option<Wait>,
    recorded: RecordedThread,
}

#[derive(Clone, Copy)]
struct Wait {
    since: Instant,
    until: Option<Instant>,
    /// How long it was; `None`: it still waits.
    length: Option<Span>,
}

struct Reader {
    threads: Vec<Thread>,
    gaps: Vec<Gap>,
    /// The changes that the system declares, at the instants at which they were made; `None`: it
    /// declares none, so those that were made come from its threads.
    plan: Option<Vec<Planned>>,
    running: Option<ThreadId>,
    last: Instant,
    armed: Option<Instant>,
    /// What the thread that ran asked for with this entry.
    act: Option<(ThreadId, Act)>,
    /// An arrival that this entry is about, and when it came.
    arrival: Option<(ThreadId, Instant, Instant)>,
}

impl Reader {
    fn new(tables: &CpuTables, declared: bool) -> Reader {
        let thread = |(_, constraint): &(_, punctual_kern::Constraint)| {
            let class = &constraint.class;
            let unknown = class.runs_per_job().then(|| class.budget()).flatten();
            Thread {
                recorded: RecordedThread {
                    unknown,
                    jitters: constraint.fed,
                    ..RecordedThread::default()
                },
                ..Thread::default()
            }
        };
        Reader {
            threads: tables.threads.iter().map(thread).collect(),
            gaps: Vec::new(),
            plan: declared.then(Vec::new),
            running: None,
            last: Instant::ZERO,
            armed: None,
            act: None,
            arrival: None,
        }
    }

    fn event(&mut self, entry: &RecordedEntry) -> Result<(), WhatIfError> {
        let RecordedEntry { now, event, .. } = *entry;
        let delayed = match event {
            Event::Arrive { thread, arrival } => {
                let of = self.threads.get(thread.index());
                arrival < now && of.is_some_and(|thread| !thread.recorded.jitters)
            }
            _ => false,
        };
        self.account(now, entry.missing, delayed);
        self.act = None;
        self.arrival = None;
        let entangled = |what| Err(WhatIfError::Entangled { at: now, what });
        if entry.ceiling.is_some() {
            return entangled(LOCKS);
        }
        let span = |until: Option<Instant>| until.map(|until| until.since(now));
        let act = match event {
            Event::Agenda(_) => {
                return entangled("segments of groups started by counts of each other");
            }
            Event::Tick | Event::Wake(_) | Event::Remote(_) | Event::ChildPicked(_) => {
                return Ok(());
            }
            Event::Arrive { thread, arrival } => {
                self.arrival = Some((thread, now, arrival));
                return Ok(());
            }
            Event::Complete => Act::Complete,
            Event::Exit => Act::Exit,
            Event::Yield => Act::Yield,
            Event::Block { until } => Act::Suspend(span(until)),
            Event::Protect => Act::Protect,
            Event::Unprotect => Act::Unprotect,
            Event::Lock {
                resource,
                mode,
                until,
            } => Act::Lock(resource, mode, span(until)),
            Event::Unlock { resource } => Act::Unlock(resource),
            Event::BlockOn { .. } | Event::HandOver { .. } => return entangled(LOCKS),
            Event::Change { .. } | Event::Manage { .. } if self.plan.is_some() => {
                self.changed(now, event);
                return Ok(());
            }
            _ => {
                return Err(WhatIfError::Entangled {
                    at: now,
                    what: "threads or schedulers came, went or changed",
                });
            }
        };
        let Some(thread) = self.running else {
            return Ok(());
        };
        if let Some(state) = self.threads.get_mut(thread.index()) {
            let _ = state.begun.get_or_insert(state.job);
            if let Event::Block { until } = event {
                state.wait = Some(Wait {
                    since: now,
                    until,
                    length: None,
                });
            }
        }
        self.act = Some((thread, act));
        Ok(())
    }

    /// A change that the system declares.
    fn changed(&mut self, now: Instant, event: Event) {
        self.plan.get_or_insert_default().push(Planned {
            change: 0,
            at: now,
            quiet: Vec::new(),
            events: vec![event],
        });
    }

    /// Divides the interval since the last entry between execution and gaps.
    fn account(&mut self, now: Instant, missing: Uncharged, delayed: bool) {
        let executed = now.since(self.last).saturating_sub(missing.total());
        let running = self.running.map(ThreadId::index);
        if let Some(thread) = running.and_then(|index| self.threads.get_mut(index))
            && !executed.is_zero()
        {
            let _ = thread.begun.get_or_insert(thread.job);
            thread.work = thread.work.saturating_add(executed.as_work());
        }
        let late = delayed || self.armed.is_some_and(|armed| now > armed);
        let mut at = match running {
            Some(_) if !late => self.last,
            _ => now.saturating_sub(missing.total()).max(self.last),
        };
        for (cause, length) in missing.by_cause() {
            self.gaps.push(Gap { at, length, cause });
            at = at.saturating_add(length);
        }
        self.last = now;
    }

    fn trace(&mut self, now: Instant, event: TraceEvent) {
        match event {
            TraceEvent::Started { thread, job, .. } => {
                if let Some(state) = self.threads.get_mut(thread.index()) {
                    state.job = job;
                }
            }
            TraceEvent::Completed {
                thread,
                outcome: Outcome::Stopped,
                ..
            } => {
                if let Some(state) = self.threads.get_mut(thread.index()) {
                    state.stopped = true;
                }
            }
            TraceEvent::Overran { thread, .. } => {
                if let Some(state) = self.threads.get_mut(thread.index()) {
                    state.overran = true;
                }
            }
            TraceEvent::Woken { thread, cause } => {
                let Some(state) = self.threads.get_mut(thread.index()) else {
                    return;
                };
                if let Some(wait) = &mut state.wait
                    && wait.length.is_none()
                {
                    let end = match (cause, wait.until) {
                        (WakeCause::Timeout, Some(until)) => until,
                        (WakeCause::Wake | WakeCause::EarlyWake | WakeCause::Timeout, _) => now,
                        _ => return,
                    };
                    wait.length = Some(end.since(wait.since));
                }
                // A wait that begins with this very entry is not a step yet.
                if self.act.is_none_or(|(acting, _)| acting != thread) {
                    state.settle_wait();
                }
            }
            _ => {}
        }
    }

    /// The entry is over; a refused event has not happened.
    fn decided(&mut self, accepted: bool) {
        if let Some((thread, now, arrival)) = self.arrival.take()
            && let Some(state) = self.threads.get_mut(thread.index())
            && accepted
        {
            state.recorded.arrivals.push((now, arrival));
        }
        let Some((thread, act)) = self.act.take() else {
            return;
        };
        let Some(state) = self.threads.get_mut(thread.index()) else {
            return;
        };
        if !accepted {
            state.wait = None;
            return;
        }
        let act = match act {
            Act::Suspend(_) => Act::Suspend(None),
            other => other,
        };
        let work = std::mem::take(&mut state.work);
        // A job that was stopped wanted more: it works until it is stopped again.
        if !state.stopped {
            state.steps.push((work, act));
        }
        if matches!(act, Act::Complete | Act::Exit) {
            state.close();
        } else {
            state.settle_wait();
        }
    }

    fn finish(mut self, tables: &CpuTables) -> (Recording, u64) {
        let mut open = 0;
        for (thread, (_, constraint)) in self.threads.iter_mut().zip(&tables.threads) {
            if thread.begun.is_none() {
                continue;
            }
            thread.settle_open_wait();
            if constraint.class.runs_per_job() && !thread.overran {
                open += 1;
                let done = thread.steps.iter().map(|(work, _)| *work);
                let done = done.fold(Work::ZERO, Work::saturating_add);
                let whole = thread.recorded.unknown.unwrap_or_default();
                let rest = whole.saturating_sub(done).max(thread.work);
                thread.steps.push((rest, Act::Complete));
            }
            thread.close();
        }
        let threads = self.threads.into_iter().map(|thread| thread.recorded);
        let recording = Recording {
            threads: threads.collect(),
            gaps: self.gaps,
            plan: Plan::new(self.plan.unwrap_or_default()),
        };
        (recording, open)
    }
}

impl Thread {
    /// Keeps the steps under the job in which they began.
    fn close(&mut self) {
        let steps = std::mem::take(&mut self.steps);
        let jobs: &mut BTreeMap<_, _> = &mut self.recorded.jobs;
        if let Some(job) = self.begun.take() {
            let _ = jobs.insert(job, steps);
        }
        self.work = Work::ZERO;
        (self.overran, self.stopped) = (false, false);
        self.wait = None;
    }

    /// A wait that is not over at the end of the record lasts as long as it was to.
    fn settle_open_wait(&mut self) {
        if let Some(wait) = &mut self.wait
            && let (None, Some(until)) = (wait.length, wait.until)
        {
            wait.length = Some(until.since(wait.since));
        }
        self.settle_wait();
    }

    /// Writes the length of a wait that is over into its step, once both are known.
    fn settle_wait(&mut self) {
        let Some(Wait {
            length: Some(length),
            ..
        }) = self.wait
        else {
            return;
        };
        if let Some((_, Act::Suspend(span))) = self.steps.last_mut() {
            *span = Some(length);
            self.wait = None;
        }
    }
}
