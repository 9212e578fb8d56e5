//! Locks inside servers: tasks of one server that lock, with and without others that drain it.

use punctual_model::{
    Arrivals, Class, Cpu, CpuId, Ns, PolicyKind, Priority, Protocol, ResourceId, Scheduler,
    SchedulerId, Server, ServerKind, Span, Supply, System, Task, Work,
};

use super::base::Scale;
use super::hierarchy::{add, grants, scheduler, shrink};
use super::resources;
use crate::random::Random;

const PREEMPTIVE: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

/// Tasks of a server that is there lock; or a server comes that has little else to do, so that more
/// of these systems are admitted.
pub(super) fn server_locks(random: &mut Random, scale: Scale, system: &mut System) {
    if random.happens(300) && in_old_server(random, system).is_some() {
        return;
    }
    let _ = in_new_server(random, scale, system);
}

/// One or two resources among the tasks of a server of the system.
fn in_old_server(random: &mut Random, system: &mut System) -> Option<()> {
    let ids = (0..).map(SchedulerId).zip(&system.schedulers);
    let served = ids.filter(|(_, s)| matches!(s.supply, Supply::Server(_)));
    let nodes: Vec<(CpuId, SchedulerId)> = served
        .filter(|(id, _)| resources::lockers(system, *id).len() >= 2)
        .map(|(id, s)| (s.cpu, id))
        .collect();
    let (_, node) = *random.pick(&nodes)?;
    for _ in 0..random.within(1, 2) {
        let users = resources::lockers(system, node);
        let policy = system.schedulers[node.index()].policy;
        resources::share(random, system, policy, &users)?;
    }
    Some(())
}

/// A server above all others of a CPU, of this system's or its own, with tasks that lock.
fn in_new_server(random: &mut Random, scale: Scale, system: &mut System) -> Option<()> {
    let cpu = cpu(random, system)?;
    let period = scale.period(random).as_ns().max(3);
    let budget = (period * random.within(20, 70) / 100).max(2);
    let percent = 100 * budget / period;
    for task in system.tasks.iter_mut().filter(|t| t.cpu == cpu) {
        shrink(&mut task.class, 90_u64.saturating_sub(percent).max(1));
    }
    let kind = *random.pick(&ServerKind::ALL)?;
    let served = served(kind, budget, period);
    let above = Scheduler {
        priority: Priority::new(7),
        ..scheduler(random, system, cpu, served)
    };
    let mut home = add(system, above)?;
    let (mut budget, mut period) = (budget, period);
    if grants(system.schedulers[home.index()].policy) && random.happens(150) {
        period *= random.within(1, 3);
        budget = (budget * random.within(50, 100) / 100).max(1);
        let kind = *random.pick(&ServerKind::ALL)?;
        let inner = scheduler(random, system, cpu, self::served(kind, budget, period));
        home = add(
            system,
            Scheduler {
                parent: Some(home),
                ..inner
            },
        )?;
    }
    let count = random.within(2, 3);
    for _ in 0..count {
        task(random, system, (cpu, Some(home)), (budget, period, count));
    }
    if random.happens(400) {
        background(system, (cpu, home));
    }
    across(random, system, (cpu, home), (budget, period));
    for _ in 0..random.within(1, 2) {
        let users = resources::lockers(system, home);
        let policy = system.schedulers[home.index()].policy;
        resources::share(random, system, policy, &users)?;
    }
    Some(())
}

fn served(kind: ServerKind, budget: u64, period: u64) -> Supply {
    Supply::Server(Server {
        kind,
        budget: Work::from_ns(budget),
        period: Span::from_ns(period),
    })
}

/// A CPU that can have the server: half of the time one of its own.
fn cpu(random: &mut Random, system: &mut System) -> Option<CpuId> {
    let ids = (0..).map(CpuId).zip(&system.cpus);
    let fit: Vec<CpuId> = ids
        .filter(|(_, c)| grants(c.policy))
        .map(|(id, _)| id)
        .collect();
    if random.happens(500)
        && let Some(cpu) = random.pick(&fit)
    {
        return Some(*cpu);
    }
    let id = u16::try_from(system.cpus.len()).ok()?;
    let policies = [PREEMPTIVE, PREEMPTIVE, PolicyKind::EarliestDeadlineFirst];
    system.cpus.push(Cpu {
        name: id.to_string(),
        host: None,
        policy: *random.pick(&policies)?,
    });
    Some(CpuId(id))
}

/// One of `count` tasks that together need a part of the budget.
fn task(
    random: &mut Random,
    system: &mut System,
    (cpu, home): (CpuId, Option<SchedulerId>),
    (budget, period, count): (u64, u64, u64),
) -> usize {
    let times = random.within(3, 12);
    let wcet = budget * times * random.within(30, 90) / (100 * count);
    let wcet = Work::from_ns(wcet.max(1));
    let separation = Span::from_ns(period * times);
    let sporadic = random.happens(300);
    let class = match sporadic {
        true => Class::Sporadic {
            min_separation: separation,
            wcet,
            relative_deadline: separation,
        },
        false => Class::Periodic {
            period: separation,
            wcet,
            relative_deadline: separation,
        },
    };
    let mut task = Task::new(format!("t{}", system.tasks.len()), cpu, class);
    if sporadic {
        task.arrivals = Arrivals::Every(separation);
    }
    task.scheduler = home;
    let number = random.within(1, 5);
    task.priority = Priority::new(u32::try_from(number).unwrap_or(1));
    system.tasks.push(task);
    system.tasks.len() - 1
}

/// Work without end in the server: it drains every budget.
fn background(system: &mut System, (cpu, home): (CpuId, SchedulerId)) {
    let name = format!("t{}", system.tasks.len());
    let mut task = Task::new(name, cpu, Class::Aperiodic);
    task.scheduler = Some(home);
    task.priority = Priority::new(0);
    system.tasks.push(task);
}

/// Sometimes a task beside the server locks what a task in it locks, where ceilings hold all the
/// way between them.
fn across(
    random: &mut Random,
    system: &mut System,
    (cpu, home): (CpuId, SchedulerId),
    (budget, period): (u64, u64),
) {
    let way = system.schedulers[home.index()].parent.unwrap_or(home);
    let by_priority = system.cpus[cpu.index()].policy == PREEMPTIVE
        && [way, home]
            .iter()
            .all(|node| system.schedulers[node.index()].policy == PREEMPTIVE);
    if !by_priority || !random.happens(300) {
        return;
    }
    let beside = task(random, system, (cpu, None), (budget.div_ceil(2), period, 3));
    if random.happens(300) {
        system.tasks[beside].priority = Priority::new(8);
    }
    let inside = resources::lockers(system, home);
    let Some(&inside) = random.pick(&inside) else {
        return;
    };
    let resource = ResourceId(u16::try_from(system.resources.len()).unwrap_or(0));
    let name = format!("r{}", system.resources.len());
    resources::declare(random, system, (Protocol::ImmediateCeiling, name));
    for user in [inside, beside] {
        resources::lock(random, system, user, (resource, 1));
    }
}
