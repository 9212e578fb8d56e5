//! Resources: which tasks lock what, for how long, nested or one after the other.

use punctual_model::{
    AtBudgetEnd, Class, Mode, Ns, PolicyKind, Protocol, Resource, ResourceId, SchedulerId, System,
    Task, Use, Work,
};

use super::base::Scale;
use crate::random::Random;

/// A protocol that means something on this CPU.
fn protocol(random: &mut Random, policy: PolicyKind<Ns>) -> Protocol {
    let fixed = [
        Protocol::Inheritance,
        Protocol::ImmediateCeiling,
        Protocol::NonPreemptive,
    ];
    let edf = [Protocol::StackResource, Protocol::NonPreemptive];
    let without_urgency = [Protocol::Inheritance, Protocol::NonPreemptive];
    let drawn = match policy {
        PolicyKind::EarliestDeadlineFirst => random.pick(&edf),
        PolicyKind::Fifo => random.pick(&without_urgency),
        _ => random.pick(&fixed),
    };
    drawn.copied().unwrap_or_default()
}

/// One or two resources; their users are siblings (tasks of one node), and at least two.
pub(super) fn resources(random: &mut Random, _: Scale, system: &mut System) {
    for index in 0..random.within(1, 2) {
        let Some(chosen) = system.tasks.get(random.index(system.tasks.len())) else {
            return;
        };
        let (cpu, node) = (chosen.cpu, chosen.scheduler);
        let policy = match node {
            Some(id) => system.schedulers[id.index()].policy,
            None => system.cpus[cpu.index()].policy,
        };
        let preemptive = matches!(
            policy,
            PolicyKind::FixedPriority { preemptive: true } | PolicyKind::EarliestDeadlineFirst
        );
        let users: Vec<usize> = (0..system.tasks.len())
            .filter(|&t| {
                let task = &system.tasks[t];
                let called = matches!(task.class, Class::Periodic { .. } | Class::Sporadic { .. });
                called && task.cpu == cpu && task.scheduler == node
            })
            .filter(|_| random.happens(700))
            .collect();
        if u16::try_from(system.resources.len()).is_err() {
            return;
        }
        if preemptive {
            let _ = among(random, system, (policy, format!("r{index}"), 0), &users);
        }
    }
}

/// The tasks of a scheduler that may lock.
pub(super) fn lockers(system: &System, node: SchedulerId) -> Vec<usize> {
    let tasks = system.tasks.iter().enumerate();
    let called =
        |task: &Task| matches!(task.class, Class::Periodic { .. } | Class::Sporadic { .. });
    let locks = tasks.filter(|(_, task)| task.scheduler == Some(node) && called(task));
    locks.map(|(index, _)| index).collect()
}

/// One more resource for two or more of these tasks, which one node orders by this policy.
pub(super) fn share(
    random: &mut Random,
    system: &mut System,
    policy: PolicyKind<Ns>,
    tasks: &[usize],
) -> Option<()> {
    let mut users = tasks.to_vec();
    random.shuffle(&mut users);
    let left_out = random.index(users.len().saturating_sub(1).max(1));
    users.truncate(users.len() - left_out);
    let name = format!("r{}", system.resources.len());
    among(random, system, (policy, name, 1), &users)
}

/// A resource that these tasks lock; `None` where there are too few. A section inside of another
/// is shorter by so much.
fn among(
    random: &mut Random,
    system: &mut System,
    (policy, name, shorter): (PolicyKind<Ns>, String, u64),
    users: &[usize],
) -> Option<()> {
    let id = u16::try_from(system.resources.len()).map(ResourceId).ok()?;
    if users.len() < 2 {
        return None;
    }
    let protocol = protocol(random, policy);
    declare(random, system, (protocol, name));
    for user in users {
        lock(random, system, *user, (id, shorter));
    }
    Some(())
}

/// A resource that nobody locks yet.
pub(super) fn declare(
    random: &mut Random,
    system: &mut System,
    (protocol, name): (Protocol, String),
) {
    system.resources.push(Resource {
        name,
        protocol,
        at_budget_end: if random.happens(500) {
            AtBudgetEnd::Overrun
        } else {
            AtBudgetEnd::CheckFirst
        },
    });
}

/// One more section of this task: behind its others, or inside the last of them and shorter than
/// that by so much: a section ends before the one around it.
pub(super) fn lock(
    random: &mut Random,
    system: &mut System,
    user: usize,
    (resource, shorter): (ResourceId, u64),
) {
    let task = &mut system.tasks[user];
    let used: u64 = task
        .uses
        .iter()
        .filter(|u| u.inside.is_none())
        .map(|u| u.length.as_ns())
        .sum();
    let budget = task.class.budget().map_or(0, Work::as_ns);
    let outer = task.uses.last().copied().filter(|_| random.happens(500));
    let room = match outer {
        Some(outer) => outer.length.as_ns().saturating_sub(shorter),
        None => budget.saturating_sub(used) / 2,
    };
    if room == 0 {
        return;
    }
    task.uses.push(Use {
        resource,
        length: Work::from_ns(random.within(1, room)),
        mode: if random.happens(800) {
            Mode::Exclusive
        } else {
            Mode::Shared
        },
        inside: outer.map(|outer| outer.resource),
    });
}
