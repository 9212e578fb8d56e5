//! Graphs beside tasks: the certificate of the tasks, and nobody else on a tile
//!
//! A graph has its tiles for itself. So its schedule says nothing of tasks, and their bounds say
//! nothing of it. The checker only looks whether the tiles are those of the system that the other
//! certificate is about, at its prices, and that nothing in it executes there.

use super::{Decides, Graph, Tile, not, number};
use crate::derive::check_overlap;
use crate::node::{Place, is_on};
use crate::system::{Policy, Supply, System};
use crate::{Certificate, Claims, Wrong};

/// Checks the certificate of the tasks, and every tile in its system. O(tiles² + tiles · system).
pub(super) fn check(graphs: &[Graph], rest: &Certificate) -> Result<(), Wrong> {
    if !matches!(rest.claims, Claims::Admitted { .. }) {
        return Err(not("the tasks beside the graphs are refused".into()));
    }
    crate::verify(rest)?;
    let system = &rest.system;
    if !system.machine.reserves.is_empty() {
        return Err(not("the machine takes time from graphs".into()));
    }
    let mut taken = Vec::new();
    for tile in graphs.iter().flat_map(|graph| &graph.tiles) {
        let place = place(system, tile)?;
        if taken.contains(&place) {
            return Err(not(format!("tile `{}` is used twice", tile.name)));
        }
        alone(system, tile, place)?;
        prices(system, tile)?;
        taken.push(place);
    }
    Ok(())
}

/// The place of a tile in the system, which has the same slots there.
fn place(system: &System, tile: &Tile) -> Result<Place, Wrong> {
    let name = &tile.name;
    let unknown = || not(format!("the tasks have no tile `{name}` beside them"));
    let Some(frame) = tile.frame else {
        let cpu = system.cpus.iter().position(|cpu| cpu.name == *name);
        return cpu.map(Place::Cpu).ok_or_else(unknown);
    };
    let id = system.schedulers.iter().position(|s| s.name == *name);
    let id = id.ok_or_else(unknown)?;
    let scheduler = &system.schedulers[id];
    let (Policy::Tdm { frame: follows }, None) =
        (system.cpus[scheduler.cpu].policy, scheduler.parent)
    else {
        return Err(not(format!("tile `{name}` is in no frame of a CPU")));
    };
    if frame != follows {
        return Err(number(&format!("the frame of {name}"), frame, follows));
    }
    let slots: Vec<(u64, u64)> = match &scheduler.supply {
        Supply::Slots(slots) => slots.iter().map(|slot| (slot.at, slot.length)).collect(),
        _ => Vec::new(),
    };
    if slots != tile.slots {
        let [claimed, follows] = [&tile.slots, &slots].map(|slots| format!("{slots:?}"));
        return Err(number(&format!("the slots of {name}"), claimed, follows));
    }
    check_overlap(system, scheduler.cpu).map_err(Wrong::Verdict)?;
    Ok(Place::Scheduler(id))
}

/// Nothing else executes on a tile.
fn alone(system: &System, tile: &Tile, place: Place) -> Result<(), Wrong> {
    let task = system.tasks.iter().find(|task| is_on(task, place));
    let child = system.schedulers.iter().find(|child| match place {
        Place::Cpu(cpu) => child.cpu == cpu,
        Place::Scheduler(id) => child.parent == Some(id),
    });
    let name = task
        .map(|task| &task.name)
        .or(child.map(|child| &child.name));
    match name {
        Some(name) => Err(not(format!("`{name}` shares tile `{}`", tile.name))),
        None => Ok(()),
    }
}

/// The machine takes from the slots and turns of a tile what it takes elsewhere.
fn prices(system: &System, tile: &Tile) -> Result<(), Wrong> {
    let machine = &system.machine;
    let once = [
        machine.switch,
        machine.switch,
        machine.preemption,
        machine.cache_delay,
    ];
    let once: u128 = once.into_iter().map(u128::from).sum();
    let check = |what: &str, claimed: u64, follows: u128| match u128::from(claimed) == follows {
        true => Ok(()),
        false => Err(number(
            &format!("{what} of {}", tile.name),
            claimed,
            follows,
        )),
    };
    if tile.frame.is_some() {
        check("the overhead", tile.overhead, once)?;
    }
    match &tile.decides {
        Some(Decides::Threads { cost, .. }) => check(
            "the cost of a turn",
            *cost,
            once + u128::from(machine.timer),
        ),
        _ => Ok(()),
    }
}
