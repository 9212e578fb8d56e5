//! A graph whose firings have times: FIFOs as edges, and their space as edges that run back

use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{Fifo, Graph};

use crate::error::DataflowError;
use crate::rates::phases;

/// A graph ready to be executed or unfolded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timed {
    /// Of each actor: the time of a firing in each of its phases.
    pub(crate) times: Vec<Vec<u64>>,
    /// Of each actor: firings in an iteration.
    pub(crate) firings: Vec<u64>,
    /// Tokens, and space.
    pub(crate) edges: Vec<Edge>,
    /// Firings of an iteration that are made in this order, one at a time.
    pub(crate) orders: Vec<Vec<usize>>,
    /// Actors that hand nothing on to others; all of them where every one does.
    pub(crate) outputs: Vec<usize>,
}

/// A dependence between the firings of two actors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The actor whose ends give.
    pub from: usize,
    /// The actor whose starts take.
    pub to: usize,
    /// Given in each phase.
    pub give: Vec<u64>,
    /// Taken in each phase.
    pub take: Vec<u64>,
    /// There at first.
    pub initial: u64,
    /// The meaning of what is given.
    pub link: Link,
}

/// The reason why one firing waits for another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Link {
    /// Tokens of the FIFO with this place.
    Tokens(usize),
    /// Space in the FIFO with this place.
    Space(usize),
    /// An actor fires once at a time.
    Itself,
    /// The static order with this place among those of the graph.
    Order(usize),
}

impl Timed {
    /// `graph`, which must be valid, with these times for each phase of each actor (one for all
    /// phases will do), and with `firings` per iteration. O(edges · phases + orders · actors +
    /// turns in all orders).
    ///
    /// # Errors
    ///
    /// [`DataflowError::Order`] where a static order is no iteration,
    /// [`DataflowError::Overflow`] where an iteration lasts longer than 64 bits can count.
    pub fn new(graph: &Graph, firings: &[u64], times: &[Vec<u64>]) -> Result<Timed, DataflowError> {
        let phases = phases(graph);
        let mut edges = Vec::with_capacity(2 * graph.fifos.len());
        for (index, fifo) in graph.fifos.iter().enumerate() {
            edges.push(tokens(index, fifo, &phases));
            if let Some(capacity) = fifo.capacity {
                edges.push(space(&tokens(index, fifo, &phases), index, fifo, capacity));
            }
        }
        let orders = orders(graph, firings)?;
        let times: Vec<Vec<u64>> = times
            .iter()
            .zip(&phases)
            .map(|(t, &n)| spread(t, n))
            .collect();
        let mut total: u64 = 0;
        for (times, &firings) in times.iter().zip(firings) {
            let cycles = firings / times.len().max(1) as u64;
            let cycle = times
                .iter()
                .try_fold(0_u64, |sum, &time| sum.checked_add(time));
            let all = cycle.and_then(|cycle| cycle.checked_mul(cycles));
            let sum = all.and_then(|all| total.checked_add(all));
            total = sum.ok_or(DataflowError::Overflow {
                what: "the time of one iteration",
            })?;
        }
        Ok(Timed {
            outputs: outputs(graph),
            times,
            firings: firings.to_vec(),
            edges,
            orders,
        })
    }

    /// The same actors with only these edges and orders, numbered anew: those of `members`, which
    /// are in order. O(size).
    pub(crate) fn part(&self, members: &[usize]) -> Timed {
        let place = |actor: usize| members.binary_search(&actor).ok();
        let edges = self.edges.iter().filter_map(|edge| {
            Some(Edge {
                from: place(edge.from)?,
                to: place(edge.to)?,
                ..edge.clone()
            })
        });
        let orders = self.orders.iter().filter_map(|order| {
            let order = order.iter().map(|&actor| place(actor));
            order.collect::<Option<Vec<usize>>>()
        });
        Timed {
            times: members.iter().map(|&m| self.times[m].clone()).collect(),
            firings: members.iter().map(|&m| self.firings[m]).collect(),
            edges: edges.collect(),
            orders: orders.collect(),
            outputs: Vec::new(),
        }
    }

    /// Pairs of actors of which the second may wait for the first.
    pub(crate) fn dependences(&self) -> Vec<(usize, usize)> {
        let edges = self.edges.iter().map(|edge| (edge.from, edge.to));
        let mut pairs: Vec<(usize, usize)> = edges.collect();
        for order in &self.orders {
            let next = order.iter().cycle().skip(1);
            pairs.extend(order.iter().zip(next).map(|(&a, &b)| (a, b)));
        }
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// Number of actors.
    pub fn actors(&self) -> usize {
        self.times.len()
    }

    /// Firings of each actor in an iteration.
    pub fn firings(&self) -> &[u64] {
        &self.firings
    }

    /// Tokens and space.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The actors whose firings are the outputs of an iteration.
    pub fn outputs(&self) -> &[usize] {
        &self.outputs
    }
}

/// One value for each phase.
fn spread<T: Copy + Into<u64>>(cycle: &[T], phases: usize) -> Vec<u64> {
    match cycle {
        [one] => vec![(*one).into(); phases],
        all => all.iter().map(|&value| value.into()).collect(),
    }
}

fn tokens(index: usize, fifo: &Fifo, phases: &[usize]) -> Edge {
    let (from, to) = (fifo.from.index(), fifo.to.index());
    Edge {
        from,
        to,
        give: spread(&fifo.produce, phases[from]),
        take: spread(&fifo.consume, phases[to]),
        initial: fifo.initial.into(),
        link: Link::Tokens(index),
    }
}

/// Space runs against the tokens: a start of the writer takes it, an end of the reader gives it.
fn space(tokens: &Edge, index: usize, fifo: &Fifo, capacity: u32) -> Edge {
    Edge {
        from: tokens.to,
        to: tokens.from,
        give: tokens.take.clone(),
        take: tokens.give.clone(),
        initial: capacity.saturating_sub(fifo.initial).into(),
        link: Link::Space(index),
    }
}

fn orders(graph: &Graph, firings: &[u64]) -> Result<Vec<Vec<usize>>, DataflowError> {
    let mut orders = Vec::new();
    for (order, (tile, firings_there)) in graph.static_orders().enumerate() {
        let listed: Vec<usize> = firings_there.iter().map(|id| id.index()).collect();
        let mut turns = vec![0_u64; firings.len()];
        for &actor in &listed {
            turns[actor] += 1;
        }
        for (actor, (&needed, &found)) in firings.iter().zip(&turns).enumerate() {
            // Those of other tiles have no place in it.
            let needed = match graph.actors[actor].tile == tile {
                true => needed,
                false => 0,
            };
            if found != needed {
                return Err(DataflowError::Order {
                    order,
                    actor,
                    listed: found,
                    needed,
                });
            }
        }
        orders.push(listed);
    }
    Ok(orders)
}

/// The actors whose firings are the outputs of an iteration: those that hand nothing on to others,
/// or else all. O(size).
pub fn outputs(graph: &Graph) -> Vec<usize> {
    let mut hands_on = vec![false; graph.actors.len()];
    for fifo in graph.fifos.iter().filter(|fifo| fifo.from != fifo.to) {
        hands_on[fifo.from.index()] = true;
    }
    let all = 0..graph.actors.len();
    match all
        .clone()
        .filter(|&actor| !hands_on[actor])
        .collect::<Vec<_>>()
    {
        none if none.is_empty() => all.collect(),
        some => some,
    }
}
