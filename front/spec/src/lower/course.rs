//! The parts of a system as its changes follow each other.

use std::collections::BTreeSet;

use punctual_model::{
    Cpu, CpuId, PolicyKind, Priority, Scheduler, SchedulerId, Step, Task, TaskId,
};

use super::Names;
use super::delegate::{To, is_held_by, lower_slice, receiver};
use super::parent::Parent;
use crate::file::Named;
use crate::places::{Places, SchedulerPlaces};
use crate::record::{Node, Record, Value};
use crate::report::{Report, quote};

/// The schedulers that a change starts before any stops them. `sections` are the changes in the
/// order of time.
pub(super) fn comes_later(sections: &[Named], names: &Names) -> BTreeSet<SchedulerId> {
    let (mut known, mut later) = (BTreeSet::new(), BTreeSet::new());
    for section in sections {
        for (key, comes) in [("start", true), ("stop", false)] {
            for node in section.record.list(key) {
                let Value::Text(text) = &node.value else {
                    continue;
                };
                let name = text.strip_prefix("scheduler.");
                if let Some(&id) = name.and_then(|name| names.schedulers.get(name))
                    && known.insert(id)
                    && comes
                {
                    later.insert(id);
                }
            }
        }
    }
    later
}

/// The state of the parts between two changes.
pub(super) struct Course {
    /// Of each task: the scheduler that has it in its care.
    homes: Vec<Option<SchedulerId>>,
    /// Of each task: the one that the file states.
    declared: Vec<Option<SchedulerId>>,
    /// Of each task: whether it has a priority.
    has_priority: Vec<bool>,
    /// Each with its policy of now; slices stand behind the others.
    schedulers: Vec<Scheduler>,
    cpus: Vec<PolicyKind<punctual_model::Ns>>,
    /// Of each scheduler: whether it is a slice that is delegated.
    delegated: Vec<bool>,
    /// How many stand in the sections of their givers, or are schedulers.
    in_sections: usize,
}

impl Course {
    /// From the start on; `later` are schedulers that are not there then.
    pub(super) fn new(
        (cpus, tasks): (&[Cpu], &[Task]),
        homes: Vec<Option<SchedulerId>>,
        schedulers: &[Scheduler],
        (places, later): (&Places, &BTreeSet<SchedulerId>),
    ) -> Course {
        let delegated = schedulers.iter().map(|s| {
            let giver = s.receiver.as_ref().and(s.parent);
            giver.is_some_and(|giver| !later.contains(&giver))
        });
        let sections = places.tasks.iter();
        let has_priority = sections.map(|at| at.section.record.get("priority").is_some());
        debug_assert_eq!(tasks.len(), homes.len());
        Course {
            declared: homes.clone(),
            homes,
            has_priority: has_priority.collect(),
            delegated: delegated.collect(),
            in_sections: schedulers.len(),
            schedulers: schedulers.to_vec(),
            cpus: cpus.iter().map(|cpu| cpu.policy).collect(),
        }
    }

    /// The slices that only changes delegate.
    pub(super) fn of_changes(&self) -> &[Scheduler] {
        &self.schedulers[self.in_sections..]
    }

    pub(super) fn starts(&mut self, id: TaskId) {
        self.homes[id.index()] = self.declared[id.index()];
    }

    pub(super) fn moves(&mut self, id: TaskId, to: Option<SchedulerId>) {
        self.homes[id.index()] = to;
    }

    pub(super) fn gets_priority(&mut self, id: TaskId) {
        self.has_priority[id.index()] = true;
    }

    pub(super) fn reorders(&mut self, at: Parent, policy: PolicyKind<punctual_model::Ns>) {
        match at {
            Parent::Scheduler(id) => self.schedulers[id.index()].policy = policy,
            Parent::Cpu(id) => self.cpus[id.index()] = policy,
        }
    }

    /// The scheduler that orders a task now by fixed priority, where that has none.
    pub(super) fn demands_priority(&self, task: &Task, id: TaskId) -> Option<String> {
        let (by, policy) = match self.homes[id.index()] {
            Some(home) => {
                let home = &self.schedulers[home.index()];
                (format!("scheduler {}", quote(&home.name)), home.policy)
            }
            None => ("its CPU".to_string(), self.cpus[task.cpu.index()]),
        };
        let by_priority = matches!(policy, PolicyKind::FixedPriority { .. });
        (by_priority && !self.has_priority[id.index()]).then_some(by)
    }

    /// The first part that a scheduler orders now and that has no priority.
    pub(super) fn without_priority(
        &self,
        orderer: Parent,
        (tasks, places): (&[Task], &Places),
    ) -> Option<String> {
        let is_it = |cpu: CpuId, scheduler: Option<SchedulerId>| match orderer {
            Parent::Cpu(id) => scheduler.is_none() && cpu == id,
            Parent::Scheduler(id) => scheduler == Some(id),
        };
        let homes = self.homes.iter().zip(&self.has_priority);
        let mut lacking = tasks.iter().zip(homes);
        let task = lacking.find(|(t, (home, has))| is_it(t.cpu, **home) && !**has);
        let schedulers = self.schedulers.iter().enumerate();
        let mut schedulers = schedulers.filter(|(_, s)| is_it(s.cpu, s.parent));
        let scheduler = schedulers.find(|(at, s)| match s.receiver {
            Some(_) => self.delegated[*at] && s.priority == Priority::new(0),
            None => {
                let at = places.schedulers.get(*at);
                at.is_some_and(|at| at.section.record.get("priority").is_none())
            }
        });
        let task = task.map(|(task, _)| format!("task.{}", task.name));
        task.or(scheduler.map(|(_, s)| format!("scheduler.{}", s.name)))
    }

    /// The slices in the section of a scheduler that comes: they come with it. Or all that it has
    /// delegated, where it goes.
    pub(super) fn with_giver(&mut self, giver: SchedulerId, comes: bool) -> Vec<Step> {
        let slices = (0..).map(SchedulerId).zip(&self.schedulers);
        let slices = slices.filter(|(id, s)| {
            let from_section = !comes || id.index() < self.in_sections;
            let of_it = s.receiver.is_some() && s.parent == Some(giver);
            of_it && from_section && self.delegated[id.index()] != comes
        });
        let slices: Vec<SchedulerId> = slices.map(|(id, _)| id).collect();
        for id in &slices {
            self.delegated[id.index()] = comes;
        }
        let step = |id| {
            if comes {
                Step::Join(id)
            } else {
                Step::Leave(id)
            }
        };
        slices.into_iter().map(step).collect()
    }

    /// A slice goes into other hands: one that has been there on the same terms, or a new one. With
    /// it the places of a new one.
    pub(super) fn delegate(
        &mut self,
        giver: SchedulerId,
        record: &Record,
        (names, tasks, places): (&Names, &[Task], &Places),
        report: &mut Report<'_>,
    ) -> Option<(Step, Option<SchedulerPlaces>)> {
        let (to, mut slice) = lower_slice((giver, &self.schedulers), record, names, report)?;
        slice.receiver = Some(receiver(to, &self.homes, (tasks, &self.schedulers)));
        let same = |known: &Scheduler| {
            let name = slice.name.clone();
            let named = Scheduler {
                name,
                ..known.clone()
            };
            named == slice
        };
        if let Some(at) = self.schedulers.iter().position(same) {
            self.delegated[at] = true;
            return Some((Step::Join(number(at)), None));
        }
        let base = slice.name.clone();
        let is_taken = |name: &String| self.schedulers.iter().any(|s| s.name == *name);
        let mut more = (2..).map(|count| format!("{base}:{count}"));
        if is_taken(&base)
            && let Some(name) = more.find(|name| !is_taken(name))
        {
            slice.name = name;
        }
        let of = places.schedulers.get(giver.index())?;
        let places = SchedulerPlaces {
            section: Named {
                name: slice.name.clone(),
                name_range: record.range.clone(),
                record: Record::empty(record.range.clone()),
            },
            broken: of.broken,
            unplaced: of.unplaced,
        };
        self.schedulers.push(slice);
        self.delegated.push(true);
        Some((Step::Join(number(self.schedulers.len() - 1)), Some(places)))
    }

    /// A slice is taken back, or the mistake that there is none.
    pub(super) fn take_back(
        &mut self,
        (giver, to): (SchedulerId, To),
        node: &Node,
        tasks: &[Task],
        report: &mut Report<'_>,
    ) -> Option<Step> {
        let is_it = |at: &usize| {
            let slice = &self.schedulers[*at];
            let held = is_held_by(slice, to, (tasks, &self.schedulers));
            self.delegated[*at] && slice.parent == Some(giver) && held
        };
        let found = (0..self.schedulers.len()).find(is_it);
        let Some(at) = found else {
            let name = &self.schedulers[giver.index()].name;
            let message = format!(
                "scheduler {} has delegated no slice to that receiver by then",
                quote(name)
            );
            report.add(&node.range, message, || {
                "name the giver and the receiver as where the slice was delegated".into()
            });
            return None;
        };
        self.delegated[at] = false;
        Some(Step::Leave(number(at)))
    }
}

fn number(at: usize) -> SchedulerId {
    SchedulerId(u16::try_from(at).unwrap_or(u16::MAX))
}
