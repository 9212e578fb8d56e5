//! Firings of graphs that executed longer than their wcets in a live run, by name.

use punctual::graph::{Applications, Over, TileBook};
use punctual_model::{System, readable};
use punctual_terminal::ending::Failure;
use punctual_terminal::output;

use crate::flags::Outputs;

/// So many of a tile are named.
const NAMED: usize = 5;

/// One line for each, for people. The report has the longest of each actor.
pub(crate) fn tell(system: &System, run: &Applications, outputs: &Outputs) -> Result<(), Failure> {
    let books = run.books();
    let text: String = books
        .iter()
        .map(|(_, book)| of_tile(system, book))
        .collect();
    if text.is_empty() || outputs.json || outputs.quiet {
        return Ok(());
    }
    output::print(text.trim_end())
}

/// The wcet of the phase of a firing, in nanoseconds.
fn wcet(system: &System, graph: &str, over: &Over) -> Option<u64> {
    let graph = system.graphs.iter().find(|known| known.name == graph)?;
    let cycle = &graph.actors.get(over.actor.index())?.wcet;
    let phase = over.firing % cycle.len().max(1) as u64;
    let of_phase = cycle.get(usize::try_from(phase).ok()?)?;
    Some(of_phase.as_ns())
}

fn of_tile(system: &System, tile: &TileBook) -> String {
    let all: u64 = tile.actors.iter().map(|actor| actor.over()).sum();
    let mut text = String::new();
    for over in tile.overs().iter().take(NAMED) {
        let actor = tile.actors.iter().find(|actor| actor.actor == over.actor);
        let name = actor.map_or("?", |actor| &actor.name);
        text += &format!(
            "  firing {} of {name} executed {}, longer than its wcet {}; {} entries of the scheduler\n",
            over.firing,
            readable(over.executed.as_ns()),
            wcet(system, &tile.graph, over).map_or("?".into(), |wcet| readable(wcet).to_string()),
            over.interruptions
        );
    }
    let more = all.saturating_sub(NAMED as u64);
    if more > 0 {
        let (graph, on) = (&tile.graph, system.tile_name(tile.tile));
        text += &format!("  ... and {more} more of {graph} on {on}\n");
    }
    text
}
