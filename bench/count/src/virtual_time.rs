//! Jobs in virtual time: the core with the simulator around it.

use crate::jobs::{TASKS, simulate};
use punctual_kern::{NoSink, Sink};

use crate::decisions::recorder;
use crate::scenario::{Reading, Scenario};
use crate::stepper::{NONE, begin, mark, pause};

/// Periods of the two windows.
const FEW: u64 = 1;
const MANY: u64 = 2;

pub(crate) fn scenarios() -> Vec<Scenario> {
    let of = |row: &str, program: Box<dyn FnOnce() -> Result<(), String>>| Scenario {
        rows: vec![row.to_owned()],
        reading: Reading::Growth((MANY - FEW) * u64::from(TASKS)),
        windows: 2,
        program,
    };
    vec![
        of("sim.job", Box::new(|| jobs(|| Ok(NoSink)))),
        of("sim.job_recorded", Box::new(|| jobs(recorder))),
    ]
}

fn jobs<S: Sink>(sink: impl Fn() -> Result<S, String>) -> Result<(), String> {
    for periods in [FEW, MANY] {
        simulate(periods, &sink, |simulation| {
            begin();
            mark(0);
            simulation();
            mark(NONE);
            pause();
        })?;
    }
    Ok(())
}
