//! When sporadic jobs arrive: the source that a run feeds into the scheduler.

use alloc::vec::Vec;

use crate::time::{Instant, Ns, Span};

/// Where the arrivals of a sporadic task come from. The scheduler polices the minimum separation
/// whatever the source does: an arrival that comes too early waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Arrivals {
    /// One arrival every span, from the task's phase on. A span equal to the minimum separation is
    /// the densest stream that the analysis allows (and the default).
    Every(Span<Ns>),
    /// Seeded random gaps with this mean, uniform in [minimum separation, 2·mean − minimum
    /// separation]; integers only, so every machine draws the same arrivals.
    Random {
        /// Mean distance between arrivals.
        mean: Span<Ns>,
    },
    /// Exactly these instants of the run, in order.
    At(Vec<Instant<Ns>>),
    /// Nobody: the program itself announces arrivals.
    External,
}

/// The arrival instants of one source, in order. Equal inputs give equal instants.
#[derive(Clone, Debug)]
pub struct ArrivalTimes<'a> {
    source: &'a Arrivals,
    min_separation: Span<Ns>,
    next: Option<Instant<Ns>>,
    taken: usize,
    random: SplitMix,
}

impl<'a> ArrivalTimes<'a> {
    /// The arrivals of `source` from `phase` on. `seed` matters for random sources only.
    pub fn new(source: &'a Arrivals, phase: Span<Ns>, min_separation: Span<Ns>, seed: u64) -> Self {
        let next = match source {
            Arrivals::Every(_) | Arrivals::Random { .. } => {
                Some(Instant::ZERO.saturating_add(phase))
            }
            Arrivals::At(instants) => instants.first().copied(),
            Arrivals::External => None,
        };
        ArrivalTimes {
            source,
            min_separation,
            next,
            taken: 0,
            random: SplitMix(seed),
        }
    }

    /// One arrival every `period` from `phase` on, as of a clock.
    pub fn every(period: Span<Ns>, phase: Span<Ns>) -> ArrivalTimes<'static> {
        ArrivalTimes {
            source: &Arrivals::External,
            min_separation: period,
            next: Some(Instant::ZERO.saturating_add(phase)),
            taken: 0,
            random: SplitMix(0),
        }
    }

    /// The next arrival without taking it.
    pub fn peek(&self) -> Option<Instant<Ns>> {
        self.next
    }

    fn gap(&mut self) -> Option<Span<Ns>> {
        match self.source {
            Arrivals::Every(span) => Some(*span),
            Arrivals::Random { mean } => {
                let spread = mean
                    .saturating_sub(self.min_separation)
                    .as_ns()
                    .saturating_mul(2);
                Some(
                    self.min_separation
                        .saturating_add(Span::from_ns(self.random.below(spread))),
                )
            }
            Arrivals::At(_) => None,
            Arrivals::External => Some(self.min_separation),
        }
    }
}

impl Iterator for ArrivalTimes<'_> {
    type Item = Instant<Ns>;

    fn next(&mut self) -> Option<Instant<Ns>> {
        let current = self.next?;
        self.taken += 1;
        self.next = match self.source {
            Arrivals::At(instants) => instants.get(self.taken).copied(),
            _ => self.gap().and_then(|gap| current.checked_add(gap)),
        };
        Some(current)
    }
}

/// Steele, Lea and Flood's SplitMix64 (OOPSLA 2014): enough to spread arrivals, nothing more.
#[derive(Clone, Debug)]
struct SplitMix(u64);

impl SplitMix {
    /// A number in 0..=`limit`. The bias of the multiply-shift is below 2^-64 · limit.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let scaled = (u128::from(z) * (u128::from(limit) + 1)) >> 64;
        u64::try_from(scaled).unwrap_or(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn random_arrivals_keep_the_separation_and_the_seed() {
        let source = Arrivals::Random {
            mean: Span::from_ms(10),
        };
        let draw = |seed| {
            ArrivalTimes::new(&source, Span::ZERO, Span::from_ms(4), seed)
                .take(1_000)
                .collect::<Vec<_>>()
        };
        let a = draw(1);
        assert_eq!(a, draw(1));
        assert_ne!(a, draw(2));
        assert!(a.windows(2).all(|w| w[1].since(w[0]) >= Span::from_ms(4)));
        let mean = a[999].as_ns() / 999;
        assert!((9_000_000..11_000_000).contains(&mean), "mean gap {mean}");
    }

    #[test]
    fn listed_arrivals_come_as_listed() {
        let at = |ms| Instant::from_ms(ms);
        let source = Arrivals::At(vec![at(1), at(5)]);
        let times: Vec<_> = ArrivalTimes::new(&source, Span::ZERO, Span::ZERO, 0).collect();
        assert_eq!(times, [at(1), at(5)]);
        assert_eq!(
            ArrivalTimes::new(&Arrivals::External, Span::ZERO, Span::ZERO, 0).next(),
            None
        );
    }
}
