//! A situation in virtual time, and what was seen of each task.

use punctual::{Faults, SimOptions, Workloads, simulate_unjudged};
use punctual_analysis::Transition;
use punctual_model::{Ns, Requirement, Span, System, TaskId};
use punctual_rules::Violation;
use punctual_trace::{Behavior, Log, Record, Records};

/// What was seen of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TaskSeen {
    /// The longest response, and whose it was.
    pub(crate) longest: Option<(u64, u64)>,
    /// The shortest response.
    pub(crate) shortest: Option<u64>,
    /// The first job that was late.
    pub(crate) missed: Option<u64>,
}

/// What was seen of a system.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Seen {
    /// By task.
    pub(crate) tasks: Vec<TaskSeen>,
    /// By requirement: the longest latency of a chain.
    pub(crate) chains: Vec<Option<u64>>,
    /// What the checker of logs says; empty where it was not asked.
    pub(crate) broken_rules: Vec<Violation>,
    /// The first event of a change that the core refused.
    pub(crate) refused: Option<String>,
}

/// How to look.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) faults: Faults,
    pub(crate) duration: Span<Ns>,
    pub(crate) seed: u64,
    /// Whether to hold the log against the rules of scheduling, too.
    pub(crate) check_rules: bool,
    /// The judgement of the changes; `None`: that of the analysis.
    pub(crate) transitions: Option<Vec<Transition>>,
}

/// Simulates and watches.
///
/// # Errors
/// What the simulation says when it does not start.
pub(crate) fn observe(system: &System, look: &Look) -> Result<Seen, String> {
    let options = SimOptions {
        duration: Some(look.duration),
        seed: Some(look.seed),
        faults: look.faults.clone(),
        transitions: look.transitions.clone(),
        ..SimOptions::default()
    };
    let log = simulate_unjudged(system, &options, &mut Workloads::new(), &mut |_| true)
        .map_err(|error| format!("the simulation does not start: {error}"))?;
    if log.cpus.iter().any(|cpu| cpu.lost_from.is_some()) {
        return Err("the recorder was full".into());
    }
    let refused = log.cpus.iter().find_map(|cpu| refused(&cpu.records));
    let behaviors: Vec<Behavior> = (0..log.tables.cpus.len())
        .map(|cpu| Behavior::new(&log, cpu))
        .collect();
    Ok(Seen {
        tasks: tasks(system, &log, &behaviors),
        chains: chains(system, &log, &behaviors),
        broken_rules: if look.check_rules {
            punctual_rules::check(&log)
        } else {
            Vec::new()
        },
        refused,
    })
}

/// The first event that was refused, and why. An answer of a scheduler that comes too late does not
/// count.
fn refused(records: &Records) -> Option<String> {
    let mut event = None;
    records.iter().find_map(|(at, record)| match record {
        Record::Entry(entry) => {
            event = Some(entry.event);
            None
        }
        Record::Decision(decision) => {
            let (why, at) = (decision.refused?.words(), at.ticks());
            let event = format!("{:?}", event?);
            let late = event.starts_with("ChildPicked");
            (!late).then(|| format!("{event} at {at}: {why}"))
        }
        Record::Trace(_) => None,
    })
}

fn tasks(system: &System, log: &Log, behaviors: &[Behavior]) -> Vec<TaskSeen> {
    let mut tasks = vec![TaskSeen::default(); system.tasks.len()];
    for (tables, behavior) in log.tables.cpus.iter().zip(behaviors) {
        for job in &behavior.jobs {
            let Some((task, _)) = tables.threads.get(job.thread.index()) else {
                continue;
            };
            let seen = &mut tasks[task.index()];
            if job.missed(behavior.end) && seen.missed.is_none() {
                seen.missed = Some(job.index);
            }
            let real_time = job.absolute_deadline != punctual_model::Instant::MAX;
            if let (true, Some(response)) = (real_time, job.response_time()) {
                let response = response.ticks();
                if seen.longest.is_none_or(|(longest, _)| response > longest) {
                    seen.longest = Some((response, job.index));
                }
                seen.shortest = Some(seen.shortest.map_or(response, |s| s.min(response)));
            }
        }
    }
    tasks
}

/// A job that ran: its arrival, when it began to execute, its completion.
#[derive(Clone, Copy, Debug)]
struct Ran {
    arrival: u64,
    start: u64,
    end: u64,
}

/// The longest latency of each required chain: from the arrival of a job of its first task, from
/// hand to hand to the first job of the next task that begins after the completion. What has not
/// come to the end of the chain within the run does not count.
fn chains(system: &System, log: &Log, behaviors: &[Behavior]) -> Vec<Option<u64>> {
    let is_chain = |r: &Requirement| matches!(r, Requirement::Chain { .. });
    if !system.requirements.iter().any(is_chain) {
        return vec![None; system.requirements.len()];
    }
    let ran = ran(system, log, behaviors);
    let chains = system.requirements.iter().map(|requirement| {
        let Requirement::Chain { tasks, .. } = requirement else {
            return None;
        };
        let (first, rest) = tasks.split_first()?;
        let latencies = ran[first.index()].iter().filter_map(|job| {
            let end = rest
                .iter()
                .try_fold(job.end, |seen, task| next(&ran, *task, seen))?;
            Some(end - job.arrival)
        });
        latencies.max()
    });
    chains.collect()
}

/// When the first job of `task` that begins at or after `seen` has completed.
fn next(ran: &[Vec<Ran>], task: TaskId, seen: u64) -> Option<u64> {
    let jobs = &ran[task.index()];
    let first = jobs.partition_point(|job| job.start < seen);
    jobs.get(first).map(|job| job.end)
}

/// By task: its jobs that completed, in the order in which they began.
fn ran(system: &System, log: &Log, behaviors: &[Behavior]) -> Vec<Vec<Ran>> {
    let mut ran = vec![Vec::new(); system.tasks.len()];
    for (tables, behavior) in log.tables.cpus.iter().zip(behaviors) {
        let mut starts = vec![None; behavior.jobs.len()];
        for segment in &behavior.segments {
            if let Some(start) = segment.job.and_then(|job| starts.get_mut(job)) {
                start.get_or_insert(segment.start.ticks());
            }
        }
        for (job, start) in behavior.jobs.iter().zip(starts) {
            let thread = tables.threads.get(job.thread.index());
            if let (Some((task, _)), Some(start), Some(end)) = (thread, start, job.ended) {
                ran[task.index()].push(Ran {
                    arrival: job.arrival.ticks(),
                    start,
                    end: end.ticks(),
                });
            }
        }
    }
    for jobs in &mut ran {
        jobs.sort_by_key(|job| job.start);
    }
    ran
}
