//! Seeded random task sets: UUniFast shares, log-uniform periods

/// Steele, Lea and Flood's SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `low..=high`.
    pub(crate) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// A number in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        // 53 random bits fill the mantissa exactly.
        #[allow(clippy::cast_precision_loss)]
        let bits = (self.next() >> 11) as f64;
        bits / 9_007_199_254_740_992.0
    }

    /// Periods log-uniform in [low, high].
    pub(crate) fn period(&mut self, low: f64, high: f64) -> u64 {
        round(low * (high / low).powf(self.unit()))
    }
}

/// To the nearest, at least 1.
fn round(value: f64) -> u64 {
    // Test parameters are far below 2^53 and not negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rounded = value.round() as u64;
    rounded.max(1)
}

/// Bini and Buttazzo's UUniFast: `n` shares that sum up to `total`.
pub(crate) fn uunifast(random: &mut Random, n: usize, total: f64) -> Vec<f64> {
    let mut shares = Vec::with_capacity(n);
    let mut rest = total;
    for index in 1..n {
        let exponent = 1.0 / f64::from(u32::try_from(n - index).expect("few tasks"));
        let next = rest * random.unit().powf(exponent);
        shares.push(rest - next);
        rest = next;
    }
    shares.push(rest);
    shares
}

/// The deadlines of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deadlines {
    Implicit,
    /// Between the middle of wcet and period, and the period.
    Constrained,
    /// Between half the period and twice the period.
    Arbitrary,
}

/// A set of (C, T, D) with about this utilization, rate-monotonic order.
pub(crate) fn set(
    random: &mut Random,
    n: usize,
    utilization: f64,
    periods: (f64, f64),
    deadlines: Deadlines,
) -> Vec<(u64, u64, u64)> {
    let shares = uunifast(random, n, utilization);
    let mut tasks: Vec<(u64, u64, u64)> = shares
        .into_iter()
        .map(|share| {
            let t = random.period(periods.0, periods.1);
            // Test periods are far below 2^53.
            #[allow(clippy::cast_precision_loss)]
            let c = round(share * t as f64).min(t);
            let d = match deadlines {
                Deadlines::Implicit => t,
                Deadlines::Constrained => random.within(c + (t - c) / 2, t),
                Deadlines::Arbitrary => random.within(c.max(t / 2), 2 * t),
            };
            (c, t, d)
        })
        .collect();
    tasks.sort_by_key(|&(_, t, _)| t);
    tasks
}
