//! Words that every row of a verdict has: how far to trust it, by which test, and how much is left

use core::fmt;

use punctual_model::{Ns, Work};

/// Whether a test says "no" only when a deadline can be missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exactness {
    /// Necessary and sufficient for the stated model: a refused task can miss.
    Exact,
    /// Sufficient: an admitted task is on time; a refused one may be, too.
    Sufficient,
    /// Seen in a simulation of everything that can happen. (No test of this crate says so.)
    Simulated,
}

impl Exactness {
    /// The word in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Exactness::Exact => "exact",
            Exactness::Sufficient => "sufficient",
            Exactness::Simulated => "simulated",
        }
    }
}

/// A schedulability test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Test {
    /// Its name.
    pub name: &'static str,
    /// Where it was published.
    pub source: &'static str,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.source)
    }
}

/// How far a wcet may grow, in tenths of a percent, rounded down. Prints as `50.0 %`.
///
/// Growth by k tenths is a wcet of ⌈wcet·(1000 + k)/1000⌉ nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Slack(pub(crate) u64);

impl Slack {
    /// Tenths of a percent.
    pub const fn tenths_of_a_percent(self) -> u64 {
        self.0
    }

    /// A wcet that has grown by this much.
    pub fn grown(self, wcet: Work<Ns>) -> Option<Work<Ns>> {
        let grown = u128::from(wcet.as_ns()) * (1000 + u128::from(self.0));
        u64::try_from(grown.div_ceil(1000)).ok().map(Work::from_ns)
    }
}

impl fmt::Display for Slack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} %", self.0 / 10, self.0 % 10)
    }
}
