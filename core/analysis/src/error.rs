//! Errors of an analysis: neither admitted nor refused

use alloc::string::String;
use core::fmt;

/// Why there is no verdict. None of these says anything about the system's feasibility.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AnalysisError {
    /// A sum or product left the 64-bit nanoseconds (584 years).
    Overflow {
        /// The quantity that was computed.
        what: &'static str,
    },
    /// The search would take more steps than allowed (a utilization very near 100 % with periods
    /// that have no small common multiple).
    TooLong {
        /// The search that did not end.
        what: &'static str,
    },
    /// The system means nothing (`System::validate` says more).
    Invalid {
        /// The fault, with names.
        what: String,
    },
    /// A graph that is too large to analyse.
    Graph {
        /// Its name in the file.
        graph: String,
        /// The limit.
        why: String,
    },
    /// The system means something that this analysis has no test for.
    Unsupported {
        /// The part without a test, with names.
        what: String,
    },
}

impl fmt::Display for AnalysisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnalysisError::Overflow { what } => {
                write!(
                    f,
                    "the analysis left the range of 64-bit nanoseconds: {what}"
                )
            }
            AnalysisError::TooLong { what } => write!(
                f,
                "the analysis gave up after its limit of steps: {what}; lower the utilization a \
                 little, or choose periods with a smaller common multiple"
            ),
            AnalysisError::Invalid { what } => write!(f, "the system means nothing: {what}"),
            AnalysisError::Graph { graph, why } => write!(f, "graph `{graph}`: {why}"),
            AnalysisError::Unsupported { what } => write!(f, "no test for {what}"),
        }
    }
}

impl core::error::Error for AnalysisError {}

/// The result of a step of an analysis.
pub(crate) type Checked<T> = Result<T, AnalysisError>;

/// Names the computation whose arithmetic overflowed.
pub(crate) fn in_range<T>(value: Option<T>, what: &'static str) -> Checked<T> {
    value.ok_or(AnalysisError::Overflow { what })
}

/// The system means nothing.
pub(crate) fn invalid(what: &str) -> AnalysisError {
    AnalysisError::Invalid { what: what.into() }
}
