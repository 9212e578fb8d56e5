//! The judgement of a recorded run: which misses the time explains that was taken from below.

use punctual_trace::{Counterfactual, Log, RunReport, RunVerdict};

use crate::without_missing_time;

/// Summarizes a run. If jobs were late and time was taken, the run is played again without that
/// time ([`without_missing_time`]): a miss is excused if and only if that run does not have it.
/// O(records · log threads).
pub fn judge(log: &Log) -> RunReport {
    let report = RunReport::new(log);
    let taken = report.cpus.iter().any(|cpu| cpu.missing_time_ns > 0);
    if report.verdict == RunVerdict::Met || !taken {
        return report;
    }
    match without_missing_time(log) {
        Ok(without) => RunReport::judged(log, &Counterfactual::new(without.log)),
        Err(why) => RunReport {
            unexcused: Some(why.to_string()),
            ..report
        },
    }
}
