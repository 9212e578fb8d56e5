//! Random fixed sum: numbers in an interval with a given sum, uniform, without discarding.
//!
//! Sources: R. Stafford, "Random vectors with fixed sum" (2006); P. Emberson, R. Stafford and
//! R. Davis, "Techniques for the synthesis of multiprocessor tasksets", WATERS 2010, §IV.
//!
//! The points of the unit cube whose coordinates sum up to s form a polytope. It is cut into
//! simplexes by going from a corner of the slab `k ≤ s ≤ k + 1` down one dimension at a time, each
//! time to one of two neighbouring cells; a table of the volumes below each cell gives the
//! probability of either step. A random walk through the table picks a simplex by its volume, and
//! the same walk places a uniform point in it. Coordinates come out in a sorted kind of order, so
//! they are shuffled at the end.

use crate::error::GenerateError;
use crate::random::Random;

/// Most numbers of one call: the table takes four bytes for each pair of them, 67 MB.
const MOST: usize = 4_096;

/// For every dimension and cell, how likely the walk keeps its cell (and a coordinate grows).
struct Steps {
    /// Row i - 1 belongs to dimension i + 1, and has one entry per cell of dimension i.
    keep: Vec<Vec<f64>>,
}

impl Steps {
    /// Volumes of the cells by dimension, from a point upwards. `sum` lies in [cell, cell + 1].
    /// O(count²) time and memory.
    fn new(count: usize, sum: f64, cell: usize) -> Steps {
        // From the sum down to the corner of a cell, and up to the one across.
        let below = |j: usize| sum - real(cell) + real(j);
        let above = |dimension: usize, j: usize| real(cell) + real(dimension - j) - sum;
        let mut volumes = vec![0.0, 1.0];
        let mut keep = Vec::with_capacity(count.saturating_sub(1));
        for dimension in 2..=count {
            let size = real(dimension);
            let mut next = vec![0.0; dimension + 1];
            let mut row = vec![0.0; dimension];
            for j in 0..dimension {
                let (below, above) = (below(j), above(dimension, j));
                // A pyramid over each of the two neighbours: its volume times the height.
                let kept = volumes.get(j + 1).copied().unwrap_or(0.0) * below / size;
                let left = volumes[j] * above / size;
                let volume = kept + left;
                next[j + 1] = volume;
                row[j] = if volume <= 0.0 {
                    // Never visited; either step would do.
                    0.5
                } else if above > below {
                    left / volume
                } else {
                    1.0 - kept / volume
                };
            }
            rescale(&mut next);
            volumes = next;
            keep.push(row);
        }
        Steps { keep }
    }
}

/// Only ratios of the volumes of one dimension matter; without this they vanish from 150 tasks on.
fn rescale(volumes: &mut [f64]) {
    let largest = volumes.iter().copied().fold(0.0, f64::max);
    if largest > 0.0 {
        for volume in volumes {
            *volume /= largest;
        }
    }
}

/// More coordinates than 2^53 do not fit into memory.
#[expect(clippy::cast_precision_loss, reason = "a count of tasks is exact")]
fn real(count: usize) -> f64 {
    count as f64
}

/// `count` numbers in [`low`, `high`] that sum up to `total`, uniform over all such numbers.
/// O(count²).
///
/// # Errors
/// An empty interval, a total that so many numbers cannot have, or more than 4,096 numbers.
pub fn fixed_sum(
    random: &mut Random,
    count: usize,
    total: f64,
    (low, high): (f64, f64),
) -> Result<Vec<f64>, GenerateError> {
    let width = high - low;
    if !(width > 0.0 && low.is_finite() && high.is_finite()) {
        return Err(GenerateError::EmptyRange { what: "shares" });
    }
    let sum = (total - real(count) * low) / width;
    if count == 0 || !(0.0..=real(count)).contains(&sum) {
        return Err(GenerateError::EmptyRange {
            what: "sums of so many shares",
        });
    }
    if count > MOST {
        return Err(GenerateError::TooMany { count, most: MOST });
    }
    let cell = (0..count).rev().find(|k| real(*k) <= sum).unwrap_or(0);
    let steps = Steps::new(count, sum, cell);
    let mut numbers = walk(random, &steps, count, sum, cell);
    random.shuffle(&mut numbers);
    Ok(numbers.into_iter().map(|x| low + width * x).collect())
}

/// From the whole cell to a single simplex, and to a point in it.
fn walk(random: &mut Random, steps: &Steps, count: usize, sum: f64, cell: usize) -> Vec<f64> {
    let (mut rest, mut cell) = (sum, cell);
    let (mut base, mut scale) = (0.0, 1.0);
    let mut numbers = Vec::with_capacity(count);
    for dimension in (1..count).rev() {
        let grows = random.unit() <= steps.keep[dimension - 1][cell];
        let corner = f64::from(u8::from(grows));
        let shrink = libm::pow(random.unit(), 1.0 / real(dimension));
        base += (1.0 - shrink) * scale * rest / real(dimension + 1);
        scale *= shrink;
        numbers.push(base + scale * corner);
        rest -= corner;
        if grows {
            cell = cell.saturating_sub(1);
        }
    }
    numbers.push(base + scale * rest);
    numbers
}
