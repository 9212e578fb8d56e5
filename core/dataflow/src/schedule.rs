//! A periodic schedule: every firing at the same place of each period
//!
//! Its starts are the least potentials: none is below 0, and none before the end of what it waits
//! for. Nobody who fires as soon as it may is later than this schedule, also when firings are
//! shorter and when each iteration's first firings are held back to the start of its period.

use alloc::vec;
use alloc::vec::Vec;

use crate::error::DataflowError;
use crate::firings::Firings;
use crate::fraction::Fraction;
use crate::timed::Timed;

/// Starts of the firings of the first iteration; the others follow in steps of the period.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// The period.
    pub period: Fraction,
    /// Start of each firing, in units of 1 / the denominator of the period.
    pub starts: Vec<u128>,
    /// From the start of a period to the end of the last output of its iteration, in whole units
    /// of time, rounded up.
    pub latency: u64,
}

/// The earliest periodic schedule with a period that is not below that of the worst circle.
/// O(arcs · rounds): a round for each crossing into another iteration on the longest way.
///
/// # Errors
///
/// [`DataflowError::TooLong`] where the period is below the worst circle's,
/// [`DataflowError::Overflow`] where the latency leaves 64 bits.
pub fn schedule(
    timed: &Timed,
    firings: &Firings,
    period: Fraction,
) -> Result<Schedule, DataflowError> {
    let (first, arcs) = firings.incoming();
    let order = within_an_iteration(firings);
    let unit = i128::from(period.denominator());
    let mut starts = vec![0_i128; firings.len()];
    let rounds = firings.len() as u64 + 1;
    let mut settled = false;
    for _ in 0..rounds {
        settled = true;
        for &node in &order {
            for arc in &arcs[first[node]..first[node + 1]] {
                let end = starts[arc.from] + i128::from(firings.time[arc.from]) * unit;
                let back = i128::from(arc.tokens) * i128::from(period.numerator());
                if end - back > starts[node] {
                    starts[node] = end - back;
                    settled = false;
                }
            }
        }
        if settled {
            break;
        }
    }
    if !settled {
        return Err(DataflowError::TooLong {
            what: "the search for a periodic schedule",
            limit: rounds,
        });
    }
    let outputs = timed.outputs.iter().flat_map(|&actor| firings.nodes(actor));
    let last = outputs.map(|node| starts[node] + i128::from(firings.time[node]) * unit);
    let last = last.max().unwrap_or(0);
    let latency = u64::try_from((last + unit - 1) / unit).ok();
    Ok(Schedule {
        period,
        starts: starts.iter().map(|start| start.unsigned_abs()).collect(),
        latency: latency.ok_or(DataflowError::Overflow { what: "a latency" })?,
    })
}

/// The firings in an order in which each comes after those of its iteration that it waits for.
fn within_an_iteration(firings: &Firings) -> Vec<usize> {
    let mut waits = vec![0_usize; firings.len()];
    let mut next = vec![Vec::new(); firings.len()];
    for arc in firings.arcs.iter().filter(|arc| arc.tokens == 0) {
        waits[arc.to] += 1;
        next[arc.from].push(arc.to);
    }
    let mut order: Vec<usize> = (0..firings.len())
        .filter(|&node| waits[node] == 0)
        .collect();
    let mut place = 0;
    while let Some(&node) = order.get(place) {
        place += 1;
        for &to in &next[node] {
            waits[to] -= 1;
            if waits[to] == 0 {
                order.push(to);
            }
        }
    }
    order
}
