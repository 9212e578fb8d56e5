//! The scheduler that has to be idle: the closest one with a supply around all that changes
//!
//! The supply bounds the time of the threads inside, whatever others do, and others are judged
//! beside the whole supply. So nothing that is inside has an effect outside, and once nothing
//! inside is pending, nothing that was inside has an effect at all. Three things cross the border
//! of a supply: entries of timers and switches, reserves of the machine, and locks with sections.
//! Where one of them is, the CPU has to be idle.

use alloc::string::String;
use alloc::vec::Vec;

use punctual_model::{Scheduler, SchedulerId, Supply, System};

use super::Difference;
use super::lives::{Part, is_same_scheduler};

/// The name of the scheduler that has to be idle; `None`: the CPU's own.
pub(super) fn to_be_idle(past: &[System], after: &System, what: &Difference) -> Option<String> {
    let systems = || past.iter().chain([after]);
    if !systems().all(is_closed) {
        return None;
    }
    let homes: Option<Vec<&String>> = what.homes.iter().map(Option::as_ref).collect();
    let homes = homes?;
    let first = homes.first()?;
    let (system, start) = systems().find_map(|system| Some((system, named(system, first)?)))?;
    let mut up = above(system, Some(start));
    up.find_map(|id| {
        let scheduler = &system.schedulers[id.index()];
        let same = |system: &System| {
            let place = named(system, &scheduler.name);
            // A policy orders what is inside, and nothing that was inside counts any more.
            place.is_some_and(|at| {
                let other = Scheduler {
                    policy: scheduler.policy,
                    ..system.schedulers[at.index()].clone()
                };
                is_same_scheduler(&other, scheduler)
            })
        };
        // In each system that has it, every home is the scheduler or below it.
        let around = |system: &System| {
            let mut there = homes.iter().filter_map(|home| named(system, home));
            there.all(|home| above(system, Some(home)).any(|up| is_it(system, up, scheduler)))
        };
        let closes = scheduler.supply != Supply::Shared;
        (closes && systems().all(same) && systems().all(around)).then(|| scheduler.name.clone())
    })
}

fn is_it(system: &System, id: SchedulerId, scheduler: &Scheduler) -> bool {
    let other = system.schedulers.get(id.index());
    other.is_some_and(|other| other.name == scheduler.name)
}

/// Whether a part is in the subtree of the scheduler of this name.
pub(super) fn is_below(system: &System, part: Part<'_>, name: &str) -> bool {
    let top = named(system, name);
    top.is_some() && above(system, part.home()).any(|id| Some(id) == top)
}

fn named(system: &System, name: &str) -> Option<SchedulerId> {
    let place = system.schedulers.iter().position(|s| s.name == name)?;
    Some(SchedulerId(u16::try_from(place).ok()?))
}

/// A scheduler and those above it.
fn above(system: &System, from: Option<SchedulerId>) -> impl Iterator<Item = SchedulerId> + '_ {
    let parent = |id: &SchedulerId| system.schedulers.get(id.index())?.parent;
    core::iter::successors(from, parent).take(system.schedulers.len())
}

/// Whether nothing but supply crosses the border of one.
fn is_closed(system: &System) -> bool {
    let machine = &system.machine;
    let entries = [
        machine.switch,
        machine.timer,
        machine.budget_timer,
        machine.preemption,
        machine.cache_delay,
    ];
    let alone = entries.iter().all(|cost| cost.is_zero())
        && machine.reserves.is_empty()
        && machine.missing_time.is_none();
    alone
        && system
            .tasks
            .iter()
            .all(|t| t.uses.is_empty() && t.non_preemptive.is_zero())
}
