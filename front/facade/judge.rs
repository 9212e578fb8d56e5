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
    judge_within(MOST_BYTES, log, goes_on)
}

/// Records of a run take at most this much memory when it is played again. Both runs together take
/// about thirteen times as much.
const MOST_BYTES: usize = 256 << 20;

fn judge_within(most: usize, log: &Log, goes_on: &mut dyn FnMut() -> bool) -> RunReport {
    let report = RunReport::new(log);
    let taken = report.cpus.iter().any(|cpu| cpu.missing_time_ns > 0);
    if report.verdict == RunVerdict::Met || !taken {
        return report;
    }
    let bytes: usize = log.cpus.iter().map(|cpu| cpu.records.bytes()).sum();
    let why = if bytes > most {
        let [bytes, most] = [bytes, most].map(|bytes| bytes >> 20);
        format!("the record takes {bytes} MiB of memory, and at most {most} MiB are played again")
    } else {
        match counterfactual(log, goes_on) {
            Ok(Some(counterfactual)) => return RunReport::judged(log, &counterfactual),
            Ok(None) => STOPPED.to_owned(),
            Err(why) => why.to_string(),
        }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use punctual_model::{Class, Cpu, CpuId, PolicyKind, Span, System, Task, Work};
    use punctual_sim::{Faults, MissingTime};
    use punctual_thread::Workloads;

    use super::*;
    use crate::{SimOptions, simulate_unjudged};

    #[test]
    fn a_record_that_is_too_long_is_not_played_again_and_the_summary_says_so() {
        let class = Class::Periodic {
            period: Span::from_ms(10),
            wcet: Work::from_ms(4),
            relative_deadline: Span::from_ms(5),
        };
        let system = System {
            cpus: vec![Cpu {
                name: "0".into(),
                host: None,
                policy: PolicyKind::EarliestDeadlineFirst,
            }],
            tasks: vec![Task::new("late", CpuId(0), class)],
            ..System::default()
        };
        let hole = MissingTime {
            cpu: None,
            length: Span::from_ms(6),
            every: Span::from_ms(17),
        };
        let options = SimOptions {
            duration: Some(Span::from_ms(200)),
            faults: Faults {
                missing: vec![hole],
                ..Faults::default()
            },
            ..SimOptions::default()
        };
        let run = simulate_unjudged(&system, &options, &mut Workloads::new(), &mut |_| true);
        let log = run.unwrap();
        assert_eq!(judge(&log).verdict, RunVerdict::Excused);
        let report = judge_within(100, &log, &mut || true);
        assert_eq!(report.verdict, RunVerdict::Missed);
        let why = report.unexcused.unwrap();
        assert!(why.contains("at most 0 MiB are played again"), "{why}");
    }
}
