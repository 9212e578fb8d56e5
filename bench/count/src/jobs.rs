//! Ten periodic tasks in virtual time, to count or to time a simulated job.

use punctual_kern::Sink;
use punctual_model::{
    Class, Cpu, CpuId, Frequency, Ns, PolicyKind, Priority, Span, System, Task, Work,
};
use punctual_policy::AnyPolicy;
use punctual_sim::{CpuInput, Options};
use punctual_tables::Tables;

/// How many tasks, which keep one CPU half busy.
pub const TASKS: u32 = 10;
/// Each task is released once in this.
pub const PERIOD: Span<Ns> = Span::from_ms(1);
/// The work of a job.
pub const WCET: Work<Ns> = Work::from_us(50);
/// From the first release of one task to that of the next, so that every release is an entry.
pub const STEP: Span<Ns> = Span::from_us(70);

/// Simulates so many periods. `around` is handed the simulation, to do it once and measure it.
///
/// # Errors
/// No sink, or a simulation that fails.
pub fn simulate<S: Sink>(
    periods: u64,
    sink: impl Fn() -> Result<S, String>,
    around: impl FnOnce(&mut dyn FnMut()),
) -> Result<(), String> {
    let system = system();
    let duration = Span::from_ns(PERIOD.as_ns() * periods);
    let mut tables = Tables::new(&system, Frequency::NANOSECONDS);
    tables.set_duration(&system, duration);
    let options = Options {
        duration,
        seed: 0,
        faults: Default::default(),
        plans: Vec::new(),
    };
    let mut inputs = Vec::new();
    for cpu in &tables.cpus {
        let shard = cpu.build(AnyPolicy::new).map_err(|e| e.to_string())?;
        let sink = sink()?;
        inputs.push(CpuInput { shard, sink });
    }
    let mut inputs = Some(inputs);
    let mut outcome = Ok(());
    around(&mut || {
        let inputs = inputs.take().unwrap_or_default();
        let done = punctual_sim::run(&system, &tables, inputs, &options, &mut ());
        outcome = done.map(drop).map_err(|error| error.to_string());
    });
    outcome
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
        task.phase = Span::from_ns(u64::from(index) * STEP.as_ns());
        task
    };
    System {
        cpus: vec![cpu],
        tasks: (0..TASKS).map(task).collect(),
        ..System::default()
    }
}
