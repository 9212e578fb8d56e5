//! Random graphs

use punctual_model::{ActorId, CpuId, Graph, Order, Tile};

pub(crate) use punctual_generate::draw_graph as draw;

/// The same graph with all actors on one tile, in the order of one attempt at an iteration.
pub(crate) fn with_an_order(graph: &Graph, order: Vec<ActorId>) -> Graph {
    let mut graph = graph.clone();
    let tile = Tile::cpu(CpuId(0));
    for actor in &mut graph.actors {
        actor.tile = tile;
    }
    graph.orders = vec![Order::fixed(tile, order)];
    graph
}

/// The wcet of each phase of each actor, in nanoseconds.
pub(crate) fn times(graph: &Graph) -> Vec<Vec<u64>> {
    let actors = graph.actors.iter();
    actors
        .map(|a| a.wcet.iter().map(|w| w.as_ns()).collect())
        .collect()
}
