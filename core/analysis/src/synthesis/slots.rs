//! The shortest slots of a frame, their starts given
//!
//! Whos of slots do not concern each other, so each is looked at alone: first its longest slots
//! are cut to one common length, then each slot by itself, the last one first. A slot of an owner
//! that is late may grow up to where the next one begins, less the time between slots.
//!
//! # Assumptions
//! 1. More of a slot never hurts its owner, and concerns nobody else.
//! 2. Whos without real-time work keep their slots: nothing says what they need.
//! 3. Where an owner has several slots, other splits of the same sum may suffice: the result cannot
//!    be shortened anywhere, but another one may be shorter in total.
//!
//! Source: the supply of a slot table (Mok and Feng 2001; CompOSe §3.3).

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use punctual_model::{Ns, Slot, Supply, System, Task, TaskId};

use super::judge::only;
use super::{NoSuggestion, Search, Setting, Suggestion, suggested};
use crate::admit::is_admitted;
use crate::entity::Who;
use crate::error::Checked;
use crate::lookup::{NodeId, is_below, node_of, schedulers, slot_room, slots_of, tasks};
use crate::units::{Span, border};

/// The shortest slots for every owner with real-time work. O(slots · log frame) analyses.
pub(crate) fn shorten(system: &System) -> Search<Suggestion> {
    let owners = owners(system);
    if owners.is_empty() {
        let reason = "no slots here have real-time work in them".to_string();
        return Err(NoSuggestion::Reason(reason));
    }
    let mut changed = system.clone();
    for &owner in &owners {
        shorten_one(system, &mut changed, owner)?;
    }
    let changes = changes(system, &changed);
    let ground = "search for the shortest slots: one nanosecond less of any is refused";
    let but = "with slots that suffice for each owner by itself it is refused";
    suggested(changed, changes, ground, but)
}

fn slots(system: &System, owner: Who) -> &[Slot<Ns>] {
    match owner {
        Who::Task(id) => &system.tasks[id.index()].slots,
        Who::Server(id) => slots_of(&system.schedulers[id.index()]),
    }
}

fn set(system: &mut System, owner: Who, lengths: &[Span]) {
    let slots = match owner {
        Who::Task(id) => &mut system.tasks[id.index()].slots,
        Who::Server(id) => match &mut system.schedulers[id.index()].supply {
            Supply::Slots(slots) => slots,
            Supply::Shared | Supply::Server(_) => return,
        },
    };
    for (slot, &length) in slots.iter_mut().zip(lengths) {
        slot.length = length;
    }
}

/// The node that divides time for this owner.
fn node(system: &System, owner: Who) -> NodeId {
    match owner {
        Who::Task(id) => node_of(&system.tasks[id.index()]),
        Who::Server(id) => {
            let scheduler = &system.schedulers[id.index()];
            (scheduler.cpu, scheduler.parent)
        }
    }
}

fn all(system: &System) -> impl Iterator<Item = Who> + '_ {
    let tasks = tasks(system).map(|(id, _)| Who::Task(id));
    let schedulers = schedulers(system).map(|(id, _)| Who::Server(id));
    let all = schedulers.chain(tasks);
    all.filter(|&owner| !slots(system, owner).is_empty())
}

/// Those with real-time work, schedulers first.
fn owners(system: &System) -> Vec<Who> {
    all(system)
        .filter(|&o| work(system, o).contains(&true))
        .collect()
}

/// By task: whether it is real-time work of this owner.
fn work(system: &System, owner: Who) -> Vec<bool> {
    let mine = |(id, task): (TaskId, &Task)| {
        let owns = match owner {
            Who::Task(own) => own == id,
            Who::Server(own) => is_below(system, task.scheduler, own),
        };
        owns && task.class.is_real_time()
    };
    tasks(system).map(mine).collect()
}

/// How long each slot of an owner may become.
fn rooms(system: &System, owner: Who) -> Vec<Span> {
    let node = node(system, owner);
    let room = |slot: &Slot<Ns>| slot_room(system, node, *slot).unwrap_or_default();
    let slots = slots(system, owner).iter();
    slots.map(|slot| room(slot).max(slot.length)).collect()
}

fn shorten_one(system: &System, changed: &mut System, owner: Who) -> Search<()> {
    let rooms = rooms(system, owner);
    let capped = |cap: Span| -> Vec<Span> { rooms.iter().map(|&room| room.min(cap)).collect() };
    let longest = rooms.iter().copied().max().unwrap_or_default();
    if !suffices(changed, owner, &rooms)? {
        let reason = format!(
            "no slots of {} up to the next owner's keep its work on time",
            owner.key(system)
        );
        return Err(NoSuggestion::Reason(reason));
    }
    let cap = border(Span::ZERO, longest, |cap| {
        suffices(changed, owner, &capped(cap))
    })?;
    let mut lengths = capped(cap);
    for place in (0..lengths.len()).rev() {
        let shortest = border(Span::ZERO, lengths[place], |length| {
            let mut shorter = lengths.clone();
            shorter[place] = length;
            suffices(changed, owner, &shorter)
        })?;
        lengths[place] = shortest;
    }
    set(changed, owner, &lengths);
    Ok(())
}

/// Whether the owner's work is on time with these lengths; nobody else has work.
fn suffices(system: &System, owner: Who, lengths: &[Span]) -> Checked<bool> {
    let mut changed = system.clone();
    set(&mut changed, owner, lengths);
    is_admitted(&only(&changed, &work(system, owner)))
}

fn changes(before: &System, after: &System) -> Vec<Setting> {
    let mut changes = Vec::new();
    for owner in all(before) {
        let pairs = slots(before, owner).iter().zip(slots(after, owner));
        for (index, (from, to)) in pairs.enumerate().filter(|(_, (a, b))| a != b) {
            changes.push(Setting {
                parameter: format!("{}.slots[{index}].length", owner.key(before)),
                from: format!("\"{}\"", from.length.readable()),
                to: format!("\"{}\"", to.length.readable()),
            });
        }
    }
    changes
}
