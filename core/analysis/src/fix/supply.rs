//! Fixes of what a parent supplies: budgets, periods of servers, lengths of slots
//!
//! # Assumptions
//! 1. A slot may grow up to the next one, less the time in which the core decides.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use punctual_model::{Ns, SchedulerId, Slot, Supply, System};

use crate::lookup::{NodeId, ancestors, children, slot_room};
use crate::units::{Span, TICK};
use crate::verdict::FixTarget;
use crate::verdict::Subject;

/// Its place in the file.
pub(super) fn parameter(system: &System, target: FixTarget) -> String {
    let name = |id: SchedulerId| system.schedulers.get(id.index()).map_or("?", |s| &s.name);
    match target {
        FixTarget::ServerBudget(id) => match slice(system, id) {
            Some(slice) => format!("{slice}.slice"),
            None => format!("scheduler.{}.server.budget", name(id)),
        },
        FixTarget::ServerPeriod(id) => match slice(system, id) {
            Some(slice) => format!("{slice}.every"),
            None => format!("scheduler.{}.server.period", name(id)),
        },
        FixTarget::SlotLength(id, place) => format!("scheduler.{}.slots[{place}].length", name(id)),
        FixTarget::TaskSlotLength(task, place) => {
            let name = system.tasks.get(task.index()).map_or("?", |t| &t.name);
            format!("task.{name}.slots[{place}].length")
        }
        _ => String::new(),
    }
}

/// The place of a slice among those that its giver delegates; `None`: this is no slice.
fn slice(system: &System, id: SchedulerId) -> Option<String> {
    let slice = system.schedulers.get(id.index())?;
    let _ = slice.receiver.as_ref()?;
    let giver = system.schedulers.get(slice.parent?.index())?;
    let before = system.schedulers.iter().take(id.index());
    let before = before.filter(|s| s.receiver.is_some() && s.parent == slice.parent);
    Some(format!(
        "scheduler.{}.delegate[{}]",
        giver.name,
        before.count()
    ))
}

/// The parameters that may be changed for this subject, each with how far.
pub(super) fn candidates(system: &System, subject: Subject) -> Vec<(FixTarget, Span)> {
    match subject {
        Subject::Task(task) => {
            let Some(late) = system.tasks.get(task.index()) else {
                return Vec::new();
            };
            let mut found = longer(system, (late.cpu, late.scheduler), &late.slots, |place| {
                FixTarget::TaskSlotLength(task, place)
            });
            if let Some(home) = late.scheduler {
                found.extend(more(system, home));
            }
            found
        }
        Subject::Scheduler(id) => {
            // Late at its parent, or too little for those below.
            let mut found = less(system, id);
            found.extend(more(system, id));
            found
        }
        Subject::Cpu(_) | Subject::Requirement(_) | Subject::Graph(_) | Subject::Group(_) => {
            Vec::new()
        }
    }
}

/// More supply from here up to the CPU.
fn more(system: &System, home: SchedulerId) -> Vec<(FixTarget, Span)> {
    let mut found = Vec::new();
    for (id, scheduler) in ancestors(system, Some(home)) {
        match &scheduler.supply {
            Supply::Shared => {}
            Supply::Server(server) => {
                found.push((FixTarget::ServerBudget(id), server.period));
                found.push((FixTarget::ServerPeriod(id), server.budget.as_span()));
            }
            Supply::Slots(slots) => {
                let node = (scheduler.cpu, scheduler.parent);
                found.extend(longer(system, node, slots, |place| {
                    FixTarget::SlotLength(id, place)
                }));
            }
        }
    }
    found
}

/// Less for a server and for those beside it.
fn less(system: &System, id: SchedulerId) -> Vec<(FixTarget, Span)> {
    let Some(late) = system.schedulers.get(id.index()) else {
        return Vec::new();
    };
    let beside = children(system, (late.cpu, late.parent));
    let servers = beside.filter(|(_, s)| matches!(s.supply, Supply::Server(_)));
    let less = servers.map(|(other, _)| (FixTarget::ServerBudget(other), TICK));
    let mut found: Vec<(FixTarget, Span)> = less.collect();
    found.sort_by_key(|(target, _)| *target != FixTarget::ServerBudget(id));
    found
}

/// Longer slots of one owner in the frame of `node`, each with the most it can have.
fn longer(
    system: &System,
    node: NodeId,
    slots: &[Slot<Ns>],
    target: impl Fn(usize) -> FixTarget,
) -> Vec<(FixTarget, Span)> {
    let places = slots.iter().enumerate();
    let room =
        |(place, slot): (usize, &Slot<Ns>)| Some((target(place), slot_room(system, node, *slot)?));
    places.filter_map(room).collect()
}
