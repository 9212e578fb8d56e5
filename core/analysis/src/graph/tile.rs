//! Tiles: their supply for a firing, and the turns of the other actors
//!
//! # Assumptions
//! 1. Those of the graphs.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{Graph, PolicyKind, System, Tile};

use crate::error::{AnalysisError, Checked, in_range};
use crate::lookup::{policy_of, slots_of};
use crate::overhead;
use crate::supply::Supply;
use crate::supply::slots::SlotTable;
use crate::units::{Span, Work};
use crate::verdict::Exactness;

/// The supply of a tile: the whole CPU, or the slots of its scheduler and of all above it.
pub(super) fn supply(system: &System, tile: Tile) -> Checked<Supply> {
    let overhead = overhead::episode(&system.machine)?;
    let mut supply = Supply::Dedicated;
    let mut at = tile.scheduler;
    // A valid tree ends at a CPU; a circle ends by the number of steps.
    for _ in 0..system.schedulers.len() {
        let Some(scheduler) = at.and_then(|id| system.schedulers.get(id.index())) else {
            break;
        };
        let PolicyKind::Tdm { frame, .. } = policy_of(system, (scheduler.cpu, scheduler.parent))?
        else {
            return Ok(Supply::Nothing);
        };
        let slots = slots_of(scheduler).iter().map(|s| (s.at, s.length));
        let slots: Vec<(Span, Span)> = slots.collect();
        let Some(own) = SlotTable::new(frame, &slots, overhead) else {
            return Ok(Supply::Nothing);
        };
        let both = match &supply {
            Supply::Slots(below) if own.repeats_too_late(below) => {
                let what = format!(
                    "{}, whose frame and those above it repeat together too late to be followed",
                    tile_name(system, tile)
                );
                return Err(AnalysisError::Unsupported { what });
            }
            Supply::Slots(below) => own.common(below),
            _ => Some(own),
        };
        supply = both.map_or(Supply::Nothing, Supply::Slots);
        at = scheduler.parent;
    }
    Ok(supply)
}

/// From the instant at which a firing becomes ready to its end, for each phase of each actor.
/// `None`: a tile gives nothing. O(phases · slots).
pub(super) fn responses(system: &System, graph: &Graph) -> Checked<Option<Vec<Vec<u64>>>> {
    let mut responses = Vec::with_capacity(graph.actors.len());
    let turns = turns(graph)?;
    for (actor, &others) in graph.actors.iter().zip(&turns) {
        let supply = supply(system, actor.tile)?;
        let mut phases = Vec::with_capacity(actor.wcet.len());
        for wcet in &actor.wcet {
            let work = in_range(wcet.checked_add(others), "the turns on a tile")?;
            let Some(time) = supply.time_for(work)? else {
                return Ok(None);
            };
            phases.push(time.as_ns());
        }
        responses.push(phases);
    }
    Ok(Some(responses))
}

/// Of each actor: the longest firings of the others on its tile, once each, where they fire by
/// turns. O(actors · log).
fn turns(graph: &Graph) -> Checked<Vec<Work>> {
    let longest = |wcets: &[Work]| wcets.iter().copied().max().unwrap_or(Work::ZERO);
    let mut sums: Vec<(Tile, Work)> = Vec::new();
    let mut tiles: Vec<(Tile, usize)> = graph
        .actors
        .iter()
        .map(|actor| actor.tile)
        .zip(0..)
        .collect();
    tiles.sort_unstable();
    for &(tile, actor) in &tiles {
        let own = longest(&graph.actors[actor].wcet);
        match sums.last_mut() {
            Some((known, sum)) if *known == tile => {
                *sum = in_range(sum.checked_add(own), "the turns on a tile")?;
            }
            _ => sums.push((tile, own)),
        }
    }
    let mut turns = vec![Work::ZERO; graph.actors.len()];
    for &(tile, actor) in &tiles {
        if graph.orders.iter().any(|order| order.tile == tile) {
            continue;
        }
        let place = sums.binary_search_by_key(&tile, |&(tile, _)| tile);
        let sum = place.map_or(Work::ZERO, |place| sums[place].1);
        turns[actor] = sum.saturating_sub(longest(&graph.actors[actor].wcet));
    }
    Ok(turns)
}

/// Exact where every firing begins at once: on whole CPUs, alone or in a fixed order.
pub(super) fn exactness(graph: &Graph) -> Exactness {
    let mut tiles: Vec<Tile> = graph.actors.iter().map(|actor| actor.tile).collect();
    tiles.sort_unstable();
    let shared = tiles.windows(2).filter(|pair| pair[0] == pair[1]);
    let ordered = |tile: Tile| graph.orders.iter().any(|order| order.tile == tile);
    let by_turns = shared.into_iter().any(|pair| !ordered(pair[0]));
    match by_turns || tiles.iter().any(|tile| tile.scheduler.is_some()) {
        true => Exactness::Sufficient,
        false => Exactness::Exact,
    }
}

/// The assumptions of the bounds of a graph.
pub(super) fn assumptions(system: &System, graph: &Graph) -> Vec<String> {
    let mut found = vec![String::from(
        "wcets contain claims, releases, copies between tiles and the decisions of the application",
    )];
    let mut tiles: Vec<Tile> = graph.actors.iter().map(|actor| actor.tile).collect();
    tiles.sort_unstable();
    let mut by_turns: Vec<Tile> = Vec::new();
    for pair in tiles.windows(2).filter(|pair| pair[0] == pair[1]) {
        let ordered = graph.orders.iter().any(|order| order.tile == pair[0]);
        if !ordered && by_turns.last() != Some(&pair[0]) {
            by_turns.push(pair[0]);
        }
    }
    for tile in by_turns {
        let name = tile_name(system, tile);
        found.push(format!(
            "not exact: on {name} each firing waits for one of each other actor"
        ));
    }
    tiles.dedup();
    for tile in tiles.into_iter().filter(|tile| tile.scheduler.is_some()) {
        let name = tile_name(system, tile);
        found.push(format!(
            "not exact: each firing on {name} begins at the worst instant of a frame"
        ));
    }
    found
}

/// Terms of a machine that take time from a tile at no known instant are not analysed.
pub(super) fn check_machine(system: &System, graph: &Graph) -> Checked<()> {
    let machine = &system.machine;
    if machine.missing_time.is_none() && machine.reserves.is_empty() {
        return Ok(());
    }
    let what = format!(
        "graph `{}` beside missing time or reserves, whose effect on firings is not analysed",
        graph.name
    );
    Err(AnalysisError::Unsupported { what })
}

/// A tile as the file names it.
pub(super) fn tile_name(system: &System, tile: Tile) -> String {
    let scheduler = tile
        .scheduler
        .and_then(|id| system.schedulers.get(id.index()));
    match scheduler {
        Some(scheduler) => format!("scheduler.{}", scheduler.name),
        None => {
            let cpu = system.cpus.get(tile.cpu.index());
            format!("cpu.{}", cpu.map_or("?", |cpu| &cpu.name))
        }
    }
}
