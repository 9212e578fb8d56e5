//! Instructions of rows, each counted by a process of its own that steps through the operation.
//!
//! As a rule the operation is the measurement's own, which then steps through its batches.
//! Libraries and the kernel are not in the count.

use punctual_count::windows;
pub(crate) use punctual_count::windows::{batch, goes_on, is_on, uncounted, units};

/// The argument by which a process knows that it is to step through a row, whose name follows.
pub(crate) const CHILD: &str = "--count-instructions";

/// Reasons of rows that are not counted.
pub(crate) const TWO_CPUS: &str =
    "two CPUs, of which one looks for the other again and again: their distance decides how often";
pub(crate) const LATENESS: &str = "how late something is after an instant of the clock: most of it \
                                   is the kernel's, or waits";

/// How the instructions of a row are counted.
pub(crate) enum Counted {
    /// In its measurement.
    Measured,
    /// In an operation that stands for it.
    By(Box<dyn Fn() -> Result<(), String>>),
    /// As the sum of these rows of `cargo xtask count`.
    Rows(&'static [&'static str]),
    /// They are not, for this reason.
    Not(&'static str),
}

impl Counted {
    pub(crate) fn by(operation: impl Fn() -> Result<(), String> + 'static) -> Counted {
        Counted::By(Box::new(operation))
    }

    /// Those of the row with this name.
    pub(crate) fn count(&self, name: &str) -> Result<u64, String> {
        match self {
            Counted::Measured | Counted::By(_) => windows::count(&[CHILD, name]),
            // Its releases come faster than a build without optimisation serves them.
            Counted::Rows(_) if cfg!(debug_assertions) => Err("only in an optimised build".into()),
            Counted::Rows(rows) => rows.iter().map(|row| count_row(row)).sum(),
            Counted::Not(why) => Err((*why).to_owned()),
        }
    }

    /// Executes the operation that is stepped through; `measured` is the row's measurement.
    pub(crate) fn step(&self, measured: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        match self {
            Counted::By(operation) => operation(),
            _ => measured(),
        }
    }
}

fn count_row(row: &str) -> Result<u64, String> {
    let mut found = Err(format!("there is no row `{row}`"));
    punctual_count::count(row, false, |count| {
        if count.row == row {
            found = Ok(count.own);
        }
    })?;
    found
}
