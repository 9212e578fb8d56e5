//! Copies in virtual time: tokens under way, and the engine that makes one copy at a time.

use std::collections::VecDeque;

use punctual_firing::{Fifos, Held};
use punctual_model::{Graph, Instant, Span};

/// The FIFOs of a graph, for all its tiles.
pub(crate) struct Tokens {
    held: Held,
    /// By FIFO: copies that have not arrived, in the order of their arrivals.
    under_way: Vec<VecDeque<(Instant, u32)>>,
}

impl Tokens {
    pub(crate) fn at_first(graph: &Graph) -> Tokens {
        Tokens {
            held: Held::at_first(graph),
            under_way: vec![VecDeque::new(); graph.fifos.len()],
        }
    }

    /// Copies that have been made by now arrive. O(what has come).
    pub(super) fn settle(&mut self, now: Instant) {
        for (fifo, under_way) in self.under_way.iter_mut().enumerate() {
            while let Some((_, count)) = under_way.pop_front_if(|(at, _)| *at <= now) {
                self.held.produce(fifo, count);
            }
        }
    }

    /// The next arrival in a FIFO.
    pub(super) fn arrival(&self, fifo: usize) -> Option<Instant> {
        let first = self.under_way.get(fifo)?.front();
        first.map(|(at, _)| *at)
    }

    /// Tokens that arrive then, and have their space from now on.
    pub(super) fn send(&mut self, fifo: usize, count: u32, at: Instant) {
        if let Some(under_way) = self.under_way.get_mut(fifo) {
            under_way.push_back((at, count));
        }
    }
}

impl Fifos for Tokens {
    fn tokens(&self, fifo: usize) -> u32 {
        self.held.tokens(fifo)
    }

    fn space(&self, fifo: usize) -> u32 {
        let under_way = self.under_way.get(fifo).into_iter().flatten();
        let under_way = under_way.map(|(_, count)| *count).sum();
        self.held.space(fifo).saturating_sub(under_way)
    }

    fn consume(&mut self, fifo: usize, count: u32) {
        self.held.consume(fifo, count);
    }

    fn produce(&mut self, fifo: usize, count: u32) {
        self.held.produce(fifo, count);
    }
}

/// The copy engine of one application on one tile. It works also while the application has no slot.
#[derive(Default)]
pub(crate) struct CopyEngine {
    /// It has made all copies by then.
    free: Instant,
}

impl CopyEngine {
    /// Copies for so long, behind what it was asked before: from when to when.
    pub(super) fn copy(&mut self, now: Instant, time: Span) -> (Instant, Instant) {
        let begin = self.free.max(now);
        self.free = begin.saturating_add(time);
        (begin, self.free)
    }
}
