//! The smallest fix of a graph: capacities, slots, or a wcet
//!
//! One capacity, else one slot, else several of both together, and else a wcet.
//! More space never delays anybody, and neither does more of a frame or a shorter firing: bisection
//! finds the border.
//!
//! # Assumptions
//! 1. Those of the graphs.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

mod together;

use punctual_dataflow::{Fraction, Link};
use punctual_model::{Graph, GraphId, SchedulerId, Supply, System};

pub(super) use together::several;

use super::evaluate::{Outcome, evaluate};
use super::explain;
use crate::error::Checked;
use crate::lookup::slot_room;
use crate::units::{Work, border};
use crate::verdict::GraphFix;

/// So many actors are tried for a shorter wcet.
const MOST_ACTORS: usize = 64;

/// Whether a graph goes on and keeps what is required of it, on the tiles of `system`.
pub(crate) fn holds(system: &System, graph: &Graph) -> Checked<bool> {
    let runs = match evaluate(system, graph)? {
        Outcome::Runs(runs) => runs,
        Outcome::Unknown => return Ok(graph.every.is_none() && graph.within.is_none()),
        _ => return Ok(false),
    };
    let every = graph.every.map(|every| Fraction::whole(every.as_ns()));
    let within = graph.within.map(|within| within.as_ns());
    Ok(every.is_none_or(|every| runs.circle.period <= every)
        && within.is_none_or(|within| runs.latency <= within))
}

/// The fix in words.
pub(super) fn words(fix: &GraphFix) -> String {
    format!("{} = {} instead of {}", fix.parameter, fix.to, fix.from)
}

/// Several fixes that mend a graph together, in words.
pub(super) fn words_of_several(fixes: &[GraphFix]) -> String {
    let all: Vec<String> = fixes.iter().map(words).collect();
    format!("{}: together they mend it, and none alone", all.join(", "))
}

/// The advice where no parameters mend a graph; for one that stops, what lets it go on.
pub(super) fn beyond_all(system: &System, id: GraphId, stops: bool) -> Checked<String> {
    let several = "no capacity, no slot within its frame and no wcet alone mends it; `check \
                   --suggest buffers` tries several capacities together";
    let outcome = match system.graphs.get(id.index()) {
        Some(graph) => evaluate(system, graph)?,
        None => return Ok(several.into()),
    };
    if let Some(advice) = explain::advice(&system.graphs[id.index()], &outcome) {
        return Ok(advice);
    }
    if !stops {
        return Ok(several.into());
    }
    Ok(match goes_on(system, id)? {
        Some(goes_on) => format!("{goes_on}; {several}"),
        None => "no capacity and no slot alone mends it".into(),
    })
}

/// The parameter that lets a graph go on, though not as required.
pub(super) fn goes_on(system: &System, id: GraphId) -> Checked<Option<String>> {
    let mut lenient = system.clone();
    if let Some(graph) = lenient.graphs.get_mut(id.index()) {
        (graph.every, graph.within) = (None, None);
    }
    let fix = smallest(&lenient, id)?;
    let words = |fix| format!("{} lets it go on, but not as required", words(&fix));
    Ok(fix.map(words))
}

/// The wcet that shrinks by the smallest part of it, among the first [`MOST_ACTORS`].
/// O(actors · log · cost of a worst circle).
pub(super) fn shorter(system: &System, id: GraphId) -> Checked<Option<GraphFix>> {
    let Some(graph) = system.graphs.get(id.index()) else {
        return Ok(None);
    };
    let mut best: Option<(u64, GraphFix)> = None;
    for actor in 0..graph.actors.len().min(MOST_ACTORS) {
        if let Some((part, fix)) = wcet(system, graph, actor)?
            && best.as_ref().is_none_or(|(least, _)| part < *least)
        {
            best = Some((part, fix));
        }
    }
    Ok(best.map(|(_, fix)| fix))
}

/// The longest wcet of an actor that mends its graph: its longer phases shrink to it. Beside it the
/// millionths by which the longest shrinks.
fn wcet(system: &System, graph: &Graph, actor: usize) -> Checked<Option<(u64, GraphFix)>> {
    let now = &graph.actors[actor].wcet;
    let longest = now.iter().copied().max().unwrap_or_default().as_ns();
    let with = |most: u64| {
        let most = Work::from_ns(most);
        let phases = now.iter().map(|&phase| phase.min(most));
        phases.collect::<Vec<_>>()
    };
    let mut changed = graph.clone();
    let mut holds_with = |most: u64| {
        changed.actors[actor].wcet = with(most);
        holds(system, &changed)
    };
    if longest < 2 || !holds_with(1)? {
        return Ok(None);
    }
    let most = border(longest, 1, holds_with)?;
    let text = |phases: &[Work]| {
        let each = phases
            .iter()
            .map(|phase| explain::span_text(phase.as_span()));
        let each: Vec<String> = each.collect();
        match &*each {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        }
    };
    let part = u128::from(longest - most) * 1_000_000 / u128::from(longest);
    Ok(Some((
        u64::try_from(part).unwrap_or(u64::MAX),
        GraphFix {
            parameter: format!("graph.{}.actors[{actor}].wcet", graph.name),
            from: text(now),
            to: text(&with(most)),
        },
    )))
}

/// The capacity that grows by the fewest bytes, or else the slot that grows least. O(candidates ·
/// log · cost of a worst circle).
pub(super) fn smallest(system: &System, id: GraphId) -> Checked<Option<GraphFix>> {
    let Some(graph) = system.graphs.get(id.index()) else {
        return Ok(None);
    };
    let mut best: Option<(u64, GraphFix)> = None;
    for fifo in candidates(system, graph)? {
        if let Some((grown, fix)) = capacity(system, graph, fifo)?
            && best.as_ref().is_none_or(|(least, _)| grown < *least)
        {
            best = Some((grown, fix));
        }
    }
    if best.is_none() {
        for (scheduler, place) in slots(system, graph) {
            if let Some((grown, fix)) = slot(system, graph, scheduler, place)?
                && best.as_ref().is_none_or(|(least, _)| grown < *least)
            {
                best = Some((grown, fix));
            }
        }
    }
    Ok(best.map(|(_, fix)| fix))
}

/// FIFOs whose capacity may matter: those that hold the graph up, or all when it is late at first.
fn candidates(system: &System, graph: &Graph) -> Checked<Vec<usize>> {
    let found = match evaluate(system, graph)? {
        Outcome::Stops { deadlock, .. } => deadlock.full,
        Outcome::Runs(runs)
            if graph
                .every
                .is_some_and(|every| runs.circle.period > Fraction::whole(every.as_ns())) =>
        {
            let links = runs.circle.arcs.iter().filter_map(|arc| match arc.link {
                Link::Space(fifo) => Some(fifo),
                _ => None,
            });
            let mut fifos: Vec<usize> = links.collect();
            fifos.sort_unstable();
            fifos.dedup();
            fifos
        }
        Outcome::Runs(_) => (0..graph.fifos.len())
            .filter(|&f| graph.fifos[f].capacity.is_some())
            .collect(),
        Outcome::Unknown
        | Outcome::Contradicts(_)
        | Outcome::OutOfOrder { .. }
        | Outcome::Starves => Vec::new(),
    };
    Ok(found)
}

fn capacity(system: &System, graph: &Graph, fifo: usize) -> Checked<Option<(u64, GraphFix)>> {
    let mut changed = graph.clone();
    let mut holds_with = |capacity: Option<u32>| {
        changed.fifos[fifo].capacity = capacity;
        holds(system, &changed)
    };
    let Some(now) = graph.fifos[fifo].capacity else {
        return Ok(None);
    };
    if !holds_with(None)? {
        return Ok(None);
    }
    let mut enough = now.max(1);
    while !holds_with(Some(enough))? {
        match enough.checked_mul(2) {
            Some(more) => enough = more,
            None => return Ok(None),
        }
    }
    let refused = |wide: u64| u32::try_from(wide).unwrap_or(u32::MAX);
    let least = border(u64::from(now), u64::from(enough), |middle| {
        holds_with(Some(refused(middle)))
    })?;
    let size = u64::from(graph.fifos[fifo].token_size.max(1));
    Ok(Some((
        (least - u64::from(now)).saturating_mul(size),
        GraphFix {
            parameter: format!("graph.{}.fifos[{fifo}].capacity", graph.name),
            from: now.to_string(),
            to: least.to_string(),
        },
    )))
}

/// The slots of the tiles of a graph.
fn slots(system: &System, graph: &Graph) -> Vec<(SchedulerId, usize)> {
    let mut found = Vec::new();
    for id in graph.actors.iter().filter_map(|actor| actor.tile.scheduler) {
        let scheduler = system.schedulers.get(id.index());
        if let Some(Supply::Slots(slots)) = scheduler.map(|s| &s.supply) {
            found.extend((0..slots.len()).map(|place| (id, place)));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn slot(
    system: &System,
    graph: &Graph,
    id: SchedulerId,
    place: usize,
) -> Checked<Option<(u64, GraphFix)>> {
    let mut changed = system.clone();
    let Some(scheduler) = system.schedulers.get(id.index()) else {
        return Ok(None);
    };
    let Supply::Slots(slots) = &scheduler.supply else {
        return Ok(None);
    };
    let now = slots[place];
    let room = slot_room(system, (scheduler.cpu, scheduler.parent), now);
    let Some(room) = room.filter(|room| *room > now.length) else {
        return Ok(None);
    };
    let mut holds_with = |length| {
        if let Some(Supply::Slots(slots)) = changed
            .schedulers
            .get_mut(id.index())
            .map(|s| &mut s.supply)
        {
            slots[place].length = length;
        }
        holds(&changed, graph)
    };
    if !holds_with(room)? {
        return Ok(None);
    }
    let least = border(now.length, room, holds_with)?;
    Ok(Some((
        least.saturating_sub(now.length).as_ns(),
        GraphFix {
            parameter: format!("scheduler.{}.slots[{place}].length", scheduler.name),
            from: explain::span_text(now.length),
            to: explain::span_text(least),
        },
    )))
}
