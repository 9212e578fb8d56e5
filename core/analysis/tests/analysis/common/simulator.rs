//! A simulator that tries every tick: slow, simple, and independent of everything else here
//!
//! It shares no code with the analysis nor with the scheduler. Time is signed: a section that
//! blocks begins before 0.

use punctual_model::{PolicyKind, Requirement, System, TaskId};

/// The choices that the model leaves to the simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    /// By task: (arrival, release) of each job, in order.
    pub(crate) jobs: Vec<Vec<(i64, i64)>>,
    /// By task: where in each job its section begins (in ticks of its execution).
    pub(crate) section_at: Vec<u64>,
    /// By task: executed ticks after which each job suspends itself, and for how long.
    pub(crate) suspend: Vec<Option<(u64, i64)>>,
    /// Equal deadlines or priorities go before this task.
    pub(crate) loses_ties: Option<usize>,
    /// The simulation covers ticks from the first release up to here.
    pub(crate) end: i64,
}

/// A task and its oldest job that is not done.
#[derive(Clone, Debug)]
struct Progress {
    /// How many of its jobs are done.
    completed: usize,
    /// The same before this tick: the count that other CPUs may know.
    known: usize,
    /// Executed ticks of the oldest job.
    done: u64,
    asleep_until: i64,
}

/// Completion instants by task and job; `None`: not by the end.
pub(crate) fn simulate(system: &System, script: &Script) -> Vec<Vec<Option<i64>>> {
    let fresh = Progress {
        completed: 0,
        known: 0,
        done: 0,
        asleep_until: i64::MIN,
    };
    let mut tasks = vec![fresh; system.tasks.len()];
    let mut completions: Vec<Vec<Option<i64>>> = script
        .jobs
        .iter()
        .map(|list| vec![None; list.len()])
        .collect();
    let mut running: Vec<Option<usize>> = vec![None; system.cpus.len()];
    let mut taken: Vec<u64> = vec![0; system.machine.reserves.len()];
    let start = script.jobs.iter().flatten().map(|j| j.1).min().unwrap_or(0);
    for now in start..script.end {
        for (reserve, owed) in system.machine.reserves.iter().zip(&mut taken) {
            let period = signed(reserve.period.as_ns());
            if now >= 0 && now % period == 0 {
                *owed += reserve.budget.as_ns();
            }
        }
        if take_one(&mut taken) {
            continue;
        }
        for progress in &mut tasks {
            progress.known = progress.completed;
        }
        for (cpu, holder) in running.iter_mut().enumerate() {
            let kept = holder.filter(|&task| keeps(system, script, &tasks[task], task, now));
            *holder = kept.or_else(|| choose(system, script, &tasks, cpu, now));
            let Some(task) = *holder else { continue };
            if run(system, script, &mut tasks[task], task, now) {
                completions[task][tasks[task].completed - 1] = Some(now + 1);
                *holder = None;
            }
        }
    }
    completions
}

/// Reserves of all CPUs together: they are only used with one CPU.
fn take_one(taken: &mut [u64]) -> bool {
    match taken.iter_mut().find(|owed| **owed > 0) {
        Some(owed) => {
            *owed -= 1;
            true
        }
        None => false,
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).expect("small numbers")
}

/// Whether the job that ran last tick may not be preempted now.
fn keeps(system: &System, script: &Script, progress: &Progress, task: usize, now: i64) -> bool {
    if now < progress.asleep_until {
        return false;
    }
    let model = &system.tasks[task];
    match system.cpus[model.cpu.index()].policy {
        PolicyKind::Fifo | PolicyKind::FixedPriority { preemptive: false } => true,
        _ => {
            let begin = script.section_at.get(task).copied().unwrap_or(0);
            progress.done > begin && progress.done < begin + model.non_preemptive.as_ns()
        }
    }
}

/// Executes one tick; whether the job is done.
fn run(system: &System, script: &Script, progress: &mut Progress, task: usize, now: i64) -> bool {
    progress.done += 1;
    let budget = system.tasks[task].class.budget().map_or(0, |w| w.as_ns());
    if progress.done >= budget {
        progress.completed += 1;
        progress.done = 0;
        return true;
    }
    if let Some(Some((after, length))) = script.suspend.get(task)
        && progress.done == *after
    {
        progress.asleep_until = now + 1 + length;
    }
    false
}

fn choose(
    system: &System,
    script: &Script,
    tasks: &[Progress],
    cpu: usize,
    now: i64,
) -> Option<usize> {
    let ready = |&task: &usize| {
        let job = script.jobs[task].get(tasks[task].completed);
        system.tasks[task].cpu.index() == cpu
            && now >= tasks[task].asleep_until
            && job.is_some_and(|&(arrival, release)| {
                release <= now && predecessors_done(system, script, tasks, task, arrival)
            })
    };
    let candidates = (0..tasks.len()).filter(ready);
    candidates.min_by_key(|&task| key(system, script, task, tasks[task].completed, now))
}

/// Smaller goes first.
fn key(
    system: &System,
    script: &Script,
    task: usize,
    job: usize,
    now: i64,
) -> (i64, bool, i64, usize) {
    let model = &system.tasks[task];
    let arrival = script.jobs[task][job].0;
    let urgency = match system.cpus[model.cpu.index()].policy {
        PolicyKind::Fifo => 0,
        // Any order that never idles will do: a different one at every tick.
        PolicyKind::RoundRobin { .. } | PolicyKind::Tdm { .. } | PolicyKind::Planned => {
            (now * 7 + signed(task as u64) * 13) % 5
        }
        PolicyKind::FixedPriority { .. } => -i64::from(model.priority.number()),
        PolicyKind::EarliestDeadlineFirst => {
            let deadline = model.class.relative_deadline();
            arrival + deadline.map_or(i64::MAX / 2, |d| signed(d.as_ns()))
        }
    };
    (urgency, script.loses_ties == Some(task), arrival, task)
}

fn predecessors_done(
    system: &System,
    script: &Script,
    tasks: &[Progress],
    task: usize,
    arrival: i64,
) -> bool {
    let model = &system.tasks[task];
    let done = |from: &TaskId, until: i64| {
        let needed = script.jobs[from.index()]
            .iter()
            .take_while(|job| job.0 <= until)
            .count();
        tasks[from.index()].known >= needed
    };
    model.after.iter().all(|from| done(from, arrival))
        && model.follows.iter().all(|from| done(from, arrival - 1))
}

/// Jobs as dense as they may be, the first released at `first` and every one as late as it may be.
pub(crate) fn densest(system: &System, task: usize, first: i64, end: i64) -> Vec<(i64, i64)> {
    let task = &system.tasks[task];
    let jitter = signed(task.jitter.as_ns());
    let Some(t) = task.class.min_separation().map(|t| signed(t.as_ns())) else {
        return vec![(first - jitter, first)];
    };
    let arrivals = (0..)
        .map(|k| first - jitter + k * t)
        .take_while(|&a| a < end);
    arrivals
        .map(|arrival| (arrival, arrival.max(first)))
        .collect()
}

/// The longest response of a task's jobs; a job that is not done by the end counts up to there.
pub(crate) fn longest_response(script: &Script, done: &[Vec<Option<i64>>], task: usize) -> i64 {
    let jobs = script.jobs[task].iter().zip(&done[task]);
    // The last jobs may still run for good reasons.
    let responses = jobs.filter_map(|(&(arrival, _), done)| done.map(|done| done - arrival));
    responses.max().unwrap_or(0)
}

/// Whether a job that is due by the end is late.
pub(crate) fn misses(system: &System, script: &Script, done: &[Vec<Option<i64>>]) -> bool {
    (0..system.tasks.len()).any(|task| {
        let Some(deadline) = system.tasks[task].class.relative_deadline() else {
            return false;
        };
        let required = system.requirements.iter().filter_map(|r| match r {
            Requirement::Response { task: t, within } if t.index() == task => Some(*within),
            _ => None,
        });
        let allowed = required
            .chain([deadline])
            .min()
            .map_or(0, |d| signed(d.as_ns()));
        script.jobs[task]
            .iter()
            .zip(&done[task])
            .any(|(&(arrival, _), done)| {
                let due = arrival + allowed;
                due <= script.end && done.is_none_or(|done| done > due)
            })
    })
}
