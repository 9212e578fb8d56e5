//! Where each part of a system stands in its file.

use std::ops::Range;

use punctual_model::{Fault, TaskId};

use crate::file::Named;
use crate::record::Record;

/// The places of all parts, by the numbers that the model gives them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Places {
    pub(crate) system: Record,
    pub(crate) cpus: Vec<Named>,
    pub(crate) schedulers: Vec<SchedulerPlaces>,
    pub(crate) resources: Vec<Named>,
    pub(crate) tasks: Vec<TaskPlaces>,
    pub(crate) machine: Record,
    pub(crate) reserves: Vec<Range<usize>>,
    pub(crate) requirements: Vec<Range<usize>>,
    pub(crate) run: Record,
}

/// The places of one scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SchedulerPlaces {
    pub(crate) section: Named,
    /// Whether a mistake in it has been reported.
    pub(crate) broken: bool,
    /// Whether something above it has a mistake that has been reported.
    pub(crate) unplaced: bool,
}

/// The places of one task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TaskPlaces {
    pub(crate) section: Named,
    /// Whether a harmless task stands in for it, because of a mistake that has been reported.
    pub(crate) broken: bool,
    /// Whether what orders it, or something above that, has a mistake that has been reported.
    pub(crate) unplaced: bool,
    /// Of the edges that the model has, in its order.
    pub(crate) after: Vec<Range<usize>>,
    pub(crate) follows: Vec<Range<usize>>,
}

impl Default for Places {
    fn default() -> Places {
        Places {
            system: Record::empty(0..0),
            cpus: Vec::new(),
            schedulers: Vec::new(),
            resources: Vec::new(),
            tasks: Vec::new(),
            machine: Record::empty(0..0),
            reserves: Vec::new(),
            requirements: Vec::new(),
            run: Record::empty(0..0),
        }
    }
}

impl Places {
    /// The bytes that a fault is about.
    pub(crate) fn of(&self, fault: &Fault) -> Range<usize> {
        match fault {
            Fault::System => value(&self.system, "cpus"),
            Fault::Scheduler(id, key) => self
                .schedulers
                .get(id.index())
                .map_or(0..0, |places| named(&places.section, key)),
            Fault::SchedulerSlot(id, index) => self
                .schedulers
                .get(id.index())
                .map_or(0..0, |places| element(&places.section, "slots", *index)),
            Fault::Resource(id, key) => self
                .resources
                .get(id.index())
                .map_or(0..0, |section| named(section, key)),
            Fault::TaskSlot(id, index) => self
                .task(*id)
                .map_or(0..0, |places| element(&places.section, "slots", *index)),
            Fault::Use(id, index) => self
                .task(*id)
                .map_or(0..0, |places| element(&places.section, "uses", *index)),
            Fault::Cpu(id, key) => self
                .cpus
                .get(id.index())
                .map_or(0..0, |section| named(section, key)),
            Fault::Task(id, key) => self
                .task(*id)
                .map_or(0..0, |places| named(&places.section, key)),
            Fault::Precedence { task, key, index } => {
                let edges = self.task(*task).map(|places| match *key {
                    "after" => &places.after,
                    _ => &places.follows,
                });
                let edge = edges.and_then(|edges| edges.get(*index)).cloned();
                edge.unwrap_or_else(|| self.of(&Fault::Task(*task, key)))
            }
            Fault::Machine(key) => value(&self.machine, key),
            Fault::Reserve(index) => self.reserves.get(*index).cloned().unwrap_or(0..0),
            Fault::Requirement(index) => self.requirements.get(*index).cloned().unwrap_or(0..0),
            Fault::Run(key) => value(&self.run, key),
        }
    }

    /// Whether a fault is about a part whose mistake has been reported.
    pub(crate) fn is_broken(&self, fault: &Fault) -> bool {
        match fault {
            Fault::Task(_, "name") | Fault::Scheduler(_, "name") => false,
            Fault::Task(id, "slots") | Fault::TaskSlot(id, _) => self
                .task(*id)
                .is_some_and(|places| places.broken || places.unplaced),
            Fault::Task(id, _) | Fault::Use(id, _) | Fault::Precedence { task: id, .. } => {
                self.task(*id).is_some_and(|places| places.broken)
            }
            Fault::Scheduler(id, "slots" | "server" | "on") | Fault::SchedulerSlot(id, _) => self
                .schedulers
                .get(id.index())
                .is_some_and(|places| places.broken || places.unplaced),
            Fault::Scheduler(id, _) => self
                .schedulers
                .get(id.index())
                .is_some_and(|places| places.broken),
            Fault::System => self.system.broken,
            // Of these, broken values are left out of the system.
            Fault::Cpu(..)
            | Fault::Resource(..)
            | Fault::Machine(_)
            | Fault::Reserve(_)
            | Fault::Requirement(_)
            | Fault::Run(_) => false,
        }
    }

    fn task(&self, id: TaskId) -> Option<&TaskPlaces> {
        self.tasks.get(id.index())
    }
}

/// The value of a key, or the section's header when the key is absent.
fn value(record: &Record, key: &str) -> Range<usize> {
    record
        .get(key)
        .map_or_else(|| record.range.clone(), |node| node.range.clone())
}

fn named(section: &Named, key: &str) -> Range<usize> {
    // Where a default came from, when the key itself is absent.
    let key = match key {
        "name" => return section.name_range.clone(),
        "deadline" if section.record.get(key).is_none() => "period",
        "suspensions" if section.record.get(key).is_none() => "max-suspension",
        key => key,
    };
    value(&section.record, key)
}

/// An element of a list, or the list.
fn element(section: &Named, key: &str, index: usize) -> Range<usize> {
    let node = section.record.list(key).get(index);
    node.map_or_else(|| named(section, key), |node| node.range.clone())
}
