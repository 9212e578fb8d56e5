//! The parts of a system that are there after some of its changes, and their terms.

mod delegate;
mod policy;
mod supply;
mod transfer;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::change::{Change, Mistake, Step, Subject, Terms};
use crate::id::{CpuId, SchedulerId, TaskId};
use crate::scheduler::{PolicyKind, Scheduler, Trust};
use crate::system::{Cpu, Requirement, System};
use crate::task::{Class, Task};

/// Which parts of a system are there, and on which terms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stage<'a> {
    declared: &'a System,
    /// Each as it is now; `None`: it is not there.
    tasks: Vec<Option<Task>>,
    schedulers: Vec<Option<Scheduler>>,
    /// Each with its policy of now.
    cpus: Vec<Cpu>,
    /// Of each task: the scheduler that has it in its care, also while it is not there, when it
    /// counts in quotas all the same.
    homes: Vec<Option<SchedulerId>>,
    /// Of each task: whether it has been there, and so may have left a job behind.
    came: Vec<bool>,
    /// How often each scheduler has come after the beginning.
    joined: Vec<u32>,
    changed: bool,
}

impl<'a> Stage<'a> {
    /// The system at the start: without what a change starts before any stops it. O(size).
    pub fn at_start(system: &'a System) -> Stage<'a> {
        let mut stage = Stage {
            declared: system,
            tasks: system.tasks.iter().cloned().map(Some).collect(),
            schedulers: system.schedulers.iter().cloned().map(Some).collect(),
            cpus: system.cpus.clone(),
            homes: Vec::new(),
            came: Vec::new(),
            joined: alloc::vec![0; system.schedulers.len()],
            changed: false,
        };
        // The first of several changes decides.
        for step in system.changes.iter().rev().flat_map(|change| &change.steps) {
            let (tasks, schedulers) = (&system.tasks, &system.schedulers);
            match *step {
                Step::Start(id) => set(&mut stage.tasks, id.index(), None),
                Step::Stop(id) => {
                    let declared = tasks.get(id.index()).cloned();
                    set(&mut stage.tasks, id.index(), declared);
                }
                Step::Join(id) => set(&mut stage.schedulers, id.index(), None),
                Step::Leave(id) => {
                    let declared = schedulers.get(id.index()).cloned();
                    set(&mut stage.schedulers, id.index(), declared);
                }
                _ => {}
            }
        }
        stage.came = stage.tasks.iter().map(Option::is_some).collect();
        let home = |task: &Task| {
            let mut up = stage.above(stage.care(task.scheduler));
            up.find(|id| stage.scheduler(*id).is_some())
        };
        stage.homes = system.tasks.iter().map(home).collect();
        stage
    }

    /// A scheduler and those above it.
    fn above(&self, from: Option<SchedulerId>) -> impl Iterator<Item = SchedulerId> + use<'a> {
        let schedulers = &self.declared.schedulers;
        let parent = |id: &SchedulerId| schedulers.get(id.index())?.parent;
        core::iter::successors(from, parent).take(schedulers.len())
    }

    /// A part that is there while the scheduler that orders it, or that holds it, is not, and that
    /// scheduler. O(size).
    pub fn homeless(&self) -> Option<(Subject, SchedulerId)> {
        let gone = |id: &SchedulerId| self.scheduler(*id).is_none();
        let tasks = (0..).map(TaskId).zip(&self.tasks);
        let tasks = tasks.filter_map(|(id, task)| {
            let home = task.as_ref()?.scheduler.filter(gone)?;
            Some((Subject::Task(id), home))
        });
        let schedulers = (0..).map(SchedulerId).zip(&self.schedulers);
        let schedulers = schedulers.filter_map(|(id, scheduler)| {
            let parent = scheduler.as_ref()?.parent.filter(gone);
            let holder = || self.care(Some(id)).filter(gone);
            Some((Subject::Scheduler(id), parent.or_else(holder)?))
        });
        tasks.chain(schedulers).next()
    }

    /// A task as it is now; `None`: it is not there.
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(id.index())?.as_ref()
    }

    /// A scheduler as it is now; `None`: it is not there.
    pub fn scheduler(&self, id: SchedulerId) -> Option<&Scheduler> {
        self.schedulers.get(id.index())?.as_ref()
    }

    /// How often a scheduler has come since the beginning.
    pub fn times_joined(&self, id: SchedulerId) -> u32 {
        self.joined.get(id.index()).copied().unwrap_or(0)
    }

    /// The system as it is now, without what is not there. After a change nobody knows how phases
    /// lie to each other. O(size).
    pub fn system(&self) -> System {
        let declared = self.declared;
        let mut schedulers = Vec::new();
        let mut places = Vec::new();
        for scheduler in &self.schedulers {
            let place = u16::try_from(schedulers.len()).unwrap_or(u16::MAX);
            places.push(scheduler.is_some().then_some(SchedulerId(place)));
            schedulers.extend(scheduler.clone());
        }
        let place = |id: SchedulerId| places.get(id.index()).copied().flatten();
        for scheduler in &mut schedulers {
            scheduler.parent = scheduler.parent.and_then(place);
        }
        let mut tasks = Vec::new();
        let mut numbers = Vec::new();
        for task in &self.tasks {
            let number = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
            numbers.push(task.is_some().then_some(TaskId(number)));
            tasks.extend(task.clone());
        }
        let number = |id: &TaskId| numbers.get(id.index()).copied().flatten();
        for task in &mut tasks {
            task.scheduler = task.scheduler.and_then(place);
            task.after = task.after.iter().filter_map(number).collect();
            task.follows = task.follows.iter().filter_map(number).collect();
        }
        let mut graphs = declared.graphs.clone();
        for graph in &mut graphs {
            let actors = graph.actors.iter_mut().map(|actor| &mut actor.tile);
            for tile in actors.chain(graph.orders.iter_mut().map(|order| &mut order.tile)) {
                tile.scheduler = tile.scheduler.and_then(place);
            }
        }
        let requirements = declared.requirements.iter();
        let gangs = declared.gangs.iter();
        System {
            graphs,
            gangs: gangs.filter_map(|gang| gang.renumbered(number)).collect(),
            cpus: self.cpus.clone(),
            schedulers,
            tasks,
            free_phases: declared.free_phases || self.changed,
            requirements: requirements.filter_map(|r| renamed(r, &number)).collect(),
            changes: Vec::new(),
            ..declared.clone()
        }
    }

    /// Does everything that belongs to a change. O(n log n · depth).
    ///
    /// # Errors
    /// Every step that means nothing; the stage is not to be used then.
    pub fn apply(&mut self, change: &Change) -> Result<(), Vec<Mistake>> {
        let mut mistakes: Vec<Mistake> = self.too_many(change).into_iter().collect();
        mistakes.extend(transfer::beside_others(change));
        let mut known: Vec<Subject> = Vec::new();
        let (before, places) = (self.schedulers.clone(), self.places());
        // The core is asked for a server before the first event of a change: what is taken back or
        // moves away in it is still there.
        let endless = change.steps.iter().map(|step| match step {
            Step::Supply(id, _) => self.above_endless(*id),
            _ => Ok(()),
        });
        let endless: Vec<_> = endless.collect();
        self.changed = true;
        for at in change.in_order(&self.declared.schedulers) {
            let step = &change.steps[at];
            let done = if known.contains(&step.subject()) {
                let name = self.name(step.subject());
                Err((
                    format!("{name} changes twice in one change"),
                    "put the second into a later change".to_string(),
                ))
            } else {
                endless[at].clone().and_then(|()| self.step(step))
            };
            known.push(step.subject());
            if let Err((message, help)) = done {
                mistakes.push(Mistake {
                    step: at,
                    message,
                    help,
                });
            }
        }
        mistakes.extend(self.bind(change, &places));
        mistakes.extend(self.too_much(change, &before));
        if mistakes.is_empty() {
            Ok(())
        } else {
            Err(mistakes)
        }
    }

    /// Its kind and its name, for messages.
    pub fn name(&self, subject: Subject) -> String {
        let (kind, name) = match subject {
            Subject::Task(id) => ("task", self.declared.tasks.get(id.index()).map(|t| &t.name)),
            Subject::Scheduler(id) => (
                match self.receiver(id) {
                    Some(_) => "slice",
                    None => "scheduler",
                },
                self.declared.schedulers.get(id.index()).map(|s| &s.name),
            ),
            Subject::Cpu(id) => ("CPU", self.declared.cpus.get(id.index()).map(|c| &c.name)),
        };
        format!("{kind} `{}`", name.map_or("", |name| name.as_str()))
    }

    fn step(&mut self, step: &Step) -> Result<(), (String, String)> {
        self.is_free(step)?;
        let name = self.name(step.subject());
        let comes = matches!(step, Step::Start(_) | Step::Join(_));
        let is_there = match step.subject() {
            Subject::Task(id) => self.task(id).is_some(),
            Subject::Scheduler(id) => self.scheduler(id).is_some(),
            Subject::Cpu(_) => true,
        };
        if comes && is_there {
            return mistake(
                format!("{name} is there already"),
                "a part that is to come later must not have been started before",
            );
        }
        if !comes && !is_there {
            return mistake(
                format!("{name} is not there at that time"),
                "have an earlier change start it",
            );
        }
        match step {
            Step::Join(id) => self.join(*id, &name),
            Step::Leave(id) => self.leave(*id, &name),
            Step::Supply(id, server) => self.supply(*id, *server, &name),
            Step::Reorder(id, policy, code) => self.reorder(*id, (*policy, code.as_ref()), &name),
            Step::ReorderCpu(id, policy) => self.reorder_cpu(*id, *policy, &name),
            Step::Constrain(id, terms) => self.constrain(*id, terms, &name),
            Step::Move(id, to) => self.move_to(*id, *to, &name),
            Step::Transfer { from, to, budget } => self.transfer((*from, *to), *budget, &name),
            Step::Stop(id) => {
                self.tasks[id.index()] = None;
                Ok(())
            }
            Step::Start(id) => {
                let task = self.declared.tasks[id.index()].clone();
                let home = self.care(task.scheduler);
                if let Some(home) = home {
                    self.must_be_there(home, &name)?;
                }
                self.settle(*id, home, &name)?;
                self.came[id.index()] = true;
                self.tasks[id.index()] = Some(task);
                Ok(())
            }
        }
    }

    /// Whether nothing that is fixed at the start ties the task of a step to others.
    fn is_free(&self, step: &Step) -> Result<(), (String, String)> {
        let system = self.declared;
        let id = match step.subject() {
            Subject::Task(id) => id,
            Subject::Scheduler(id) if system.schedulers.get(id.index()).is_some() => return Ok(()),
            Subject::Scheduler(_) => {
                return mistake(
                    "there is no such scheduler".into(),
                    "name a declared scheduler",
                );
            }
            Subject::Cpu(CpuId(cpu)) if usize::from(cpu) < self.cpus.len() => return Ok(()),
            Subject::Cpu(_) => return mistake("there is no such CPU".into(), "name a listed CPU"),
        };
        self.is_untied(id)
    }

    fn is_untied(&self, id: TaskId) -> Result<(), (String, String)> {
        let system = self.declared;
        let Some(task) = system.tasks.get(id.index()) else {
            return mistake("there is no such task".into(), "name a declared task");
        };
        let name = self.name(Subject::Task(id));
        if !task.uses.is_empty() {
            return mistake(
                format!("{name} locks resources, whose ceilings hold for the whole run"),
                "let tasks come, go and change that lock none",
            );
        }
        let waits = |t: &Task| t.after.contains(&id) || t.follows.contains(&id);
        let waited_for = system.tasks.iter().any(waits);
        if waited_for || !task.after.is_empty() || !task.follows.is_empty() {
            return mistake(
                format!("{name} stands in a precedence, which holds for the whole run"),
                "let tasks come, go and change that wait for none and that none waits for",
            );
        }
        let chained = system.requirements.iter().any(|r| match r {
            Requirement::Chain { tasks, .. } => tasks.contains(&id),
            Requirement::Response { .. } | Requirement::Jitter { .. } => false,
        });
        if chained {
            return mistake(
                format!("{name} stands in a chain, which is required for the whole run"),
                "let tasks come, go and change that no chain names",
            );
        }
        Ok(())
    }

    fn must_be_there(&self, id: SchedulerId, name: &str) -> Result<(), (String, String)> {
        if self.scheduler(id).is_some() {
            return Ok(());
        }
        let home = self.name(Subject::Scheduler(id));
        mistake(
            format!("{name} is to be ordered by {home}, which is not there at that time"),
            "start the scheduler in the same change, or in an earlier one",
        )
    }

    fn join(&mut self, id: SchedulerId, name: &str) -> Result<(), (String, String)> {
        let scheduler = self.declared.schedulers[id.index()].clone();
        self.may_delegate(id, name)?;
        self.has_no_slots(&scheduler, name)?;
        has_no_fallback(&scheduler, name)?;
        if let Some(parent) = scheduler.parent {
            self.must_be_there(parent, name)?;
        }
        if scheduler.trust == Trust::OwnTime && self.joined[id.index()] > 0 {
            return mistake(
                format!("{name} decides on its own supply, and would come a second time"),
                "declare a second scheduler",
            );
        }
        self.joined[id.index()] += 1;
        self.schedulers[id.index()] = Some(scheduler);
        Ok(())
    }

    fn has_no_slots(&self, scheduler: &Scheduler, name: &str) -> Result<(), (String, String)> {
        let above = match scheduler.parent {
            Some(parent) => self
                .declared
                .schedulers
                .get(parent.index())
                .map(|s| s.policy),
            None => self
                .declared
                .cpus
                .get(scheduler.cpu.index())
                .map(|c| c.policy),
        };
        if matches!(above, Some(PolicyKind::Tdm { .. })) {
            return mistake(
                format!("{name} stands in the table of its parent, which is constant"),
                "let its tasks come and go instead",
            );
        }
        Ok(())
    }

    fn leave(&mut self, id: SchedulerId, name: &str) -> Result<(), (String, String)> {
        if let Some(scheduler) = self.scheduler(id) {
            self.has_no_slots(scheduler, name)?;
            has_no_fallback(scheduler, name)?;
        }
        let tasks = self.tasks.iter().zip(&self.homes);
        let mut tasks = tasks.filter(|(_, home)| **home == Some(id));
        let task = tasks.find_map(|(task, _)| task.as_ref());
        let known = (0..).map(SchedulerId).zip(&self.schedulers);
        let mut known = known.filter_map(|(id, s)| Some((id, s.as_ref()?)));
        let is_its = |other: SchedulerId, s: &Scheduler| {
            s.parent == Some(id) || other != id && self.care(Some(other)) == Some(id)
        };
        let child = known.find(|(other, s)| is_its(*other, s));
        let left = task.map(|t| format!("task `{}`", t.name));
        let left = left.or(child.map(|(id, _)| self.name(Subject::Scheduler(id))));
        if let Some(left) = left {
            return mistake(
                format!("{name} goes while {left} is in its care"),
                "stop, move or take back that in the same change, or in an earlier one",
            );
        }
        for home in self.homes.iter_mut().filter(|home| **home == Some(id)) {
            *home = self.declared.schedulers[id.index()].parent;
        }
        self.schedulers[id.index()] = None;
        Ok(())
    }

    /// A task finds a home where there is room for it, now that it comes or moves.
    fn settle(
        &mut self,
        id: TaskId,
        to: Option<SchedulerId>,
        name: &str,
    ) -> Result<(), (String, String)> {
        self.homes[id.index()] = to;
        for above in self.above(to) {
            let below = |home: &&Option<SchedulerId>| self.above(**home).any(|up| up == above);
            let count = self.homes.iter().filter(below).count();
            let quota = self.declared.schedulers[above.index()].quota;
            if let Some(quota) = quota.filter(|quota| (*quota as usize) < count) {
                return Err((
                    format!(
                        "{name} finds no room below {}: a quota of {quota} for {count} tasks, \
                         with those that have stopped there",
                        self.name(Subject::Scheduler(above))
                    ),
                    format!("raise it to at least {count}"),
                ));
            }
        }
        Ok(())
    }

    fn constrain(&mut self, id: TaskId, terms: &Terms, name: &str) -> Result<(), (String, String)> {
        let Some(task) = self.tasks[id.index()].as_mut() else {
            return Ok(());
        };
        let class = task.class;
        let again = match class {
            Class::Once { .. } => Some("arrives once: with other terms it would arrive again"),
            Class::Aperiodic => Some("never ends: with other terms its work would begin anew"),
            Class::Periodic { .. } | Class::Sporadic { .. } | Class::Reservation { .. } => None,
        };
        if let Some(again) = again {
            return mistake(
                format!("{name} {again}"),
                "stop it, and start another task on those terms",
            );
        }
        if terms.relative_deadline.is_some() && matches!(class, Class::Reservation { .. }) {
            return mistake(
                format!("the deadline of {name}, a reservation, is its period"),
                "change the period",
            );
        }
        *task = terms.of_task(task);
        Ok(())
    }

    fn move_to(
        &mut self,
        id: TaskId,
        to: Option<SchedulerId>,
        name: &str,
    ) -> Result<(), (String, String)> {
        if let Some(to) = to {
            self.must_be_there(to, name)?;
        }
        let policy = |cpu, home: Option<SchedulerId>| match home {
            Some(home) => self.scheduler(home).map(|s| (s.cpu, s.policy)),
            None => self
                .cpus
                .get(usize::from(cpu))
                .map(|c| (crate::CpuId(cpu), c.policy)),
        };
        let Some(task) = self.task(id) else {
            return Ok(());
        };
        let (from, cpu) = (self.homes[id.index()], task.cpu);
        self.may_move(id, to, name)?;
        if from == to {
            return mistake(
                format!("{name} would move to where it is"),
                "leave it out, or name another scheduler",
            );
        }
        if policy(cpu.0, to).is_some_and(|(there, _)| there != cpu) {
            return mistake(
                format!("{name} would move to another CPU"),
                "name a scheduler of its own CPU; no thread leaves its CPU",
            );
        }
        let divides = |home| matches!(policy(cpu.0, home), Some((_, PolicyKind::Tdm { .. })));
        if divides(from) || divides(to) {
            return mistake(
                format!("{name} would move into or out of a table of slots, which is constant"),
                "move it between schedulers that do not divide time",
            );
        }
        self.settle(id, to, name)?;
        if let Some(task) = self.tasks[id.index()].as_mut() {
            task.scheduler = to;
        }
        Ok(())
    }
}

/// A fallback is prepared before the run for a scheduler that is there all the time.
fn has_no_fallback(scheduler: &Scheduler, name: &str) -> Result<(), (String, String)> {
    match scheduler.fallback {
        None => Ok(()),
        Some(_) => mistake(
            format!("{name} has a fallback, which is prepared for the whole run"),
            "let it come and go without a fallback, or be there all the time",
        ),
    }
}

fn set<T>(list: &mut [Option<T>], at: usize, value: Option<T>) {
    if let Some(place) = list.get_mut(at) {
        *place = value;
    }
}

fn mistake(message: String, help: &str) -> Result<(), (String, String)> {
    Err((message, help.to_string()))
}

/// A requirement whose tasks are all there.
fn renamed(
    requirement: &Requirement,
    number: &dyn Fn(&TaskId) -> Option<TaskId>,
) -> Option<Requirement> {
    Some(match requirement {
        Requirement::Response { task, within } => Requirement::Response {
            task: number(task)?,
            within: *within,
        },
        Requirement::Jitter { task, within } => Requirement::Jitter {
            task: number(task)?,
            within: *within,
        },
        Requirement::Chain { tasks, within } => Requirement::Chain {
            tasks: tasks.iter().map(number).collect::<Option<Vec<_>>>()?,
            within: *within,
        },
    })
}

#[cfg(test)]
mod tests;
