//! Releases that fall together share a timer entry, and the preemption of the first of them
//!
//! # Assumptions
//! 1. Each release pays one timer entry, above all tasks of its CPU, in the order of releases. A
//!    task all of whose releases fall on those of its leader ([`System::leaders`]) pays a share in
//!    the leader's entry instead. The leader's entries stand for its instants, whether it is
//!    released at them or not: a task that leaves, is late or is throttled spares no entry.
//! 2. Each job pays for the timer of its budget, which is set anew when the job is done. A
//!    reservation may leave its timer behind, and pays a whole entry. (So does each suspension: see
//!    `overhead`.)
//! 3. Where the leader is more urgent, the other's release preempts nobody: at that instant the
//!    leader, or work that goes before it, is to run. The leader's job pays for the preemption, and
//!    each bound that counts the other counts the leader. That holds as long as both are ready
//!    when they are released, so neither may wait for a predecessor, and they share a node.
//! 4. A job executes no more than its budget holds: the costs that are counted for it, and a grace.
//!    Its thread owes that to its next allotment, as it does for being stopped ([`Funding`]). So
//!    each task takes both once in a busy window: with its own urgency, below other schedulers
//!    above all. Of those that are less urgent one may have begun before the window: this is
//!    counted above all, too.
//!
//! [`Funding`]: punctual_model::Funding

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use punctual_model::{
    Class, CpuId, Funding, Machine, PolicyKind, Scheduler, Supply, System, Task, TaskId,
};

use crate::demand::RequestBound;
use crate::entity::Reserved;
use crate::error::Checked;
use crate::lookup::{ancestors, node_of, policy_of, task_name, tasks};
use crate::units::{Span, Work};
use crate::verdict::TaskVerdict;

/// The timer entries that the tasks of a CPU cause, those that come too early for a budget, and
/// what stopping jobs takes. O(tasks · leaders + reserves).
pub(crate) fn timers(system: &System, cpu: CpuId) -> Vec<Reserved> {
    let machine = &system.machine;
    let mut reserved = Vec::new();
    if is_free(machine) {
        return reserved;
    }
    let mut push = |name: String, cost: Work, separation, jitter| {
        if !cost.is_zero() {
            let requests = RequestBound::of_jobs(separation, cost, jitter);
            reserved.push(Reserved::of_machine(name, requests));
        }
    };
    let overrun = machine.funding(Vec::new()).overrun();
    for ((_, task), leader) in tasks(system).zip(system.leaders()) {
        if task.cpu != cpu || !task.class.is_real_time() {
            continue;
        }
        let (own, separation) = (&task.name, task.class.min_separation());
        let (name, cost) = match leader {
            None => (format!("timer entry of {own}"), machine.timer),
            Some(leader) => {
                let leader = task_name(system, leader);
                let name = format!("share of {own} in the timer entry of {leader}");
                (name, machine.release_in_entry())
            }
        };
        push(name, cost, separation, task.jitter);
        let cost = match task.class {
            Class::Reservation { .. } | Class::Once { .. } => machine.timer,
            _ => machine.budget_timer,
        };
        let name = format!("timer for a budget of {own}");
        push(name, cost, separation, task.jitter);
        if task.class.runs_per_job() && task.scheduler.is_some() {
            let name = format!("overruns of {own}");
            push(name, overrun, None, Span::ZERO);
        }
    }
    let takings = machine.reserves.iter().chain(&machine.missing_time);
    for reserve in takings.filter(|_| has_budgets(system, cpu)) {
        if !reserve.budget.is_zero() {
            let name = format!("timer that fires early behind {}", reserve.name);
            push(name, machine.timer, Some(reserve.period), Span::ZERO);
        }
    }
    let stoppable = |(_, task): (_, &Task)| task.cpu == cpu && task.class.runs_per_job();
    if tasks(system).any(stoppable) {
        let name = "an overrun that has begun".into();
        push(name, overrun, None, Span::ZERO);
    }
    reserved
}

/// The time that jobs of a task may take in a busy window, of the supply of their scheduler, beyond
/// the costs that are counted for each.
pub(crate) fn overrun(system: &System, task: &Task) -> Work {
    let funding = system.machine.funding(Vec::new());
    if !task.class.runs_per_job() {
        return Work::ZERO;
    }
    let mut above = ancestors(system, task.scheduler);
    match task.scheduler {
        None => funding.overrun(),
        // The stop is counted above all; the grace is executed on the budget of the server.
        Some(_) if above.any(|(_, s)| matches!(s.supply, Supply::Server(_))) => funding.grace,
        Some(_) => Work::ZERO,
    }
}

/// Whether a timer is ever set here for the end of a budget.
fn has_budgets(system: &System, cpu: CpuId) -> bool {
    let here = |server: &Scheduler| server.cpu == cpu && matches!(server.supply, Supply::Server(_));
    let granted = |task: &Task| task.cpu == cpu && task.class.is_real_time();
    system.tasks.iter().any(granted) || system.schedulers.iter().any(here)
}

/// Whether the machine takes nothing for itself but reserves, switches and caches.
fn is_free(machine: &Machine) -> bool {
    let costs = [machine.timer, machine.budget_timer, machine.preemption];
    costs.iter().all(|cost| cost.is_zero())
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

/// The room that budgets of this system have beyond the work of jobs, on its machine.
///
/// # Errors
/// [`AnalysisError::Invalid`](crate::AnalysisError::Invalid): references of the system that point
/// at nothing.
pub fn funding(system: &System) -> Checked<Funding> {
    let machine = &system.machine;
    let stretch = |is_behind| match is_behind {
        // Its release is counted within the entry of its leader.
        true => machine
            .switch
            .saturating_add(machine.switch)
            .saturating_add(machine.release_in_entry()),
        false => machine.stretch(),
    };
    Ok(machine.funding(behind(system)?.into_iter().map(stretch).collect()))
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
