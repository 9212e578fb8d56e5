//! How fast virtual time is, per job.

use std::process::Command;

use punctual_kern::{NoSink, Plan, Sink};
use punctual_model::{
    Class, Cpu, CpuId, Frequency, Ns, PolicyKind, Priority, Span, System, Task, Work,
};
use punctual_policy::AnyPolicy;
use punctual_sim::{CpuInput, Options};
use punctual_trace::Recorder;

use super::figure::{Bench, time};

const TASKS: u32 = 10;
const SAMPLES: u32 = if cfg!(debug_assertions) { 2 } else { 20 };
/// Jobs of one sample.
const JOBS: u32 = if cfg!(debug_assertions) {
    1_000
} else {
    200_000
};
/// Each task is released once in this.
const PERIOD: Span<Ns> = Span::from_ns(1_000_000);
const WCET: Work<Ns> = Work::from_ns(50_000);
/// From the first release of one task to that of the next.
const STEP: Span<Ns> = Span::from_ns(70_000);
/// SimSo takes thousands of times as long per job.
const SIMSO_JOBS: u32 = 2_000;
const SIMSO_SAMPLES: u32 = if cfg!(debug_assertions) { 1 } else { 5 };
/// More than a job writes down.
const RECORDED_BYTES_PER_JOB: usize = 256;

pub(super) fn benches() -> Vec<Bench> {
    vec![
        Bench::new("sim job, 10 tasks, not recorded", || measure(|| Ok(NoSink)))
            .against("SimSo", simso),
        Bench::new("sim job, 10 tasks, recorded", || {
            let bytes = JOBS as usize * RECORDED_BYTES_PER_JOB;
            measure(|| Recorder::with_capacity(bytes).map_err(|e| e.to_string()))
        }),
    ]
}

fn measure<S: Sink>(recorder: impl Fn() -> Result<S, String>) -> Result<Vec<f64>, String> {
    let system = system();
    let duration = Span::from_ns(PERIOD.as_ns() * u64::from(JOBS / TASKS));
    let mut plan = Plan::new(&system, Frequency::NANOSECONDS);
    plan.set_duration(&system, duration);
    let options = Options {
        duration,
        seed: 0,
        faults: punctual::Faults::default(),
    };
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let mut inputs = Vec::new();
        for cpu in &plan.cpus {
            let shard = cpu.build(AnyPolicy::new).map_err(|e| e.to_string())?;
            let sink = recorder()?;
            inputs.push(CpuInput { shard, sink });
        }
        let mut outcome = None;
        samples.push(time(JOBS, || {
            outcome = Some(punctual_sim::run(&system, &plan, inputs, &options, &mut ()));
        }));
        if let Some(Err(error)) = outcome {
            return Err(error.to_string());
        }
    }
    Ok(samples)
}

/// The same set in SimSo, where Python has it (`pip install simso`; `PYTHON` names another Python).
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

fn system() -> System {
    let cpu = Cpu {
        name: "0".into(),
        host: None,
        policy: PolicyKind::FixedPriority { preemptive: true },
    };
    let task = |index: u32| {
        let class = Class::Periodic {
            period: PERIOD,
            wcet: WCET,
            relative_deadline: PERIOD,
        };
        let mut task = Task::new(format!("task{index}"), CpuId(0), class);
        task.priority = Priority::new(index);
        // Spread, so that every release is an entry of its own.
        task.phase = Span::from_ns(u64::from(index) * STEP.as_ns());
        task
    };
    System {
        cpus: vec![cpu],
        tasks: (0..TASKS).map(task).collect(),
        ..System::default()
    }
}
