//! Changes of a running system: from when on both what was and what will be are kept
//!
//! Two admitted systems do not make an admitted change. A task may leave and come back with
//! other constraints at its zero-lag instant: when its next job could have come, or at its last
//! deadline if that is later. It may have demanded its old share just before, and demand its new
//! one just after. Under EDF (C, T, D) = (1, 2, 2) may not become (2, 10, 3) beside
//! (3, 10, 5) at zero lag, though both pairs are feasible. The bandwidth is free; the burst is not.
//!
//! A change is judged as what it leaves: two systems, in which equal names are the same task or
//! scheduler, and those before them since the last instant at which the CPU was idle. Each rule
//! below makes it safe from some instant on; the first that applies counts:
//! 1. *Tasks or schedulers join*: at once, when the system after the change is admitted together
//!    with all that may still have an effect. The tests hold for first arrivals at any instant.
//! 2. *Tasks or schedulers leave*: jobs are completed; others only gain. Their use of the CPU
//!    counts on until it has been idle.
//! 3. *One constraint covers the other* (no more work, no more often, no earlier deadline, no other
//!    priority): old and new jobs together are legal jobs of the larger one. At zero lag.
//! 4. *Bandwidth decides*: a CPU under EDF whose deadlines are no earlier than the periods, without
//!    jitter, sections, suspension or reserves. At zero lag: no interval holds more than its length
//!    times a utilization of at most 1. Each task counts at its largest (Liu and Layland 1973;
//!    Buttazzo, Lipari, Caccamo and Abeni 2002 for changes at zero lag).
//! 5. *Both fit*: the system is admitted with all old and new tasks and schedulers together. A task
//!    that moves does so between two of its jobs, each of which one scheduler orders. At zero lag.
//! 6. Else, and when a server changes, when the CPU is idle: no busy window holds jobs of both
//!    (Real and Crespo 2004, the idle-time protocol).
//!
//! # Assumptions
//! 1. The system before the change is admitted; those of the tests.
//! 2. Jobs released before the change are completed under the old constraint, as in `kern`.

mod lives;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{Class, CpuId, Ns, PolicyKind, Requirement, Span, Stage, System, Task};

use crate::admit::{admit, bounds_only, is_admitted};
use crate::change::Change;
use crate::error::AnalysisError;
use crate::verdict::Verdict;
use lives::{Lives, erased};

/// From when on a change keeps every promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// From the instant at which it is requested.
    AtOnce,
    /// From the zero-lag instant of the tasks that change.
    ZeroLag,
    /// From an instant at which its CPU is idle: no earlier one is known to be safe.
    Idle,
    /// The system after the change is refused.
    Never,
}

impl When {
    /// The word in files and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            When::AtOnce => "at-once",
            When::ZeroLag => "zero-lag",
            When::Idle => "idle",
            When::Never => "never",
        }
    }
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
    /// The longest responses while jobs of both may meet, by the name of the task, where others
    /// hold then than before or after; `None`: nothing bounds them.
    pub meanwhile: Vec<(String, Option<Span<Ns>>)>,
}

/// Judges `change` of an admitted, running system, and says from when on it may take place. Costs
/// one admission and, for rules 1 and 5, one more without slack and fixes.
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
    let mut before = system.clone();
    if let Change::Replace(id, task) = change
        && let Some(old) = before.tasks.get_mut(id.index())
    {
        // The same task, by whatever name.
        old.name.clone_from(&task.name);
    }
    judge(&mut vec![before], changed)
}

/// Judges the changes that a system declares, one after the other, from the system at the start
/// ([`Stage::at_start`]), by the same rules as [`admit_transition`]. A refused change does not take
/// place, and later changes are judged without it.
///
/// # Errors
///
/// As for [`admit`].
pub fn admit_changes(system: &System) -> Result<Vec<Transition>, AnalysisError> {
    let mut stage = Stage::at_start(system);
    let mut past = vec![stage.system()];
    let mut refused = if system.changes.is_empty() || is_admitted(&past[0])? {
        None
    } else {
        Some("the system is refused already, before the change".to_string())
    };
    let mut transitions = Vec::new();
    for change in &system.changes {
        let mut next = stage.clone();
        let why = match (&refused, next.apply(change)) {
            (Some(why), _) => Some(why.clone()),
            (None, Err(mistakes)) => {
                let first = mistakes.first().map(|m| m.message.as_str());
                Some(format!(
                    "without the changes before it that are refused, {}",
                    first.unwrap_or("it means nothing")
                ))
            }
            (None, Ok(())) => None,
        };
        let transition = match why {
            Some(ground) => {
                let system = stage.system();
                let verdict = bounds_only(&system)?;
                Transition {
                    when: When::Never,
                    ground,
                    system,
                    verdict,
                    meanwhile: Vec::new(),
                }
            }
            None => judge(&mut past, next.system())?,
        };
        if transition.when != When::Never {
            stage = next;
        } else if refused.is_none() && !is_admitted(&stage.system())? {
            refused = Some("the system is refused already, before the change".to_string());
        }
        transitions.push(transition);
    }
    Ok(transitions)
}

/// Judges what `after` changes of the last system of `past`, which has those before it since the
/// CPUs were idle, and puts it there if it is admitted.
fn judge(past: &mut Vec<System>, after: System) -> Result<Transition, AnalysisError> {
    let verdict = admit(&after)?;
    if !verdict.admitted {
        let first = verdict.refusals.first();
        let why = first.map_or("it is refused", |r| r.reason.as_str());
        return Ok(Transition {
            when: When::Never,
            ground: why.to_string(),
            system: after,
            verdict,
            meanwhile: Vec::new(),
        });
    }
    let (when, ground, meanwhile, cpus) = {
        let Some(before) = past.last() else {
            let what = "no system before the change".into();
            return Err(AnalysisError::Invalid { what });
        };
        let what = Difference::between(before, &after);
        let (when, ground, meanwhile) = allowed(past, &after, &what)?;
        (when, ground, meanwhile, what.cpus)
    };
    if when == When::Idle {
        for old in past.iter_mut() {
            *old = erased(old, &cpus);
        }
    }
    past.push(after.clone());
    Ok(Transition {
        when,
        ground,
        system: after,
        verdict,
        meanwhile,
    })
}

type Bounds = Vec<(String, Option<Span<Ns>>)>;

fn allowed(
    past: &[System],
    after: &System,
    what: &Difference,
) -> Result<(When, String, Bounds), AnalysisError> {
    if what.supply {
        let ground = "what is below a server counts on one supply through its whole busy window";
        return Ok((When::Idle, ground.into(), Vec::new()));
    }
    let remains = what.retimed.is_none() && what.moved.is_none();
    if remains && !what.joins {
        let ground = "a task that leaves completes its jobs, and others only gain";
        return Ok((When::AtOnce, ground.into(), Vec::new()));
    }
    let lives = Lives::of(past, after);
    let changed = what.retimed.as_ref().or(what.moved.as_ref());
    let alone = what.names().all(|name| stands_alone(after, name));
    let bandwidth = changed.is_some() && by_bandwidth(past, after, &lives, what);
    let by_bandwidth = || {
        let ground = "bandwidth decides here, and that of the old constraint is free at zero lag";
        (When::ZeroLag, ground.into(), deadlines(after, &what.cpus))
    };
    if bandwidth && !lives.covered() {
        return Ok(by_bandwidth());
    }
    let union = lives.union(after).filter(|_| alone);
    if let Some(union) = union
        && is_admitted(&union).unwrap_or(false)
        && let Ok(together) = bounds_only(&union)
    {
        let meanwhile = lives.bounds(&together);
        let (when, ground) = match (&what.moved, remains) {
            (_, true) => (
                When::AtOnce,
                "what joins may arrive for the first time at any instant",
            ),
            (Some(_), _) => (
                When::ZeroLag,
                "a task that moves is admitted in its old and in its new home together",
            ),
            (None, _) if lives.covered() => (
                When::ZeroLag,
                "one constraint covers the other: all jobs together are legal jobs of it",
            ),
            (None, _) => (
                When::ZeroLag,
                "the old and the new constraint are admitted together",
            ),
        };
        return Ok((when, ground.into(), meanwhile));
    }
    if bandwidth {
        return Ok(by_bandwidth());
    }
    let ground = format!(
        "jobs of {} before and after the change may meet in a window where both are not admitted \
         together",
        changed
            .or(what.joined.as_ref())
            .map_or("the system", |name| name.as_str())
    );
    Ok((When::Idle, ground, Vec::new()))
}

/// The differences of two systems; equal names are the same task or scheduler.
struct Difference {
    joins: bool,
    /// The first task that joins, that gets another constraint, that moves.
    joined: Option<String>,
    retimed: Option<String>,
    moved: Option<String>,
    /// Every task that gets another constraint or moves.
    changed: Vec<String>,
    supply: bool,
    /// Where anything is different.
    cpus: Vec<CpuId>,
}

impl Difference {
    fn between(before: &System, after: &System) -> Difference {
        let mut found = Difference {
            joins: false,
            joined: None,
            retimed: None,
            moved: None,
            changed: Vec::new(),
            supply: false,
            cpus: Vec::new(),
        };
        let home = |system: &System, task: &Task| {
            let scheduler = task
                .scheduler
                .and_then(|id| system.schedulers.get(id.index()));
            scheduler.map(|s| s.name.clone())
        };
        let there = |task: &Task| before.tasks.iter().find(|t| t.name == task.name);
        for task in &after.tasks {
            let Some(old) = there(task) else {
                found.joins = true;
                found.joined.get_or_insert(task.name.clone());
                found.cpus.push(task.cpu);
                continue;
            };
            let moved = home(before, old) != home(after, task) || old.cpu != task.cpu;
            let retimed = !lives::is_equal(old, task);
            if moved {
                found.moved.get_or_insert(task.name.clone());
            }
            if retimed {
                found.retimed.get_or_insert(task.name.clone());
            }
            if moved || retimed {
                found.changed.push(task.name.clone());
                found.cpus.extend([old.cpu, task.cpu]);
            }
        }
        let gone = |task: &&Task| !after.tasks.iter().any(|t| t.name == task.name);
        found
            .cpus
            .extend(before.tasks.iter().filter(gone).map(|t| t.cpu));
        for scheduler in &after.schedulers {
            let old = before.schedulers.iter().find(|s| s.name == scheduler.name);
            match old {
                None => found.joins = true,
                Some(old) if lives::is_same_scheduler(old, scheduler) => continue,
                Some(_) => found.supply = true,
            }
            found.cpus.push(scheduler.cpu);
        }
        for old in &before.schedulers {
            if !after.schedulers.iter().any(|s| s.name == old.name) {
                found.cpus.push(old.cpu);
            }
        }
        found.cpus.sort_unstable();
        found.cpus.dedup();
        found
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.changed.iter().map(String::as_str)
    }
}

/// Deadlines hold by bandwidth; no shorter response does.
fn deadlines(after: &System, cpus: &[CpuId]) -> Bounds {
    let tasks = after.tasks.iter().filter(|task| cpus.contains(&task.cpu));
    let bound = |task: &Task| (task.name.clone(), task.class.relative_deadline());
    tasks.map(bound).collect()
}

/// Rule 4, on the CPUs that change.
fn by_bandwidth(past: &[System], after: &System, lives: &Lives, what: &Difference) -> bool {
    let plain = |cpu: CpuId| {
        let systems = || past.iter().chain([after]);
        systems().all(|system| is_plain(system, cpu)) && lives.fit(cpu)
    };
    !what.joins && what.moved.is_none() && what.cpus.iter().all(|&cpu| plain(cpu))
}

/// Whether bandwidth alone decides on this CPU.
fn is_plain(system: &System, cpu: CpuId) -> bool {
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
    let policy = system.cpus.get(cpu.index()).map(|cpu| cpu.policy);
    let edf = policy == Some(PolicyKind::EarliestDeadlineFirst);
    let alone = !system.schedulers.iter().any(|s| s.cpu == cpu);
    let mut tasks = system.tasks.iter().filter(|t| t.cpu == cpu);
    let simple = |t: &Task| {
        let by_rate = match t.class {
            Class::Aperiodic => true,
            _ => lives::terms(t).is_some_and(|(_, separation, deadline)| deadline >= separation),
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
    plain && edf && alone && !required && tasks.all(simple)
}

/// Precedence to or from the task would have to hold between jobs of both.
fn stands_alone(system: &System, name: &str) -> bool {
    let Some(place) = system.tasks.iter().position(|t| t.name == name) else {
        return true;
    };
    let is_it = |id: &punctual_model::TaskId| id.index() == place;
    let waits = |t: &Task| t.after.iter().any(is_it) || t.follows.iter().any(is_it);
    let own = &system.tasks[place];
    let chained = system.requirements.iter().any(|r| match r {
        Requirement::Chain { tasks, .. } => tasks.iter().any(is_it),
        Requirement::Response { .. } | Requirement::Jitter { .. } => false,
    });
    own.after.is_empty() && own.follows.is_empty() && !chained && !system.tasks.iter().any(waits)
}
