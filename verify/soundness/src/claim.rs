//! What an analysis claims of a system: the part of a verdict that schedules can contradict.

use punctual_analysis::{AnalysisError, Verdict};
use punctual_model::{Funding, Ns, Span, System};

/// What is claimed.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Nothing is ever late.
    pub admitted: bool,
    /// By task: no response is longer; `None`: nothing is claimed.
    pub bounds: Vec<Option<Span<Ns>>>,
    /// The whole verdict, when it is the analysis' own.
    pub verdict: Option<Verdict>,
}

/// From a system to a claim; an error is an answer that was not given.
pub type Analysis = fn(&System) -> Result<Claim, AnalysisError>;

/// The room that budgets have beyond the work of jobs.
pub type Fund = fn(&System) -> Result<Funding, AnalysisError>;

/// The analysis that everyone uses.
///
/// # Errors
/// As `punctual_analysis::admit`.
pub fn analysis(system: &System) -> Result<Claim, AnalysisError> {
    let verdict = punctual_analysis::admit(system)?;
    Ok(Claim {
        admitted: verdict.admitted,
        bounds: verdict.tasks.iter().map(|t| t.response_bound).collect(),
        verdict: Some(verdict),
    })
}
