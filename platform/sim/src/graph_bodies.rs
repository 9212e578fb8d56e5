//! The bodies of all graphs of a system, real-time or not.

use std::cell::RefCell;
use std::rc::Rc;

use punctual_model::{GraphId, GraphThread, System, TaskId, Tile};

use crate::body::Body;
use crate::faults::Faults;
use crate::graph::copies::Tokens;
use crate::graph::turns::OfTile;
use crate::graph::{GraphBody, Moves};
use crate::graph_plain::PlainBody;

/// The bodies of the graphs of a system that has a task for each of their threads
/// ([`System::with_graph_threads`]). Their transitions go to `moves`. O(actors · FIFOs).
pub fn graph_bodies(
    system: &System,
    threads: &[GraphThread],
    (faults, seed): (&Faults, u64),
    moves: &Moves,
) -> Vec<(TaskId, Box<dyn Body>)> {
    let mut bodies: Vec<(TaskId, Box<dyn Body>)> = Vec::new();
    for (id, graph) in (0..).map(GraphId).zip(&system.graphs) {
        let own: Vec<&GraphThread> = threads.iter().filter(|t| t.graph == id).collect();
        let fifos = Rc::new(RefCell::new(Tokens::at_first(graph)));
        let mut tiles: Vec<(Tile, Rc<OfTile>)> = Vec::new();
        for thread in &own {
            let (of, given) = ((graph, *thread, &*own), (faults, seed, moves));
            let fifos = Rc::clone(&fifos);
            let known = tiles.iter().find(|(tile, _)| *tile == thread.tile);
            let shared = known.map(|(_, shared)| Rc::clone(shared));
            let shared = shared.unwrap_or_else(|| {
                let shared = Rc::new(OfTile::new(graph, thread.tile));
                tiles.push((thread.tile, Rc::clone(&shared)));
                shared
            });
            let body: Box<dyn Body> = match graph.plain {
                true => Box::new(PlainBody::new(of, given, fifos)),
                false => Box::new(GraphBody::new(of, given, (fifos, shared))),
            };
            bodies.push((thread.task, body));
        }
    }
    bodies
}
