//! When the members of a gang execute: starts and windows of a simulated gang, in true time.

use punctual::{Faults, SimOptions, Workloads, simulate_unjudged};
use punctual_model::{
    Class, Cpu, CpuId, Gang, Ns, PolicyKind, Priority, Span, Superstep, System, Task, TaskId, Work,
};
use punctual_trace::Behavior;

use crate::costs::Costs;

/// Priority of members; neighbours are above.
const MEMBER: u32 = 5;
const NEIGHBOUR: u32 = 9;

/// A neighbour executes so long in each of these periods, on each CPU at instants of its own.
const BESIDE: (u64, u64) = (50_000, 1_300_000);

/// A gang with one member on each of so many CPUs, all with the same constraint.
pub(crate) fn gang(costs: &Costs, members: usize, class: Class<Ns>) -> System {
    let mut system = System {
        machine: costs.terms(),
        ..System::default()
    };
    let mut ids = Vec::new();
    for number in 0..u16::try_from(members).unwrap_or(u16::MAX) {
        system.cpus.push(Cpu {
            name: number.to_string(),
            host: None,
            policy: PolicyKind::FixedPriority { preemptive: true },
        });
        let mut task = Task::new(format!("g.{number}"), CpuId(number), class);
        task.priority = Priority::new(MEMBER);
        ids.push(TaskId(u32::from(number)));
        system.tasks.push(task);
    }
    system.gangs.push(Gang {
        name: "g".into(),
        supersteps: vec![Superstep {
            name: String::new(),
            members: ids,
        }],
    });
    system
}

/// The same with a neighbour on each CPU, which goes before the member.
pub(crate) fn with_neighbours(mut system: System) -> System {
    for number in 0..u16::try_from(system.cpus.len()).unwrap_or(u16::MAX) {
        let (work, period) = BESIDE;
        let class = Class::Periodic {
            period: Span::from_ns(period),
            wcet: Work::from_ns(work),
            relative_deadline: Span::from_ns(period),
        };
        let mut task = Task::new(format!("n.{number}"), CpuId(number), class);
        task.priority = Priority::new(NEIGHBOUR);
        // A prime distance: no two CPUs have theirs at the same instants.
        task.phase = Span::from_ns(u64::from(number) * 104_729 % period);
        system.tasks.push(task);
    }
    system
}

/// Faults of the machine: clocks differ, and timers are late.
fn faults(costs: &Costs) -> Faults {
    Faults {
        late_timer: Span::from_ns(costs.late_ns),
        timer_cost: Work::from_ns(costs.entry_ns),
        clock_offsets: vec![(None, Span::from_ns(costs.clock_error_ns))],
        ..Faults::default()
    }
}

/// A stretch of execution: the number of its job, and from when to when in true nanoseconds.
pub(crate) type Stretch = (u64, i64, i64);

/// The stretches of each member, in order.
pub(crate) type Stretches = Vec<Vec<Stretch>>;

/// Simulates a gang: the stretches of execution of each member, as (job, start, end).
pub(crate) fn simulate(
    system: &System,
    costs: &Costs,
    duration: u64,
    seed: u64,
) -> Result<Stretches, String> {
    let options = SimOptions {
        duration: Some(Span::from_ns(duration)),
        seed: Some(seed),
        faults: faults(costs),
        ..SimOptions::default()
    };
    let members = system.gangs.first().map_or(0, |gang| {
        gang.supersteps.first().map_or(0, |step| step.members.len())
    });
    let mut system = system.clone();
    // A gang has one phase, and members that were not corrected have several.
    system.gangs.clear();
    let log = simulate_unjudged(&system, &options, &mut Workloads::new(), &mut |_| true)
        .map_err(|error| format!("the simulation does not start: {error}"))?;
    let stretches = (0..members).map(|cpu| {
        let behavior = Behavior::new(&log, cpu);
        let clock = log.cpus[cpu].clock;
        let truly = |ticks: u64| clock.truly(i64::try_from(ticks).unwrap_or(i64::MAX));
        let member = TaskId(u32::try_from(cpu).unwrap_or(u32::MAX));
        let of_member = behavior.segments.iter().filter_map(|segment| {
            let job = behavior.jobs.get(segment.job?)?;
            let is_member = log.task_of(cpu, segment.thread) == Some(member);
            let (start, end) = (segment.start.ticks(), segment.end.ticks());
            is_member.then(|| (job.index, truly(start), truly(end)))
        });
        of_member.collect()
    });
    Ok(stretches.collect())
}

/// The bound of the gang's skew, in nanoseconds; `None`: there is none.
pub(crate) fn bound(system: &System) -> Result<Option<u64>, String> {
    let verdict = punctual_analysis::bounds_only(system).map_err(|error| error.to_string())?;
    let gang = verdict.gangs.first().filter(|_| verdict.admitted);
    let step = gang.and_then(|gang| gang.supersteps.first());
    Ok(step.and_then(|step| step.bound).map(Span::as_ns))
}
