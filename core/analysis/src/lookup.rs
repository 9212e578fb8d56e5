//! Where tasks and schedulers of a system are: by number, by node, and up the tree
//!
//! # Assumptions
//! 1. References of the system may point at nothing, and parents may form a circle: no walk is
//!    longer than the list of schedulers.

use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{
    Class, CpuId, Ns, PolicyKind, Scheduler, SchedulerId, ServerKind, Slot, Supply, System, Task,
    TaskId,
};

use crate::error::{Checked, invalid};
use crate::units::{Span, TICK};

/// The CPU of a node and its scheduler; `None`: the CPU's own.
pub(crate) type NodeId = (CpuId, Option<SchedulerId>);

/// All tasks, in the order of the file.
pub(crate) fn tasks(system: &System) -> impl Iterator<Item = (TaskId, &Task)> + Clone {
    (0_u32..).map(TaskId).zip(&system.tasks)
}

/// All schedulers below a CPU's own, in the order of the file.
pub(crate) fn schedulers(
    system: &System,
) -> impl Iterator<Item = (SchedulerId, &Scheduler)> + Clone {
    (0_u16..).map(SchedulerId).zip(&system.schedulers)
}

/// The tasks that have one constraint with this: the members of its superstep, or it alone.
/// O(members of all gangs).
pub(crate) fn in_step(system: &System, task: TaskId) -> Vec<TaskId> {
    let supersteps = system.gangs.iter().flat_map(|gang| &gang.supersteps);
    let mut own = supersteps.filter(|superstep| superstep.members.contains(&task));
    own.next()
        .map_or_else(|| vec![task], |own| own.members.clone())
}

/// The node of a task.
pub(crate) fn node_of(task: &Task) -> NodeId {
    (task.cpu, task.scheduler)
}

/// The tasks of a node.
pub(crate) fn tasks_of(
    system: &System,
    node: NodeId,
) -> impl Iterator<Item = (TaskId, &Task)> + Clone {
    tasks(system).filter(move |(_, task)| node_of(task) == node)
}

/// The schedulers right below a node.
pub(crate) fn children(
    system: &System,
    node: NodeId,
) -> impl Iterator<Item = (SchedulerId, &Scheduler)> + Clone {
    schedulers(system).filter(move |(_, s)| (s.cpu, s.parent) == node)
}

/// The schedulers from this one up to the CPU's own, which is left out.
pub(crate) fn ancestors(
    system: &System,
    from: Option<SchedulerId>,
) -> impl Iterator<Item = (SchedulerId, &Scheduler)> {
    let get = |id: SchedulerId| Some((id, system.schedulers.get(id.index())?));
    let up = move |(_, s): &(SchedulerId, &Scheduler)| s.parent.and_then(get);
    let path = core::iter::successors(from.and_then(get), up);
    path.take(system.schedulers.len())
}

/// Whether `scheduler` is `top` or below it.
pub(crate) fn is_below(system: &System, scheduler: Option<SchedulerId>, top: SchedulerId) -> bool {
    ancestors(system, scheduler).any(|(id, _)| id == top)
}

/// The policy of a node.
pub(crate) fn policy_of(system: &System, (cpu, scheduler): NodeId) -> Checked<PolicyKind<Ns>> {
    let found = match scheduler {
        Some(id) => system.schedulers.get(id.index()).map(|s| s.policy),
        None => system.cpus.get(cpu.index()).map(|c| c.policy),
    };
    found.ok_or_else(|| invalid("a task is placed on a CPU or scheduler that does not exist"))
}

/// The slots of a scheduler; none unless slots are its supply.
pub(crate) fn slots_of(scheduler: &Scheduler) -> &[Slot<Ns>] {
    match &scheduler.supply {
        Supply::Slots(slots) => slots,
        Supply::Shared | Supply::Server(_) => &[],
    }
}

/// How long a slot of a node could be without touching the next one; `None`: it has no frame.
pub(crate) fn slot_room(system: &System, node: NodeId, slot: Slot<Ns>) -> Option<Span> {
    let PolicyKind::Tdm { frame, scheduling } = policy_of(system, node).ok()? else {
        return None;
    };
    let tasks = tasks_of(system, node).flat_map(|(_, task)| &task.slots);
    let children = children(system, node).flat_map(|(_, child)| slots_of(child));
    let starts = tasks.chain(children).map(|s| s.at);
    let next = starts.clone().filter(|at| *at > slot.at).min();
    // The next frame begins with its first slot.
    let again = || frame.saturating_add(starts.min().unwrap_or_default());
    let end = next
        .unwrap_or_else(again)
        .saturating_sub(scheduling)
        .min(frame);
    Some(end.saturating_sub(slot.at))
}

/// The name of a task in the file.
pub(crate) fn task_name(system: &System, task: TaskId) -> &str {
    let task = system.tasks.get(task.index());
    task.map_or("?", |task| task.name.as_str())
}

/// The part of a CPU that a task uses, in parts per million: its budget over its separation, or
/// over its deadline if it arrives once.
pub(crate) fn share_ppm(task: &Task) -> u64 {
    let budget = task.class.budget().unwrap_or_default();
    let span = task
        .class
        .min_separation()
        .or(task.class.relative_deadline());
    let span = u128::from(span.unwrap_or_default().max(TICK).as_ns());
    u64::try_from(u128::from(budget.as_ns()) * 1_000_000 / span).unwrap_or(u64::MAX)
}

/// Whether a slice of a scheduler's supply may come late: nobody on it has a deadline, and its
/// giver orders by priority, so that no other bound builds on when it comes. Each period has no
/// more of it than one budget, whatever was left of the one before.
pub(crate) fn is_background_slice(system: &System, id: SchedulerId) -> bool {
    let Some(slice) = system.schedulers.get(id.index()) else {
        return false;
    };
    let deferrable = matches!(
        slice.supply,
        Supply::Server(server) if server.kind == ServerKind::Deferrable
    );
    let above = policy_of(system, (slice.cpu, slice.parent));
    let by_priority = matches!(above, Ok(PolicyKind::FixedPriority { preemptive: true }));
    let mut tasks = system.tasks.iter().filter(|t| t.scheduler == Some(id));
    slice.receiver.is_some()
        && deferrable
        && by_priority
        && tasks.all(|task| task.class == Class::Aperiodic)
        && !system.schedulers.iter().any(|s| s.parent == Some(id))
}
