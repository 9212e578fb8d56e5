//! Results of studies: rows of numbers under a name.

use serde::{Deserialize, Serialize};

/// Where a study's answers come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum World {
    /// Virtual time, with the prices of a machine.
    Sim,
    /// The CPUs of this machine.
    Linux,
}

/// Some numbers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// The thing that is observed.
    pub(crate) name: String,
    /// The circumstances, by the study's list of them.
    pub(crate) at: Vec<u64>,
    /// The observations.
    pub(crate) values: Vec<u64>,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, at: &[u64], values: Vec<u64>) -> Row {
        Row {
            name: name.into(),
            at: at.to_vec(),
            values,
        }
    }

    /// A circumstance by its number.
    pub(crate) fn at(&self, index: usize) -> u64 {
        self.at.get(index).copied().unwrap_or(0)
    }
}

/// The result of a unit: a line of the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Found {
    pub(crate) unit: usize,
    pub(crate) rows: Vec<Row>,
}

/// The smallest value that so many hundredths of all do not exceed; 0 of none.
pub(crate) fn quantile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(rank).copied().unwrap_or(0)
}

/// A count as a drawing needs it.
#[expect(
    clippy::cast_precision_loss,
    reason = "what is lost above 2^53 cannot be seen"
)]
pub(crate) fn real(value: u64) -> f64 {
    value as f64
}
