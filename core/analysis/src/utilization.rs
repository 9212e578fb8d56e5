//! Sums of utilizations, exactly: long division instead of fractions with a common denominator
//!
//! `Σ Cᵢ/Tᵢ` of hundreds of tasks has a common denominator of thousands of bits. Comparing it with
//! 1 needs none: dividing digit by digit in base 2⁶⁴ decides, nearly always at the first digit.
//!
//! # Assumptions
//! 1. No denominator is zero (checked where request bounds are built).

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::units::{Span, TICK, Work};

/// One share of a processor: a fraction, without a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ratio {
    pub(crate) numerator: u64,
    pub(crate) denominator: u64,
}

impl Ratio {
    /// `demand` in every `separation`.
    pub(crate) fn of(demand: Work, separation: Span) -> Ratio {
        Ratio {
            numerator: demand.as_ns(),
            denominator: separation.as_ns(),
        }
    }
}

const DIGIT: u32 = 64;

/// Σ ratios against 1, exactly. O(n) but for sums within n·2⁻⁶⁴ of 1, then at most O(n²): a sum of
/// n fractions that differs from 1 differs by at least 2^(−64·n), hence n + 1 digits decide.
pub(crate) fn compare_with_one(ratios: impl Iterator<Item = Ratio> + Clone) -> Ordering {
    // The first digit, each summand rounded up past itself.
    let above = |r: Ratio| (u128::from(r.numerator) << DIGIT) / u128::from(r.denominator) + 1;
    let sum = ratios.clone().map(above).fold(0, u128::saturating_add);
    if sum <= 1 << DIGIT {
        return Ordering::Less;
    }
    compare_digits(ratios)
}

/// The same, digit by digit.
fn compare_digits(ratios: impl Iterator<Item = Ratio>) -> Ordering {
    let mut whole: u128 = 0;
    let mut rests: Vec<(u64, u64)> = Vec::new();
    for r in ratios {
        whole += u128::from(r.numerator / r.denominator);
        rests.push((r.numerator % r.denominator, r.denominator));
    }
    if whole >= 1 {
        let more = whole > 1 || rests.iter().any(|&(rest, _)| rest > 0);
        return if more {
            Ordering::Greater
        } else {
            Ordering::Equal
        };
    }
    // What is missing to 1, in units of the current digit.
    let mut missing: u128 = 1;
    for _ in 0..=rests.len() {
        let mut digits: u128 = 0;
        for (rest, denominator) in &mut rests {
            let shifted = u128::from(*rest) << DIGIT;
            digits += shifted / u128::from(*denominator);
            *rest = low(shifted % u128::from(*denominator));
        }
        let exact = rests.iter().all(|&(rest, _)| rest == 0);
        let wanted = missing << DIGIT;
        if digits > wanted || (digits == wanted && !exact) {
            return Ordering::Greater;
        }
        missing = wanted - digits;
        if missing >= rests.len() as u128 || exact {
            return if missing == 0 {
                Ordering::Equal
            } else {
                Ordering::Less
            };
        }
    }
    Ordering::Equal
}

fn low(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// A sum of ratios to which more are added: its first digit, each summand rounded up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sum {
    whole: u128,
    /// In units of 2⁻⁶⁴.
    rest: u128,
    /// Summands, each of which is too large by less than one unit.
    ulps: u128,
}

impl Sum {
    /// With one more. O(1).
    pub(crate) fn plus(self, r: Ratio) -> Sum {
        let part = u128::from(r.numerator % r.denominator) << DIGIT;
        Sum {
            whole: self.whole + u128::from(r.numerator / r.denominator),
            rest: self.rest + part.div_ceil(u128::from(r.denominator)),
            ulps: self.ulps + 1,
        }
    }

    /// How it compares with 1, where the first digit tells. O(1).
    pub(crate) fn compare_with_one(self) -> Option<Ordering> {
        let most = (self.whole << DIGIT).saturating_add(self.rest);
        if most < 1 << DIGIT {
            return Some(Ordering::Less);
        }
        (most - self.ulps.min(most) > 1 << DIGIT).then_some(Ordering::Greater)
    }

    /// In parts per million, rounded up: it may be one too many where the sum is within n·2⁻⁶⁴
    /// above a whole part. O(1).
    pub(crate) fn parts_per_million(self) -> u64 {
        // Tolerating n ulps keeps a sum of exactly 500,000 parts from being shown as 500,001.
        let rest = self.rest.saturating_sub(self.ulps);
        low(self.whole * 1_000_000 + (rest * 1_000_000).div_ceil(1 << DIGIT))
    }
}

/// Σ ratios in parts per million ([`Sum::parts_per_million`]). O(n).
pub(crate) fn parts_per_million(ratios: impl Iterator<Item = Ratio>) -> u64 {
    ratios.fold(Sum::default(), Sum::plus).parts_per_million()
}

/// Least common multiple of the separations; `None` beyond 64 bits.
pub(crate) fn hyperperiod(mut separations: impl Iterator<Item = Span>) -> Option<Span> {
    separations.try_fold(TICK, |lcm, t| t.checked_mul(lcm / gcd(lcm, t)))
}

/// Greatest common divisor (Euclid).
pub(crate) fn gcd(mut a: Span, mut b: Span) -> Span {
    while !b.is_zero() {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratios(list: &[(u64, u64)]) -> impl Iterator<Item = Ratio> + Clone {
        list.iter().map(|&(numerator, denominator)| Ratio {
            numerator,
            denominator,
        })
    }

    #[test]
    fn sums_of_exactly_one_are_found_with_any_denominators() {
        let big = u64::MAX;
        for list in [
            &[(1, 2), (1, 3), (1, 6)][..],
            &[(3, 3)],
            &[(1, 3), (2, 3)],
            &[(1, 7), (2, 7), (4, 7)],
            &[(1, big), (big - 1, big)],
        ] {
            assert_eq!(compare_with_one(ratios(list)), Ordering::Equal, "{list:?}");
        }
    }

    #[test]
    fn the_smallest_differences_from_one_are_seen() {
        let p = 18_446_744_073_709_551_557_u64; // The largest prime below 2^64.
        let q = 18_446_744_073_709_551_533_u64; // The next one.
        // 1/2 + (p-1)/2p is below 1, and adding 1/q (more than 1/2p) passes it.
        let below = [(1, 2), ((p - 1) / 2, p)];
        assert_eq!(compare_with_one(ratios(&below)), Ordering::Less);
        let above = [(1, 2), ((p - 1) / 2, p), (1, q)];
        assert_eq!(compare_with_one(ratios(&above)), Ordering::Greater);
        // Differs from 1 by 1/(p·q): only the second digit shows it.
        let close = [((p - 1) / 2, p), (q.div_ceil(2), q)];
        assert_eq!(compare_with_one(ratios(&close)), Ordering::Greater);
        let close = [(p.div_ceil(2), p), ((q - 1) / 2, q)];
        assert_eq!(compare_with_one(ratios(&close)), Ordering::Less);
    }

    #[test]
    fn parts_per_million_round_up_but_not_past_a_whole_part() {
        assert_eq!(parts_per_million(ratios(&[(1, 4), (1, 4)])), 500_000);
        assert_eq!(parts_per_million(ratios(&[(1, 3)])), 333_334);
        assert_eq!(parts_per_million(ratios(&[(3, 2)])), 1_500_000);
    }

    #[test]
    fn hyperperiods_beyond_64_bits_are_none() {
        assert_eq!(
            hyperperiod([4, 6, 10].map(Span::from_ns).into_iter()),
            Some(Span::from_ns(60))
        );
        assert_eq!(
            hyperperiod([u64::MAX, u64::MAX - 1].map(Span::from_ns).into_iter()),
            None
        );
    }
}
