//! Systems run in virtual time into a log, for the tests of this crate.
// Each test file uses its own part of this module.
#![allow(dead_code)]

use punctual_model::{
    Arrivals, AtBudgetEnd, Class, Cpu, CpuId, Frequency, Instant, Mode as LockMode, Ns, OnOverrun,
    PolicyKind, Priority, Protocol, Requirement, Resource, ResourceId, Scheduler, SchedulerId,
    Server, ServerKind, Slot, Span, Supply, System, Task, TaskId, Trust, Use, Work,
};
use punctual_policy::AnyPolicy;
use punctual_sim::{CpuInput, Faults, Options, prepare};
use punctual_tables::Tables;
use punctual_trace::{Bound, Header, Log, Mode, Recorder, TaskInfo};

pub(crate) fn cpu(name: &str, policy: PolicyKind<Ns>) -> Cpu {
    Cpu {
        name: name.into(),
        host: None,
        policy,
    }
}

pub(crate) fn periodic(name: &str, on: u16, period_ms: u64, wcet_us: u64, priority: u32) -> Task {
    let class = Class::Periodic {
        period: Span::from_ms(period_ms),
        wcet: Work::from_us(wcet_us),
        relative_deadline: Span::from_ms(period_ms),
    };
    let mut task = Task::new(name, CpuId(on), class);
    task.priority = Priority::new(priority);
    task
}

pub(crate) const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

/// The system of `examples/two-tasks.toml`, with its wcets burnt in full.
pub(crate) fn two_tasks() -> System {
    System {
        cpus: vec![cpu("0", FIXED)],
        tasks: vec![
            periodic("fast", 0, 10, 2_000, 2),
            periodic("slow", 0, 20, 5_000, 1),
        ],
        ..System::default()
    }
}

/// Every class, precedence within and across CPUs, suspension, a non-preemptive section.
pub(crate) fn rich(policy: PolicyKind<Ns>) -> System {
    let mut system = System {
        cpus: vec![
            cpu("left", policy),
            cpu("right", PolicyKind::EarliestDeadlineFirst),
        ],
        ..System::default()
    };
    let mut sporadic = periodic("sporadic", 0, 15, 1_000, 6);
    sporadic.class = Class::Sporadic {
        min_separation: Span::from_ms(15),
        wcet: Work::from_ms(1),
        relative_deadline: Span::from_ms(12),
    };
    sporadic.arrivals = Arrivals::Random {
        mean: Span::from_ms(22),
    };
    let mut reserved = periodic("reserved", 0, 20, 0, 4);
    reserved.class = Class::Reservation {
        period: Span::from_ms(20),
        slice: Work::from_ms(3),
    };
    let mut once = periodic("once", 0, 1, 0, 5);
    once.class = Class::Once {
        size: Work::from_ms(2),
        relative_deadline: Span::from_ms(50),
    };
    once.phase = Span::from_ms(7);
    let mut idle = periodic("idle", 0, 1, 0, 0);
    idle.class = Class::Aperiodic;
    let mut second = periodic("second", 0, 20, 1_000, 7);
    second.after = vec![TaskId(0)];
    let mut last = periodic("last", 1, 20, 4_000, 3);
    last.after = vec![TaskId(1)];
    let mut before = periodic("before", 1, 10, 1_000, 3);
    before.follows = vec![TaskId(6)];
    system.tasks = vec![
        periodic("first", 0, 10, 1_000, 8),
        second,
        sporadic,
        reserved,
        once,
        idle,
        last,
        before,
    ];
    system
}

/// Runs `system` in virtual time.
pub(crate) fn simulate(system: &System, ms: u64, seed: u64, faults: Faults) -> Log {
    system.validate().expect("a meaningful system");
    let duration = Span::from_ms(ms);
    let mut tables = Tables::new(system, Frequency::NANOSECONDS);
    tables.set_duration(system, duration);
    prepare(system, &mut tables, &faults);
    let inputs = tables.cpus.iter().map(|cpu| CpuInput {
        shard: cpu.build(AnyPolicy::new).expect("valid tables"),
        sink: Recorder::with_capacity(4 << 20).expect("4 MiB"),
    });
    let options = Options {
        duration,
        seed,
        faults,
        plans: Vec::new(),
    };
    let inputs = inputs.collect();
    let outcome = punctual_sim::run(system, &tables, inputs, &options, &mut ()).expect("it runs");
    let header = Header {
        platform: "sim".into(),
        mode: Mode::Virtual,
        tool: "test".into(),
        source: "built by hand".into(),
        seed,
        duration,
        end: outcome.end,
        ..Header::default()
    };
    let mut log = Log::new(header, system, tables);
    log.tasks = system.tasks.iter().map(info).collect();
    for (outcome, cpu) in outcome.cpus.into_iter().zip(&system.cpus) {
        let one = log.add_cpu(&cpu.name, None, outcome.sink);
        (one.utilization_ppm, one.machine_utilization_ppm) = (Some(350_000), Some(351_234));
    }
    log
}

fn info(task: &Task) -> TaskInfo {
    TaskInfo {
        name: task.name.clone(),
        bound: Some(Bound {
            ns: 7_000_000,
            exactness: "exact".into(),
            explanation: "7ms = 5ms (own) + 2ms (another)".into(),
        }),
        machine_bound: None,
    }
}

/// A task that needs twice its budget.
pub(crate) fn overrunning(system: &System, name: &str, rule: OnOverrun) -> (System, Faults) {
    let mut system = system.clone();
    let at = system.tasks.iter().position(|t| t.name == name);
    let at = at.expect("a task of this name");
    system.tasks[at].on_overrun = rule;
    let overrun = punctual_sim::Overrun {
        task: TaskId(u32::try_from(at).expect("few tasks")),
        per_mille: 2_000,
    };
    let faults = Faults {
        overruns: vec![overrun],
        ..Faults::default()
    };
    (system, faults)
}

/// Missing time of `length_us` every `every_ms`.
pub(crate) fn missing(length_us: u64, every_ms: u64) -> Faults {
    Faults {
        missing: vec![punctual_sim::MissingTime {
            cpu: None,
            length: Span::from_us(length_us),
            every: Span::from_ms(every_ms),
        }],
        ..Faults::default()
    }
}

pub(crate) fn at_ms(ms: u64) -> Instant {
    Instant::from_ticks(1_000_000 * ms)
}

/// One application in slots, one on a server, a resource that two tasks of the latter share.
pub(crate) fn composed() -> System {
    let slot = |at_ms, length_ms| Slot {
        at: Span::from_ms(at_ms),
        length: Span::from_ms(length_ms),
    };
    let scheduler = |name: &str, parent, supply| Scheduler {
        name: name.into(),
        cpu: CpuId(0),
        parent,
        policy: FIXED,
        priority: Priority::new(1),
        supply,
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    };
    let server = Server {
        kind: ServerKind::Deferrable,
        budget: Work::from_us(1_500),
        period: Span::from_ms(10),
    };
    let frame = PolicyKind::Tdm {
        frame: Span::from_ms(10),
        scheduling: Span::from_us(100),
    };
    let sharing = |mut task: Task, length_us| {
        task.uses = vec![Use {
            resource: ResourceId(0),
            length: Work::from_us(length_us),
            mode: LockMode::Exclusive,
            inside: None,
        }];
        task
    };
    let on = |scheduler, mut task: Task| {
        task.scheduler = Some(SchedulerId(scheduler));
        task
    };
    let slots = |slots: &[Slot<Ns>]| Supply::Slots(slots.to_vec());
    let late = |mut task: Task| {
        task.phase = Span::from_us(5_300);
        task
    };
    System {
        cpus: vec![cpu("0", frame)],
        schedulers: vec![
            scheduler("still", None, slots(&[slot(0, 4)])),
            scheduler("lively", None, slots(&[slot(5, 4)])),
            scheduler("rationed", Some(SchedulerId(1)), Supply::Server(server)),
        ],
        resources: vec![Resource {
            name: "bus".into(),
            protocol: Protocol::Inheritance,
            at_budget_end: AtBudgetEnd::Overrun,
        }],
        tasks: vec![
            on(0, periodic("calm", 0, 10, 1_000, 1)),
            on(1, late(sharing(periodic("first", 0, 20, 600, 4), 300))),
            on(1, sharing(periodic("last", 0, 20, 1_500, 2), 1_200)),
            on(2, periodic("hungry", 0, 20, 2_500, 1)),
        ],
        ..System::default()
    }
}

/// What a shard was told and did that was driven by hand.
pub(crate) fn log_of(system: System, tables: Tables, recorder: Recorder, end: Instant) -> Log {
    let header = Header {
        platform: "none".into(),
        mode: Mode::Virtual,
        duration: end.since(Instant::ZERO).ns_up(Frequency::NANOSECONDS),
        end,
        ..Header::default()
    };
    let mut log = Log::new(header, &system, tables);
    log.add_cpu("0", None, recorder);
    log
}

/// Two tasks with a requirement of each kind.
pub(crate) fn required() -> System {
    let mut system = two_tasks();
    let (fast, slow) = (TaskId(0), TaskId(1));
    system.requirements = vec![
        Requirement::Response {
            task: slow,
            within: Span::from_ms(8),
        },
        Requirement::Jitter {
            task: fast,
            within: Span::from_ms(5),
        },
        Requirement::Chain {
            tasks: vec![fast, slow],
            within: Span::from_ms(30),
        },
    ];
    system
}
