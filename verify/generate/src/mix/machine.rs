//! Features of the machine and of the system as a whole.

use punctual_model::{Cpu, CpuId, Requirement, Reserve, Span, System, Task, TaskId, Work};

use super::base::{self, Scale};
use crate::random::Random;

/// One or two CPUs more, and every task on any of them.
pub(super) fn several_cpus(random: &mut Random, scale: Scale, system: &mut System) {
    for index in 1..=random.within(1, 2) {
        let policy = base::policy(random, scale);
        system.cpus.push(Cpu {
            name: index.to_string(),
            host: None,
            policy,
        });
    }
    let cpus = system.cpus.len();
    for task in &mut system.tasks {
        task.cpu = CpuId(u16::try_from(random.index(cpus)).unwrap_or(0));
    }
}

pub(super) fn overheads(random: &mut Random, scale: Scale, system: &mut System) {
    let mut cost = || {
        if random.happens(400) {
            let ticks = scale.short(random, 1);
            // A tenth of a millisecond would be a slow machine.
            Work::from_ns(ticks.div_ceil(if ticks > 1_000 { 20 } else { 1 }))
        } else {
            Work::ZERO
        }
    };
    system.machine.switch = cost();
    system.machine.timer = cost();
    system.machine.preemption = cost();
    system.machine.cache_delay = cost();
}

/// A timer that is set anew takes anything, also more than an entry. Drawn behind all features, so
/// that they are what they were without it.
pub(super) fn budget_timer(random: &mut Random, system: &mut System) {
    let most = system.machine.timer.as_ns() * 2 + 4;
    if random.happens(500) {
        system.machine.budget_timer = Work::from_ns(random.within(1, most));
    }
}

fn taking(random: &mut Random, scale: Scale, name: &str) -> Reserve {
    let budget = scale.short(random, 2);
    Reserve {
        name: name.into(),
        budget: Work::from_ns(budget),
        period: Span::from_ns(budget * random.within(5, 25)),
    }
}

pub(super) fn missing_time(random: &mut Random, scale: Scale, system: &mut System) {
    system.machine.missing_time = Some(taking(random, scale, "missing-time"));
}

pub(super) fn reserves(random: &mut Random, scale: Scale, system: &mut System) {
    for name in ["lent", "housekeeping"] {
        if random.happens(600) {
            let reserve = taking(random, scale, name);
            system.machine.reserves.push(reserve);
        }
    }
}

/// Required responses somewhere between the wcet and the deadline, a chain, a difference.
pub(super) fn requirements(random: &mut Random, _: Scale, system: &mut System) {
    for (id, task) in (0..).map(TaskId).zip(&system.tasks) {
        let (Some(wcet), Some(deadline)) = (task.class.budget(), task.class.relative_deadline())
        else {
            continue;
        };
        if random.happens(400) {
            let least = wcet.as_ns() + deadline.as_ns().saturating_sub(wcet.as_ns()) / 3;
            let within = Span::from_ns(random.within(least, deadline.as_ns()));
            system
                .requirements
                .push(Requirement::Response { task: id, within });
        }
    }
    if random.happens(500) {
        chain(random, system);
    }
    if random.happens(300) {
        jitter(random, system);
    }
}

fn real_time(system: &System) -> Vec<(TaskId, &Task)> {
    let all = (0..).map(TaskId).zip(&system.tasks);
    all.filter(|(_, task)| task.class.is_real_time()).collect()
}

/// From end to end of two or three tasks, in some order, the last of which arrive by the clock;
/// within a part of what they may take at most if each has to wait for the next arrival.
fn chain(random: &mut Random, system: &mut System) {
    let mut rest = real_time(system);
    let mut tasks = Vec::new();
    let mut longest = 0_u64;
    for _ in 0..random.within(2, 3) {
        rest.retain(|(_, task)| tasks.is_empty() || task.class.arrives_by_clock());
        if rest.is_empty() {
            break;
        }
        let (id, task) = rest.swap_remove(random.index(rest.len()));
        let period = task.class.min_separation().unwrap_or_default();
        let deadline = task.class.relative_deadline().unwrap_or_default();
        longest = longest.saturating_add(period.saturating_add(deadline).as_ns());
        tasks.push(id);
    }
    if tasks.len() >= 2 {
        let within = Span::from_ns(random.within(longest / 2, longest).max(1));
        system
            .requirements
            .push(Requirement::Chain { tasks, within });
    }
}

/// How much the responses of one task may differ.
fn jitter(random: &mut Random, system: &mut System) {
    let tasks = real_time(system);
    let Some(&(id, task)) = random.pick(&tasks) else {
        return;
    };
    let deadline = task.class.relative_deadline().unwrap_or_default().as_ns();
    let within = Span::from_ns(random.within(deadline / 3, deadline).max(1));
    system
        .requirements
        .push(Requirement::Jitter { task: id, within });
}
