//! Streaming applications: throughput, latency and deadlock of graphs on their tiles
//!
//! A firing that becomes ready at the worst instant ends within its *response*. In that time the
//! supply of its tile provides its wcet and, where the actors of the tile fire by turns, those of
//! the others once each. With responses in place of wcets, `punctual-dataflow` answers.
//!
//! For one slot S' of a frame F that is R = C + ⌈C/S'⌉·(F − S'). (Counted: work that begins just
//! when a slot ends waits for a whole gap before each slot that it needs.)
//!
//! # Assumptions
//! 1. A tile executes one graph and nothing else (`System::validate`).
//! 2. Its application decides whenever a firing ends, by turns (round robin) or in a static order.
//!    Or it decides once, at the start of each slot; the rest of a slot after a firing is then no
//!    supply. Or its actors are threads of the core, which take turns (`tile`).
//! 3. Claiming and releasing tokens and the decisions of the application are part of the wcets;
//!    copies between memories, too, unless the graph says how long these take (`copies`).
//! 4. An earlier end delays nobody: rates do not depend on data (Wiggers et al. 2009, §3).
//!
//! Sources: CompOSe (§3.1, §4.2); Ghamarian et al. 2006; Cochet-Terrasson et al. 1998; Moreira et
//! al. 2007 (round robin and time division in dataflow).

mod copies;
mod evaluate;
mod explain;
mod fix;
mod tile;

use alloc::string::String;
use alloc::vec::Vec;

use punctual_dataflow::Front;
use punctual_model::{Graph, GraphId, Place, System};

use crate::error::{AnalysisError, Checked};
use crate::units::Span;
use crate::verdict::{
    ActorVerdict, Exactness, GraphSchedule, GraphVerdict, Refusal, Subject, Test,
};
use evaluate::{Outcome, Runs, evaluate};
pub(crate) use explain::of_period;
pub(crate) use fix::holds;
use tile::tile_name;

/// The test of every graph.
const TEST: Test = Test {
    name: "worst circle of firings",
    source: "Howard's policy iteration, Cochet-Terrasson et al. 1998",
};

/// The verdicts on all graphs of a system, and why any is refused. The cost of one is that of its
/// worst circle, and some twenty of these for the fix of one that is refused.
pub(crate) fn verdicts(
    system: &System,
    seeks_fixes: bool,
) -> Checked<(Vec<GraphVerdict>, Vec<Refusal>)> {
    let (mut verdicts, mut refusals) = (Vec::new(), Vec::new());
    for (id, graph) in (0..).map(GraphId).zip(&system.graphs) {
        let (mut verdict, reason) = verdict(system, id, graph)?;
        if let Some(reason) = reason {
            let mut refusal = Refusal::new(Subject::Graph(id), &graph.name, reason);
            if seeks_fixes {
                refusal.advice = mend(system, id, &mut verdict)?;
            }
            refusals.push(refusal);
        }
        verdicts.push(verdict);
    }
    Ok((verdicts, refusals))
}

/// Looks for what mends a refused graph, and says it.
fn mend(system: &System, id: GraphId, verdict: &mut GraphVerdict) -> Checked<String> {
    verdict.fix = fix::smallest(system, id)?;
    if verdict.fix.is_none() {
        verdict.together = fix::several(system, id)?;
    }
    // Time does not matter to one that stops.
    if verdict.fix.is_none() && verdict.together.is_empty() && verdict.circle.is_some() {
        verdict.fix = fix::shorter(system, id)?;
    }
    Ok(match (&verdict.fix, &*verdict.together) {
        (Some(fix), _) => fix::words(fix),
        (None, []) => fix::beyond_all(system, id, verdict.period.is_none())?,
        (None, several) => {
            let together = fix::words_of_several(several);
            match verdict.period {
                Some(_) => together,
                None => {
                    fix::goes_on(system, id)?.map_or_else(String::new, |first| first + "; ")
                        + &together
                }
            }
        }
    })
}

/// Whether every graph of a system keeps what is required of it.
pub(crate) fn are_admitted(system: &System) -> Checked<bool> {
    for graph in &system.graphs {
        if !holds(system, graph)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Which capacities buy which period, on the tiles of a system; `None`: it stops with any.
pub(crate) fn front(system: &System, graph: &Graph) -> Checked<Option<Front>> {
    let mut free = graph.clone();
    for fifo in free.fifos.iter_mut().filter(|fifo| fifo.from != fifo.to) {
        fifo.capacity = None;
    }
    let Outcome::Runs(runs) = evaluate(system, &free)? else {
        return Ok(None);
    };
    let front = punctual_dataflow::front(&free, &runs.firings, &runs.times);
    front
        .map(Some)
        .map_err(|error| evaluate::named(&graph.name, &error))
}

/// The schedule that shows the latency of a graph; `None`: it cannot go on, or does not keep what
/// is required. The cost is that of its worst circle.
///
/// # Errors
///
/// As [`crate::admit`].
pub fn graph_schedule(
    system: &System,
    graph: GraphId,
) -> Result<Option<GraphSchedule>, AnalysisError> {
    let Some(graph) = system.graphs.get(graph.index()) else {
        return Ok(None);
    };
    let Outcome::Runs(runs) = evaluate(system, graph)? else {
        return Ok(None);
    };
    if explain::late(graph, &runs).is_some() {
        return Ok(None);
    }
    let mut starts = alloc::vec![Vec::new(); graph.actors.len()];
    for (node, &start) in runs.schedule.starts.iter().enumerate() {
        starts[runs.unfolded.name(node).0].push(start);
    }
    Ok(Some(GraphSchedule {
        period: runs.schedule.period,
        starts,
        responses: runs.times,
        latency: Span::from_ns(runs.latency),
    }))
}

/// The row of one graph, and the reason why it is refused.
fn verdict(system: &System, id: GraphId, graph: &Graph) -> Checked<(GraphVerdict, Option<String>)> {
    let outcome = evaluate(system, graph)?;
    let mut row = GraphVerdict {
        graph: id,
        name: graph.name.clone(),
        actors: actors(system, graph),
        period: None,
        first_output: None,
        latency: None,
        every: graph.every,
        within: graph.within,
        circle: None,
        memory: memory(system, graph),
        confirmed: false,
        exactness: tile::exactness(graph),
        test: TEST,
        explanation: String::new(),
        assumptions: tile::assumptions(system, graph),
        fix: None,
        together: Vec::new(),
    };
    match outcome {
        Outcome::Runs(runs) => {
            fill(&mut row, graph, &runs)?;
            let reason = explain::late(graph, &runs);
            Ok((row, reason))
        }
        Outcome::Unknown => {
            row.exactness = Exactness::Exact;
            row.assumptions.clear();
            row.explanation = explain::why_not(system, graph, &Outcome::Unknown);
            let is_required = graph.every.is_some() || graph.within.is_some();
            let reason = is_required.then(|| row.explanation.clone());
            Ok((row, reason))
        }
        without => {
            row.exactness = Exactness::Exact;
            if let Outcome::Stops { firings, .. } = &without {
                count(&mut row, firings);
            }
            row.explanation = explain::why_not(system, graph, &without);
            let reason = row.explanation.clone();
            Ok((row, Some(reason)))
        }
    }
}

fn count(row: &mut GraphVerdict, firings: &[u64]) {
    for (actor, &firings) in row.actors.iter_mut().zip(firings) {
        actor.firings = Some(firings);
    }
}

fn fill(row: &mut GraphVerdict, graph: &Graph, runs: &Runs) -> Checked<()> {
    count(row, &runs.firings);
    for (actor, times) in row.actors.iter_mut().zip(&runs.times) {
        actor.response = times.iter().max().map(|&time| Span::from_ns(time));
    }
    row.period = Some(runs.circle.period);
    row.first_output = Some(Span::from_ns(runs.first_output()?));
    row.latency = Some(Span::from_ns(runs.latency));
    row.confirmed = runs.confirm(&graph.name)?;
    let circle = explain::circle(graph, runs);
    row.explanation = explain::period(&circle, runs.circle.period);
    row.circle = Some(circle);
    Ok(())
}

/// The actors before anything is known about their firings.
fn actors(system: &System, graph: &Graph) -> Vec<ActorVerdict> {
    let actors = graph.actors.iter().map(|actor| ActorVerdict {
        name: actor.name.clone(),
        on: tile_name(system, actor.tile),
        firings: None,
        wcet: actor.wcet.iter().copied().max().unwrap_or_default(),
        response: None,
    });
    actors.collect()
}

/// Bytes of the FIFOs in each memory, in the order of first use. FIFOs of empty tokens need none.
fn memory(system: &System, graph: &Graph) -> Vec<(String, Option<u64>)> {
    let mut memory: Vec<(String, Option<u64>)> = Vec::new();
    for fifo in graph.fifos.iter().filter(|fifo| fifo.token_size > 0) {
        let actor = match fifo.place {
            Place::Producer => graph.actors.get(fifo.from.index()),
            Place::Consumer => graph.actors.get(fifo.to.index()),
            Place::Memory => None,
        };
        let place = actor.map_or("memory".into(), |actor| tile_name(system, actor.tile));
        // A FIFO of an actor to itself never holds more than at first and a cycle of phases.
        let cycle = || {
            fifo.produce
                .iter()
                .map(|&rate| u64::from(rate))
                .sum::<u64>()
        };
        let kept = (fifo.from == fifo.to).then(|| cycle() + u64::from(fifo.initial));
        let most = fifo.capacity.map(u64::from).or(kept);
        let bytes = most.map(|most| most.saturating_mul(fifo.token_size.into()));
        match memory.iter_mut().find(|(known, _)| *known == place) {
            Some((_, sum)) => *sum = sum.zip(bytes).and_then(|(a, b)| a.checked_add(b)),
            None => memory.push((place, bytes)),
        }
    }
    memory
}
