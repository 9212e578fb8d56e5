//! How often each actor fires in an iteration, from the rates alone
//!
//! Over an iteration as many tokens enter a FIFO as leave it. With sums P and C over the phases,
//! r(from) · P = r(to) · C: a spanning tree gives every r as a fraction, and each other FIFO
//! confirms it or contradicts.
//!
//! # Assumptions
//! 1. FIFOs join all actors (`System::validate`).

use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{ActorId, Graph};

use crate::error::DataflowError;

/// Most firings of one iteration that are analysed.
pub const MAX_FIRINGS: u64 = 100_000;

/// The answer about rates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rates {
    /// Firings of each actor in an iteration, phases counted one by one.
    Consistent(Vec<u64>),
    /// No number of firings leaves the FIFOs as they were.
    Contradict(Contradiction),
}

/// A circle of FIFOs whose rates contradict each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contradiction {
    /// The FIFOs of the circle, by their places, in order; their directions may differ.
    pub fifos: Vec<usize>,
    /// The actor that closes the circle.
    pub actor: ActorId,
    /// How often it would fire while it fires so often: one way round, and the other.
    pub ratio: (u128, u128),
}

/// A fraction of 128-bit integers in lowest terms.
type Wide = (u128, u128);

fn lowest((a, b): Wide) -> Wide {
    let common = gcd(a, b).max(1);
    (a / common, b / common)
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The product of two fractions, reduced crosswise first.
fn times(a: Wide, b: Wide) -> Option<Wide> {
    let (x, y) = (lowest((a.0, b.1)), lowest((b.0, a.1)));
    Some((x.0.checked_mul(y.0)?, x.1.checked_mul(y.1)?))
}

/// Tokens of a whole cycle of an actor's phases.
fn sum(cycle: &[u32], phases: usize) -> u128 {
    let once: u128 = cycle.iter().map(|&rate| u128::from(rate)).sum();
    once * (phases / cycle.len().max(1)) as u128
}

/// The steps of a spanning tree: of each actor its rate, and how it was reached.
struct Tree {
    rates: Vec<Option<Wide>>,
    reached: Vec<Option<(usize, usize)>>,
}

/// How often each actor fires in the least iteration. O(FIFOs + actors), with numbers of 128 bits.
///
/// # Errors
///
/// [`DataflowError::Overflow`] where a rate needs more bits, [`DataflowError::TooLarge`] beyond
/// [`MAX_FIRINGS`].
pub fn firings_per_iteration(graph: &Graph) -> Result<Rates, DataflowError> {
    let phases = phases(graph);
    let mut beside: Vec<Vec<usize>> = vec![Vec::new(); graph.actors.len()];
    for (index, fifo) in graph.fifos.iter().enumerate() {
        beside[fifo.from.index()].push(index);
        beside[fifo.to.index()].push(index);
    }
    let mut tree = Tree {
        rates: vec![None; graph.actors.len()],
        reached: vec![None; graph.actors.len()],
    };
    let mut open = Vec::new();
    if let Some(first) = tree.rates.first_mut() {
        *first = Some((1, 1));
        open.push(0);
    }
    while let Some(at) = open.pop() {
        let Some(rate) = tree.rates[at] else { continue };
        for &index in &beside[at] {
            let fifo = &graph.fifos[index];
            let (from, to) = (fifo.from.index(), fifo.to.index());
            let made = sum(&fifo.produce, phases[from]);
            let taken = sum(&fifo.consume, phases[to]);
            // A self-FIFO is looked at once, from its writer.
            let (other, factor) = if from == at {
                (to, (made, taken))
            } else {
                (from, (taken, made))
            };
            let follows = times(rate, lowest(factor));
            let follows = follows.ok_or(DataflowError::Overflow {
                what: "the number of firings of an iteration",
            })?;
            match tree.rates[other] {
                None => {
                    tree.rates[other] = Some(follows);
                    tree.reached[other] = Some((at, index));
                    open.push(other);
                }
                Some(known) if known == follows => {}
                Some(known) => {
                    return Ok(Rates::Contradict(tree.circle(
                        at,
                        other,
                        index,
                        (known, follows),
                    )));
                }
            }
        }
    }
    whole(&tree.rates, &phases).map(Rates::Consistent)
}

/// The number of phases of every actor. O(actors + FIFOs).
pub(crate) fn phases(graph: &Graph) -> Vec<usize> {
    let mut phases: Vec<usize> = graph.actors.iter().map(|a| a.wcet.len().max(1)).collect();
    for fifo in &graph.fifos {
        for (actor, cycle) in [(fifo.from, &fifo.produce), (fifo.to, &fifo.consume)] {
            let known = &mut phases[actor.index()];
            *known = (*known).max(cycle.len());
        }
    }
    phases
}

/// The least whole numbers in the proportion of these fractions, times the phases.
fn whole(rates: &[Option<Wide>], phases: &[usize]) -> Result<Vec<u64>, DataflowError> {
    let too_large = |firings| DataflowError::TooLarge {
        firings,
        most: MAX_FIRINGS,
    };
    let rates: Vec<Wide> = rates.iter().map(|rate| rate.unwrap_or((1, 1))).collect();
    let mut common: u128 = 1;
    for &(_, below) in &rates {
        let grown = (common / gcd(common, below)).checked_mul(below);
        common = grown.ok_or(too_large(None))?;
    }
    let cycles = rates
        .iter()
        .map(|&(above, below)| above.checked_mul(common / below));
    let cycles: Vec<u128> = cycles.collect::<Option<_>>().ok_or(too_large(None))?;
    let divisor = cycles.iter().fold(0, |all, &one| gcd(all, one)).max(1);
    let mut total: u128 = 0;
    let mut firings = Vec::with_capacity(cycles.len());
    for (cycles, &phases) in cycles.into_iter().zip(phases) {
        let count = (cycles / divisor).checked_mul(phases as u128);
        let count = count.ok_or(too_large(None))?;
        total = total.checked_add(count).ok_or(too_large(None))?;
        firings.push(u64::try_from(count).unwrap_or(u64::MAX));
    }
    if total > u128::from(MAX_FIRINGS) {
        return Err(too_large(u64::try_from(total).ok()));
    }
    Ok(firings)
}

impl Tree {
    /// The circle that FIFO number `closing` makes between two actors that the tree has reached.
    fn circle(
        &self,
        at: usize,
        other: usize,
        closing: usize,
        rates: (Wide, Wide),
    ) -> Contradiction {
        let way = |mut from: usize| {
            let mut way = Vec::new();
            while let Some((before, fifo)) = self.reached[from] {
                way.push((from, fifo));
                from = before;
            }
            way
        };
        let (mut one, mut two) = (way(at), way(other));
        while let (Some(a), Some(b)) = (one.last(), two.last())
            && a == b
        {
            one.pop();
            two.pop();
        }
        let mut fifos: Vec<usize> = one.iter().rev().map(|&(_, fifo)| fifo).collect();
        fifos.push(closing);
        fifos.extend(two.iter().map(|&(_, fifo)| fifo));
        let (known, follows) = rates;
        let ratio = times(follows, (known.1, known.0)).unwrap_or((follows.0, follows.1));
        Contradiction {
            fifos,
            actor: ActorId(u32::try_from(other).unwrap_or(u32::MAX)),
            ratio,
        }
    }
}
