//! Releases that fall together share a timer entry, and the preemption of the first of them
//!
//! # Assumptions
//! 1. Each release pays one timer entry, above all tasks of its CPU, in the order of releases. A
//!    task all of whose releases fall on those of its leader ([`System::leaders`]) pays a share in
//!    the leader's entry instead. The leader's entries stand for its instants, whether it is
//!    released at them or not: a task that leaves, is late or is throttled spares no entry.
//! 2. Each job pays one entry more for the end of its budget: the timer that was armed for it may
//!    fire when the job is done.
//! 3. Where the leader is more urgent, the other's release preempts nobody: at that instant the
//!    leader, or work that goes before it, is to run. The leader's job pays for the preemption, and
//!    each bound that counts the other counts the leader. That holds as long as both are ready
//!    when they are released, so neither may wait for a predecessor, and they share a node.

use alloc::format;
use alloc::vec::Vec;

use punctual_model::{CpuId, PolicyKind, System, Task, TaskId};

use crate::demand::RequestBound;
use crate::entity::Reserved;
use crate::error::Checked;
use crate::lookup::{node_of, policy_of, task_name, tasks};
use crate::units::Work;
use crate::verdict::TaskVerdict;

/// The timer entries that the tasks of a CPU cause. O(tasks · leaders).
pub(crate) fn timers(system: &System, cpu: CpuId) -> Vec<Reserved> {
    let machine = &system.machine;
    let mut reserved = Vec::new();
    if machine.timer.is_zero() && machine.budget_timer.is_zero() {
        return reserved;
    }
    let mut push = |task: &Task, name, cost: Work| {
        if !cost.is_zero() {
            let requests = RequestBound::of_jobs(task.class.min_separation(), cost, task.jitter);
            reserved.push(Reserved::of_machine(name, requests));
        }
    };
    let leaders = system.leaders();
    for ((_, task), leader) in tasks(system).zip(leaders) {
        if task.cpu != cpu || !task.class.is_real_time() {
            continue;
        }
        let own = &task.name;
        match leader {
            None => push(task, format!("timer entry of {own}"), machine.timer),
            Some(leader) => {
                let leader = task_name(system, leader);
                let name = format!("share of {own} in the timer entry of {leader}");
                push(task, name, machine.release_in_entry());
            }
        }
        let name = format!("timer entry for a budget of {own}");
        push(task, name, machine.budget_timer);
    }
    reserved
}

/// By task: whether its releases preempt nobody, for a more urgent leader is released with them.
/// O(tasks · leaders).
pub(crate) fn behind(system: &System) -> Checked<Vec<bool>> {
    let machine = &system.machine;
    if machine.preemption.is_zero() && machine.cache_delay.is_zero() {
        return Ok(alloc::vec![false; system.tasks.len()]);
    }
    let mut behind = Vec::with_capacity(system.tasks.len());
    for ((id, task), leader) in tasks(system).zip(system.leaders()) {
        behind.push(match leader {
            Some(leader) => is_behind(system, (id, task), leader)?,
            None => false,
        });
    }
    Ok(behind)
}

/// Says of each task with a leader what that spares it.
pub(crate) fn explain(system: &System, rows: &mut [TaskVerdict]) -> Checked<()> {
    let behind = behind(system)?;
    let serves = !system.machine.timer.is_zero();
    if !serves && !behind.contains(&true) {
        return Ok(());
    }
    for ((row, leader), behind) in rows.iter_mut().zip(system.leaders()).zip(behind) {
        let Some(leader) = leader.filter(|_| serves || behind) else {
            continue;
        };
        let leader = task_name(system, leader);
        let mut words = format!("each release falls on one of {leader}");
        if serves {
            words += ": one timer entry serves both";
        }
        if behind {
            words += &format!("; {leader} goes first, so it preempts nobody by itself");
        }
        row.assumptions.push(words);
    }
    Ok(())
}

fn is_behind(system: &System, (id, task): (TaskId, &Task), leader: TaskId) -> Checked<bool> {
    let first = &system.tasks[leader.index()];
    let ready = |task: &Task| task.after.is_empty() && task.follows.is_empty();
    if node_of(task) != node_of(first) || !ready(task) || !ready(first) {
        return Ok(false);
    }
    let in_file = leader < id;
    Ok(match policy_of(system, node_of(task))? {
        PolicyKind::FixedPriority { .. } => {
            let equal = first.priority == task.priority;
            first.priority.is_higher_than(task.priority) || (equal && in_file)
        }
        PolicyKind::EarliestDeadlineFirst => {
            let deadline = |task: &Task| task.class.relative_deadline();
            deadline(first) < deadline(task) || (deadline(first) == deadline(task) && in_file)
        }
        _ => false,
    })
}
