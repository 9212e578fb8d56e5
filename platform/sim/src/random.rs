//! The random numbers of faults.

use punctual_model::Span;

/// Marsaglia's xorshift64* (2003), seeded through a mixing step so that small seeds differ.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A stream for one purpose: equal seeds with different purposes are independent.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let mut z = seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        z = (z ^ (z >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        Random((z ^ (z >> 33)).max(1))
    }

    /// A span in 0..=`limit`.
    pub(crate) fn span(&mut self, limit: Span) -> Span {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let x = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        let scaled = (u128::from(x) * (u128::from(limit.ticks()) + 1)) >> 64;
        Span::from_ticks(u64::try_from(scaled).unwrap_or(limit.ticks()))
    }
}
