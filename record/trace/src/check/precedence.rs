//! A job starts when the jobs that it depends on are done, on whatever CPU those are.

use punctual_kern::{CpuPlan, Source};
use punctual_model::{Class, Instant};

use super::{Rule, Violation};
use crate::log::Log;

/// What one CPU's threads did that precedence cares about.
pub(super) struct History {
    threads: Vec<Jobs>,
    /// The instant from which on the history is incomplete.
    pub(super) known_until: Instant,
}

/// Jobs of one thread, in order. Kept only for threads at an end of a precedence.
#[derive(Default)]
struct Jobs {
    wanted: bool,
    released: Vec<Released>,
    started: Vec<Started>,
    ended: Option<Instant>,
}

struct Released {
    index: u64,
    arrival: Instant,
    released: Instant,
    completed: Option<Instant>,
}

struct Started {
    index: u64,
    arrival: Instant,
    /// When its predecessors were looked at, and when it was ready.
    begun: Instant,
    started: Option<Instant>,
}

impl History {
    pub(super) fn new(plan: &CpuPlan) -> History {
        let mut threads: Vec<Jobs> = plan.threads.iter().map(|_| Jobs::default()).collect();
        let mut want = |thread: usize| {
            if let Some(jobs) = threads.get_mut(thread) {
                jobs.wanted = true;
            }
        };
        for (successor, edge) in &plan.edges {
            want(*successor as usize);
            if let Source::Local(thread) = edge.from {
                want(thread.index());
            }
        }
        for (thread, ..) in &plan.notifications {
            want(*thread as usize);
        }
        History {
            threads,
            known_until: Instant::MAX,
        }
    }

    fn of(&mut self, thread: usize) -> Option<&mut Jobs> {
        self.threads.get_mut(thread).filter(|jobs| jobs.wanted)
    }

    pub(super) fn released(&mut self, thread: usize, job: (u64, Instant), now: Instant) {
        if let Some(jobs) = self.of(thread) {
            jobs.released.push(Released {
                index: job.0,
                arrival: job.1,
                released: now,
                completed: None,
            });
        }
    }

    pub(super) fn begun(&mut self, thread: usize, job: (u64, Instant), now: Instant) {
        if let Some(jobs) = self.of(thread) {
            jobs.started.push(Started {
                index: job.0,
                arrival: job.1,
                begun: now,
                started: None,
            });
        }
    }

    pub(super) fn started(&mut self, thread: usize, now: Instant) {
        if let Some(last) = self.of(thread).and_then(|jobs| jobs.started.last_mut()) {
            last.started = Some(now);
        }
    }

    pub(super) fn completed(&mut self, thread: usize, index: u64, now: Instant) {
        let jobs = self.of(thread).map(|jobs| &mut jobs.released);
        // Jobs end in order, so the one that ends stands near the end of the list.
        let job = jobs.and_then(|jobs| jobs.iter_mut().rev().find(|job| job.index == index));
        if let Some(job) = job {
            job.completed = Some(now);
        }
    }

    pub(super) fn ended(&mut self, thread: usize, now: Instant) {
        if let Some(jobs) = self.of(thread) {
            jobs.ended = Some(now);
        }
    }
}

/// Holds every start against the completions of its predecessors. Predecessors that arrive by the
/// clock count with every arrival up to the successor's, whether they were released in time or not.
pub(super) fn check(log: &Log, histories: &[History]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (cpu, plan) in log.plan.cpus.iter().enumerate().take(histories.len()) {
        for (successor, edge) in &plan.edges {
            let from = match edge.from {
                Source::Local(thread) => Some((cpu, thread.index())),
                Source::Remote { slot } => remote(log, cpu, slot),
            };
            if let Some(from) = from.filter(|from| from.0 < histories.len()) {
                let ends = (from, (cpu, *successor as usize));
                edge_holds(log, histories, ends, edge.strict, &mut violations);
            }
        }
    }
    violations
}

/// The thread behind a slot of `cpu`.
fn remote(log: &Log, cpu: usize, slot: u32) -> Option<(usize, usize)> {
    let here = log.plan.cpus[cpu].cpu;
    log.plan.cpus.iter().enumerate().find_map(|(there, plan)| {
        let mut all = plan.notifications.iter();
        let found = all.find(|(_, to, s)| (*to, *s) == (here, slot))?;
        Some((there, found.0 as usize))
    })
}

/// A CPU of the plan and a thread there.
type Place = (usize, usize);

fn edge_holds(
    log: &Log,
    histories: &[History],
    (from, to): (Place, Place),
    strict: bool,
    violations: &mut Vec<Violation>,
) {
    let place = |at: Place| histories[at.0].threads.get(at.1);
    let (Some(before), Some(after)) = (place(from), place(to)) else {
        return;
    };
    let class = log.plan.cpus[from.0].threads[from.1].1.class;
    // Of arrivals that nobody can foresee, only those count that were known when it was asked.
    let foreseen = !matches!(class, Class::Sporadic { .. } | Class::Aperiodic);
    let known_until = histories[from.0].known_until;
    let mut waited_for = before.released.iter().peekable();
    // The last completion of all that must come first, and whose it is.
    let mut last = (Instant::ZERO, 0);
    for job in &after.started {
        let Some(started) = job.started.filter(|at| *at < known_until) else {
            continue;
        };
        while let Some(first) = waited_for.next_if(|p| {
            let arrived = p.arrival < job.arrival || (!strict && p.arrival == job.arrival);
            arrived && (foreseen || p.released <= job.begun)
        }) {
            let done = first.completed.or(before.ended).unwrap_or(Instant::MAX);
            last = last.max((done, first.index));
        }
        if last.0 > started {
            let name = |at: Place| log.place_name(at.0, at.1);
            let (is, before) = (name(to), name(from));
            violations.push(Violation {
                rule: Rule::PrecedenceRespected,
                cpu: log.cpus[to.0].name.clone(),
                now: started,
                detail: format!(
                    "{is} job {} starts before {before} job {}",
                    job.index, last.1
                ),
            });
        }
    }
}
