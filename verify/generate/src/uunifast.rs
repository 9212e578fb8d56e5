//! UUniFast and UUniFast-discard: shares that sum up to a total, none favoured.
//!
//! Sources: E. Bini and G. Buttazzo, "Measuring the performance of schedulability tests", Real-Time
//! Systems 30 (2005), §3 (UUniFast); R. Davis and A. Burns, "Improved priority assignment for
//! global fixed priority pre-emptive scheduling in multiprocessor real-time systems", Real-Time
//! Systems 47 (2011), §5.2 (discard sets with a share above the limit, so that totals above one
//! stay uniform).

use crate::error::GenerateError;
use crate::random::Random;

/// Sets that are thrown away before the generator gives up.
const MOST_DISCARDED: u32 = 10_000;

/// `count` shares of at least 0 that sum up to `total`, uniform over all such shares. Single shares
/// may exceed 1 when the total does. O(count).
///
/// Drawn from the largest index down: what the first i of i + 1 shares take of the rest is the
/// largest of i uniform numbers, whose distribution function is xⁱ.
pub fn uunifast(random: &mut Random, count: usize, total: f64) -> Vec<f64> {
    let mut shares = Vec::with_capacity(count);
    let mut rest = total;
    for others in (1..count).rev() {
        // More shares than 2^53 do not fit into memory.
        #[expect(clippy::cast_precision_loss, reason = "a count of tasks is exact")]
        let exponent = 1.0 / others as f64;
        let next = rest * libm::pow(random.unit(), exponent);
        shares.push(rest - next);
        rest = next;
    }
    if count > 0 {
        shares.push(rest);
    }
    shares
}

/// The same with no share above `limit`, uniform over all such shares: sets that exceed it are
/// thrown away. Expected O(count / probability that a set stays).
///
/// # Errors
/// After ten thousand discarded sets in a row: [`crate::fixed_sum`] does without discarding.
pub fn uunifast_discard(
    random: &mut Random,
    count: usize,
    total: f64,
    limit: f64,
) -> Result<Vec<f64>, GenerateError> {
    for _ in 0..MOST_DISCARDED {
        let shares = uunifast(random, count, total);
        if shares.iter().all(|share| *share <= limit) {
            return Ok(shares);
        }
    }
    Err(GenerateError::DiscardedTooOften {
        sets: MOST_DISCARDED,
    })
}
