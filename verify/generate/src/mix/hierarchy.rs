//! Features of the tree: servers, nested schedulers, slots, and who pays for deciding.

use punctual_model::{
    Class, CpuId, Ns, PolicyKind, Priority, Scheduler, SchedulerId, Server, ServerKind, Slot, Span,
    Supply, System, Trust, Work,
};

use super::base::Scale;
use super::tasks::is_at_root;
use crate::random::Random;

/// A policy for a scheduler below another.
fn child_policy(random: &mut Random) -> PolicyKind<Ns> {
    match random.below(5) {
        0..2 => PolicyKind::FixedPriority { preemptive: true },
        2..4 => PolicyKind::EarliestDeadlineFirst,
        _ => PolicyKind::Fifo,
    }
}

/// A server with 30 to 90 % of its period.
fn server(random: &mut Random, scale: Scale) -> Server<Ns> {
    let kind = *random
        .pick(&ServerKind::ALL)
        .unwrap_or(&ServerKind::Deferrable);
    let period = scale.period(random);
    let budget = (period.as_ns() * random.within(30, 90) / 100).max(1);
    Server {
        kind,
        budget: Work::from_ns(budget),
        period,
    }
}

fn level(random: &mut Random) -> Priority {
    Priority::new(u32::try_from(random.within(1, 6)).unwrap_or(1))
}

pub(super) fn scheduler(
    random: &mut Random,
    system: &System,
    cpu: CpuId,
    supply: Supply,
) -> Scheduler {
    Scheduler {
        name: format!("s{}", system.schedulers.len()),
        cpu,
        parent: None,
        policy: child_policy(random),
        priority: level(random),
        supply,
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    }
}

/// Adds a scheduler and says which it is; `None` when there are too many.
pub(super) fn add(system: &mut System, scheduler: Scheduler) -> Option<SchedulerId> {
    let id = SchedulerId(u16::try_from(system.schedulers.len()).ok()?);
    system.schedulers.push(scheduler);
    Some(id)
}

/// Less work for those who get only a part of the supply.
pub(super) fn shrink(class: &mut Class<Ns>, percent: u64) {
    if let Class::Periodic { wcet, .. } = class {
        *wcet = Work::from_ns((wcet.as_ns() * percent / 100).max(1));
    }
}

/// Which policies of a parent grant supply to a child by its urgency.
pub(super) fn grants(policy: PolicyKind<Ns>) -> bool {
    matches!(
        policy,
        PolicyKind::FixedPriority { preemptive: true } | PolicyKind::EarliestDeadlineFirst
    )
}

/// On each CPU that can have them, one or two schedulers with a server (or, below priorities, with
/// what is there), and some of the tasks in them.
pub(super) fn servers(random: &mut Random, scale: Scale, system: &mut System) {
    for cpu in (0..).map(CpuId).take(system.cpus.len()) {
        let policy = system.cpus[cpu.index()].policy;
        if !grants(policy) {
            continue;
        }
        for _ in 0..random.within(1, 2) {
            let shared = policy != PolicyKind::EarliestDeadlineFirst && random.happens(150);
            let (supply, percent) = if shared {
                (Supply::Shared, 100)
            } else {
                let server = server(random, scale);
                let percent = server.budget.as_ns() * 100 / server.period.as_ns().max(1);
                (Supply::Server(server), percent)
            };
            let child = scheduler(random, system, cpu, supply);
            let Some(id) = add(system, child) else { return };
            for task in &mut system.tasks {
                if is_at_root(task, cpu) && random.happens(400) {
                    task.scheduler = Some(id);
                    shrink(&mut task.class, percent * 2 / 3);
                }
            }
        }
    }
}

/// Below some schedulers another one, with some of their tasks.
pub(super) fn nesting(random: &mut Random, scale: Scale, system: &mut System) {
    for parent in 0..system.schedulers.len() {
        let above = system.schedulers[parent].clone();
        if !grants(above.policy) || !random.happens(600) {
            continue;
        }
        let Ok(parent) = u16::try_from(parent).map(SchedulerId) else {
            return;
        };
        let shared = above.policy != PolicyKind::EarliestDeadlineFirst && random.happens(500);
        let supply = if shared {
            Supply::Shared
        } else {
            let mut server = server(random, scale);
            if let Supply::Server(outer) = above.supply {
                let most = outer.budget.as_ns().saturating_mul(server.period.as_ns());
                let most = (most / outer.period.as_ns().max(1)).max(1);
                server.budget = Work::from_ns(server.budget.as_ns().min(most));
            }
            Supply::Server(server)
        };
        let mut child = scheduler(random, system, above.cpu, supply);
        child.parent = Some(parent);
        let Some(id) = add(system, child) else { return };
        for task in &mut system.tasks {
            if task.scheduler == Some(parent) && random.happens(500) {
                task.scheduler = Some(id);
                shrink(&mut task.class, 60);
            }
        }
    }
}

/// One CPU without schedulers becomes a table of slots: some for schedulers, some for single tasks.
pub(super) fn slots(random: &mut Random, scale: Scale, system: &mut System) {
    let free = |cpu: &CpuId| !system.schedulers.iter().any(|s| s.cpu == *cpu);
    let Some(cpu) = (0..)
        .map(CpuId)
        .take(system.cpus.len())
        .find(|cpu| free(cpu))
    else {
        return;
    };
    let owners = random.within(1, 3);
    let turns = random.within(1, 2);
    let scheduling = if random.happens(500) {
        0
    } else {
        scale.short(random, 1)
    };
    let mut ends = 0;
    let mut table: Vec<Vec<Slot<Ns>>> = vec![Vec::new(); usize::try_from(owners).unwrap_or(1)];
    for _ in 0..turns {
        for slots in &mut table {
            let length = scale.least_slot() + scale.short(random, 6);
            slots.push(Slot {
                at: Span::from_ns(ends),
                length: Span::from_ns(length),
            });
            ends += length + scheduling;
        }
    }
    let frame = ends + random.below(3) * scale.short(random, 2);
    system.cpus[cpu.index()].policy = PolicyKind::Tdm {
        frame: Span::from_ns(frame),
        scheduling: Span::from_ns(scheduling),
    };
    let percent = |slots: &[Slot<Ns>]| {
        let granted: u64 = slots.iter().map(|s| s.length.as_ns()).sum();
        granted * 100 / frame.max(1)
    };
    let tasks: Vec<usize> = (0..system.tasks.len())
        .filter(|&t| is_at_root(&system.tasks[t], cpu))
        .collect();
    let mut owned = vec![false; table.len()];
    for task in tasks {
        let owner = random.index(table.len());
        owned[owner] = true;
        // Named for its owner below, when all owners are known.
        system.tasks[task].slots = table[owner].clone();
        shrink(
            &mut system.tasks[task].class,
            percent(&table[owner]) * 2 / 3,
        );
    }
    for (slots, _) in table.iter().zip(&owned).filter(|(_, owned)| **owned) {
        give(random, system, cpu, slots);
    }
}

/// A single owner keeps its slots for itself now and then; several become the tasks of a scheduler.
fn give(random: &mut Random, system: &mut System, cpu: CpuId, slots: &[Slot<Ns>]) {
    let owners: Vec<usize> = (0..system.tasks.len())
        .filter(|&t| is_at_root(&system.tasks[t], cpu) && system.tasks[t].slots == slots)
        .collect();
    if owners.len() == 1 && random.happens(500) {
        return;
    }
    let child = scheduler(random, system, cpu, Supply::Slots(slots.to_vec()));
    let Some(id) = add(system, child) else { return };
    for owner in owners {
        system.tasks[owner].scheduler = Some(id);
        system.tasks[owner].slots.clear();
    }
}

/// Some of the schedulers that have tasks and no children decide on their own supply.
pub(super) fn own_time(random: &mut Random, _: Scale, system: &mut System) {
    for index in 0..system.schedulers.len() {
        let Ok(id) = u16::try_from(index).map(SchedulerId) else {
            return;
        };
        let is_leaf = !system.schedulers.iter().any(|s| s.parent == Some(id));
        let has_tasks = system.tasks.iter().any(|t| t.scheduler == Some(id));
        let shares = system.schedulers[index].supply == Supply::Shared;
        if is_leaf && has_tasks && !shares && random.happens(500) {
            system.schedulers[index].trust = Trust::OwnTime;
        }
    }
}
