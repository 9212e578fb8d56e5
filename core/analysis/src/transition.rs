//! Changes of a running system: from when on both what was and what will be are kept
//!
//! Two admitted systems do not make an admitted change. A task may leave and come back with
//! other constraints at its zero-lag instant: when its next job could have come, or at its last
//! deadline if that is later. It may have demanded its old share just before, and demand its new
//! one just after. Under EDF (C, T, D) = (1, 2, 2) may not become (2, 10, 3) beside
//! (3, 10, 5) at zero lag, though both pairs are feasible. The bandwidth is free; the burst is not.
//!
//! Each rule below makes the change safe from some instant on; the first that applies counts:
//! 1. *A task joins*: at once. The tests hold for first arrivals at any instant.
//! 2. *A task leaves*: its jobs are completed; others only gain.
//! 3. *One constraint covers the other* (no more work, no more often, no earlier deadline, no other
//!    priority): old and new jobs together are legal jobs of the larger one. At zero lag.
//! 4. *Bandwidth decides*: a CPU under EDF whose deadlines are no earlier than the periods, without
//!    jitter, sections, suspension or reserves. At zero lag: no interval holds more than its length
//!    times a utilization of at most 1 (Liu and Layland 1973; Buttazzo, Lipari, Caccamo and Abeni
//!    2002 for changes at zero lag).
//! 5. *Both fit*: the system is admitted with the old and the new task together. At zero lag, and
//!    at any other instant.
//! 6. Else, and when a server changes, when the CPU is idle: no busy window holds jobs of both
//!    (Real and Crespo 2004, the idle-time protocol).
//!
//! # Assumptions
//! 1. The system before the change is admitted; those of the tests.
//! 2. Jobs released before the change are completed under the old constraint, as in `kern`.

use alloc::format;
use alloc::string::{String, ToString};

use punctual_model::{Class, PolicyKind, Requirement, System, Task, TaskId};

use crate::admit::{admit, is_admitted};
use crate::change::Change;
use crate::error::AnalysisError;
use crate::units::{Span, Work};
use crate::utilization::{Ratio, compare_with_one};
use crate::verdict::Verdict;

/// From when on a change keeps every promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// From the instant at which it is requested.
    AtOnce,
    /// From the zero-lag instant of the task that changes.
    ZeroLag,
    /// From an instant at which its CPU is idle: no earlier one is known to be safe.
    Idle,
    /// The system after the change is refused.
    Never,
}

/// The answer of the analysis about a change.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct Transition {
    /// From when on.
    pub when: When,
    /// By which rule, in words.
    pub ground: String,
    /// The system after the change.
    pub system: System,
    /// Its verdict.
    pub verdict: Verdict,
}

/// Judges `change` of an admitted, running system, and says from when on it may take place. Costs
/// one admission and, for rule 5, one decision more.
///
/// # Errors
///
/// As [`crate::admit_change`]; [`AnalysisError::Invalid`] when the system before is not admitted.
pub fn admit_transition(system: &System, change: &Change) -> Result<Transition, AnalysisError> {
    if !is_admitted(system)? {
        let what = "the system is refused already, before the change".into();
        return Err(AnalysisError::Invalid { what });
    }
    let changed = change.apply(system)?;
    let verdict = admit(&changed)?;
    let (when, ground) = if verdict.admitted {
        judge(system, &changed, change)?
    } else {
        let first = verdict.refusals.first();
        let why = first.map_or("it is refused", |r| r.reason.as_str());
        (When::Never, why.to_string())
    };
    Ok(Transition {
        when,
        ground,
        system: changed,
        verdict,
    })
}

fn judge(
    system: &System,
    changed: &System,
    change: &Change,
) -> Result<(When, String), AnalysisError> {
    let (id, new) = match change {
        Change::Add(_) => {
            let ground = "a task that joins may arrive for the first time at any instant";
            return Ok((When::AtOnce, ground.into()));
        }
        Change::Remove(_) => {
            let ground = "a task that leaves completes its jobs, and others only gain";
            return Ok((When::AtOnce, ground.into()));
        }
        Change::Serve(..) => {
            let ground =
                "what is below a server counts on one supply through its whole busy window";
            return Ok((When::Idle, ground.into()));
        }
        Change::Replace(id, new) => (*id, new),
    };
    let Some(old) = system.tasks.get(id.index()) else {
        return Err(AnalysisError::Invalid {
            what: format!("there is no task number {}", id.0),
        });
    };
    if covers(old, new) || covers(new, old) {
        let ground = "one constraint covers the other: all jobs together are legal jobs of it";
        return Ok((When::ZeroLag, ground.into()));
    }
    if by_bandwidth(system, old) && by_bandwidth(changed, new) {
        let ground = "bandwidth decides here, and that of the old constraint is free at zero lag";
        return Ok((When::ZeroLag, ground.into()));
    }
    if is_admitted(&with_both(system, id, new)).unwrap_or(false) && stands_alone(system, id) {
        let ground = "the old and the new constraint are admitted together";
        return Ok((When::ZeroLag, ground.into()));
    }
    let ground = format!(
        "jobs of {} before and after the change may meet in a window where both are not admitted \
         together",
        old.name
    );
    Ok((When::Idle, ground))
}

/// Whether all jobs of `small`, and jobs of both with the separation of either between them, are
/// legal jobs of `large`.
fn covers(large: &Task, small: &Task) -> bool {
    let Some((work, separation, deadline)) = terms(large) else {
        return false;
    };
    let Some((less, rarer, later)) = terms(small) else {
        return false;
    };
    let alike = large.cpu == small.cpu
        && large.scheduler == small.scheduler
        && large.priority == small.priority
        && large.after == small.after
        && large.follows == small.follows
        && large.uses == small.uses
        && large.slots == small.slots;
    alike
        && less <= work
        && rarer >= separation
        && later >= deadline
        && small.jitter <= large.jitter
        && small.max_suspension <= large.max_suspension
        && small.suspensions <= large.suspensions
        && small.non_preemptive <= large.non_preemptive
}

/// Work, separation and deadline of recurring jobs.
fn terms(task: &Task) -> Option<(Work, Span, Span)> {
    let (budget, separation) = (task.class.budget()?, task.class.min_separation()?);
    Some((budget, separation, task.class.relative_deadline()?))
}

/// Rule 4, on the CPU of this task.
fn by_bandwidth(system: &System, task: &Task) -> bool {
    let machine = &system.machine;
    let taken = machine.reserves.iter().chain(&machine.missing_time);
    let overheads = [
        machine.switch,
        machine.timer,
        machine.budget_timer,
        machine.preemption,
        machine.cache_delay,
    ];
    let plain = taken.count() == 0 && overheads.iter().all(|o| o.is_zero());
    let edf = system
        .cpus
        .get(task.cpu.index())
        .is_some_and(|cpu| cpu.policy == PolicyKind::EarliestDeadlineFirst);
    let alone = !system.schedulers.iter().any(|s| s.cpu == task.cpu);
    let tasks = || system.tasks.iter().filter(|t| t.cpu == task.cpu);
    let simple = |t: &Task| {
        let by_rate = match t.class {
            Class::Aperiodic => true,
            _ => terms(t).is_some_and(|(_, separation, deadline)| deadline >= separation),
        };
        by_rate
            && t.jitter.is_zero()
            && t.max_suspension.is_zero()
            && t.non_preemptive.is_zero()
            && t.uses.is_empty()
            && t.after.is_empty()
            && t.follows.is_empty()
    };
    let required = system.requirements.iter().any(|r| match r {
        // Deadlines hold by bandwidth; shorter responses do not.
        Requirement::Response { task, .. } | Requirement::Jitter { task, .. } => {
            system.tasks.get(task.index()).is_some_and(simple)
        }
        Requirement::Chain { .. } => true,
    });
    let ratios = tasks()
        .filter_map(|t| terms(t).map(|(demand, separation, _)| Ratio::of(demand, separation)));
    plain
        && edf
        && alone
        && !required
        && tasks().all(simple)
        && compare_with_one(ratios) != core::cmp::Ordering::Greater
}

/// Precedence to or from the task would have to hold between jobs of both.
fn stands_alone(system: &System, id: TaskId) -> bool {
    let waits = |t: &Task| t.after.contains(&id) || t.follows.contains(&id);
    let own = system.tasks.get(id.index());
    let own = own.is_some_and(|t| t.after.is_empty() && t.follows.is_empty());
    let chained = system.requirements.iter().any(|r| match r {
        Requirement::Chain { tasks, .. } => tasks.contains(&id),
        Requirement::Response { .. } | Requirement::Jitter { .. } => false,
    });
    own && !chained && !system.tasks.iter().any(waits)
}

/// The system with the new task beside the old one, and what is required of it.
fn with_both(system: &System, id: TaskId, new: &Task) -> System {
    let mut both = system.clone();
    both.free_phases = true;
    let added = TaskId(u32::try_from(both.tasks.len()).unwrap_or(u32::MAX));
    let mut new = new.clone();
    new.name = format!("{} (changed)", new.name);
    both.tasks.push(new);
    for mut requirement in system.requirements.iter().cloned() {
        if let Requirement::Response { task, .. } | Requirement::Jitter { task, .. } =
            &mut requirement
            && *task == id
        {
            *task = added;
            both.requirements.push(requirement);
        }
    }
    both
}
