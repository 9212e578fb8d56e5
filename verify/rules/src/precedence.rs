//! A job starts when the jobs that it depends on are done, on whatever CPU those are.

use std::collections::BTreeMap;

use punctual_kern::{Source, TraceEvent};
use punctual_model::{Class, Instant, ThreadId};
use punctual_trace::{Behavior, JobRecord, Log, Record, WaitReason};

use crate::gang::truly;
use crate::{Rule, Violation};

/// What precedence needs of one CPU's run.
struct Run {
    behavior: Behavior,
    /// When jobs first waited for their predecessors.
    looked: BTreeMap<usize, Instant>,
    ended: BTreeMap<ThreadId, Instant>,
    /// The instant from which on the run is not known.
    known_until: Instant,
}

impl Run {
    fn new(log: &Log, cpu: usize) -> Run {
        let behavior = Behavior::new(log, cpu);
        let waits = behavior.waits.iter().rev();
        let of_predecessors = waits.filter(|wait| wait.reason == WaitReason::Predecessors);
        let looked = of_predecessors.map(|wait| (wait.job, wait.start)).collect();
        let records = log.cpus[cpu].records.iter();
        let ended = records.filter_map(|(now, record)| match record {
            Record::Trace(TraceEvent::Ended { thread }) => Some((thread, now)),
            _ => None,
        });
        Run {
            looked,
            ended: ended.collect(),
            known_until: log.cpus[cpu].lost_from.unwrap_or(Instant::MAX),
            behavior,
        }
    }

    fn jobs(&self, thread: usize) -> impl Iterator<Item = (usize, &JobRecord)> {
        let jobs = self.behavior.jobs.iter().enumerate();
        jobs.filter(move |(_, job)| (job.thread.index(), job.thread.generation()) == (thread, 0))
    }
}

/// Holds every start against the completions of its predecessors. Predecessors that arrive by the
/// clock count with every arrival up to the successor's, whether they were released in time or not.
pub(crate) fn judge(log: &Log, cpus: usize) -> Vec<Violation> {
    let mut violations = Vec::new();
    if log.tables.cpus.iter().all(|tables| tables.edges.is_empty()) {
        return violations;
    }
    let runs: Vec<Run> = (0..cpus).map(|cpu| Run::new(log, cpu)).collect();
    for (cpu, tables) in log.tables.cpus.iter().enumerate().take(cpus) {
        for (successor, edge) in &tables.edges {
            let from = match edge.from {
                Source::Local(thread) => Some((cpu, thread.index())),
                Source::Remote { slot } => remote(log, cpu, slot),
            };
            if let Some(from) = from.filter(|from| from.0 < cpus) {
                let to = (cpu, *successor as usize);
                edge_holds(log, &runs, (from, to), edge.strict, &mut violations);
            }
        }
    }
    violations
}

/// The thread behind a slot of `cpu`.
fn remote(log: &Log, cpu: usize, slot: u32) -> Option<Place> {
    let here = log.tables.cpus[cpu].cpu;
    log.tables
        .cpus
        .iter()
        .enumerate()
        .find_map(|(there, tables)| {
            let mut all = tables.notifications.iter();
            let found = all.find(|(_, to, s)| (*to, *s) == (here, slot))?;
            Some((there, found.0 as usize))
        })
}

/// A CPU of the tables and a thread there.
type Place = (usize, usize);

fn edge_holds(
    log: &Log,
    runs: &[Run],
    (from, to): (Place, Place),
    strict: bool,
    violations: &mut Vec<Violation>,
) {
    let (before, after) = (&runs[from.0], &runs[to.0]);
    let Some((_, terms)) = log.tables.cpus[from.0].threads.get(from.1) else {
        return;
    };
    // Of arrivals that nobody can foresee, only those count that were known when it was asked.
    let foreseen = !matches!(terms.class, Class::Sporadic { .. } | Class::Aperiodic);
    let mut waited_for = before.jobs(from.1).peekable();
    // The last completion of all that must come first, and whose it is.
    let mut last = (Instant::ZERO, 0);
    for (at, job) in after.jobs(to.1) {
        let Some(started) = job.started.filter(|at| *at < before.known_until) else {
            continue;
        };
        let looked = after.looked.get(&at).copied().unwrap_or(started);
        while let Some((_, first)) = waited_for.next_if(|(_, p)| {
            let arrived = p.arrival < job.arrival || (!strict && p.arrival == job.arrival);
            arrived && (foreseen || p.released <= looked)
        }) {
            let ended = || before.ended.get(&first.thread).copied();
            let done = first.ended.or_else(ended).unwrap_or(Instant::MAX);
            last = last.max((done, first.index));
        }
        if last.0 > Instant::ZERO && comes_after(log, (from.0, last.0), (to.0, started)) {
            let name = |at: Place| log.place_name(at.0, at.1);
            let (is, before, index) = (name(to), name(from), job.index);
            violations.push(Violation {
                rule: Rule::PrecedenceRespected,
                cpu: log.cpus[to.0].name.clone(),
                now: started,
                detail: format!("{is} job {index} starts before {before} job {}", last.1),
            });
        }
    }
}

/// Whether an instant of one CPU comes after one of another in true time. Clocks that drift show
/// whole nanoseconds, so the last of them is not counted there.
fn comes_after(log: &Log, (a, last): (usize, Instant), (b, started): (usize, Instant)) -> bool {
    let drifts = [a, b].iter().any(|cpu| log.cpus[*cpu].clock.drift_ppb != 0);
    truly(log, a, last) > truly(log, b, started).saturating_add(i64::from(drifts))
}
