//! Random systems with some of everything that a file can have

use punctual_model::{Ns, PolicyKind, Priority, Span, System, Work};

use super::random::{Deadlines, Random, set};
use super::{EDF, FP, NP_FP, periodic, sporadic, work};

pub(crate) const POLICIES: [PolicyKind<Ns>; 5] = [
    FP,
    NP_FP,
    EDF,
    PolicyKind::Fifo,
    PolicyKind::RoundRobin {
        timeslice: Span::from_ns(5),
    },
];

/// A random system on one CPU with some of everything that one CPU can have.
pub(crate) fn draw(random: &mut Random, policy: PolicyKind<Ns>, periods: (f64, f64)) -> System {
    let n = usize::try_from(random.within(2, 5)).expect("small");
    let top = if matches!(policy, FP | EDF) {
        1.08
    } else {
        0.75
    };
    let load = top - 0.45 * random.unit();
    let rows = set(random, n, load, periods, Deadlines::Arbitrary);
    let mut system = if random.within(0, 1) == 0 {
        periodic(policy, &rows)
    } else {
        sporadic(policy, &rows)
    };
    for task in &mut system.tasks {
        if random.within(0, 3) == 0 {
            task.priority = Priority::new(2);
        }
        if random.within(0, 4) == 0 {
            let budget = task.class.budget().map_or(0, Work::as_ns);
            task.non_preemptive = work(random.within(0, budget));
        }
    }
    system
}

/// The wcet of a task in ticks.
pub(crate) fn wcet(system: &System, task: usize) -> u64 {
    system.tasks[task].class.budget().map_or(0, Work::as_ns)
}

/// As a signed number, for simulations that begin before 0.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).expect("small numbers")
}
