//! How fast virtual time is: the processor time of one job, of ours and of SimSo.

use std::process::Command;

use punctual_count::jobs::{PERIOD, STEP, TASKS, WCET, simulate};
use punctual_kern::{NoSink, Sink};
use punctual_trace::Recorder;

use super::answering::processor_ns;
use super::counting::{Counted, batch};
use super::figure::Bench;

const SAMPLES: u32 = if cfg!(debug_assertions) { 2 } else { 20 };
/// Jobs of one sample.
const JOBS: u32 = if cfg!(debug_assertions) {
    1_000
} else {
    200_000
};
/// SimSo takes thousands of times as long per job.
const SIMSO_JOBS: u32 = 2_000;
const SIMSO_SAMPLES: u32 = if cfg!(debug_assertions) { 1 } else { 5 };
/// More than a job writes down.
const RECORDED_BYTES_PER_JOB: usize = 256;

pub(super) fn benches() -> Vec<Bench> {
    vec![
        Bench::new("sim job, 10 tasks, not recorded", || measure(|| Ok(NoSink)))
            .counted(Counted::by(|| count(|| Ok(NoSink))))
            .against("SimSo", simso),
        Bench::new("sim job, 10 tasks, recorded", || {
            let bytes = JOBS as usize * RECORDED_BYTES_PER_JOB;
            measure(|| Recorder::with_capacity(bytes).map_err(|e| e.to_string()))
        })
        .counted(Counted::by(|| {
            count(|| Recorder::with_capacity(1 << 20).map_err(|e| e.to_string()))
        }))
        .against("SimSo", simso),
    ]
}

/// One period or three in turn, so that the start does not count.
fn count<S: Sink>(sink: impl Fn() -> Result<S, String>) -> Result<(), String> {
    for periods in [1_u8, 1, 3] {
        simulate(periods.into(), &sink, |simulation| {
            batch(u32::from(periods) * TASKS, simulation);
        })?;
    }
    Ok(())
}

fn measure<S: Sink>(recorder: impl Fn() -> Result<S, String>) -> Result<Vec<f64>, String> {
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        simulate(u64::from(JOBS / TASKS), &recorder, |simulation| {
            let begun = processor_ns();
            simulation();
            samples.push((processor_ns() - begun) as f64 / f64::from(JOBS));
        })?;
    }
    Ok(samples)
}

/// The same set in SimSo, which models no overhead here, where Python has it (`pip install simso`;
/// `PYTHON` names another Python).
fn simso() -> Result<Vec<f64>, String> {
    const SCRIPT: &str = include_str!("simso.py");
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let of = |span: u64| (span / 1_000).to_string();
    let arguments = [
        TASKS.to_string(),
        of(PERIOD.as_ns()),
        of(WCET.as_ns()),
        of(STEP.as_ns()),
        SIMSO_JOBS.to_string(),
        SIMSO_SAMPLES.to_string(),
    ];
    let output = Command::new(&python)
        .args(["-c", SCRIPT])
        .args(arguments)
        .output()
        .map_err(|error| format!("{} does not start: {error}", python.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or("it failed without a word");
        return Err(format!("{last} (`pip install simso` gets it)"));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let samples: Result<Vec<f64>, _> = text.lines().map(str::parse).collect();
    samples.map_err(|error| format!("its answer is no number: {error}"))
}
