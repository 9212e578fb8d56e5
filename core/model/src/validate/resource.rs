//! Resources: whether their protocol works for those who use them.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::Errors;
use super::tree::{Node, Tree};
use crate::id::{ResourceId, TaskId};
use crate::readable::readable;
use crate::resource::{AtBudgetEnd, Protocol, Resource};
use crate::scheduler::{PolicyKind, Supply};
use crate::system::Fault;
use crate::task::Task;
use crate::time::Ns;

/// Checks every resource against its users. O(n log n) in resources and sections.
pub(super) fn check_all(tree: &Tree<'_>, errors: &mut Errors) {
    let resources = &tree.system.resources;
    let mut names = BTreeSet::new();
    let mut users: Vec<Vec<User<'_>>> = vec![Vec::new(); resources.len()];
    for (id, task) in (0..=u32::MAX).map(TaskId).zip(&tree.system.tasks) {
        let Some(node) = tree.node_of(task) else {
            continue;
        };
        for (index, section) in task.uses.iter().enumerate() {
            let Some(resource) = resources.get(section.resource.index()) else {
                continue;
            };
            if resource.protocol == Protocol::Planned {
                errors.add(
                    Fault::Use(id, index),
                    format!(
                        "task `{}` locks `{}`, whose use is planned",
                        task.name, resource.name
                    ),
                    "a plan knows the segments of groups only: make the task one, or choose a \
                     protocol for locks",
                );
                continue;
            }
            if resource.at_budget_end == AtBudgetEnd::CheckFirst {
                check_fit(tree, id, index, node, errors);
            }
            let users = &mut users[section.resource.index()];
            if users.last().is_none_or(|last| last.id != id) {
                users.push(User { id, task, node });
            }
        }
    }
    for ((id, resource), users) in (0..=u16::MAX).map(ResourceId).zip(resources).zip(users) {
        errors.check_name("resource", &resource.name, Fault::Resource(id, "name"));
        if !names.insert(resource.name.as_str()) {
            errors.add(
                Fault::Resource(id, "name"),
                format!(
                    "resource `{}`: its name is taken by another resource",
                    resource.name
                ),
                "rename one of them",
            );
        }
        let mistake = check_policies(tree, resource, &users)
            .or_else(|| check_together(tree, resource, &users));
        if let Some((problem, help)) = mistake {
            errors.add(
                Fault::Resource(id, "protocol"),
                format!("resource `{}`: {problem}", resource.name),
                help,
            );
        }
    }
}

/// A task that uses a resource, and what orders it.
#[derive(Clone, Copy)]
struct User<'a> {
    id: TaskId,
    task: &'a Task,
    node: Node,
}

/// The remedy when users that spin are ordered apart from others on their CPU.
const SPINNERS_APART: &str = "place those of one CPU in one scheduler";

/// The mistake, and how to mend it.
type Mistake = (String, &'static str);

/// A section that is not begun unless it fits must fit at least into a full budget.
fn check_fit(tree: &Tree<'_>, id: TaskId, index: usize, node: Node, errors: &mut Errors) {
    let task = &tree.system.tasks[id.index()];
    let section = &task.uses[index];
    let budgets = tree.path(node).filter_map(|node| match node {
        Node::Scheduler(id) => tree.system.schedulers.get(id.index()),
        Node::Cpu(_) => None,
    });
    for scheduler in budgets {
        let Supply::Server(server) = scheduler.supply else {
            continue;
        };
        if section.length > server.budget {
            errors.add(
                Fault::Use(id, index),
                format!(
                    "task `{}`: its section of {} never fits into the budget of {} of scheduler \
                     `{}`",
                    task.name,
                    readable(section.length.as_ns()),
                    readable(server.budget.as_ns()),
                    scheduler.name
                ),
                "raise the budget, shorten the section, or say `at-budget-end = \"overrun\"`",
            );
            return;
        }
    }
}

/// Whether the protocol works under the policy of each user alone.
fn check_policies(tree: &Tree<'_>, resource: &Resource, users: &[User<'_>]) -> Option<Mistake> {
    users.iter().find_map(|user| {
        let policy = tree.policy(user.node)?;
        let help = unsuitable(resource.protocol, policy)?;
        let problem = format!(
            "{} for task `{}`, whom {} orders by {}",
            resource.protocol.name(),
            user.task.name,
            tree.describe(user.node),
            policy.name()
        );
        Some((problem, help))
    })
}

/// The protocol to use instead, when one has no meaning under a policy.
fn unsuitable(protocol: Protocol, policy: PolicyKind<Ns>) -> Option<&'static str> {
    match (protocol, policy) {
        (Protocol::ImmediateCeiling, PolicyKind::FixedPriority { .. }) => None,
        (Protocol::ImmediateCeiling, PolicyKind::EarliestDeadlineFirst) => {
            Some("a ceiling is a priority; under edf say `protocol = \"srp\"`")
        }
        (Protocol::ImmediateCeiling, _) => {
            Some("a ceiling is a priority: use fixed-priority, or `protocol = \"inheritance\"`")
        }
        (
            Protocol::StackResource,
            PolicyKind::FixedPriority { .. } | PolicyKind::EarliestDeadlineFirst,
        ) => None,
        (Protocol::StackResource, _) => {
            Some("srp needs urgencies: use edf or fixed-priority, or `protocol = \"inheritance\"`")
        }
        (
            Protocol::Inheritance | Protocol::NonPreemptive | Protocol::Spin | Protocol::Planned,
            _,
        ) => None,
    }
}

/// Whether the protocol keeps the users apart where they are.
fn check_together(tree: &Tree<'_>, resource: &Resource, users: &[User<'_>]) -> Option<Mistake> {
    let (first, rest) = users.split_first()?;
    for other in rest {
        let Some(common) = tree.closest_common(first.node, other.node) else {
            if resource.protocol == Protocol::Spin {
                continue;
            }
            return Some((
                format!(
                    "{}, and {} works on one CPU",
                    both(tree, first, other),
                    resource.protocol.name()
                ),
                "place its users on one CPU, or say `protocol = \"spin\"`",
            ));
        };
        if matches!(tree.policy(common), Some(PolicyKind::Tdm { .. })) {
            return Some((
                format!(
                    "tasks `{}` and `{}` share it across slots of {}",
                    first.task.name,
                    other.task.name,
                    tree.describe(common)
                ),
                "a holder would keep the other waiting for its next slot: place both in one slot",
            ));
        }
        let mistake = match resource.protocol {
            Protocol::ImmediateCeiling => check_ceiling(tree, first, other, common),
            protocol if first.node != other.node => Some((
                format!(
                    "{}, and {} works within one scheduler",
                    both(tree, first, other),
                    protocol.name()
                ),
                match protocol {
                    Protocol::Spin => SPINNERS_APART,
                    _ => "place both in one scheduler, or say `protocol = \"immediate-ceiling\"`",
                },
            )),
            _ => None,
        };
        if mistake.is_some() {
            return mistake;
        }
    }
    check_spinners(tree, resource, rest)
}

/// Users of a spinning resource that share a CPU but not with the first user.
fn check_spinners(tree: &Tree<'_>, resource: &Resource, users: &[User<'_>]) -> Option<Mistake> {
    if resource.protocol != Protocol::Spin {
        return None;
    }
    let mut seen: Vec<&User<'_>> = Vec::new();
    for user in users {
        match seen.iter().find(|seen| seen.task.cpu == user.task.cpu) {
            Some(other) if other.node != user.node => {
                return Some((
                    format!(
                        "{}, and spin works within one scheduler of a CPU",
                        both(tree, other, user)
                    ),
                    SPINNERS_APART,
                ));
            }
            Some(_) => {}
            None => seen.push(user),
        }
    }
    None
}

/// A holder is raised at the closest common scheduler; the policies below must know priorities,
/// too.
fn check_ceiling(
    tree: &Tree<'_>,
    first: &User<'_>,
    other: &User<'_>,
    common: Node,
) -> Option<Mistake> {
    for user in [first, other] {
        let below = tree.path(user.node).take_while(|node| *node != common);
        for node in below.chain([common]) {
            let policy = tree.policy(node)?;
            if !matches!(policy, PolicyKind::FixedPriority { .. }) {
                return Some((
                    format!(
                        "tasks `{}` and `{}` meet through {}, whose policy is {}",
                        first.task.name,
                        other.task.name,
                        tree.describe(node),
                        policy.name()
                    ),
                    "a ceiling holds below fixed priorities only: change that policy, or place \
                     both in one scheduler",
                ));
            }
        }
    }
    None
}

/// Where two users are, in words.
fn both(tree: &Tree<'_>, first: &User<'_>, other: &User<'_>) -> String {
    format!(
        "task `{}` is on {} and task `{}` on {}",
        first.task.name,
        tree.describe(first.node),
        other.task.name,
        tree.describe(other.node)
    )
}
