//! A situation in virtual time, and what was seen of each task.

use punctual::{Faults, SimOptions, Workloads, simulate_unjudged};
use punctual_model::{Span, System};
use punctual_trace::{Behavior, Log, Violation};

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
    /// What the checker of logs says; empty where it was not asked.
    pub(crate) broken_rules: Vec<Violation>,
}

/// How to look.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) faults: Faults,
    pub(crate) duration: Span,
    pub(crate) seed: u64,
    /// Whether to hold the log against the rules of scheduling, too.
    pub(crate) check_rules: bool,
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
        ..SimOptions::default()
    };
    let log = simulate_unjudged(system, &options, &mut Workloads::new(), &mut |_| true)
        .map_err(|error| format!("the simulation does not start: {error}"))?;
    if log.cpus.iter().any(|cpu| cpu.lost_from.is_some()) {
        return Err("the recorder was full".into());
    }
    Ok(Seen {
        tasks: tasks(system, &log),
        broken_rules: if look.check_rules {
            punctual_trace::check(&log)
        } else {
            Vec::new()
        },
    })
}

fn tasks(system: &System, log: &Log) -> Vec<TaskSeen> {
    let mut tasks = vec![TaskSeen::default(); system.tasks.len()];
    for (cpu, plan) in log.plan.cpus.iter().enumerate() {
        let behavior = Behavior::new(log, cpu);
        for job in &behavior.jobs {
            let Some((task, _)) = plan.threads.get(job.thread.index()) else {
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
