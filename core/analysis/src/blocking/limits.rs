//! Which uses of resources no test of this crate bounds, and why
//!
//! # Assumptions
//! 1. None: a protocol outside of its own model is refused, not guessed at.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use punctual_model::{
    AtBudgetEnd, CpuId, Ns, PolicyKind, Protocol, Resource, ResourceId, Server, ServerKind, Supply,
    System, Task, TaskId, Use,
};

use crate::lookup::{NodeId, ancestors, node_of, policy_of, task_name, tasks};
use crate::verdict::{Refusal, Subject};

/// A refusal for the first user of every resource that nothing bounds. O(resources · tasks ·
/// depth).
pub(crate) fn refusals(system: &System) -> Vec<Refusal> {
    let ids = (0_u16..).map(ResourceId);
    let found = ids.zip(&system.resources).filter_map(|(id, resource)| {
        let users = users(system, id);
        let (task, why) = unbounded(system, id, resource, &users)?;
        let name = task_name(system, task);
        let reason = format!("{name} uses {}: {why}", resource.name);
        Some(Refusal::new(Subject::Task(task), name, reason))
    });
    found.collect()
}

/// The CPUs on which some resource is used in a way that nothing bounds.
pub(crate) fn cpus(system: &System) -> impl Iterator<Item = CpuId> + '_ {
    let found = if system.resources.is_empty() {
        Vec::new()
    } else {
        refusals(system)
    };
    let reasons = found
        .into_iter()
        .filter_map(|refusal| match refusal.subject {
            Subject::Task(task) => Some(task),
            _ => None,
        });
    reasons.flat_map(|task| {
        // All users of what it uses: the holder on the other CPU is waited for, too.
        let uses = system.tasks.get(task.index()).map_or(&[][..], |t| &t.uses);
        let together = system.tasks.iter().filter(move |other| {
            let mut theirs = other.uses.iter();
            theirs.any(|u| uses.iter().any(|own| own.resource == u.resource))
        });
        together.map(|task| task.cpu)
    })
}

fn users(system: &System, resource: ResourceId) -> Vec<(TaskId, &Task)> {
    tasks(system)
        .filter(|(_, task)| uses(task, resource))
        .collect()
}

/// Nodes from that of a task up to its CPU's own.
fn path(system: &System, task: &Task) -> Vec<NodeId> {
    let above = ancestors(system, task.scheduler).map(|(id, _)| (task.cpu, Some(id)));
    above.chain([(task.cpu, None)]).collect()
}

fn unbounded(
    system: &System,
    id: ResourceId,
    resource: &Resource,
    users: &[(TaskId, &Task)],
) -> Option<(TaskId, String)> {
    let (first, rest) = users.split_first()?;
    if let Some((other, _)) = rest.iter().find(|(_, t)| t.cpu != first.1.cpu) {
        let why = "its users are on several CPUs, and waiting across CPUs is not bounded";
        return Some((*other, why.to_string()));
    }
    for (task, model) in users {
        let why = alone(system, id, resource, model);
        if let Some(why) = why {
            return Some((*task, why));
        }
    }
    let apart = rest.iter().find(|(_, t)| node_of(t) != node_of(first.1))?;
    let why = together(system, resource, users).map(|why| (apart.0, why));
    why.or_else(|| stops_inside(system, id, users))
}

/// A holder below a server that may have to wait inside of its section, for another lock or for
/// budget: as long as that takes, it keeps users beside its server waiting.
fn stops_inside(
    system: &System,
    id: ResourceId,
    users: &[(TaskId, &Task)],
) -> Option<(TaskId, String)> {
    let is_served = |task: &Task| {
        let mut above = ancestors(system, task.scheduler);
        above.any(|(_, scheduler)| matches!(scheduler.supply, Supply::Server(_)))
    };
    let rule = |id: ResourceId| system.resources.get(id.index()).map(|r| r.at_budget_end);
    for (task, model) in users.iter().filter(|(_, task)| is_served(task)) {
        for section in model.uses.iter().filter(|u| lies_inside(model, u, id)) {
            let inner = system.resources.get(section.resource.index())?;
            let inner_users = self::users(system, section.resource);
            let mut others = inner_users.iter().filter(|(other, _)| other != task);
            let waits = others.any(|(_, other)| {
                inner.protocol == Protocol::Inheritance || super::locks_in_background(other)
            });
            let stops = inner.at_budget_end == AtBudgetEnd::CheckFirst
                && rule(id) == Some(AtBudgetEnd::Overrun);
            if waits || stops {
                let name = &inner.name;
                let what = if waits { "that lock" } else { "budget" };
                let why = format!(
                    "its section locks {name} inside, and may wait for {what} while users beside \
                     its server wait for it"
                );
                return Some((*task, why));
            }
        }
    }
    None
}

fn uses(task: &Task, resource: ResourceId) -> bool {
    task.uses.iter().any(|u| u.resource == resource)
}

/// Whether a section of a task is inside of its section on `outer`, at any depth.
fn lies_inside(task: &Task, section: &Use, outer: ResourceId) -> bool {
    let mut around = section.inside;
    // Each step goes one section outwards.
    for _ in 0..task.uses.len() {
        let Some(resource) = around else { return false };
        if resource == outer {
            return true;
        }
        let mut all = task.uses.iter();
        around = all.find(|u| u.resource == resource).and_then(|u| u.inside);
    }
    false
}

/// The fault of one user in its own node.
fn alone(system: &System, id: ResourceId, resource: &Resource, task: &Task) -> Option<String> {
    let policy = policy_of(system, node_of(task)).ok()?;
    let by_priority = matches!(policy, PolicyKind::FixedPriority { .. });
    let by_deadline = policy == PolicyKind::EarliestDeadlineFirst;
    match resource.protocol {
        Protocol::ImmediateCeiling if !by_priority => {
            return Some(format!(
                "a ceiling is a priority, and {} has none",
                policy.name()
            ));
        }
        Protocol::StackResource if !by_priority && !by_deadline => {
            return Some(format!(
                "srp needs urgencies, and {} has none",
                policy.name()
            ));
        }
        _ => {}
    }
    if resource.at_budget_end == AtBudgetEnd::Overrun {
        return None;
    }
    let above = ancestors(system, task.scheduler);
    let servers = above.filter_map(|(_, scheduler)| match scheduler.supply {
        Supply::Server(server) => Some(server),
        Supply::Shared | Supply::Slots(_) => None,
    });
    let servers: Vec<Server<Ns>> = servers.collect();
    let longest = task.uses.iter().filter(|u| u.resource == id);
    let longest = longest.map(|u| u.length).max().unwrap_or_default();
    if servers.len() > 1 {
        return Some("a section that waits for several budgets at once is not bounded".into());
    }
    let server = servers.first()?;
    if server.kind == ServerKind::Sporadic {
        let why = "a sporadic server's budget comes back in parts, and others may use each of them \
                   before its section fits";
        return Some(why.into());
    }
    (longest > server.budget).then(|| "its section never fits into the budget above it".into())
}

/// The fault of users in several nodes of one CPU.
fn together(system: &System, resource: &Resource, users: &[(TaskId, &Task)]) -> Option<String> {
    if resource.protocol != Protocol::ImmediateCeiling {
        let protocol = resource.protocol.name();
        return Some(format!(
            "{protocol} works within one scheduler, its users are in several"
        ));
    }
    let (first, rest) = users.split_first()?;
    for (_, other) in rest {
        let (mine, theirs) = (path(system, first.1), path(system, other));
        let common = mine.iter().position(|node| theirs.contains(node))?;
        let below = theirs.iter().take_while(|node| **node != mine[common]);
        for &node in mine[..=common].iter().chain(below) {
            let policy = policy_of(system, node).ok()?;
            if policy != (PolicyKind::FixedPriority { preemptive: true }) {
                return Some(format!(
                    "its users meet through a scheduler whose policy is {}, which knows no ceiling",
                    policy.name()
                ));
            }
        }
    }
    None
}
