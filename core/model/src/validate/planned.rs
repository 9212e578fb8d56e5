//! Planned nodes: their supply, the work on them, and changes of both.

use alloc::collections::BTreeMap;
use alloc::format;

use super::Errors;
use super::tree::Tree;
use crate::change::{Change, Step};
use crate::id::{CpuId, SchedulerId, TaskId};
use crate::scheduler::{PolicyKind, Supply, Trust};
use crate::system::{Fault, System};
use crate::task::Class;

/// Checks every node whose policy is planned, and everything on one. O(n log n).
pub(super) fn check_all(tree: &Tree<'_>, errors: &mut Errors) {
    check_one_per_cpu(tree.system, errors);
    let schedulers = &tree.system.schedulers;
    for (id, scheduler) in (0..=u16::MAX).map(SchedulerId).zip(schedulers) {
        if scheduler.policy == PolicyKind::Planned && scheduler.receiver.is_none() {
            check_node(tree, id, errors);
        }
        if let Some(parent) = tree.parent_of(id)
            && tree.policy(parent) == Some(PolicyKind::Planned)
        {
            errors.add(
                Fault::Scheduler(id, "on"),
                format!(
                    "scheduler `{}` is on {}, which executes what is planned",
                    scheduler.name,
                    tree.describe(parent)
                ),
                "place it beside: a planned node has segments of groups and background work only",
            );
        }
    }
    for (id, task) in (0..=u32::MAX).map(TaskId).zip(&tree.system.tasks) {
        let Some(node) = tree.node_of(task) else {
            continue;
        };
        if tree.policy(node) == Some(PolicyKind::Planned) && task.class != Class::Aperiodic {
            errors.add(
                Fault::Task(id, "on"),
                format!(
                    "task `{}` is {} on {}, which executes what is planned",
                    task.name,
                    task.class.name(),
                    tree.describe(node)
                ),
                "make it segments of a group, or place it on another scheduler",
            );
        }
    }
    for (index, change) in tree.system.changes.iter().enumerate() {
        check_change(tree.system, index, change, errors);
    }
}

/// The CPUs of a plan are numbered by their nodes, and two of a CPU would take each other's time.
fn check_one_per_cpu(system: &System, errors: &mut Errors) {
    let mut first: BTreeMap<CpuId, &str> = BTreeMap::new();
    for node in system.planned_nodes() {
        let name = |id: SchedulerId| {
            let scheduler = system.schedulers.get(id.index());
            scheduler.map_or("?", |scheduler| scheduler.name.as_str())
        };
        let own = node.scheduler.map_or("its own policy", name);
        if let (Some(other), Some(id)) = (first.insert(node.cpu, own), node.scheduler) {
            errors.add(
                Fault::Scheduler(id, "policy"),
                format!("scheduler `{own}` is planned, and {other} on its CPU is, too"),
                "one node of a CPU executes what is planned: give that one more supply",
            );
        }
    }
}

/// A plan counts on a supply, and on its order.
fn check_node(tree: &Tree<'_>, id: SchedulerId, errors: &mut Errors) {
    let scheduler = &tree.system.schedulers[id.index()];
    let parent = tree.parent_of(id).and_then(|node| tree.policy(node));
    // Those two have said what is missing.
    let wanted = matches!(
        parent,
        Some(PolicyKind::Tdm { .. } | PolicyKind::EarliestDeadlineFirst)
    );
    if scheduler.supply == Supply::Shared && !wanted {
        errors.add(
            Fault::Scheduler(id, "policy"),
            format!(
                "scheduler `{}` is planned, and nothing says when it has the processor",
                scheduler.name
            ),
            "give it `server = { kind = \"periodic-resource\", budget = \"5ms\", period = \
             \"10ms\" }`, or slots of a parent that divides time",
        );
    }
    if scheduler.trust == Trust::OwnTime {
        errors.add(
            Fault::Scheduler(id, "trust"),
            format!(
                "scheduler `{}` is planned, and would decide",
                scheduler.name
            ),
            "remove `trust`: the plan has decided before",
        );
    }
}

/// A plan holds for the whole run, and so does the supply that it counts on.
fn check_change(system: &System, index: usize, change: &Change, errors: &mut Errors) {
    let planned = |id: SchedulerId| {
        let scheduler = system.schedulers.get(id.index());
        scheduler.is_some_and(|s| s.policy == PolicyKind::Planned && s.receiver.is_none())
    };
    for (step, part) in change.steps.iter().enumerate() {
        let changes = match *part {
            Step::Join(id) | Step::Leave(id) | Step::Supply(id, _) => planned(id),
            Step::Transfer { from, to, .. } => planned(from) || planned(to),
            Step::Reorder(id, policy, _) => policy == PolicyKind::Planned || planned(id),
            Step::ReorderCpu(cpu, policy) => {
                let own = system.cpus.get(cpu.index()).map(|cpu| cpu.policy);
                policy == PolicyKind::Planned || own == Some(PolicyKind::Planned)
            }
            _ => false,
        };
        if changes {
            errors.add(
                Fault::ChangeStep(index, step),
                "it changes a node that is planned, or makes one".into(),
                "planned nodes and their supply stay as they are while the system runs",
            );
        }
    }
}
