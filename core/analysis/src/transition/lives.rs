//! Everything that may still have an effect: tasks and schedulers since the CPU was idle
//!
//! A life is what one name stands for without a break. Its versions are the constraints and homes
//! that it has had; one that covers another stands for both. A task that goes and comes again has
//! two lives, for nothing keeps the jobs of one apart from those of the other.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use punctual_model::{
    CpuId, Ns, Requirement, Scheduler, SchedulerId, Span, Supply, System, Task, TaskId,
};

use crate::synthesis::only;
use crate::units::Work;
use crate::utilization::{Ratio, compare_with_one};
use crate::verdict::Verdict;

/// The lives of tasks and schedulers, with all that has to be admitted together.
pub(super) struct Lives {
    /// Tasks of all versions; `scheduler` counts in `schedulers`.
    tasks: Vec<Version>,
    schedulers: Vec<Scheduler>,
    requirements: Vec<Requirement>,
    /// How many lives of tasks there are.
    lives: usize,
    /// Some of it cannot be told apart from what is there: the same slots, or a precedence.
    entangled: bool,
}

/// Where each name stands in the file. Tasks that arrive together, and are as urgent, go in this
/// order, also when one of them has left.
pub(super) type Places = BTreeMap<String, usize>;

/// The names of these systems, those of the first one first.
pub(super) fn places<'a>(systems: impl IntoIterator<Item = &'a System>) -> Places {
    let mut places = Places::new();
    for task in systems.into_iter().flat_map(|system| &system.tasks) {
        let next = places.len();
        let _ = places.entry(task.name.clone()).or_insert(next);
    }
    places
}

struct Version {
    task: Task,
    /// The name in the system.
    name: String,
    life: usize,
    waits: Waits,
    /// The longest deadline of those that it stands for, where that is not its own: under EDF a job
    /// with a later deadline may take longer.
    allowed: Option<Span<Ns>>,
}

impl Version {
    /// All jobs of `small` are legal jobs of this one.
    fn stand_for(&mut self, small: &Task) {
        let (own, other) = (
            self.task.class.relative_deadline(),
            small.class.relative_deadline(),
        );
        if own != other {
            self.allowed = self.allowed.max(other);
        }
    }
}

impl Lives {
    /// Of the systems since the CPUs were idle, oldest first, and of the one to come.
    pub(super) fn of(past: &[System], after: &System, places: &Places) -> Lives {
        let version = |(life, task): (usize, &Task)| Version {
            task: task.clone(),
            name: task.name.clone(),
            life,
            waits: waits(after, task),
            allowed: None,
        };
        let mut lives = Lives {
            tasks: after.tasks.iter().enumerate().map(version).collect(),
            schedulers: after.schedulers.clone(),
            requirements: after.requirements.clone(),
            lives: after.tasks.len(),
            entangled: false,
        };
        let names = lives.tasks.iter();
        let mut open: BTreeMap<String, usize> = names.map(|v| (v.name.clone(), v.life)).collect();
        let schedulers = after.schedulers.iter().zip((0..).map(SchedulerId));
        let mut nodes: BTreeMap<String, SchedulerId> =
            schedulers.map(|(s, id)| (s.name.clone(), id)).collect();
        for old in past.iter().rev() {
            nodes.retain(|name, _| old.schedulers.iter().any(|s| s.name == *name));
            open.retain(|name, _| old.tasks.iter().any(|t| t.name == *name));
            for at in 0..old.schedulers.len() {
                let _ = lives.scheduler(old, at, &mut nodes);
            }
            for (id, task) in (0..).map(TaskId).zip(&old.tasks) {
                lives.version(old, (id, task), &mut open, &nodes);
            }
        }
        lives.put_in_order(places);
        lives
    }

    /// Puts the tasks in the order of the file, of one name the oldest first. Their numbers follow.
    fn put_in_order(&mut self, places: &Places) {
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        // The younger ones of a name were found first.
        order.sort_by_key(|&at| (places.get(&self.tasks[at].name), Reverse(at)));
        let mut numbers = vec![TaskId(0); order.len()];
        for (number, &at) in (0..).map(TaskId).zip(&order) {
            numbers[at] = number;
        }
        let tasks = core::mem::take(&mut self.tasks).into_iter();
        let mut tasks: Vec<Option<Version>> = tasks.map(Some).collect();
        self.tasks = order.iter().filter_map(|&at| tasks[at].take()).collect();
        let follow = |id: &mut TaskId| *id = numbers.get(id.index()).copied().unwrap_or(*id);
        for Version { task, .. } in &mut self.tasks {
            let ids = task.after.iter_mut().chain(&mut task.follows);
            ids.for_each(follow);
        }
        for requirement in &mut self.requirements {
            match requirement {
                Requirement::Response { task, .. } | Requirement::Jitter { task, .. } => {
                    follow(task);
                }
                Requirement::Chain { tasks, .. } => tasks.iter_mut().for_each(follow),
            }
        }
    }

    /// The number here of a scheduler of `old`.
    fn scheduler(
        &mut self,
        old: &System,
        at: usize,
        nodes: &mut BTreeMap<String, SchedulerId>,
    ) -> Option<SchedulerId> {
        let scheduler = old.schedulers.get(at)?;
        if let Some(known) = nodes.get(&scheduler.name) {
            return Some(*known);
        }
        let parent = match scheduler.parent {
            Some(parent) => Some(self.scheduler(old, parent.index(), nodes)?),
            None => None,
        };
        self.entangled |= matches!(scheduler.supply, Supply::Slots(_));
        let id = SchedulerId(u16::try_from(self.schedulers.len()).unwrap_or(u16::MAX));
        self.schedulers.push(Scheduler {
            name: format!("{} (before, {})", scheduler.name, id.0),
            parent,
            quota: None,
            receiver: None,
            ..scheduler.clone()
        });
        nodes.insert(scheduler.name.clone(), id);
        Some(id)
    }

    fn version(
        &mut self,
        old: &System,
        (id, task): (TaskId, &Task),
        open: &mut BTreeMap<String, usize>,
        nodes: &BTreeMap<String, SchedulerId>,
    ) {
        let home = task.scheduler.and_then(|id| old.schedulers.get(id.index()));
        let home = home.and_then(|home| nodes.get(&home.name).copied());
        let waits = waits(old, task);
        let mut task = Task {
            scheduler: home,
            ..task.clone()
        };
        let name = task.name.clone();
        if let Some(&life) = open.get(&name) {
            for version in self.tasks.iter_mut().filter(|v| v.life == life) {
                let alike = version.task.scheduler == home && version.waits == waits;
                if alike && is_equal(&version.task, &task) {
                    return;
                }
                if alike && covers(&version.task, &task) {
                    return version.stand_for(&task);
                }
                if alike && covers(&task, &version.task) {
                    task.name.clone_from(&version.task.name);
                    // The same tasks may have other numbers in the older system.
                    task.after.clone_from(&version.task.after);
                    task.follows.clone_from(&version.task.follows);
                    let covered = core::mem::replace(&mut version.task, task);
                    return version.stand_for(&covered);
                }
            }
        }
        let life = *open.entry(name.clone()).or_insert_with(|| {
            self.lives += 1;
            self.lives - 1
        });
        self.entangled |=
            !(task.slots.is_empty() && task.after.is_empty() && task.follows.is_empty());
        let number = TaskId(u32::try_from(self.tasks.len()).unwrap_or(u32::MAX));
        task.name = format!("{name} (before, {})", number.0);
        for mut requirement in old.requirements.iter().cloned() {
            if let Requirement::Response { task, .. } | Requirement::Jitter { task, .. } =
                &mut requirement
                && *task == id
            {
                *task = number;
                self.requirements.push(requirement);
            }
        }
        self.tasks.push(Version {
            task,
            name,
            life,
            waits,
            allowed: None,
        });
    }

    /// Whether each life has one version, which covers all that it has been.
    pub(super) fn covered(&self) -> bool {
        self.tasks.len() == self.lives
    }

    /// The system with all of it together; `None` where that means nothing.
    pub(super) fn union(&self, after: &System) -> Option<System> {
        (!self.entangled).then(|| System {
            tasks: self.tasks.iter().map(|v| v.task.clone()).collect(),
            schedulers: self.schedulers.clone(),
            requirements: self.requirements.clone(),
            // Nothing else executes on their tiles: they are judged in the system to come.
            graphs: Vec::new(),
            // Its tasks have other numbers, and members of gangs do not change.
            gangs: Vec::new(),
            free_phases: true,
            ..after.clone()
        })
    }

    /// The longest responses in the system of all together, by the name of the task.
    pub(super) fn bounds(&self, together: &Verdict) -> Vec<(String, Option<Span<Ns>>)> {
        let mut bounds: Vec<(String, Option<Span<Ns>>)> = Vec::new();
        for (version, row) in self.tasks.iter().zip(&together.tasks) {
            let longest = |bound: Span<Ns>| bound.max(version.allowed.unwrap_or_default());
            let own = row.response_bound.map(longest);
            match bounds.iter_mut().find(|(name, _)| *name == version.name) {
                Some((_, bound)) => {
                    *bound = bound.zip(own).map(|(a, b)| a.max(b));
                }
                None => bounds.push((version.name.clone(), own)),
            }
        }
        bounds
    }

    /// Whether the largest shares of all lives on this CPU fit into it.
    pub(super) fn fit(&self, cpu: CpuId) -> bool {
        let mut shares: Vec<Option<Ratio>> = vec![None; self.lives];
        for version in self.tasks.iter().filter(|v| v.task.cpu == cpu) {
            let Some((work, separation, _)) = terms(&version.task) else {
                continue;
            };
            let share = Ratio::of(work, separation);
            let largest = &mut shares[version.life];
            if largest.is_none_or(|largest| larger(share, largest)) {
                *largest = Some(share);
            }
        }
        let sum = compare_with_one(shares.iter().copied().flatten());
        sum != core::cmp::Ordering::Greater
    }
}

fn larger(a: Ratio, b: Ratio) -> bool {
    let product = |x: u64, y: u64| u128::from(x) * u128::from(y);
    product(a.numerator, b.denominator) > product(b.numerator, a.denominator)
}

/// The predecessors of a task by name, those of `after` and of `follows`: numbers mean nothing in
/// another system.
pub(super) type Waits = [Vec<String>; 2];

/// The predecessors of a task of this system.
pub(super) fn waits(system: &System, task: &Task) -> Waits {
    [&task.after, &task.follows].map(|ids| names_of(system, ids))
}

/// The names of tasks, in order.
pub(super) fn names_of(system: &System, ids: &[TaskId]) -> Vec<String> {
    let tasks = ids.iter().filter_map(|id| system.tasks.get(id.index()));
    tasks.map(|task| task.name.clone()).collect()
}

/// Whether nothing that the analysis counts is different, but for the home and [`Waits`].
pub(super) fn is_equal(a: &Task, b: &Task) -> bool {
    let same = Task {
        name: a.name.clone(),
        scheduler: a.scheduler,
        phase: a.phase,
        importance: a.importance,
        arrivals: a.arrivals.clone(),
        work: a.work.clone(),
        after: a.after.clone(),
        follows: a.follows.clone(),
        ..b.clone()
    };
    same == *a
}

/// Whether nothing is different but the number of the parent, and other code for the same order
/// where that follows from what is ready alone.
pub(super) fn is_same_scheduler(a: &Scheduler, b: &Scheduler) -> bool {
    let mut same = Scheduler {
        parent: a.parent,
        ..b.clone()
    };
    if b.policy.knows_no_past() {
        same.code = a.code.clone();
    }
    same == *a
}

/// Whether all jobs of `small`, and jobs of both with the separation of either between them, are
/// legal jobs of `large`, which has the same home and waits for the same tasks.
fn covers(large: &Task, small: &Task) -> bool {
    let Some((work, separation, deadline)) = terms(large) else {
        return false;
    };
    let Some((less, rarer, later)) = terms(small) else {
        return false;
    };
    let alike = large.cpu == small.cpu
        && large.priority == small.priority
        && large.uses == small.uses
        && large.slots == small.slots
        && large.on_overrun == small.on_overrun;
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
pub(super) fn terms(task: &Task) -> Option<(Work, crate::units::Span, crate::units::Span)> {
    let (budget, separation) = (task.class.budget()?, task.class.min_separation()?);
    Some((budget, separation, task.class.relative_deadline()?))
}

/// A part of a system.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    Task(&'a Task),
    Scheduler(&'a Scheduler),
}

impl Part<'_> {
    pub(super) fn cpu(self) -> CpuId {
        match self {
            Part::Task(task) => task.cpu,
            Part::Scheduler(scheduler) => scheduler.cpu,
        }
    }

    /// The scheduler that orders it; `None`: the CPU's own.
    pub(super) fn home(self) -> Option<SchedulerId> {
        match self {
            Part::Task(task) => task.scheduler,
            Part::Scheduler(scheduler) => scheduler.parent,
        }
    }
}

/// The system without these parts: nothing that they were has an effect any more.
pub(super) fn erased(system: &System, is_over: impl Fn(Part<'_>) -> bool) -> System {
    let tasks = system.tasks.iter();
    let stays: Vec<bool> = tasks.map(|task| !is_over(Part::Task(task))).collect();
    let mut rest = only(system, &stays);
    let mut places = Vec::new();
    let mut kept: Vec<Scheduler> = Vec::new();
    for scheduler in &system.schedulers {
        let stays = !is_over(Part::Scheduler(scheduler));
        let place = u16::try_from(kept.len()).unwrap_or(u16::MAX);
        places.push(stays.then_some(SchedulerId(place)));
        kept.extend(stays.then(|| scheduler.clone()));
    }
    let place = |id: SchedulerId| places.get(id.index()).copied().flatten();
    for scheduler in &mut kept {
        scheduler.parent = scheduler.parent.and_then(place);
    }
    for task in &mut rest.tasks {
        task.scheduler = task.scheduler.and_then(place);
    }
    rest.schedulers = kept;
    rest
}
