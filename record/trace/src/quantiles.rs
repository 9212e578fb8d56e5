//! Quantiles of what was seen in a run.

/// Exact quantiles of all observations, by nearest rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Quantiles {
    /// Median; `None` without observations.
    pub p50: Option<u64>,
    /// 99 % of the observations are at most this.
    pub p99: Option<u64>,
    /// The largest.
    pub max: Option<u64>,
    /// How many observations.
    pub n: u64,
}

impl Quantiles {
    /// Of `n` observations that somebody else has counted.
    pub(crate) fn seen(n: u64, [p50, p99, max]: [u64; 3]) -> Quantiles {
        let some = |value: u64| (n > 0).then_some(value);
        Quantiles {
            p50: some(p50),
            p99: some(p99),
            max: some(max),
            n,
        }
    }

    /// Quantiles of `values`, which get sorted. O(n log n).
    pub fn of(values: &mut [u64]) -> Quantiles {
        values.sort_unstable();
        let rank = |percent: usize| {
            let rank = (values.len() * percent).div_ceil(100);
            values.get(rank.saturating_sub(1)).copied()
        };
        Quantiles {
            p50: rank(50),
            p99: rank(99),
            max: values.last().copied(),
            n: values.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_observations_by_nearest_rank() {
        let mut values: Vec<u64> = (1..=200).rev().collect();
        let q = Quantiles::of(&mut values);
        assert_eq!(
            (q.p50, q.p99, q.max, q.n),
            (Some(100), Some(198), Some(200), 200)
        );
        assert_eq!(Quantiles::of(&mut []).max, None);
        assert_eq!(Quantiles::of(&mut [7]).p99, Some(7));
    }
}
