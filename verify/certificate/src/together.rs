//! Which releases fall together, and what that spares
//!
//! A periodic task without jitter is *led* by another of its CPU whose period divides its own, and
//! whose phase is congruent: each of its releases falls on a release instant of the leader. One
//! timer entry serves both. Its own job preempts nobody if the leader goes first on the same node,
//! and neither waits for a predecessor. A task that precedence joins with others is led by one of
//! them only.

use crate::claims::LedClaim;
use crate::system::{Machine, Policy, System, Task};

/// The share of a led release in the timer entry of its leader: one part of so many.
const PARTS: u64 = 16;

/// By task: its leader, of all that could be the one with the shortest period, then the first.
pub(crate) fn leaders(system: &System) -> Vec<Option<usize>> {
    let joined = joined(system);
    let tasks = &system.tasks;
    let leader = |own: usize| {
        let (period, phase) = clock(&tasks[own])?;
        let is_free = joined.iter().filter(|&&group| group == joined[own]).count() == 1;
        let led_by = |&other: &usize| {
            clock(&tasks[other]).is_some_and(|(step, first)| {
                (step, other) < (period, own)
                    && tasks[other].cpu == tasks[own].cpu
                    && (is_free || joined[other] == joined[own])
                    && period % step == 0
                    && phase.abs_diff(first) % step == 0
            })
        };
        let all = (0..tasks.len()).filter(led_by);
        all.min_by_key(|&other| (tasks[other].separation, other))
    };
    (0..tasks.len()).map(leader).collect()
}

/// Period and phase of a task that is released exactly by them.
fn clock(task: &Task) -> Option<(u64, u64)> {
    let period = task.separation.filter(|&period| period > 0)?;
    (task.class == "periodic" && task.jitter == 0).then_some((period, task.phase))
}

/// By task: a number that it has in common with all that precedence joins it with.
fn joined(system: &System) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..system.tasks.len()).collect();
    for (index, task) in system.tasks.iter().enumerate() {
        for &from in task.after.iter().chain(&task.follows) {
            let (old, new) = (groups[from], groups[index]);
            for group in groups.iter_mut().filter(|group| **group == old) {
                *group = new;
            }
        }
    }
    groups
}

/// The time that the timer takes for a release.
pub(crate) fn entry(machine: &Machine, leader: Option<usize>) -> u64 {
    match leader {
        None => machine.timer,
        Some(_) => machine.timer.div_ceil(PARTS),
    }
}

/// Whether a release of `own` may preempt somebody.
pub(crate) fn preempts(system: &System, policy: Policy, own: usize, leader: Option<usize>) -> bool {
    let Some(leader) = leader else { return true };
    let (task, first) = (&system.tasks[own], &system.tasks[leader]);
    let waits = [task, first]
        .into_iter()
        .any(|t| !t.after.is_empty() || !t.follows.is_empty());
    let goes_first = match policy {
        Policy::FixedPriority { .. } => (first.priority, own) > (task.priority, leader),
        Policy::Edf => (first.deadline, leader) < (task.deadline, own),
        _ => false,
    };
    let node = |task: &Task| (task.cpu, task.scheduler);
    !(goes_first && node(first) == node(task) && !waits)
}

/// The time that the timer for the budget of a job takes. A job that is done has it set anew. A
/// reservation may leave it behind, and at the end of a one-shot budget it fires.
pub(crate) fn budget_entry(machine: &Machine, task: &Task) -> u64 {
    match task.class.as_str() {
        "reservation" | "once" => machine.timer,
        _ => machine.budget_timer,
    }
}

/// The time that a task takes once, if its jobs use all of their budgets: the grace of two timer
/// entries, and to be stopped, which takes a timer entry or a preemption.
pub(crate) fn overrun(machine: &Machine, task: &Task) -> u64 {
    let stop = if machine.preemption > machine.timer {
        machine.preemption
    } else {
        machine.timer
    };
    match task.class.as_str() {
        "periodic" | "sporadic" => stop
            .saturating_add(machine.timer)
            .saturating_add(machine.timer),
        _ => 0,
    }
}

/// All tasks that are led, where that spares something.
pub(crate) fn claims(system: &System) -> Vec<LedClaim> {
    let machine = &system.machine;
    let costs = [machine.timer, machine.preemption, machine.cache_delay];
    if costs.iter().all(|&cost| cost == 0) {
        return Vec::new();
    }
    let all = leaders(system).into_iter().enumerate();
    let claim = |(own, leader): (usize, Option<usize>)| {
        let task = &system.tasks[own];
        let policy = match task.scheduler {
            None => system.cpus[task.cpu].policy,
            Some(id) => system.schedulers[id].policy,
        };
        Some(LedClaim {
            task: task.name.clone(),
            leader: system.tasks[leader?].name.clone(),
            entry: entry(machine, leader),
            preempts: preempts(system, policy, own, leader),
        })
    };
    all.filter_map(claim).collect()
}
