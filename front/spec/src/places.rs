//! Where each part of a system stands in its file.

use std::ops::Range;

use punctual_model::{Fault, GraphId, GroupId, SchedulerId, TaskId};

use crate::file::Named;
use crate::record::{Record, Value};

/// The places of all parts, by the numbers that the model gives them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
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
    pub(crate) changes: Vec<ChangePlaces>,
    pub(crate) graphs: Vec<GraphPlaces>,
    pub(crate) gangs: Vec<GangPlaces>,
    pub(crate) groups: Vec<GroupPlaces>,
    pub(crate) planning: Record,
}

/// The places of one planned group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GroupPlaces {
    pub(crate) section: Named,
    /// Whether a mistake in it has been reported.
    pub(crate) broken: bool,
}

/// The places of one gang.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GangPlaces {
    pub(crate) section: Named,
    /// Whether a mistake in it, or in one of its members, has been reported.
    pub(crate) broken: bool,
}

/// The places of one graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GraphPlaces {
    pub(crate) section: Named,
    /// Whether a mistake in it has been reported.
    pub(crate) broken: bool,
    /// The entries of `[require]` about it: throughput and latency.
    pub(crate) throughput: Option<Range<usize>>,
    pub(crate) latency: Option<Range<usize>>,
}

/// The places of one change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ChangePlaces {
    pub(crate) section: Named,
    pub(crate) steps: Vec<Range<usize>>,
    /// Whether a mistake in it has been reported.
    pub(crate) broken: bool,
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

impl Places {
    /// The bytes that a fault is about.
    pub(crate) fn of(&self, fault: &Fault) -> Range<usize> {
        let scheduler = |id: &SchedulerId| Some(&self.schedulers.get(id.index())?.section);
        let task = |id: &TaskId| Some(&self.tasks.get(id.index())?.section);
        let graph = |id: &GraphId| self.graphs.get(id.index());
        let group = |id: &GroupId| Some(&self.groups.get(id.index())?.section);
        let part = |id: &GraphId, list: &str, index: usize, key: &str| {
            let section = graph(id).map(|places| &places.section);
            part_of(section, list, index, key)
        };
        match fault {
            Fault::System => value(&self.system, "cpus"),
            Fault::Scheduler(id, key) => named(scheduler(id), key),
            Fault::SchedulerSlot(id, index) => element(scheduler(id), "slots", *index),
            Fault::Resource(id, key) => named(self.resources.get(id.index()), key),
            Fault::TaskSlot(id, index) => element(task(id), "slots", *index),
            Fault::Use(id, index) => element(task(id), "uses", *index),
            Fault::Cpu(id, key) => named(self.cpus.get(id.index()), key),
            Fault::Task(id, key) => named(task(id), key),
            Fault::Precedence {
                task: id,
                key,
                index,
            } => {
                let edges = self.tasks.get(id.index()).map(|places| match *key {
                    "after" => &places.after,
                    _ => &places.follows,
                });
                let edge = edges.and_then(|edges| edges.get(*index)).cloned();
                edge.unwrap_or_else(|| named(task(id), key))
            }
            Fault::Machine(key) => value(&self.machine, key),
            Fault::Reserve(index) => self.reserves.get(*index).cloned().unwrap_or(0..0),
            Fault::Requirement(index) => self.requirements.get(*index).cloned().unwrap_or(0..0),
            Fault::Run(key) => value(&self.run, key),
            Fault::Change(index, key) => {
                named(self.changes.get(*index).map(|places| &places.section), key)
            }
            Fault::Graph(id, key) => {
                let required = graph(id).and_then(|places| match *key {
                    "throughput" => places.throughput.clone(),
                    "latency" => places.latency.clone(),
                    _ => None,
                });
                required.unwrap_or_else(|| named(graph(id).map(|places| &places.section), key))
            }
            Fault::Actor(id, actor, key) => part(id, "actors", actor.index(), key),
            Fault::Fifo(id, fifo, key) => part(id, "fifos", *fifo, key),
            Fault::Gang(gang, key) => {
                let section = self.gangs.get(*gang).map(|places| &places.section);
                let key = match section.and_then(|section| section.record.get(key)) {
                    None if *key == "members" => "on",
                    _ => key,
                };
                named(section, key)
            }
            Fault::Superstep(gang, index) => {
                let section = self.gangs.get(*gang).map(|places| &places.section);
                element(section, "supersteps", *index)
            }
            Fault::Order(id, order) => part(id, "orders", *order, "firings"),
            Fault::Group(id, key) => named(group(id), key),
            Fault::GroupThread(id, thread, key) => part_of(group(id), "threads", *thread, key),
            Fault::Segment(id, segment, key) => part_of(group(id), "segments", *segment, key),
            Fault::Planning(key) => value(&self.planning, key),
            Fault::ChangeStep(index, step) => {
                let places = self.changes.get(*index);
                let step = places.and_then(|places| places.steps.get(*step)).cloned();
                step.unwrap_or_else(|| named(places.map(|places| &places.section), "name"))
            }
        }
    }

    /// Whether a fault is about a part whose mistake has been reported.
    pub(crate) fn is_broken(&self, fault: &Fault) -> bool {
        let scheduler = |id: &SchedulerId| self.schedulers.get(id.index());
        let task = |id: &TaskId| self.tasks.get(id.index());
        match fault {
            Fault::Task(_, "name") | Fault::Scheduler(_, "name") => false,
            Fault::Task(id, "slots") | Fault::TaskSlot(id, _) => {
                task(id).is_some_and(|places| places.broken || places.unplaced)
            }
            Fault::Task(id, _) | Fault::Use(id, _) | Fault::Precedence { task: id, .. } => {
                task(id).is_some_and(|places| places.broken)
            }
            Fault::Scheduler(id, "slots" | "server" | "on") | Fault::SchedulerSlot(id, _) => {
                scheduler(id).is_some_and(|places| places.broken || places.unplaced)
            }
            Fault::Scheduler(id, _) => scheduler(id).is_some_and(|places| places.broken),
            Fault::System => self.system.broken,
            Fault::Graph(_, "name") | Fault::Gang(_, "name") | Fault::Group(_, "name") => false,
            // They name each other.
            Fault::Group(..) | Fault::GroupThread(..) | Fault::Segment(..) => {
                self.groups.iter().any(|places| places.broken)
            }
            Fault::Gang(gang, _) | Fault::Superstep(gang, _) => {
                self.gangs.get(*gang).is_some_and(|places| places.broken)
            }
            Fault::Graph(id, _)
            | Fault::Actor(id, ..)
            | Fault::Fifo(id, ..)
            | Fault::Order(id, _) => {
                let places = self.graphs.get(id.index());
                places.is_some_and(|places| places.broken)
            }
            Fault::Change(..) | Fault::ChangeStep(..) => {
                self.changes.iter().any(|places| places.broken)
            }
            // Of these, broken values are left out of the system.
            Fault::Cpu(..)
            | Fault::Resource(..)
            | Fault::Machine(_)
            | Fault::Planning(_)
            | Fault::Reserve(_)
            | Fault::Requirement(_)
            | Fault::Run(_) => false,
        }
    }
}

/// The value of a key, or the section's header when the key is absent.
fn value(record: &Record, key: &str) -> Range<usize> {
    record
        .get(key)
        .map_or_else(|| record.range.clone(), |node| node.range.clone())
}

/// The value of a key of a section, or what it follows from; nothing without the section.
fn named(section: Option<&Named>, key: &str) -> Range<usize> {
    let Some(section) = section else { return 0..0 };
    // Where a default came from, when the key itself is absent.
    let key = match key {
        "name" => return section.name_range.clone(),
        "deadline" if section.record.get(key).is_none() => "period",
        "suspensions" if section.record.get(key).is_none() => "max-suspension",
        key => key,
    };
    value(&section.record, key)
}

/// The value of a key of an element of a list, or the element.
fn part_of(section: Option<&Named>, list: &str, index: usize, key: &str) -> Range<usize> {
    let node = section.and_then(|section| section.record.list(list).get(index));
    match node.map(|node| &node.value) {
        Some(Value::Record(record)) => value(record, key),
        _ => element(section, list, index),
    }
}

/// An element of a list, or the list.
fn element(section: Option<&Named>, key: &str, index: usize) -> Range<usize> {
    let node = section.and_then(|section| section.record.list(key).get(index));
    node.map_or_else(|| named(section, key), |node| node.range.clone())
}
