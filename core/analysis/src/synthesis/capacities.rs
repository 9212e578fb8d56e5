//! Capacities of FIFOs: the smallest that keep what is required of each graph
//!
//! # Assumptions
//! 1. Those of the graphs. Sizes count bytes, or tokens where they have no size.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use punctual_dataflow::{Front, Point};
use punctual_model::{Graph, System};

use super::{NoSuggestion, Setting, Suggestion, suggested};
use crate::graph;

/// The smallest capacities of every graph. O(distributions tried · cost of a worst circle).
pub(super) fn shrink(system: &System) -> Result<Suggestion, NoSuggestion> {
    if system.graphs.is_empty() {
        return Err(NoSuggestion::Reason("there is no graph".into()));
    }
    if system.graphs.iter().all(|graph| graph.plain) {
        return Err(NoSuggestion::Reason("no graph is real-time".into()));
    }
    let mut changed = system.clone();
    let (mut changes, mut grounds) = (Vec::new(), Vec::new());
    let promised = system.graphs.iter().enumerate();
    for (index, graph) in promised.filter(|(_, graph)| !graph.plain) {
        if let Some(actor) = graph.varying() {
            let (name, graph) = (&graph.actors[actor.index()].name, &graph.name);
            let reason = format!("the rates of graph `{graph}` depend on the data of `{name}`");
            return Err(NoSuggestion::Reason(reason));
        }
        let Some(front) = graph::front(system, graph)? else {
            let reason = format!("graph `{}` stops whatever its capacities are", graph.name);
            return Err(NoSuggestion::Reason(reason));
        };
        let mut found = None;
        for point in &front.points {
            let tried = with(graph, point);
            if graph::holds(system, &tried)? {
                found = Some(tried);
                break;
            }
        }
        let Some(found) = found else {
            let none = match front.complete {
                true => "no capacities",
                false => "none of the capacities that were tried",
            };
            return Err(NoSuggestion::Reason(format!(
                "{none} of graph `{}` keep what is required of it\n{}",
                graph.name,
                words(graph, &front)
            )));
        };
        for (place, (old, new)) in graph.fifos.iter().zip(&found.fifos).enumerate() {
            if old.capacity != new.capacity {
                let text =
                    |capacity: Option<u32>| capacity.map_or("none".into(), |c| c.to_string());
                changes.push(Setting {
                    parameter: format!("graph.{}.fifos[{place}].capacity", graph.name),
                    from: text(old.capacity),
                    to: text(new.capacity),
                });
            }
        }
        grounds.push(words(graph, &front));
        changed.graphs[index] = found;
    }
    let ground = grounds.join("\n");
    let but = "there are capacities that keep what is required of the graphs";
    suggested(changed, changes, &ground, but)
}

fn with(graph: &Graph, point: &Point) -> Graph {
    let mut graph = graph.clone();
    for (fifo, capacity) in graph.fifos.iter_mut().zip(&point.capacities) {
        fifo.capacity = *capacity;
    }
    graph
}

/// The whole front, a line for each point.
fn words(graph: &Graph, front: &Front) -> String {
    let names: Vec<&str> = graph.fifos.iter().map(|fifo| &*fifo.name).collect();
    let mut text = format!(
        "by size, from the least that never stops, each faster than all smaller ones (Stuijk, \
         Geilen and Basten 2006); graph {}, capacities of {}",
        graph.name,
        names.join(", ")
    );
    for point in &front.points {
        let capacities = point.capacities.iter();
        let capacities = capacities.map(|c| c.map_or("none".into(), |c| c.to_string()));
        let capacities: Vec<String> = capacities.collect();
        text += &format!(
            "\n  {}: size {}, period {}",
            capacities.join(", "),
            point.size,
            graph::of_period(point.period)
        );
    }
    if !front.complete {
        text += "\n  the search ended at its limit: larger and faster ones exist";
    }
    text
}
