//! From a path on the command line to a system, and from a system to its verdict.

use punctual_analysis::{AnalysisError, Verdict};
use punctual_model::{Reserve, System};

use punctual_terminal::ending::Failure;
pub(crate) use punctual_terminal::input::{duration, refuse_overwriting, system as load, text};

/// Asks the analysis.
pub(crate) fn admit(system: &System) -> Result<Verdict, Failure> {
    punctual_analysis::admit(system).map_err(no_verdict)
}

/// The same without slack and fixes, for those who do not print them.
pub(crate) fn bounds(system: &System) -> Result<Verdict, Failure> {
    punctual_analysis::bounds_only(system).map_err(no_verdict)
}

/// The analysis has no answer, which is a property of the input: its numbers are too large or too
/// close.
pub(crate) fn no_verdict(error: AnalysisError) -> Failure {
    Failure::input(format!("no verdict: {error}"))
}

/// `--missing-time 500us/10ms`: at most so much in any window of that length.
pub(crate) fn missing_time(text: &str) -> Result<Reserve, String> {
    let (budget, period) = text
        .split_once('/')
        .ok_or("write how much in how long, such as 500us/10ms")?;
    let (budget, period) = (duration(budget)?, duration(period)?);
    if budget >= period {
        return Err("all of the time would be missing".into());
    }
    Ok(Reserve {
        name: "missing-time".into(),
        budget: budget.as_work(),
        period,
    })
}
