//! Tokens and space as numbers

use alloc::vec::Vec;

use punctual_model::Graph;

/// The FIFOs of an application, as one tile sees them. A FIFO is named by its place in the graph.
///
/// A tile reads the tokens of FIFOs that it reads, and the space of those that it writes. Nobody
/// else lowers either number, so what a look has found stays at least so much.
pub trait Fifos {
    /// Tokens that its reader may consume.
    fn tokens(&self, fifo: usize) -> u32;
    /// Tokens that its writer may produce.
    fn space(&self, fifo: usize) -> u32;
    /// Its reader gives back `count` tokens.
    fn consume(&mut self, fifo: usize, count: u32);
    /// Its writer hands on `count` tokens.
    fn produce(&mut self, fifo: usize, count: u32);
}

/// All FIFOs of a graph as numbers, without contents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// Tokens, and the most that there can be.
    fifos: Vec<(u32, u32)>,
}

impl Held {
    /// As the graph is at first. A FIFO without limit holds 2³² − 1 tokens. O(FIFOs).
    pub fn at_first(graph: &Graph) -> Held {
        let most = |capacity: Option<u32>| capacity.unwrap_or(u32::MAX);
        let fifos = graph.fifos.iter();
        Held {
            fifos: fifos.map(|f| (f.initial, most(f.capacity))).collect(),
        }
    }
}

impl Fifos for Held {
    fn tokens(&self, fifo: usize) -> u32 {
        self.fifos.get(fifo).map_or(0, |&(held, _)| held)
    }

    fn space(&self, fifo: usize) -> u32 {
        let space = |&(held, most): &(u32, u32)| most.saturating_sub(held);
        self.fifos.get(fifo).map_or(0, space)
    }

    fn consume(&mut self, fifo: usize, count: u32) {
        if let Some((held, _)) = self.fifos.get_mut(fifo) {
            *held = held.saturating_sub(count);
        }
    }

    fn produce(&mut self, fifo: usize, count: u32) {
        if let Some((held, _)) = self.fifos.get_mut(fifo) {
            *held = held.saturating_add(count);
        }
    }
}
