//! Exact fractions above zero: periods of iterations

use core::cmp::Ordering;
use core::fmt;

/// A fraction in lowest terms. Its denominator is not zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fraction {
    numerator: u64,
    denominator: u64,
}

impl Fraction {
    /// `numerator / denominator` in lowest terms; `None` where the denominator is zero. O(log n).
    pub fn new(numerator: u64, denominator: u64) -> Option<Fraction> {
        let common = gcd(numerator, denominator);
        (denominator != 0).then(|| Fraction {
            numerator: numerator / common,
            denominator: denominator / common,
        })
    }

    /// A whole number.
    pub const fn whole(number: u64) -> Fraction {
        Fraction {
            numerator: number,
            denominator: 1,
        }
    }

    /// Above the line.
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// Below the line, at least 1.
    pub const fn denominator(self) -> u64 {
        self.denominator
    }

    /// The least whole number that is not below it.
    pub const fn rounded_up(self) -> u64 {
        self.numerator.div_ceil(self.denominator)
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Fraction) -> Ordering {
        let left = u128::from(self.numerator) * u128::from(other.denominator);
        left.cmp(&(u128::from(other.numerator) * u128::from(self.denominator)))
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            denominator => write!(f, "{}/{denominator}", self.numerator),
        }
    }
}

/// The greatest common divisor; the other number where one is 0. O(log n).
pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_in_lowest_terms_and_compare_exactly() {
        let of = |n, d| Fraction::new(n, d).expect("a denominator");
        assert_eq!(of(6, 4), of(3, 2));
        assert_eq!(of(0, 7), Fraction::whole(0));
        assert!(of(u64::MAX, u64::MAX - 1) > Fraction::whole(1));
        assert!(of(u64::MAX - 1, u64::MAX) < of(u64::MAX, u64::MAX - 1));
        assert_eq!(of(7, 2).rounded_up(), 4);
        assert_eq!(Fraction::new(1, 0), None);
    }
}
