//! Random numbers that are counted, not kept: a seed and a place give the number.
//!
//! Steele, Lea and Flood's SplitMix64 ("Fast Splittable Pseudorandom Number Generators", OOPSLA
//! 2014): the k-th number of a stream is a mixing function of `seed + k · γ`. It passes BigCrush,
//! needs one word of state, and a stream of its own for every sample of a study costs one mixing.
//! That, and that it never changes, is why it stands here and not a crate: other releases of a
//! random-number library may draw other systems, and then a seed in an old report means nothing.

/// The golden ratio of 2^64, odd: the step of the counter.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    counter: u64,
}

/// Stafford's "Mix13" of the 64-bit finalizer, as in SplitMix64.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Random {
        Random { counter: seed }
    }

    /// The stream of one place of a study, such as (point, sample): equal seeds and places give
    /// equal streams, all others are unrelated. O(length of the place).
    pub fn at(seed: u64, place: &[u64]) -> Random {
        let start = mix(seed.wrapping_add(GAMMA));
        let fold = |state: u64, coordinate: &u64| mix(state ^ mix(coordinate.wrapping_add(GAMMA)));
        // Rotated between coordinates: (1, 2) and (2, 1) are two places.
        let counter = place
            .iter()
            .fold(start, |state, c| fold(state.rotate_left(23), c));
        Random { counter }
    }

    /// The next 64 random bits.
    pub const fn bits(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(GAMMA);
        mix(self.counter)
    }

    /// A number in 0..`limit`, each equally likely; 0 when `limit` is 0. (Lemire 2019: multiply,
    /// and draw again where the multiplication would favour some.)
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 {
            return 0;
        }
        let unfair = limit.wrapping_neg() % limit;
        loop {
            let product = u128::from(self.bits()) * u128::from(limit);
            // The low half, then the high half: both fit by construction.
            let low = product & u128::from(u64::MAX);
            if low >= u128::from(unfair) {
                return u64::try_from(product >> 64).unwrap_or(0);
            }
        }
    }

    /// A number in `low..=high`; `low` when the interval is empty.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        match high.saturating_sub(low).checked_add(1) {
            Some(count) => low + self.below(count),
            None => self.bits(),
        }
    }

    /// A place in a list of `length`; 0 when it is empty.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// One of the given values; `None` of none.
    pub fn pick<'a, T>(&mut self, values: &'a [T]) -> Option<&'a T> {
        values.get(self.index(values.len()))
    }

    /// A number in [0, 1) with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        // 53 bits fill the mantissa exactly, so neither conversion rounds.
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact in an f64")]
        let bits = (self.bits() >> 11) as f64;
        bits / 9_007_199_254_740_992.0
    }

    /// True in `per_mille` of 1,000 draws.
    pub fn happens(&mut self, per_mille: u32) -> bool {
        self.below(1_000) < u64::from(per_mille)
    }

    /// Every order equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.index(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // First outputs of SplitMix64 with seed 1234567, as in the authors' reference code.
        let mut random = Random::new(1_234_567);
        let first = [random.bits(), random.bits(), random.bits()];
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn numbers_below_a_limit_are_equally_likely() {
        let mut random = Random::new(7);
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[random.index(6)] += 1;
        }
        // Pearson's chi-square with 5 degrees of freedom stays below 25.7 in all but 1 of 10,000.
        let square = |count: &u32| (f64::from(*count) - 10_000.0).powi(2) / 10_000.0;
        let chi: f64 = counts.iter().map(square).sum();
        assert!(chi < 25.7, "{counts:?}");
    }

    #[test]
    fn places_have_streams_of_their_own() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..20 {
            for point in 0..20 {
                for sample in 0..20 {
                    assert!(seen.insert(Random::at(seed, &[point, sample]).bits()));
                }
            }
        }
        assert_eq!(Random::at(1, &[2, 3]), Random::at(1, &[2, 3]));
    }

    #[test]
    fn an_empty_interval_and_the_widest_one_are_no_trouble() {
        let mut random = Random::new(1);
        assert_eq!(random.within(5, 5), 5);
        assert_eq!(random.within(7, 3), 7);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.pick::<u8>(&[]), None);
        let _ = random.within(0, u64::MAX);
    }
}
