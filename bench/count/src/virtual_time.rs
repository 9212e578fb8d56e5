//! Jobs in virtual time: the core with the simulator around it.

use punctual_kern::{NoSink, Plan, Sink};
use punctual_model::{
    Class, Cpu, CpuId, Frequency, Ns, PolicyKind, Priority, Span, System, Task, Work,
};
use punctual_policy::AnyPolicy;
use punctual_sim::{CpuInput, Options};

use crate::decisions::recorder;
use crate::scenario::{Reading, Scenario};
use crate::stepper::{NONE, begin, mark, pause};

const TASKS: u32 = 10;
/// Each task is released once in this.
const PERIOD: Span<Ns> = Span::from_ms(1);
const WCET: Work<Ns> = Work::from_us(50);
/// From the first release of one task to that of the next.
const STEP: Span<Ns> = Span::from_us(70);
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

/// Ten tasks on a CPU that they keep half busy.
fn jobs<S: Sink>(sink: impl Fn() -> Result<S, String>) -> Result<(), String> {
    let system = system();
    for periods in [FEW, MANY] {
        let duration = Span::from_ns(PERIOD.as_ns() * periods);
        let mut plan = Plan::new(&system, Frequency::NANOSECONDS);
        plan.set_duration(&system, duration);
        let options = Options {
            duration,
            seed: 0,
            faults: Default::default(),
        };
        let mut inputs = Vec::new();
        for cpu in &plan.cpus {
            let shard = cpu.build(AnyPolicy::new).map_err(|e| e.to_string())?;
            let sink = sink()?;
            inputs.push(CpuInput { shard, sink });
        }
        begin();
        mark(0);
        let outcome = punctual_sim::run(&system, &plan, inputs, &options, &mut ());
        mark(NONE);
        pause();
        outcome.map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn system() -> System {
    let cpu = Cpu {
        name: "0".to_owned(),
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
