//! Capacities: the least that never stop, and which ones buy which period
//!
//! Distributions of capacities are tried by size, from the least that each FIFO needs by itself. A
//! faster one must have more space where a worst circle runs through space, or, of one that stops,
//! where somebody lacks space. So only these capacities grow, and none that matters is passed over.
//!
//! Source: Stuijk, Geilen and Basten 2006 (exploring trade-offs in buffer requirements).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use punctual_model::{Fifo, Graph};

use crate::circle::worst_circle;
use crate::components::components;
use crate::deadlock::deadlock;
use crate::error::DataflowError;
use crate::firings::Firings;
use crate::fraction::{Fraction, gcd};
use crate::schedule::schedule;
use crate::timed::{Link, Timed};

/// Most distributions that are tried.
pub const MAX_DISTRIBUTIONS: usize = 20_000;
/// Most firings that all of them have together.
const MAX_WORK: u64 = 20_000_000;
/// Most capacities in all distributions that are remembered: some hundred megabytes.
const MAX_REMEMBERED: usize = 20_000_000;

/// Which capacities buy which period: each point is faster than all smaller ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Front {
    /// By size; the first is the least that never stops.
    pub points: Vec<Point>,
    /// The period without any limit of space.
    pub fastest: Fraction,
    /// Whether the search came to its end, the fastest period. Else the points found are right,
    /// and larger ones are missing.
    pub complete: bool,
}

/// Capacities, and what they buy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Point {
    /// Of each FIFO; `None`: a self-FIFO that has none.
    pub capacities: Vec<Option<u32>>,
    /// All capacities together, each times the size of its tokens (1 where they have none).
    pub size: u64,
    /// The period.
    pub period: Fraction,
}

/// One graph whose capacities are varied.
struct Search<'a> {
    graph: Graph,
    firings: &'a [u64],
    times: &'a [Vec<u64>],
    /// FIFOs whose capacity is chosen, with their least capacity and its steps.
    chosen: Vec<(usize, u32, u32)>,
}

/// Answer about one distribution.
enum Found {
    /// It stops; these FIFOs are full.
    Stops(Vec<usize>),
    /// Its period, and the FIFOs whose space is on a worst circle.
    Runs(Fraction, Vec<usize>),
}

/// The Pareto front of capacities against periods. Capacities of the graph are ignored but those
/// of self-FIFOs. Its graph must be consistent and not stop with unlimited FIFOs.
///
/// O(distributions · cost of a worst circle).
///
/// # Errors
///
/// Those of [`worst_circle`] and [`Timed::new`].
pub fn front(graph: &Graph, firings: &[u64], times: &[Vec<u64>]) -> Result<Front, DataflowError> {
    let mut search = Search::new(graph, firings, times);
    let fastest = match search.try_all(None)? {
        Found::Runs(period, _) => period,
        Found::Stops(_) => {
            return Err(DataflowError::Overflow {
                what: "the capacities of a graph that always stops",
            });
        }
    };
    let least: Vec<u32> = search.chosen.iter().map(|&(_, least, _)| least).collect();
    let mut open = BTreeSet::from([(search.size(&least), least.clone())]);
    let mut seen = BTreeSet::from([least]);
    let mut front = Front {
        points: Vec::new(),
        fastest,
        complete: false,
    };
    let cost = firings.iter().sum::<u64>().max(1);
    let most = usize::try_from(MAX_WORK / cost).unwrap_or(MAX_DISTRIBUTIONS);
    for _ in 0..most.clamp(100, MAX_DISTRIBUTIONS) {
        let Some((size, capacities)) = open.pop_first() else {
            front.complete = true;
            break;
        };
        if seen.len().saturating_mul(search.chosen.len()) > MAX_REMEMBERED {
            break;
        }
        let last = front.points.last();
        if last.is_some_and(|last| last.period == fastest && last.size < size) {
            front.complete = true;
            break;
        }
        let short = match search.try_all(Some(&capacities))? {
            Found::Stops(full) => full,
            Found::Runs(period, on_circle) => {
                search.note(&mut front, size, &capacities, period);
                if period == fastest {
                    Vec::new()
                } else {
                    on_circle
                }
            }
        };
        for (place, &(fifo, _, step)) in search.chosen.iter().enumerate() {
            if short.contains(&fifo)
                && let Some(more) = capacities[place].checked_add(step)
            {
                let mut next = capacities.clone();
                next[place] = more;
                if seen.insert(next.clone()) {
                    open.insert((search.size(&next), next));
                }
            }
        }
    }
    Ok(front)
}

impl<'a> Search<'a> {
    fn new(graph: &Graph, firings: &'a [u64], times: &'a [Vec<u64>]) -> Search<'a> {
        let fifos = graph.fifos.iter().enumerate();
        let chosen = fifos.filter(|(_, fifo)| fifo.from != fifo.to);
        let chosen = chosen.map(|(index, fifo)| {
            let (least, step) = least_capacity(fifo);
            (index, least, step)
        });
        Search {
            chosen: chosen.collect(),
            graph: graph.clone(),
            firings,
            times,
        }
    }

    /// Saturates: a distribution that large is never looked at.
    fn size(&self, capacities: &[u32]) -> u64 {
        let size = |(&(fifo, ..), &capacity): (&(usize, u32, u32), &u32)| {
            let token = self.graph.fifos[fifo].token_size.max(1);
            u64::from(token) * u64::from(capacity)
        };
        let sizes = self.chosen.iter().zip(capacities).map(size);
        sizes.fold(0, u64::saturating_add)
    }

    fn try_all(&mut self, capacities: Option<&[u32]>) -> Result<Found, DataflowError> {
        for (place, &(fifo, ..)) in self.chosen.iter().enumerate() {
            self.graph.fifos[fifo].capacity = capacities.map(|all| all[place]);
        }
        let timed = Timed::new(&self.graph, self.firings, self.times)?;
        if let Some(deadlock) = deadlock(&timed) {
            return Ok(Found::Stops(deadlock.full));
        }
        let firings = Firings::of(&timed);
        let period = worst_circle(&timed, &firings)?.period;
        let spaces = space_on_circles(&timed, &firings, period)?;
        Ok(Found::Runs(period, spaces))
    }

    /// Keeps a point that is faster than all smaller ones, in place of a slower one of its size.
    fn note(&self, front: &mut Front, size: u64, capacities: &[u32], period: Fraction) {
        if front
            .points
            .last()
            .is_some_and(|last| last.period <= period)
        {
            return;
        }
        if front.points.last().is_some_and(|last| last.size == size) {
            front.points.pop();
        }
        let mut all: Vec<Option<u32>> = self.graph.fifos.iter().map(|f| f.capacity).collect();
        for (&(fifo, ..), &capacity) in self.chosen.iter().zip(capacities) {
            all[fifo] = Some(capacity);
        }
        front.points.push(Point {
            capacities: all,
            size,
            period,
        });
    }
}

/// The FIFOs whose space is on some worst circle: its arcs leave no slack in a periodic schedule,
/// and lie in circles of such arcs.
fn space_on_circles(
    timed: &Timed,
    firings: &Firings,
    period: Fraction,
) -> Result<Vec<usize>, DataflowError> {
    let starts = schedule(timed, firings, period)?.starts;
    let unit = u128::from(period.denominator());
    let is_tight = |arc: &crate::firings::Arc| {
        let end = starts[arc.from] + u128::from(firings.time[arc.from]) * unit;
        let back = u128::from(arc.tokens) * u128::from(period.numerator());
        end == starts[arc.to] + back
    };
    let tight: Vec<_> = firings.arcs.iter().filter(|arc| is_tight(arc)).collect();
    let pairs: Vec<(usize, usize)> = tight.iter().map(|arc| (arc.from, arc.to)).collect();
    let (part, _) = components(firings.len(), &pairs);
    let mut fifos: Vec<usize> = tight
        .iter()
        .filter(|arc| part[arc.from] == part[arc.to])
        .filter_map(|arc| match arc.link {
            Link::Space(fifo) => Some(fifo),
            _ => None,
        })
        .collect();
    fifos.sort_unstable();
    fifos.dedup();
    Ok(fifos)
}

/// The least capacity that a FIFO needs by itself, and the steps in which more of it matters.
/// Exact where rates are constant: p + c - g + d mod g, or d where that is more, with the greatest
/// common divisor g of the rates; otherwise a bound from below.
pub fn least_capacity(fifo: &Fifo) -> (u32, u32) {
    let all = fifo.produce.iter().chain(&fifo.consume);
    let step = all.fold(0, |common, &rate| gcd(common, rate.into())).max(1);
    let most = |cycle: &[u32]| u64::from(cycle.iter().copied().max().unwrap_or(0));
    let (p, c, d) = (
        most(&fifo.produce),
        most(&fifo.consume),
        u64::from(fifo.initial),
    );
    let is_constant = fifo.produce.iter().all(|&rate| u64::from(rate) == p)
        && fifo.consume.iter().all(|&rate| u64::from(rate) == c);
    let least = if is_constant {
        p + c - step + d % step
    } else {
        // Only sizes that leave the same rest as the initial tokens differ in what they allow.
        let most = p.max(c);
        most + (d % step + step - most % step) % step
    };
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    (narrow(least.max(d)), narrow(step))
}
