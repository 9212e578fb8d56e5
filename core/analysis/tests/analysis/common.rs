//! Systems in one line, for tables in tests
// Each test binary uses its own part of these helpers.
#![allow(dead_code)]

pub(crate) mod draw;
pub(crate) mod forest;
pub(crate) mod random;
pub(crate) mod simulator;

use punctual_model::{
    Class, Cpu, CpuId, Ns, PolicyKind, Priority, Requirement, Span, System, Task, TaskId, Work,
};

pub(crate) const FP: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };
pub(crate) const NP_FP: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: false };
pub(crate) const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;

pub(crate) fn span(ticks: u64) -> Span<Ns> {
    Span::from_ns(ticks)
}

pub(crate) fn work(ticks: u64) -> Work<Ns> {
    Work::from_ns(ticks)
}

/// A system without tasks on `cpus` CPUs with this policy.
pub(crate) fn empty(policy: PolicyKind<Ns>, cpus: usize) -> System {
    let mut system = System::default();
    for index in 0..cpus {
        system.cpus.push(Cpu {
            name: index.to_string(),
            host: None,
            policy,
        });
    }
    system
}

/// Periodic tasks (C, T, D) on one CPU, the first with the highest priority.
pub(crate) fn periodic(policy: PolicyKind<Ns>, tasks: &[(u64, u64, u64)]) -> System {
    let mut system = empty(policy, 1);
    for (index, &(c, t, d)) in tasks.iter().enumerate() {
        let class = Class::Periodic {
            period: span(t),
            wcet: work(c),
            relative_deadline: span(d),
        };
        let mut task = Task::new(format!("t{index}"), CpuId(0), class);
        task.priority = Priority::new(u32::try_from(tasks.len() - index).expect("few tasks"));
        system.tasks.push(task);
    }
    system
}

/// The same with sporadic tasks.
pub(crate) fn sporadic(policy: PolicyKind<Ns>, tasks: &[(u64, u64, u64)]) -> System {
    let mut system = periodic(policy, tasks);
    for (task, &(c, t, d)) in system.tasks.iter_mut().zip(tasks) {
        task.class = Class::Sporadic {
            min_separation: span(t),
            wcet: work(c),
            relative_deadline: span(d),
        };
    }
    system
}

pub(crate) fn require_response(system: &mut System, task: u32, within: u64) {
    let task = TaskId(task);
    system.requirements.push(Requirement::Response {
        task,
        within: span(within),
    });
}

/// All response bounds, in the order of the file.
pub(crate) fn bounds(system: &System) -> Vec<Option<u64>> {
    let verdict = punctual_analysis::admit(system).expect("analysis ends");
    verdict
        .tasks
        .iter()
        .map(|t| t.response_bound.map(Span::as_ns))
        .collect()
}
