//! Costs of the machine: each job's overheads, timer entries, reserves, missing time, suspension
//!
//! # Assumptions
//! 1. Each job pays two switches, one preemption and one refill of the caches, whether it needs
//!    them or not. The rules for timer entries, and for jobs that pay less, are in `together`. A
//!    job preempts at most one other when it is released, so charging the refill to the one that
//!    preempts is, in sum, one refill per preemption. How much of a cache the preempted job really
//!    uses again is not known here. Under round robin each of its turns pays, and the timer entry
//!    that ends it. A server preempts with each of its budgets; that is *not* counted beyond its
//!    jobs. Nor is a refill inside of a section, which the section's length is to contain.
//! 2. A reserve or missing time takes at most its budget in any window of its period, above all, on
//!    every CPU.
//! 3. A job that suspends itself is counted as if it computed meanwhile (suspension-oblivious:
//!    the one treatment that has no known counter-example, Chen et al., "Many suspensions, many
//!    problems", Real-Time Systems 2019, §4.1). Each time it resumes it pays the overheads again,
//!    with the timer entries of its wake-up and of the budget that it left behind. It may meet one
//!    non-preemptive section of another task, and its server may have lost what was left of two
//!    budgets.
//!
//! Demand that is reserved above all tasks begins together with a busy window. In a window of
//! length t there are at most ⌈t/period⌉ pieces of it, and they are whole: a piece that had begun
//! before would have begun the window.

use alloc::format;
use alloc::vec::Vec;

use punctual_model::{Machine, Ns, PolicyKind, Protocol, Scheduler, Supply, System, Task};

use crate::demand::{Cost, RequestBound};
use crate::entity::{Reserved, Source};
use crate::error::{AnalysisError, Checked, in_range};
use crate::node::Node;
use crate::supply;
use crate::units::{Span, Work, signed};

/// The cost of one job of `task` with this budget, suspension's blocking not yet included.
/// `is_behind`: its release preempts nobody ([`together::behind`](crate::together::behind)). O(1).
pub(crate) fn cost(
    system: &System,
    policy: PolicyKind<Ns>,
    (task, is_behind): (&Task, bool),
    budget: Work,
) -> Checked<Cost> {
    let machine = &system.machine;
    let episode = episode(machine)?;
    // Who waits for a holder goes off the processor, and comes back.
    let waits = task.uses.iter().filter(|u| {
        let resource = system.resources.get(u.resource.index());
        resource.is_some_and(|r| r.protocol == Protocol::Inheritance)
    });
    let resumes = u64::from(task.most_suspensions()) + waits.count() as u64;
    let (episodes, timers) = match policy {
        PolicyKind::RoundRobin { timeslice } if timeslice.is_zero() => {
            let what = "a round-robin timeslice is 0s".into();
            return Err(AnalysisError::Invalid { what });
        }
        PolicyKind::RoundRobin { timeslice } => {
            let turns = budget.div_ceil(timeslice.as_work());
            (in_range(turns.checked_add(resumes), "turns")?, turns)
        }
        _ => (resumes + 1, 0),
    };
    // The entries of the release and its budget are reserved by themselves; those of resumes and
    // turns are here. Before each resume a timer for the budget may be left behind, which fires.
    let entries = resumes.checked_mul(2).and_then(|r| r.checked_add(timers));
    let timers = entries.and_then(|entries| machine.timer.checked_mul(entries));
    let spared = match is_behind {
        true => in_range(preemption(machine), "overheads")?,
        false => Work::ZERO,
    };
    let overhead = episode
        .checked_mul(episodes)
        .and_then(|o| o.checked_add(timers?))
        .map(|o| o.saturating_sub(spared));
    Ok(Cost {
        wcet: budget,
        overhead: in_range(overhead, "overheads of a job")?,
        suspension: task.max_suspension.as_work(),
    })
}

/// The cost of one stretch of execution: a switch in and out, a preemption, a refill of the caches.
pub(crate) fn episode(machine: &Machine) -> Checked<Work> {
    let in_and_out = machine.switch.checked_mul(2);
    let episode = in_and_out.and_then(|s| s.checked_add(preemption(machine)?));
    in_range(episode, "overheads")
}

/// The turn of a thread without deadlines among its equals, which a timer may end.
pub(crate) fn turn(machine: &Machine) -> Checked<Work> {
    let turn = episode(machine)?.checked_add(machine.timer);
    in_range(turn, "overheads")
}

/// One preemption, and the refill of the caches behind it.
fn preemption(machine: &Machine) -> Option<Work> {
    machine.preemption.checked_add(machine.cache_delay)
}

/// The timer entries of a server: one when its budget comes, one when it is used up.
pub(crate) fn server_timers(machine: &Machine, scheduler: &Scheduler) -> Checked<Option<Reserved>> {
    let Supply::Server(server) = scheduler.supply else {
        return Ok(None);
    };
    if machine.timer.is_zero() {
        return Ok(None);
    }
    let both = in_range(machine.timer.checked_mul(2), "timer entries")?;
    Ok(Some(Reserved {
        name: format!("timer entries of the server of {}", scheduler.name),
        // The two of one period and that of the next may come together.
        requests: RequestBound::of_jobs(Some(server.period), both, server.period),
        source: Source::Machine,
    }))
}

/// Adds to each suspending task what may block it when it resumes: once per suspension the longest
/// section of any other task of the CPU.
pub(crate) fn add_suspensions(node: &mut Node, system: &System) -> Checked<()> {
    for i in 0..node.entities.len() {
        let own = node.entities[i].who;
        let task = own.task().and_then(|task| system.tasks.get(task.index()));
        let Some(task) = task else {
            continue;
        };
        let resumes = u64::from(task.most_suspensions());
        if resumes == 0 {
            continue;
        }
        let others = node
            .entities
            .iter()
            .filter(|c| c.who != own)
            .map(|c| c.section);
        let background = node.background.map(|(_, section)| section);
        let section = others.chain(background).max().unwrap_or_default();
        let urgency = match node.policy {
            PolicyKind::EarliestDeadlineFirst => -signed(node.entities[i].deadline),
            _ => i128::from(node.entities[i].priority),
        };
        let locked = node.blocking(urgency, Some(own))?.total;
        let held = locked.checked_add(node.held_above);
        let section = in_range(held.and_then(|l| l.checked_add(section)), "suspension")?;
        // While it sleeps and nobody else has work, a server may lose what is left of its budget,
        // and the next one; whole periods of sleep are covered by counting sleep as computation.
        // Less urgent work may overrun two budgets in a row meanwhile: then the wait for the next
        // is longer, and that one pays back.
        let budget = match &node.supply {
            supply::Supply::Budget(budget) => budget.budget().checked_add(budget.owed()),
            _ => Some(Work::ZERO),
        };
        let budget = in_range(budget, "suspension")?;
        let lost = in_range(budget.checked_mul(2), "suspension")?;
        let section = in_range(section.checked_add(lost), "suspension")?;
        let entity = &mut node.entities[i];
        let blocked = section.checked_mul(resumes);
        let suspension = blocked.and_then(|b| b.checked_add(entity.cost.suspension));
        entity.cost.suspension = in_range(suspension, "suspension")?;
        entity.requests.cost = entity.cost.total()?;
    }
    Ok(())
}

/// Reserves and missing time as reserved demand above all tasks. O(reserves).
pub(crate) fn reserves(machine: &Machine) -> Checked<Vec<Reserved>> {
    let mut reserved = Vec::new();
    for reserve in machine.reserves.iter().chain(&machine.missing_time) {
        if reserve.period.is_zero() {
            let what = format!("the reserve `{}` has a period of 0s", reserve.name);
            return Err(AnalysisError::Invalid { what });
        }
        if reserve.budget.is_zero() {
            continue;
        }
        let requests = RequestBound::of_jobs(Some(reserve.period), reserve.budget, Span::ZERO);
        reserved.push(Reserved::of_machine(reserve.name.clone(), requests));
    }
    Ok(reserved)
}
