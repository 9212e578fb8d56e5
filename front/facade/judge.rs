//! The judgement of a recorded run, and of the time that was taken from below.

use punctual_trace::{Counterfactual, Log, RunReport, RunVerdict};

use crate::{WhatIfError, what_if, without_missing_time};

/// Summarizes a run. If something was late, lost or broken and time was taken, the run is played
/// again in virtual time, with that time and without it ([`without_missing_time`]). Only what is
/// broken with it and kept without it is excused. O(records · log threads).
pub fn judge(log: &Log) -> RunReport {
    let report = RunReport::new(log);
    let taken = report.cpus.iter().any(|cpu| cpu.missing_time_ns > 0);
    if report.verdict == RunVerdict::Met || !taken {
        return report;
    }
    match counterfactual(log) {
        Ok(counterfactual) => RunReport::judged(log, &counterfactual),
        Err(why) => RunReport {
            unexcused: Some(why.to_string()),
            ..report
        },
    }
}

fn counterfactual(log: &Log) -> Result<Counterfactual, WhatIfError> {
    let with = what_if(log, &[], &mut |_| true)?.log;
    Ok(Counterfactual::new(with, without_missing_time(log)?.log))
}
