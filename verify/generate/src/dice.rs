//! Draws for tests: small, and the same for ever.
//!
//! Knuth's linear congruence (MMIX), its upper 31 bits. Tests have seeds at which something once
//! went wrong, so this never changes; what draws systems for studies is [`crate::Random`].

/// Draws that depend on the seed alone.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The draws of a seed.
    pub const fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// A number in 0..`n`; 0 when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        let step = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = step.wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33).checked_rem(n).unwrap_or(0)
    }

    /// As [`Dice::below`], as a small number; `u32::MAX` where it is none.
    pub fn small(&mut self, n: u64) -> u32 {
        u32::try_from(self.below(n)).unwrap_or(u32::MAX)
    }

    /// A place in a list of `length`; 0 when it is empty.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// True once in `n` draws.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_for_ever() {
        let mut dice = Dice::new(7);
        let drawn: Vec<u64> = (0..6).map(|_| dice.below(1_000)).collect();
        assert_eq!(drawn, EXPECTED);
        assert_eq!((dice.below(0), dice.index(0)), (0, 0));
    }

    const EXPECTED: [u64; 6] = [422, 693, 847, 923, 892, 426];
}
