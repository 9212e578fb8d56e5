//! Members of a gang arrive together, and a log in which one does not is rejected.

use punctual_model::{
    Class, Clock, CpuId, Frequency, Gang, PolicyKind, Priority, Span, System, Task, TaskId, Work,
};
use punctual_policy::AnyPolicy;
use punctual_rules::{Rule, check};
use punctual_sim::{CpuInput, Options, run};
use punctual_tables::{CpuTables, Tables};
use punctual_trace::{Header, Log, Mode, Recorder};

use crate::common::cpu;

/// A member on each of two CPUs, 1 ms and 100 us. Before that of the second one goes a task of 50
/// us, once in two arrivals.
fn system(phase: Span<punctual_model::Ns>) -> System {
    let policy = PolicyKind::FixedPriority { preemptive: true };
    let periodic = |period, wcet| Class::Periodic {
        period: Span::from_us(period),
        wcet: Work::from_us(wcet),
        relative_deadline: Span::from_us(period),
    };
    let mut tasks = Vec::new();
    for (name, on, class, priority) in [
        ("one", 0, periodic(1_000, 100), 1),
        ("two", 1, periodic(1_000, 100), 1),
        ("before", 1, periodic(2_000, 50), 2),
    ] {
        let mut task = Task::new(name, CpuId(on), class);
        task.priority = Priority::new(priority);
        tasks.push(task);
    }
    tasks[1].phase = phase;
    let mut system = System {
        cpus: vec![cpu("a", policy), cpu("b", policy)],
        tasks,
        gangs: vec![Gang::new("step", [TaskId(0), TaskId(1)])],
        ..System::default()
    };
    system.machine.clock_error = Span::from_us(1);
    system
}

/// A log of 10 ms, with a bound of the skew.
fn log(phase: Span<punctual_model::Ns>, bound: Span<punctual_model::Ns>) -> Log {
    let system = system(phase);
    let mut tables = Tables::new(&system, Frequency::NANOSECONDS);
    let duration = Span::from_us(10_000);
    tables.set_duration(&system, duration);
    let input = |cpu: &CpuTables| CpuInput {
        shard: cpu.build(AnyPolicy::new).expect("a shard"),
        sink: Recorder::with_capacity(10_000).expect("room"),
    };
    let inputs = tables.cpus.iter().map(input).collect();
    let options = Options {
        duration,
        seed: 0,
        faults: punctual_sim::Faults::default(),
        plans: Vec::new(),
    };
    let outcome = run(&system, &tables, inputs, &options, &mut ()).expect("a run");
    let header = Header {
        mode: Mode::Virtual,
        duration,
        ..Header::default()
    };
    let mut log = Log::new(header, &system, tables);
    for (cpu, of_system) in outcome.cpus.into_iter().zip(&system.cpus) {
        log.add_cpu(&of_system.name, None, cpu.sink);
    }
    log.gangs[0].bound = Some(bound);
    log
}

fn broken(log: &Log) -> Vec<Rule> {
    let mut rules: Vec<Rule> = check(log).into_iter().map(|found| found.rule).collect();
    rules.dedup();
    rules
}

#[test]
fn members_in_step_break_no_rule_and_one_that_starts_too_late_does() {
    let bound = Span::from_us(50);
    assert_eq!(broken(&log(Span::ZERO, bound)), []);
    let late = log(Span::ZERO, Span::from_ns(49_999));
    assert_eq!(broken(&late), [Rule::GangInStep]);
    assert_eq!(check(&late).len(), 5);
}

#[test]
fn a_member_that_arrives_a_nanosecond_later_is_not_in_step() {
    let mut mixed = log(Span::ZERO, Span::from_us(60));
    assert_eq!(broken(&mixed), []);
    let other = log(Span::from_ns(1), Span::from_us(60));
    mixed.cpus[1] = other.cpus[1].clone();
    mixed.tables.cpus[1] = other.tables.cpus[1].clone();
    assert_eq!(broken(&mixed), [Rule::GangInStep]);
}

#[test]
fn two_members_are_compared_in_jobs_that_the_first_one_lacks() {
    let mut three = log(Span::ZERO, Span::from_us(60));
    let other = log(Span::from_ns(1), Span::from_us(60));
    let mut tables = other.tables.cpus[1].clone();
    let third = TaskId(3);
    for (task, _) in tables.threads.iter_mut().filter(|(id, _)| *id == TaskId(1)) {
        *task = third;
    }
    three.gangs[0].members.push(third);
    three.tables.cpus.push(tables);
    three.cpus.push(other.cpus[1].clone());
    three.cpus[0].records = Default::default();
    assert!(broken(&three).contains(&Rule::GangInStep));
}

#[test]
fn starts_are_compared_in_true_time_while_the_clocks_keep_their_error() {
    let mut wrong = log(Span::ZERO, Span::from_us(50));
    let ahead = |offset_ns| Clock {
        offset_ns,
        drift_ppb: 0,
    };
    // Behind by 1 us, the second CPU starts its member 51 us later.
    wrong.cpus[1].clock = ahead(-1_000);
    assert_eq!(broken(&wrong), [Rule::GangInStep]);
    // Beyond the error nothing was promised.
    wrong.cpus[1].clock = ahead(-1_001);
    assert_eq!(broken(&wrong), []);
}
