//! Features of the machine and of the system as a whole.

use punctual_model::{Cpu, CpuId, Requirement, Reserve, Span, System, TaskId, Work};

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
            Work::from_ticks(ticks.div_ceil(if ticks > 1_000 { 20 } else { 1 }))
        } else {
            Work::ZERO
        }
    };
    system.machine.switch = cost();
    system.machine.timer = cost();
    system.machine.preemption = cost();
    system.machine.cache_delay = cost();
}

fn taking(random: &mut Random, scale: Scale, name: &str) -> Reserve {
    let budget = scale.short(random, 2);
    Reserve {
        name: name.into(),
        budget: Work::from_ticks(budget),
        period: Span::from_ticks(budget * random.within(5, 25)),
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

/// A required response somewhere between the wcet and the deadline.
pub(super) fn requirements(random: &mut Random, _: Scale, system: &mut System) {
    for (id, task) in (0..).map(TaskId).zip(&system.tasks) {
        let (Some(wcet), Some(deadline)) = (task.class.budget(), task.class.relative_deadline())
        else {
            continue;
        };
        if random.happens(400) {
            let least = wcet.ticks() + deadline.ticks().saturating_sub(wcet.ticks()) / 3;
            let within = Span::from_ticks(random.within(least, deadline.ticks()));
            system
                .requirements
                .push(Requirement::Response { task: id, within });
        }
    }
}
