//! Why nothing can be drawn.

use std::fmt;

/// Why a generator has no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GenerateError {
    /// So many tasks with shares up to that limit cannot have this utilization together.
    CannotReach {
        /// How many tasks.
        tasks: usize,
        /// Their utilization together, in parts per million.
        utilization_ppm: u32,
        /// The largest share of one task, in parts per million.
        largest_share_ppm: u32,
    },
    /// So many sets in a row had a share above the limit: the discarding generator is the wrong
    /// one for these numbers.
    DiscardedTooOften {
        /// How many.
        sets: u32,
    },
    /// A range that contains nothing.
    EmptyRange {
        /// Of what, in words.
        what: &'static str,
    },
    /// More numbers than [`crate::fixed_sum`] has memory for.
    TooMany {
        /// How many were asked for.
        count: usize,
        /// The most.
        most: usize,
    },
}

impl fmt::Display for GenerateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |ppm: &u32| f64::from(*ppm) / 10_000.0;
        match self {
            GenerateError::CannotReach {
                tasks,
                utilization_ppm,
                largest_share_ppm,
            } => write!(
                f,
                "{tasks} tasks of at most {} % each cannot need {} % together",
                percent(largest_share_ppm),
                percent(utilization_ppm)
            ),
            GenerateError::DiscardedTooOften { sets } => write!(
                f,
                "UUniFast-discard threw {sets} sets away in a row; the fixed-sum generator draws \
                 from the same distribution at once"
            ),
            GenerateError::TooMany { count, most } => write!(
                f,
                "{count} shares are more than the {most} of the fixed-sum generator; \
                 uunifast-discard draws more"
            ),
            GenerateError::EmptyRange { what } => write!(f, "the range of {what} is empty"),
        }
    }
}

impl std::error::Error for GenerateError {}
