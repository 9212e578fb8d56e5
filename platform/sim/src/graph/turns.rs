//! Numbers that the threads of one tile share, where each actor has one.

use std::cell::{Cell, RefCell};

use punctual_model::{Graph, Tile};

use super::copies::CopyEngine;

/// One tile of a graph, in the hands of its threads.
pub(crate) struct OfTile {
    pub(crate) copies: RefCell<CopyEngine>,
    /// Its actors, each with a thread of its own; `None`: one thread has them all.
    threads: Option<usize>,
    /// Threads that may not fire, one after the other, since anything has changed.
    idle: Cell<usize>,
}

impl OfTile {
    pub(crate) fn new(graph: &Graph, tile: Tile) -> OfTile {
        let is_inline = graph.when_on(tile) == punctual_firing::When::Inline;
        OfTile {
            copies: RefCell::default(),
            threads: is_inline.then(|| graph.actors_on(tile).count()),
            idle: Cell::new(0),
        }
    }

    /// Whether each actor has a thread.
    pub(crate) fn is_inline(&self) -> bool {
        self.threads.is_some()
    }

    /// A thread may not fire; whether that is so of all threads now.
    pub(crate) fn passes(&self) -> bool {
        self.idle.set(self.idle.get() + 1);
        self.threads
            .is_some_and(|threads| self.idle.get() >= threads)
    }

    /// Somebody fires, or tokens may have come: everybody looks again.
    pub(crate) fn changes(&self) {
        self.idle.set(0);
    }
}
