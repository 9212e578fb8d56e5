//! Changes of a running system: from when on both what was and what will be are kept
//!
//! Two admitted systems do not make an admitted change. A task may leave and come back with
//! other constraints at its zero-lag instant: when its next job could have come, or at its last
//! deadline if that is later. It may have demanded its old share just before, and demand its new
//! one just after. Under EDF (C, T, D) = (1, 2, 2) may not become (2, 10, 3) beside
//! (3, 10, 5) at zero lag, though both pairs are feasible. The bandwidth is free; the burst is not.
//!
//! A change is two systems, in which equal names are the same task or scheduler, with those before
//! them that may still have an effect. Each rule below makes it safe from some instant on; the
//! first that applies counts:
//! 1. *Tasks or schedulers join*: at once, when the system after the change is admitted together
//!    with all that may still have an effect. The tests hold for first arrivals at any instant.
//! 2. *Tasks or schedulers leave*: jobs are completed; others only gain. Their use of the CPU
//!    counts on until it has been idle.
//! 3. *One constraint covers the other* (no more work, no more often, no earlier deadline, no other
//!    priority): old and new jobs together are legal jobs of the larger one. At zero lag.
//! 4. *Bandwidth decides*: a CPU under EDF whose deadlines are no earlier than the periods, without
//!    jitter, sections, suspension or reserves. At zero lag, and at once for tasks that join: no
//!    interval holds more than its length times a utilization of at most 1. Each task counts at its
//!    largest (Liu and Layland 1973; Buttazzo, Lipari, Caccamo and Abeni 2002).
//! 5. *Both fit*: the system is admitted with all old and new tasks and schedulers together. A task
//!    that moves does so between two of its jobs, each of which one scheduler orders. At zero lag.
//! 6. Else, and when a server or a policy changes, when the CPU is idle: no busy window holds jobs
//!    of both (Real and Crespo 2004, the idle-time protocol). A change inside one supply waits for
//!    the scheduler with that supply alone (`node`).
//!
//! A transfer of budget is two systems at once (`lent`): once with what is borrowed, and once more
//! with what is left to the lender.
//!
//! # Assumptions
//! 1. The system before the change is admitted; those of the tests.
//! 2. Jobs released before the change are completed under the old constraint, as in `kern`.

mod lent;
mod lives;
mod node;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{
    Class, CpuId, Ns, PolicyKind, Requirement, SchedulerId, Span, Stage, System, Task,
};

use crate::admit::{admit, admit_without_slack, bounds_of_tasks, bounds_only, is_admitted};
use crate::error::AnalysisError;
use crate::verdict::Verdict;
use lent::Lent;
use lives::{Lives, Places};

/// From when on a change keeps every promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// From the instant at which it is requested.
    AtOnce,
    /// From the zero-lag instant of the tasks that change.
    ZeroLag,
    /// From an instant at which a scheduler is idle ([`Transition::idle`]): no earlier one is known
    /// to be safe.
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
    /// The scheduler that has to be idle where something has to be; `None`: the CPU's own.
    pub idle: Option<String>,
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

/// Judges that a running system becomes `after`, and says from when on it may. `past` are the
/// systems that may still have an effect, oldest first; the last one runs. Costs one admission
/// and, unless something only joins, one or two more without slack and fixes.
///
/// Tasks that arrive together go in the order of the systems: those of the oldest first, then those
/// that came later.
///
/// # Errors
///
/// As [`admit`] of each system; [`AnalysisError::Invalid`] without a system before, and when more
/// than a join comes to one that is refused. The same when the machine, a resource or a requirement
/// of tasks that stay is another one.
pub fn admit_transition(past: &[System], after: System) -> Result<Transition, AnalysisError> {
    admit_by(past, after, admit)
}

/// As [`admit_transition`], for those who want no slack: a verdict that admits has none. Costs the
/// bounds of the system, which are a small part of all that slack tries. A refusal costs as much as
/// there.
///
/// # Errors
///
/// As for [`admit_transition`].
pub fn admit_transition_bounds(
    past: &[System],
    after: System,
) -> Result<Transition, AnalysisError> {
    admit_by(past, after, admit_without_slack)
}

/// Says of a system whether it is admitted, and why, as [`admit`] does, with or without slack and
/// fixes.
pub type Judge = fn(&System) -> Result<Verdict, AnalysisError>;

fn admit_by(past: &[System], after: System, admit: Judge) -> Result<Transition, AnalysisError> {
    let invalid = |what: &str| AnalysisError::Invalid { what: what.into() };
    let before = past.last();
    let before = before.ok_or_else(|| invalid("no system before the change"))?;
    for old in past {
        if let Some(what) = of_another_kind(old, &after) {
            return Err(invalid(what));
        }
    }
    if !Difference::between(before, &after).only_joins() && !is_admitted(before)? {
        return Err(invalid("the system is refused already, before the change"));
    }
    let places = lives::places(past.iter().chain([&after]));
    judge(past, after, &places, admit)
}

/// Judges the changes that a system declares, one after the other, from the system at the start
/// ([`Stage::at_start`]), by the same rules as [`admit_transition`]. A refused change does not take
/// place, and later changes are judged without it.
///
/// # Errors
///
/// As for [`admit`].
pub fn admit_changes(system: &System) -> Result<Vec<Transition>, AnalysisError> {
    admit_changes_by(system, admit)
}

/// As [`admit_changes`], each system by this judge: for those who want no slack
/// ([`admit_without_slack`]), and no fixes either ([`bounds_only`]).
///
/// # Errors
///
/// As for [`admit`].
pub fn admit_changes_by(system: &System, judge: Judge) -> Result<Vec<Transition>, AnalysisError> {
    let places = lives::places([system]);
    let mut stage = Stage::at_start(system);
    let mut past = vec![stage.system()];
    let mut refused = if system.changes.is_empty() || is_admitted(&past[0])? {
        None
    } else {
        Some("the system is refused already, before the change".to_string())
    };
    let mut transitions = Vec::new();
    let mut lent = Lent::default();
    for (place, change) in system.changes.iter().enumerate() {
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
                    idle: None,
                    ground,
                    system,
                    verdict,
                    meanwhile: Vec::new(),
                }
            }
            None => {
                let new = lent::loans(&stage, (place, change));
                lent.judge((&past, &new), next.system(), &places, judge)?
            }
        };
        if transition.when != When::Never {
            lent.follow(&mut past, &transition, lent::loans(&stage, (place, change)));
            stage = next;
        } else if refused.is_none() && !is_admitted(&stage.system())? {
            refused = Some("the system is refused already, before the change".to_string());
        }
        transitions.push(transition);
    }
    Ok(transitions)
}

/// Judges what `after` changes of the last system of `past`.
fn judge(
    past: &[System],
    after: System,
    places: &Places,
    admit: Judge,
) -> Result<Transition, AnalysisError> {
    let verdict = admit(&after)?;
    let mut transition = Transition {
        when: When::Never,
        idle: None,
        ground: String::new(),
        system: after,
        verdict,
        meanwhile: Vec::new(),
    };
    let after = &transition.system;
    match past.last() {
        Some(before) if transition.verdict.admitted => {
            let what = Difference::between(before, after);
            let (when, ground, meanwhile) = allowed(past, after, (&what, places))?;
            if when == When::Idle {
                transition.idle = node::to_be_idle(past, after, &what);
            }
            (transition.when, transition.ground) = (when, ground);
            transition.meanwhile = meanwhile;
        }
        _ => {
            let first = transition.verdict.refusals.first();
            let why = first.map_or("it is refused", |r| r.reason.as_str());
            transition.ground = why.to_string();
        }
    }
    Ok(transition)
}

/// A difference that is no change of a running system: no rule is about it.
fn of_another_kind(before: &System, after: &System) -> Option<&'static str> {
    // Requirements come and go with their tasks.
    let required = |system: &System, other: &System| {
        let there = |name: &String| other.tasks.iter().any(|task| task.name == *name);
        let named = system.requirements.iter().map(|requirement| {
            let (kind, within) = match requirement {
                Requirement::Response { within, .. } => (0_u8, *within),
                Requirement::Chain { within, .. } => (1, *within),
                Requirement::Jitter { within, .. } => (2, *within),
            };
            (kind, lives::names_of(system, requirement.tasks()), within)
        });
        let stay = named.filter(|(_, names, _)| names.iter().all(there));
        stay.collect::<Vec<_>>()
    };
    if before.machine != after.machine {
        Some("the machine is another one after the change: a running system keeps its machine")
    } else if before.resources != after.resources {
        Some("the resources are others after the change: a running system keeps its resources")
    } else if required(before, after) != required(after, before) {
        Some("requirements are others after the change, of tasks that stay: keep them as they are")
    } else {
        None
    }
}

type Bounds = Vec<(String, Option<Span<Ns>>)>;

fn allowed(
    past: &[System],
    after: &System,
    (what, places): (&Difference, &Places),
) -> Result<(When, String, Bounds), AnalysisError> {
    if let Some(ground) = what.must_wait() {
        return Ok((When::Idle, ground.into(), Vec::new()));
    }
    let remains = what.retimed.is_none() && what.moved.is_none();
    if remains && !what.joins {
        let ground = match what.leaves {
            true => "a task that leaves completes its jobs, and others only gain",
            false => "the order stays, whose code keeps it",
        };
        return Ok((When::AtOnce, ground.into(), Vec::new()));
    }
    let joins = "what joins may arrive for the first time at any instant";
    if what.only_joins() && past.len() == 1 && after.free_phases {
        // All that counts is in the system after it.
        return Ok((When::AtOnce, joins.into(), Vec::new()));
    }
    let lives = Lives::of(past, after, places);
    let changed = what.retimed.as_ref().or(what.moved.as_ref());
    let alone = what.names().all(|name| stands_alone(after, name));
    let bandwidth = by_bandwidth(past, after, &lives, what);
    let by_bandwidth = || {
        let (when, ground) = match remains {
            true => (
                When::AtOnce,
                "bandwidth decides here, and that of what joins is free",
            ),
            false => (
                When::ZeroLag,
                "bandwidth decides here, and that of the old constraint is free at zero lag",
            ),
        };
        (when, ground.into(), deadlines(past, after, &what.cpus))
    };
    if bandwidth && !remains && !lives.covered() {
        return Ok(by_bandwidth());
    }
    let union = lives.union(after).filter(|_| alone);
    if let Some(union) = union
        && is_admitted(&union).unwrap_or(false)
        && let Ok(together) = bounds_of_tasks(&union)
    {
        let meanwhile = lives.bounds(&together);
        let (when, ground) = match (&what.moved, remains) {
            (_, true) => (When::AtOnce, joins),
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
    leaves: bool,
    /// The first task that joins, that gets another constraint, that moves.
    joined: Option<String>,
    retimed: Option<String>,
    moved: Option<String>,
    /// Every task that gets another constraint or moves.
    changed: Vec<String>,
    supply: bool,
    /// A scheduler, or a CPU's own, orders by another policy.
    reordered: bool,
    /// Where anything is different.
    cpus: Vec<CpuId>,
    /// The schedulers, by name, that have or had something different in their care; `None`: the
    /// CPU's own.
    homes: Vec<Option<String>>,
}

/// The part of that name; most have the same place in both systems.
fn find<T>(list: &[T], at: usize, is_it: impl Fn(&T) -> bool) -> Option<&T> {
    let there = list.get(at).filter(|part| is_it(part));
    there.or_else(|| list.iter().find(|part| is_it(part)))
}

impl Difference {
    fn between(before: &System, after: &System) -> Difference {
        let mut found = Difference {
            joins: false,
            leaves: false,
            joined: None,
            retimed: None,
            moved: None,
            changed: Vec::new(),
            supply: false,
            reordered: false,
            cpus: Vec::new(),
            homes: Vec::new(),
        };
        found.compare_tasks(before, after);
        found.compare_schedulers(before, after);
        found.compare_cpus(before, after);
        found.cpus.sort_unstable();
        found.cpus.dedup();
        found.homes.sort_unstable();
        found.homes.dedup();
        found
    }

    fn note(&mut self, system: &System, cpu: CpuId, home: Option<SchedulerId>) {
        self.cpus.push(cpu);
        self.homes.push(name_of(system, home).map(String::from));
    }

    fn compare_tasks(&mut self, before: &System, after: &System) {
        for (at, task) in after.tasks.iter().enumerate() {
            let Some(old) = find(&before.tasks, at, |t| t.name == task.name) else {
                self.joins = true;
                self.joined.get_or_insert(task.name.clone());
                self.note(after, task.cpu, task.scheduler);
                continue;
            };
            let homes = name_of(before, old.scheduler) != name_of(after, task.scheduler);
            let moved = homes || old.cpu != task.cpu;
            let waits = || lives::waits(before, old) == lives::waits(after, task);
            let retimed = !lives::is_equal(old, task) || !waits();
            if moved {
                self.moved.get_or_insert(task.name.clone());
            }
            if retimed {
                self.retimed.get_or_insert(task.name.clone());
            }
            if moved || retimed {
                self.changed.push(task.name.clone());
                self.note(before, old.cpu, old.scheduler);
                self.note(after, task.cpu, task.scheduler);
            }
        }
        for (at, old) in before.tasks.iter().enumerate() {
            if find(&after.tasks, at, |t| t.name == old.name).is_none() {
                self.leaves = true;
                self.note(before, old.cpu, old.scheduler);
            }
        }
    }

    fn compare_cpus(&mut self, before: &System, after: &System) {
        let cpus = before.cpus.iter().zip(&after.cpus).zip((0..).map(CpuId));
        for (_, cpu) in cpus.filter(|((old, new), _)| old.policy != new.policy) {
            self.reordered = true;
            self.note(after, cpu, None);
        }
    }

    fn compare_schedulers(&mut self, before: &System, after: &System) {
        for (at, scheduler) in after.schedulers.iter().enumerate() {
            match find(&before.schedulers, at, |s| s.name == scheduler.name) {
                None => self.joins = true,
                Some(old) if lives::is_same_scheduler(old, scheduler) => continue,
                Some(old) if (old.policy, &old.code) != (scheduler.policy, &scheduler.code) => {
                    // What is inside changes, and nothing of its supply.
                    self.reordered = true;
                    let id = SchedulerId(u16::try_from(at).unwrap_or(u16::MAX));
                    self.note(after, scheduler.cpu, Some(id));
                    continue;
                }
                Some(_) => self.supply = true,
            }
            self.note(after, scheduler.cpu, scheduler.parent);
        }
        for (at, old) in before.schedulers.iter().enumerate() {
            if find(&after.schedulers, at, |s| s.name == old.name).is_none() {
                self.leaves = true;
                self.note(before, old.cpu, old.parent);
            }
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.changed.iter().map(String::as_str)
    }

    /// Why nothing but an idle instant will do, whatever else changes.
    fn must_wait(&self) -> Option<&'static str> {
        match (self.reordered, self.supply) {
            (true, _) => Some("nobody knows a bound for a busy window that two policies order"),
            (false, true) => {
                Some("what is below a server counts on one supply through its whole busy window")
            }
            (false, false) => None,
        }
    }

    /// Whether all that was there stays as it was.
    fn only_joins(&self) -> bool {
        self.changed.is_empty() && !self.leaves && !self.supply && !self.reordered
    }
}

/// The name of a scheduler below the CPU's own.
fn name_of(system: &System, id: Option<SchedulerId>) -> Option<&str> {
    let scheduler = system.schedulers.get(id?.index())?;
    Some(&scheduler.name)
}

/// Deadlines hold by bandwidth; no shorter response does, also for jobs of tasks that have left or
/// had other deadlines.
fn deadlines(past: &[System], after: &System, cpus: &[CpuId]) -> Bounds {
    let mut bounds = Bounds::new();
    let tasks = past.iter().chain([after]).flat_map(|system| &system.tasks);
    for task in tasks.filter(|task| cpus.contains(&task.cpu)) {
        let own = task.class.relative_deadline();
        match bounds.iter_mut().find(|(name, _)| *name == task.name) {
            Some((_, bound)) => *bound = bound.zip(own).map(|(a, b)| a.max(b)),
            None => bounds.push((task.name.clone(), own)),
        }
    }
    bounds
}

/// Rule 4, on the CPUs that change.
fn by_bandwidth(past: &[System], after: &System, lives: &Lives, what: &Difference) -> bool {
    let plain = |cpu: CpuId| {
        let systems = || past.iter().chain([after]);
        systems().all(|system| bandwidth_decides(system, cpu)) && lives.fit(cpu)
    };
    what.moved.is_none() && what.cpus.iter().all(|&cpu| plain(cpu))
}

/// Whether bandwidth alone decides on this CPU: the earliest deadline goes first, no deadline is
/// earlier than the period, and nothing else takes time or is asked for.
pub fn bandwidth_decides(system: &System, cpu: CpuId) -> bool {
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
