//! The judgement of a recorded run, and of the time that was taken from below.

use punctual_trace::{Counterfactual, Log, RunReport, RunVerdict};

use crate::what_if::{what_if, without_missing_time_while};
use crate::{Progress, WhatIfError};

/// Summarizes a run. If something was late, lost or broken and time was taken, the run is played
/// again in virtual time, with that time and without it ([`crate::without_missing_time`]). Only
/// what is broken with it and kept without it is excused. O(records · log threads).
pub fn judge(log: &Log) -> RunReport {
    judge_while(log, &mut || true)
}

/// The same for people who may lose patience: `goes_on` is asked now and then while the run is
/// played again. When it says no, the summary has every fact of the run, excuses nothing, and says
/// why.
pub fn judge_while(log: &Log, goes_on: &mut dyn FnMut() -> bool) -> RunReport {
    let report = RunReport::new(log);
    let taken = report.cpus.iter().any(|cpu| cpu.missing_time_ns > 0);
    if report.verdict == RunVerdict::Met || !taken {
        return report;
    }
    let why = match counterfactual(log, goes_on) {
        Ok(Some(counterfactual)) => return RunReport::judged(log, &counterfactual),
        Ok(None) => STOPPED.to_owned(),
        Err(why) => why.to_string(),
    };
    RunReport {
        unexcused: Some(why),
        ..report
    }
}

/// Why nothing is excused when the user did not wait for it.
const STOPPED: &str = "the judgement was stopped by request before the run was played again";

/// `None`: it was to end before it was done.
fn counterfactual(
    log: &Log,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Option<Counterfactual>, WhatIfError> {
    let mut stopped = !goes_on();
    let mut play = |without: bool| -> Result<Option<Log>, WhatIfError> {
        if stopped {
            return Ok(None);
        }
        let progress = &mut |_: Progress| {
            stopped |= !goes_on();
            !stopped
        };
        let played = match without {
            false => what_if(log, &[], progress)?,
            true => without_missing_time_while(log, progress)?,
        };
        Ok((!stopped).then_some(played.log))
    };
    let with = play(false)?;
    let without = play(true)?;
    Ok(with
        .zip(without)
        .map(|(with, without)| Counterfactual::new(with, without)))
}
