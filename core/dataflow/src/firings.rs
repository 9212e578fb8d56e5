//! A graph unfolded: one node for each firing of an iteration
//!
//! A firing waits, in each FIFO, for one firing of the writer: the one that hands over the last
//! token that it needs. Writers fire in order, so that one is enough, and there are no more arcs
//! than firings and FIFOs together. An arc with d tokens waits for a firing d iterations back.
//!
//! Source: Lee and Messerschmitt 1987; Geilen 2009 (arcs without redundancy).

use alloc::vec;
use alloc::vec::Vec;

use crate::timed::{Edge, Link, Timed};

/// The firings of an iteration, and the arcs between those that wait for each other.
#[derive(Clone, Debug)]
pub struct Firings {
    /// The actor of each node.
    pub(crate) actor: Vec<usize>,
    /// The time of each node.
    pub(crate) time: Vec<u64>,
    /// First node of each actor, and the number of nodes.
    pub(crate) first: Vec<usize>,
    /// In no order.
    pub(crate) arcs: Vec<Arc>,
}

/// A firing waits for another one to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arc {
    /// The node that is waited for.
    pub from: usize,
    /// The node that waits.
    pub to: usize,
    /// How many iterations back.
    pub tokens: u64,
    /// The reason.
    pub link: Link,
}

impl Firings {
    /// Unfolds a graph. O(firings of an iteration · FIFOs of an actor · log).
    pub fn of(timed: &Timed) -> Firings {
        let mut first = Vec::with_capacity(timed.actors() + 1);
        let (mut actor, mut time) = (Vec::new(), Vec::new());
        for (index, &count) in timed.firings.iter().enumerate() {
            first.push(actor.len());
            for firing in 0..usize::try_from(count).unwrap_or(0) {
                actor.push(index);
                time.push(timed.times[index][firing % timed.times[index].len()]);
            }
        }
        first.push(actor.len());
        let mut firings = Firings {
            actor,
            time,
            first,
            arcs: Vec::new(),
        };
        for actor in 0..timed.actors() {
            let nodes: Vec<usize> = firings.nodes(actor).collect();
            firings.chain(&nodes, Link::Itself);
        }
        for (index, order) in timed.orders.iter().enumerate() {
            let mut next: Vec<usize> = firings.first.clone();
            let nodes: Vec<usize> = order
                .iter()
                .map(|&actor| {
                    next[actor] += 1;
                    next[actor] - 1
                })
                .collect();
            firings.chain(&nodes, Link::Order(index));
        }
        for edge in &timed.edges {
            firings.add_edge(edge);
        }
        firings
    }

    /// The nodes of an actor.
    pub(crate) fn nodes(&self, actor: usize) -> core::ops::Range<usize> {
        self.first[actor]..self.first[actor + 1]
    }

    /// Each node waits for the one before it, the first for the last of the iteration before.
    fn chain(&mut self, nodes: &[usize], link: Link) {
        let before = nodes.iter().cycle().skip(nodes.len().saturating_sub(1));
        for (place, (&to, &from)) in nodes.iter().zip(before).enumerate() {
            self.arcs.push(Arc {
                from,
                to,
                tokens: u64::from(place == 0),
                link,
            });
        }
    }

    fn add_edge(&mut self, edge: &Edge) {
        // Tokens handed over up to and with each firing of the writer.
        let mut given: Vec<i128> = Vec::new();
        let mut sum: i128 = 0;
        for firing in 0..self.nodes(edge.from).len() {
            sum += i128::from(edge.give[firing % edge.give.len()]);
            given.push(sum);
        }
        let (total, mut needed) = (sum, 0);
        if total == 0 {
            return;
        }
        for firing in 0..self.nodes(edge.to).len() {
            let take = edge.take[firing % edge.take.len()];
            needed += i128::from(take);
            if take == 0 {
                continue;
            }
            // The number of the last token needed, counted from the first of this iteration.
            let last = needed - i128::from(edge.initial) - 1;
            let (back, within) = (last.div_euclid(total), last.rem_euclid(total));
            let writer = given.partition_point(|&given| given <= within);
            self.arcs.push(Arc {
                from: self.first[edge.from] + writer,
                to: self.first[edge.to] + firing,
                tokens: u64::try_from(-back).unwrap_or(0),
                link: edge.link,
            });
        }
    }

    /// Number of firings.
    pub fn len(&self) -> usize {
        self.actor.len()
    }

    /// Whether nothing fires.
    pub fn is_empty(&self) -> bool {
        self.actor.is_empty()
    }

    /// The actor of a firing, and which of its firings it is.
    pub fn name(&self, node: usize) -> (usize, usize) {
        let actor = self.actor[node];
        (actor, node - self.first[actor])
    }

    /// The time of a firing.
    pub fn time(&self, node: usize) -> u64 {
        self.time[node]
    }

    /// An arc for each firing that waits for another.
    pub fn arcs(&self) -> &[Arc] {
        &self.arcs
    }

    /// The arcs sorted by the node that waits, and where those of each node begin.
    pub(crate) fn incoming(&self) -> (Vec<usize>, Vec<Arc>) {
        let mut first = vec![0; self.len() + 1];
        for arc in &self.arcs {
            first[arc.to + 1] += 1;
        }
        for node in 0..self.len() {
            first[node + 1] += first[node];
        }
        let mut sorted = self.arcs.clone();
        sorted.sort_by_key(|arc| arc.to);
        (first, sorted)
    }
}
