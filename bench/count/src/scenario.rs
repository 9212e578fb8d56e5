//! Scenarios: programs that repeat operations, with a mark before each.

use crate::stepper::{begin, mark};

/// How windows become a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    /// The mean of all windows, all of which are counted: a program without clock or threads.
    Mean,
    /// The most frequent length: a program that the machine may disturb now and then.
    Mode,
    /// One window that repeats the operation, and one with so many repetitions more.
    Growth(u64),
    /// The mean of windows of so many operations each.
    Each(u64),
    /// The same: how many lines a hundred operations do not find in the cache of the stepper.
    Misses(u64),
}

impl Reading {
    /// Whether it is about the cache, which takes longer.
    pub(crate) fn is_of_cache(self) -> bool {
        matches!(self, Reading::Misses(_))
    }
}

/// A program that repeats operations.
pub(crate) struct Scenario {
    /// The rows, by operation.
    pub(crate) rows: Vec<String>,
    pub(crate) reading: Reading,
    /// How many windows of its operations are stepped.
    pub(crate) windows: usize,
    /// Makes marks, more than are stepped.
    pub(crate) program: Box<dyn FnOnce() -> Result<(), String>>,
}

impl Scenario {
    /// The argument of its child process: unique among scenarios.
    pub(crate) fn name(&self) -> &str {
        self.rows.first().map_or("", String::as_str)
    }
}

/// Windows of nothing: the part of every other window besides its operation.
pub(crate) fn nothing() -> Scenario {
    let program = || {
        begin();
        loop {
            mark(0);
        }
    };
    Scenario {
        rows: vec!["nothing".to_owned()],
        reading: Reading::Mode,
        windows: 8,
        program: Box::new(program),
    }
}
