//! How long an answer takes, against the number of tasks.

use punctual_model::{Class, Cpu, CpuId, Ns, PolicyKind, Priority, Span, System, Task, Work};

use super::figure::{Bench, time};

const SIZES: &[u32] = if cfg!(debug_assertions) {
    &[10]
} else {
    &[10, 100, 1_000]
};
/// Different systems per figure.
const SYSTEMS: u64 = if cfg!(debug_assertions) { 2 } else { 20 };

pub(super) fn benches() -> Vec<Bench> {
    let policies = [
        PolicyKind::FixedPriority { preemptive: true },
        PolicyKind::EarliestDeadlineFirst,
    ];
    let pairs = policies
        .iter()
        .flat_map(|kind| SIZES.iter().map(move |&n| (*kind, n)));
    let bench = |(kind, n): (PolicyKind<Ns>, u32)| {
        Bench::new(format!("analysis, {}, {n} tasks", kind.name()), move || {
            measure(kind, n)
        })
    };
    pairs.map(bench).collect()
}

/// The yes or no of admission, on systems that use about three quarters of a processor.
fn measure(kind: PolicyKind<Ns>, tasks: u32) -> Result<Vec<f64>, String> {
    let mut samples = Vec::new();
    for seed in 0..SYSTEMS {
        let system = system(kind, tasks, seed);
        let mut answer = Ok(false);
        samples.push(time(1, || answer = punctual_analysis::is_admitted(&system)));
        let _either = answer.map_err(|error| error.to_string())?;
    }
    Ok(samples)
}

/// Tasks with equal shares and periods from 1 to 500 ms, the shorter the more urgent.
fn system(kind: PolicyKind<Ns>, tasks: u32, seed: u64) -> System {
    let cpu = Cpu {
        name: "0".into(),
        host: None,
        policy: kind,
    };
    let mut random = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let task = |index: u32| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let period_us = 1_000 * [1, 2, 5, 10, 20, 50, 100, 200, 500][(random >> 33) as usize % 9];
        let wcet_ns = period_us * 750 / u64::from(tasks);
        let class = Class::Periodic {
            period: Span::from_us(period_us),
            wcet: Work::from_ns(wcet_ns.max(1)),
            relative_deadline: Span::from_us(period_us),
        };
        let mut task = Task::new(format!("task{index}"), CpuId(0), class);
        task.priority = Priority::new(u32::try_from(1_000_000 - period_us).unwrap_or(0));
        task
    };
    System {
        cpus: vec![cpu],
        tasks: (0..tasks).map(task).collect(),
        ..System::default()
    }
}
