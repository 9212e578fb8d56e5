//! Tiles: their supply for a firing, and the turns of the other actors
//!
//! # Assumptions
//! 1. Those of the graphs.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{
    ActorId, Graph, Order, OrderRule, PolicyKind, Preempted, System, Tile, When, readable,
};

use super::copies;
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
    let firings = copies::firings(graph)?;
    let longest = firings.longest();
    let turns = turns(graph, &longest)?;
    for (index, (actor, &others)) in graph.actors.iter().zip(&turns).enumerate() {
        let supply = supply(system, actor.tile)?;
        let order = graph.order_on(actor.tile);
        let between = order.filter(|order| order.when.is_between_slots());
        if between.is_some() {
            check_slots(system, actor.tile)?;
        }
        let is_inline = graph.when_on(actor.tile) == When::Inline;
        let mut phases = Vec::with_capacity(actor.wcet.len());
        for (&busy, &copied) in firings.busy[index].iter().zip(&firings.copied[index]) {
            let time = match (between, &supply) {
                (Some(order), Supply::Slots(slots)) => {
                    let decided = overhead::episode(&system.machine)?;
                    Some(between_slots(
                        (graph, index, &longest),
                        order,
                        (slots, decided),
                        busy,
                    )?)
                }
                (Some(_), _) => None,
                (None, supply) if is_inline => {
                    let turn = overhead::turn(&system.machine)?;
                    supply.time_for(in_turns((graph, index, &longest), turn, busy)?)?
                }
                (None, supply) => {
                    let work = in_range(busy.checked_add(others), "the turns on a tile")?;
                    supply.time_for(work)?
                }
            };
            let Some(time) = time else {
                return Ok(None);
            };
            let time = in_range(time.checked_add(copied), "the copies of a firing")?;
            phases.push(time.as_ns());
        }
        responses.push(phases);
    }
    Ok(Some(responses))
}

/// The response of a firing where each slot decides once, at its start: it becomes ready just after
/// a decision. Then other actors have their slots, and the firing the last of its own.
///
/// With n slots for a firing at the shortest slot, and m actors on the tile:
///
/// * round robin, a preempted firing continues: each other actor has one firing before, Σ n; then
///   the own n;
/// * round robin, a preempted firing is passed over: in each of n rounds everybody has one slot at
///   most, n · m;
/// * TDM: from the worst turn on to the last of n own turns.
///
/// The last own slot executes the firing − (n − 1) · shortest at most. O(actors + turns²).
fn between_slots(
    (graph, actor, longest): (&Graph, usize, &[Work]),
    order: &Order,
    (slots, decided): (&SlotTable, Work),
    busy: Work,
) -> Checked<Span> {
    let what = "the slots of a firing";
    let shortest = slots.shortest();
    let needed = |work: Work| work.as_ns().div_ceil(shortest.as_ns().max(1)).max(1);
    let own = needed(busy);
    let here = graph.actors.iter().enumerate();
    let here = here.filter(|(_, other)| other.tile == order.tile);
    let count = match &order.by {
        OrderRule::Tdm(owners) => {
            let counts = (0..owners.len()).map(|turn| turns_until(owners, turn, actor, own));
            counts.max().flatten()
        }
        _ if order.when == When::BetweenSlots(Preempted::PassedOver) => {
            own.checked_mul(here.count() as u64)
        }
        _ => here
            .filter(|&(place, _)| place != actor)
            .try_fold(own, |sum, (place, _)| {
                sum.checked_add(needed(longest[place]))
            }),
    };
    let before = in_range(shortest.checked_mul(own - 1), what)?;
    let rest = busy.saturating_sub(before);
    let time = count.and_then(|count| slots.longest_to(count, rest));
    // A slot decides before the overhead that its table leaves out.
    in_range(
        time.and_then(|time| time.checked_add(decided.as_span())),
        what,
    )
}

/// A slot in which the machine takes everything still decides: a firing would have its turn and do
/// nothing in it.
fn check_slots(system: &System, tile: Tile) -> Checked<()> {
    let taken = overhead::episode(&system.machine)?;
    let own = tile
        .scheduler
        .and_then(|id| system.schedulers.get(id.index()));
    let slots = own.map_or(&[][..], slots_of);
    if slots.iter().all(|slot| slot.length.as_work() > taken) {
        return Ok(());
    }
    let what = format!(
        "an order between slots of {}, one of which is no longer than the {} that the machine takes in it",
        tile_name(system, tile),
        readable(taken.as_ns())
    );
    Err(AnalysisError::Unsupported { what })
}

/// The work of a tile until a firing ends where its actors are threads of the core, which take
/// turns of at most T ([`When::TURN`]). The firing becomes ready just after its thread has looked.
///
/// Each turn costs o = `turn` besides, also that of a thread which may not fire. So a firing of C
/// needs n = ⌈C/(T − o)⌉ turns: it begins at the start of one. Before each of them every other
/// thread has one turn, in which it fires once at most, or goes on for at most T. O(actors).
fn in_turns(
    (graph, actor, longest): (&Graph, usize, &[Work]),
    turn: Work,
    busy: Work,
) -> Checked<Work> {
    let most = When::TURN.as_work();
    let own = most.saturating_sub(turn).as_ns();
    if own == 0 {
        let cost = readable(turn.as_ns());
        let what = format!("turns of threads that cost {cost} each, as long as they last");
        return Err(AnalysisError::Unsupported { what });
    }
    let turns = busy.as_ns().div_ceil(own).max(1);
    let tile = graph.actors[actor].tile;
    let mut here = graph.actors.iter().zip(longest).enumerate();
    let round = here.try_fold(Work::ZERO, |sum, (place, (other, &work))| {
        let own = match other.tile == tile {
            false => return Some(sum),
            true if place == actor => Work::ZERO,
            true => work.min(most),
        };
        sum.checked_add(own)?.checked_add(turn)
    });
    let all = round.and_then(|round| round.checked_mul(turns)?.checked_add(busy));
    in_range(all, "the turns on a tile")
}

/// The number of turns from `turn` on to the one that is the `own`-th of `actor`. O(turns).
fn turns_until(owners: &[ActorId], turn: usize, actor: usize, own: u64) -> Option<u64> {
    let is_own = |place: usize| owners[place % owners.len()].index() == actor;
    let per_cycle = (0..owners.len()).filter(|&place| is_own(place)).count() as u64;
    let cycles = own.checked_sub(1)?.checked_div(per_cycle)?;
    let left = own - cycles * per_cycle;
    let turns = turn..turn + owners.len();
    let last = turns
        .into_iter()
        .filter(|&place| is_own(place))
        .nth(usize::try_from(left - 1).ok()?)?;
    let cycles = cycles.checked_mul(owners.len() as u64)?;
    cycles.checked_add((last - turn) as u64)?.checked_add(1)
}

/// Of each actor: the longest firings of the others on its tile, once each, where they fire by
/// turns. O(actors · log).
fn turns(graph: &Graph, longest: &[Work]) -> Checked<Vec<Work>> {
    let mut sums: Vec<(Tile, Work)> = Vec::new();
    let mut tiles: Vec<(Tile, usize)> = graph
        .actors
        .iter()
        .map(|actor| actor.tile)
        .zip(0..)
        .collect();
    tiles.sort_unstable();
    for &(tile, actor) in &tiles {
        let own = longest[actor];
        match sums.last_mut() {
            Some((known, sum)) if *known == tile => {
                *sum = in_range(sum.checked_add(own), "the turns on a tile")?;
            }
            _ => sums.push((tile, own)),
        }
    }
    let mut turns = vec![Work::ZERO; graph.actors.len()];
    for &(tile, actor) in &tiles {
        if is_fixed(graph, tile) {
            continue;
        }
        let place = sums.binary_search_by_key(&tile, |&(tile, _)| tile);
        let sum = place.map_or(Work::ZERO, |place| sums[place].1);
        turns[actor] = sum.saturating_sub(longest[actor]);
    }
    Ok(turns)
}

/// Exact where every firing begins at once: on whole CPUs, alone or in a fixed order, where copies
/// take no time.
pub(super) fn exactness(graph: &Graph) -> Exactness {
    let mut tiles: Vec<Tile> = graph.actors.iter().map(|actor| actor.tile).collect();
    tiles.sort_unstable();
    let shared = tiles.windows(2).filter(|pair| pair[0] == pair[1]);
    let by_turns = shared.into_iter().any(|pair| !is_fixed(graph, pair[0]));
    let at_worst = |tile: &Tile| tile.scheduler.is_some() || graph.when_on(*tile) == When::Inline;
    match by_turns || graph.copies.is_some() || tiles.iter().any(at_worst) {
        true => Exactness::Sufficient,
        false => Exactness::Exact,
    }
}

/// The assumptions of the bounds of a graph.
pub(super) fn assumptions(system: &System, graph: &Graph) -> Vec<String> {
    let mut found = vec![String::from(match graph.copies {
        None => {
            "wcets contain claims, releases, copies between tiles and the decisions of the application"
        }
        Some(_) => "wcets contain the decisions of the application, and no copies between memories",
    })];
    if graph.copies.is_some() {
        found.push(String::from(
            "not exact: each firing that copies finds its copy engine busy with the longest output before it",
        ));
    }
    let mut tiles: Vec<Tile> = graph.actors.iter().map(|actor| actor.tile).collect();
    tiles.sort_unstable();
    let mut by_turns: Vec<Tile> = Vec::new();
    for pair in tiles.windows(2).filter(|pair| pair[0] == pair[1]) {
        if by_own_turns(graph, pair[0]) && by_turns.last() != Some(&pair[0]) {
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
    for &tile in &tiles {
        if graph.when_on(tile) == When::Inline {
            let name = tile_name(system, tile);
            let turn = readable(When::TURN.as_ns());
            found.push(format!(
                "not exact: on {name} each turn of a firing, of {turn} at most, waits for one of each other actor"
            ));
        }
    }
    for tile in tiles.into_iter().filter(|tile| tile.scheduler.is_some()) {
        let name = tile_name(system, tile);
        let order = graph.order_on(tile);
        found.push(match order.is_some_and(|order| order.when.is_between_slots()) {
            true => format!(
                "not exact: each firing on {name} becomes ready just after the decision of a slot"
            ),
            false => format!("not exact: each firing on {name} begins at the worst instant of a frame"),
        });
    }
    found
}

/// Whether the firings of a tile have a static order.
fn is_fixed(graph: &Graph, tile: Tile) -> bool {
    graph.static_orders().any(|(at, _)| at == tile)
}

/// Whether the actors of a tile fire by turns in own time.
fn by_own_turns(graph: &Graph, tile: Tile) -> bool {
    let order = graph.order_on(tile);
    order.is_none_or(|order| order.when == When::OwnTime && order.by == OrderRule::RoundRobin)
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
