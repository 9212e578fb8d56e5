//! The shortest slots of a frame, their starts given
//!
//! Owners of slots do not concern each other, so each is looked at alone: first its longest slots
//! are cut to one common length, then each slot by itself, the last one first. A slot of an owner
//! that is late may grow up to where the next one begins, less the time between slots.
//!
//! # Assumptions
//! 1. More of a slot never hurts its owner, and concerns nobody else.
//! 2. Owners without real-time work keep their slots: nothing says what they need.
//! 3. Where an owner has several slots, other splits of the same sum may suffice: the result cannot
//!    be shortened anywhere, but another one may be shorter in total.
//!
//! Source: the supply of a slot table (Mok and Feng 2001; CompOSe §3.3).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use punctual_model::{CpuId, Ns, PolicyKind, SchedulerId, Slot, Supply, System, TaskId};

use super::judge::{self, is_below, only};
use super::{NoSuggestion, Search, Setting, Suggestion};
use crate::admit::is_admitted;
use crate::error::Checked;
use crate::units::{Span, border};

/// Who owns slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Task(TaskId),
    Scheduler(SchedulerId),
}

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
    if !is_admitted(&changed)? {
        let what = "with slots that suffice for each owner by itself it is refused";
        return Err(judge::still_refused(&changed, what));
    }
    Ok(Suggestion {
        changes: changes(system, &changed),
        system: changed,
        ground: "search for the shortest slots: one nanosecond less of any is refused".into(),
    })
}

fn slots(system: &System, owner: Owner) -> &[Slot<Ns>] {
    match owner {
        Owner::Task(id) => &system.tasks[id.index()].slots,
        Owner::Scheduler(id) => match &system.schedulers[id.index()].supply {
            Supply::Slots(slots) => slots,
            Supply::Shared | Supply::Server(_) => &[],
        },
    }
}

fn set(system: &mut System, owner: Owner, lengths: &[Span]) {
    let slots = match owner {
        Owner::Task(id) => &mut system.tasks[id.index()].slots,
        Owner::Scheduler(id) => match &mut system.schedulers[id.index()].supply {
            Supply::Slots(slots) => slots,
            Supply::Shared | Supply::Server(_) => return,
        },
    };
    for (slot, &length) in slots.iter_mut().zip(lengths) {
        slot.length = length;
    }
}

/// The CPU and the scheduler that divides time for this owner.
fn node(system: &System, owner: Owner) -> (CpuId, Option<SchedulerId>) {
    match owner {
        Owner::Task(id) => {
            let task = &system.tasks[id.index()];
            (task.cpu, task.scheduler)
        }
        Owner::Scheduler(id) => {
            let scheduler = &system.schedulers[id.index()];
            (scheduler.cpu, scheduler.parent)
        }
    }
}

fn all(system: &System) -> impl Iterator<Item = Owner> + '_ {
    let tasks = (0_u32..)
        .map(TaskId)
        .take(system.tasks.len())
        .map(Owner::Task);
    let schedulers = (0_u16..).map(SchedulerId).take(system.schedulers.len());
    let all = schedulers.map(Owner::Scheduler).chain(tasks);
    all.filter(|&owner| !slots(system, owner).is_empty())
}

/// Those with real-time work, schedulers first.
fn owners(system: &System) -> Vec<Owner> {
    all(system)
        .filter(|&o| work(system, o).contains(&true))
        .collect()
}

/// By task: whether it is real-time work of this owner.
fn work(system: &System, owner: Owner) -> Vec<bool> {
    let mine = |(task, id): (&punctual_model::Task, u32)| {
        let owns = match owner {
            Owner::Task(own) => own == TaskId(id),
            Owner::Scheduler(own) => is_below(system, task.scheduler, own),
        };
        owns && task.class.is_real_time()
    };
    system.tasks.iter().zip(0_u32..).map(mine).collect()
}

/// How long each slot of an owner may become.
fn rooms(system: &System, owner: Owner) -> Vec<Span> {
    let (cpu, parent) = node(system, owner);
    let policy = match parent {
        Some(id) => system.schedulers.get(id.index()).map(|s| s.policy),
        None => system.cpus.get(cpu.index()).map(|c| c.policy),
    };
    let Some(PolicyKind::Tdm { frame, scheduling }) = policy else {
        return slots(system, owner).iter().map(|s| s.length).collect();
    };
    let siblings = all(system).filter(|&other| node(system, other) == (cpu, parent));
    let starts: Vec<Span> = siblings
        .flat_map(|other| slots(system, other))
        .map(|s| s.at)
        .collect();
    let first = starts.iter().copied().min().unwrap_or_default();
    let room = |slot: &Slot<Ns>| {
        let at = slot.at;
        let next = starts.iter().copied().filter(|&start| start > at).min();
        // After the last one comes the first of the next frame.
        let end = next.unwrap_or(frame.saturating_add(first));
        let end = end.saturating_sub(scheduling).min(frame);
        end.saturating_sub(at).max(slot.length)
    };
    slots(system, owner).iter().map(room).collect()
}

fn shorten_one(system: &System, changed: &mut System, owner: Owner) -> Search<()> {
    let rooms = rooms(system, owner);
    let capped = |cap: Span| -> Vec<Span> { rooms.iter().map(|&room| room.min(cap)).collect() };
    let longest = rooms.iter().copied().max().unwrap_or_default();
    if !suffices(changed, owner, &rooms)? {
        let reason = format!(
            "no slots of {} up to the next owner's keep its work on time",
            name(system, owner)
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
fn suffices(system: &System, owner: Owner, lengths: &[Span]) -> Checked<bool> {
    let mut changed = system.clone();
    set(&mut changed, owner, lengths);
    is_admitted(&only(&changed, &work(system, owner)))
}

fn name(system: &System, owner: Owner) -> String {
    match owner {
        Owner::Task(id) => format!("task.{}", system.tasks[id.index()].name),
        Owner::Scheduler(id) => format!("scheduler.{}", system.schedulers[id.index()].name),
    }
}

fn changes(before: &System, after: &System) -> Vec<Setting> {
    let mut changes = Vec::new();
    for owner in all(before) {
        let pairs = slots(before, owner).iter().zip(slots(after, owner));
        for (index, (from, to)) in pairs.enumerate().filter(|(_, (a, b))| a != b) {
            changes.push(Setting {
                parameter: format!("{}.slots[{index}].length", name(before, owner)),
                from: format!("\"{}\"", from.length.readable()),
                to: format!("\"{}\"", to.length.readable()),
            });
        }
    }
    changes
}
