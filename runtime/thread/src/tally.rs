//! The jobs of threads: counted by thread while the run goes on, told by name.

use punctual_kern::{Event, Outcome, Sink, TraceEvent};
use punctual_linux::Outcome as RunOutcome;
use punctual_model::{Instant, ThreadId};

use crate::place::FIRST;

/// Threads of one CPU that are counted each by itself. Later ones are counted together, as
/// [`OTHERS`].
pub(crate) const COUNTED: usize = 1_024;
/// The name of all threads of a CPU that came when 1,024 had been there.
pub const OTHERS: &str = "(others)";

/// The jobs of the threads of one name on one CPU.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Jobs {
    /// The CPU, by its place in the run.
    pub cpu: usize,
    /// The name of the threads.
    pub name: String,
    /// Jobs that completed, by themselves or stopped by their rule.
    pub done: u64,
    /// Jobs that completed after their deadline.
    pub late: u64,
    /// Jobs that used up their budget and were not done.
    pub overruns: u64,
    /// How often a thread had to wait for its next budget.
    pub throttles: u64,
    /// Releases that were skipped, or that found the backlog full.
    pub lost: u64,
}

/// Counts on one CPU. Nothing is allocated while the run goes on, and an event costs a few
/// instructions.
#[derive(Debug)]
pub(crate) struct Tally {
    /// The row of the thread in each slot.
    of_slot: Vec<usize>,
    /// The first is for all that have none of their own.
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    thread: ThreadId,
    done: u64,
    late: u64,
    overruns: u64,
    throttles: u64,
    lost: u64,
}

impl Row {
    fn of(thread: ThreadId) -> Row {
        Row {
            thread,
            done: 0,
            late: 0,
            overruns: 0,
            throttles: 0,
            lost: 0,
        }
    }
}

impl Tally {
    /// For a CPU with so many slots for threads.
    pub(crate) fn new(slots: usize) -> Tally {
        let nobody = Row::of(ThreadId::new(u32::MAX, 0));
        // Written once, so that the pages are there before the run.
        let mut rows = vec![nobody; COUNTED + 2];
        rows.truncate(1);
        // The first thread is there before the run.
        rows.push(Row::of(ThreadId::new(0, 0)));
        let mut of_slot = vec![0; slots];
        if let Some(first) = of_slot.first_mut() {
            *first = 1;
        }
        Tally { of_slot, rows }
    }

    fn begins(&mut self, thread: ThreadId) {
        let has_room = self.rows.len() < self.rows.capacity();
        if let Some(slot) = self.of_slot.get_mut(thread.index()) {
            *slot = if has_room { self.rows.len() } else { 0 };
        }
        if has_room {
            self.rows.push(Row::of(thread));
        }
    }

    fn count(&mut self, thread: ThreadId, add: impl FnOnce(&mut Row)) {
        let row = self.of_slot.get(thread.index()).copied().unwrap_or(0);
        if let Some(row) = self.rows.get_mut(row) {
            add(row);
        }
    }
}

impl Sink for Tally {
    fn trace(&mut self, now: Instant, event: TraceEvent) {
        match event {
            TraceEvent::Created { thread } => self.begins(thread),
            TraceEvent::Completed {
                thread,
                outcome,
                deadline,
                ..
            } if outcome != Outcome::Aborted && deadline != Instant::MAX => {
                self.count(thread, |row| {
                    row.done += 1;
                    row.late += u64::from(now > deadline);
                })
            }
            TraceEvent::Overran { thread, .. } => self.count(thread, |row| row.overruns += 1),
            TraceEvent::Throttled { thread, .. } => self.count(thread, |row| row.throttles += 1),
            TraceEvent::Skipped { thread, .. } | TraceEvent::Lost { thread, .. } => {
                self.count(thread, |row| row.lost += 1);
            }
            _ => {}
        }
    }

    fn entry(
        &mut self,
        _now: Instant,
        _event: &Event,
        _left: Option<ThreadId>,
        _run: (ThreadId, Option<Instant>),
    ) {
        // A whole entry in which nothing of the above happens.
    }
}

/// The counts of a run by CPU and name, in the order of the first thread of each name. Background
/// threads without jobs are not in it.
pub(crate) fn by_name(outcome: &RunOutcome<Tally>) -> Vec<Jobs> {
    let mut all: Vec<Jobs> = Vec::new();
    for (cpu, outcome) in outcome.cpus.iter().enumerate() {
        let of_cpu = all.len();
        for (place, row) in outcome.sink.rows.iter().enumerate() {
            let name = match place {
                0 => OTHERS,
                1 => FIRST,
                _ => {
                    let mut named = outcome.spawned.iter();
                    let named = named.find(|(thread, _)| *thread == row.thread);
                    named.map_or(OTHERS, |(_, name)| name.as_str())
                }
            };
            if row.done + row.overruns + row.throttles + row.lost == 0 {
                continue;
            }
            let there = all[of_cpu..].iter().position(|jobs| jobs.name == name);
            let at = there.map_or(all.len(), |place| of_cpu + place);
            if there.is_none() {
                let name = name.to_owned();
                all.push(Jobs {
                    cpu,
                    name,
                    ..Jobs::default()
                });
            }
            let jobs = &mut all[at];
            jobs.done += row.done;
            jobs.late += row.late;
            jobs.overruns += row.overruns;
            jobs.throttles += row.throttles;
            jobs.lost += row.lost;
        }
    }
    all
}
