//! A job that takes longer than it may delays nobody else beyond the bounds, also when it locks.
//!
//! The sections of the job are as long as declared: tasks that share a resource trust each other in
//! that, and they alone pay for a longer section. A lock of a demoted job counts as held by the
//! least urgent of all.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual::{
    Cpu, Faults, PolicyKind, Priority, SimOptions, Span, System, Task, TaskId, Verdict, Work, admit,
};
use punctual_generate::Dice;
use punctual_model::{AtBudgetEnd, Mode, OnOverrun, Protocol, Resource, ResourceId, Use};
use punctual_sim::Overrun;

use crate::responses::{self, longest};

const PERIODS: [u64; 6] = [20, 30, 40, 50, 60, 100];
const RULES: [OnOverrun; 4] = [
    OnOverrun::Throttle,
    OnOverrun::Signal,
    OnOverrun::Demote,
    OnOverrun::Stop,
];
/// Here a lock of a demoted job once made another later than its bound, when that counted nothing
/// of it; such systems are rare.
const LATE_BEHIND_A_DEMOTED_LOCK: u64 = 55_472;

fn task(dice: &mut Dice, index: u64, count: u64) -> Task {
    let period = PERIODS[dice.index(PERIODS.len())];
    let wcet = 2 + dice.below(period / count);
    let mut task = responses::task(format!("t{index}"), period, wcet);
    task.priority = Priority::new(u32::try_from(200 - period + index).unwrap());
    task.phase = Span::from_ns(dice.below(30));
    if dice.below(4) > 0 {
        let length = 1 + dice.below((wcet / 2).clamp(1, 6));
        task.uses.push(Use {
            resource: ResourceId(u16::try_from(dice.below(2)).unwrap()),
            length: Work::from_ns(length),
            mode: [Mode::Exclusive, Mode::Exclusive, Mode::Shared][dice.index(3)],
            inside: None,
        });
    }
    task
}

fn system(seed: u64) -> (System, TaskId) {
    let mut dice = Dice::new(seed);
    let fixed = dice.below(2) == 0;
    let policy = if fixed {
        PolicyKind::FixedPriority { preemptive: true }
    } else {
        PolicyKind::EarliestDeadlineFirst
    };
    let ceiling = if fixed {
        Protocol::ImmediateCeiling
    } else {
        Protocol::StackResource
    };
    let count = 3 + dice.below(3);
    let tasks = (0..count).map(|i| task(&mut dice, i, count)).collect();
    let resource = |dice: &mut Dice, name: &str| Resource {
        name: name.into(),
        protocol: [Protocol::Inheritance, ceiling, Protocol::NonPreemptive][dice.index(3)],
        at_budget_end: AtBudgetEnd::default(),
    };
    let mut system = System {
        cpus: vec![Cpu {
            name: "0".into(),
            host: None,
            policy,
        }],
        resources: vec![resource(&mut dice, "a"), resource(&mut dice, "b")],
        tasks,
        ..System::default()
    };
    let victim = dice.index(system.tasks.len());
    system.tasks[victim].on_overrun = RULES[dice.index(4)];
    (system, TaskId(u32::try_from(victim).unwrap()))
}

/// The longest response of each task while one overruns.
fn responses(system: &System, victim: TaskId, seed: u64) -> Vec<u64> {
    let per_mille = 1_100 + u32::try_from(seed % 9).unwrap() * 200;
    let options = SimOptions {
        duration: Some(Span::from_ns(1_200)),
        seed: Some(seed),
        faults: Faults {
            overruns: vec![Overrun {
                task: victim,
                per_mille,
            }],
            ..Faults::default()
        },
        ..SimOptions::default()
    };
    longest(system, &options)
}

fn bound(verdict: &Verdict, task: usize) -> u64 {
    verdict.tasks[task].response_bound.unwrap().as_ns()
}

#[test]
fn an_overrun_of_a_job_that_locks_delays_nobody_else_beyond_the_bounds() {
    let mut admitted = 0;
    for seed in (0..4_000).chain([LATE_BEHIND_A_DEMOTED_LOCK]) {
        let (system, victim) = system(seed);
        let verdict = admit(&system).unwrap();
        if system.validate().is_err() || !verdict.admitted {
            continue;
        }
        admitted += 1;
        let seen = responses(&system, victim, seed);
        for (task, seen) in seen.into_iter().enumerate() {
            let bound = bound(&verdict, task);
            assert!(
                task == victim.index() || seen <= bound,
                "seed {seed}: t{task} took {seen}, bound {bound}:\n{system:?}"
            );
        }
    }
    assert!(admitted > 2_000, "only {admitted} systems admitted");
}
