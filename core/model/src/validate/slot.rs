//! Slots: inside their frame, apart from each other, and with time to decide in between.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Errors;
use super::tree::{Node, Tree};
use crate::id::{SchedulerId, TaskId};
use crate::readable::readable;
use crate::scheduler::{PolicyKind, Slot, Supply};
use crate::system::Fault;
use crate::time::{Ns, Span};

/// A slot that lies inside its frame.
struct Placed {
    at: Span<Ns>,
    end: Span<Ns>,
    owner: String,
    fault: Fault,
}

/// Checks the slots of every node that divides time. O(n log n) in the slots.
pub(super) fn check_all(tree: &Tree<'_>, errors: &mut Errors) {
    let mut frames: BTreeMap<Node, Vec<Placed>> = BTreeMap::new();
    let schedulers = (0..=u16::MAX).map(SchedulerId).zip(&tree.system.schedulers);
    for (id, scheduler) in schedulers {
        let Supply::Slots(slots) = &scheduler.supply else {
            continue;
        };
        let owner = format!("scheduler `{}`", scheduler.name);
        if slots.is_empty() {
            no_slots(&owner, Fault::Scheduler(id, "slots"), errors);
        }
        let Some((node, frame)) = tree.parent_of(id).and_then(|node| divided(tree, node)) else {
            continue;
        };
        let placed = frames.entry(node).or_default();
        for (index, slot) in slots.iter().enumerate() {
            let fault = Fault::SchedulerSlot(id, index);
            placed.extend(place(slot, frame, &owner, fault, errors));
        }
    }
    for (id, task) in (0..=u32::MAX).map(TaskId).zip(&tree.system.tasks) {
        let Some(node) = tree.node_of(task) else {
            continue;
        };
        let owner = format!("task `{}`", task.name);
        let fault = Fault::Task(id, "slots");
        let Some((node, frame)) = divided(tree, node) else {
            if let (false, Some(policy)) = (task.slots.is_empty(), tree.policy(node)) {
                let (above, policy) = (tree.describe(node), policy.name());
                errors.add(
                    fault,
                    format!("{owner}: it has slots, and the policy of {above} is {policy}"),
                    "slots are granted by `policy = \"tdm\"`",
                );
            }
            continue;
        };
        if task.slots.is_empty() {
            no_slots(&owner, fault, errors);
        }
        let placed = frames.entry(node).or_default();
        for (index, slot) in task.slots.iter().enumerate() {
            placed.extend(place(
                slot,
                frame,
                &owner,
                Fault::TaskSlot(id, index),
                errors,
            ));
        }
    }
    for (node, placed) in frames {
        if let Some(PolicyKind::Tdm { frame, scheduling }) = tree.policy(node) {
            check_distances(placed, frame, scheduling, errors);
        }
    }
}

/// The node with the length of its frame, if it divides time.
fn divided(tree: &Tree<'_>, node: Node) -> Option<(Node, Span<Ns>)> {
    match tree.policy(node)? {
        PolicyKind::Tdm { frame, .. } => Some((node, frame)),
        _ => None,
    }
}

fn no_slots(owner: &str, fault: Fault, errors: &mut Errors) {
    errors.add(
        fault,
        format!("{owner}: it has no slots, so it would never run"),
        "add `slots = [{ at = \"0ms\", length = \"1ms\" }]`",
    );
}

/// The slot, if it has a length and lies inside the frame.
fn place(
    slot: &Slot<Ns>,
    frame: Span<Ns>,
    owner: &str,
    fault: Fault,
    errors: &mut Errors,
) -> Option<Placed> {
    if slot.length.is_zero() {
        errors.add(
            fault,
            format!("{owner}: a slot of 0s"),
            "give it a length above zero",
        );
        return None;
    }
    // A frame of no length is a mistake by itself.
    if frame.is_zero() {
        return None;
    }
    let end = slot.at.checked_add(slot.length).filter(|end| *end <= frame);
    let Some(end) = end else {
        errors.add(
            fault,
            format!(
                "{owner}: a slot of {} from {} on leaves the frame of {}",
                readable(slot.length.as_ns()),
                readable(slot.at.as_ns()),
                readable(frame.as_ns())
            ),
            "slots lie inside their frame; one that crosses its end is two",
        );
        return None;
    };
    let (at, owner) = (slot.at, owner.into());
    Some(Placed {
        at,
        end,
        owner,
        fault,
    })
}

/// Neighbours in the frame, the last and the first included, lie `scheduling` apart.
fn check_distances(
    mut slots: Vec<Placed>,
    frame: Span<Ns>,
    scheduling: Span<Ns>,
    errors: &mut Errors,
) {
    slots.sort_by_key(|slot| slot.at);
    let mut sorted = slots.iter();
    let Some(first) = sorted.next() else { return };
    // Of the slots before, the one that ends last.
    let mut before = first;
    for slot in sorted {
        let gap = slot.at.saturating_sub(before.end);
        if slot.at < before.end {
            errors.add(
                slot.fault.clone(),
                format!(
                    "{}: its slot from {} to {} overlaps the one of {} from {} to {}",
                    slot.owner,
                    readable(slot.at.as_ns()),
                    readable(slot.end.as_ns()),
                    before.owner,
                    readable(before.at.as_ns()),
                    readable(before.end.as_ns())
                ),
                "at any time the frame belongs to one of them: move or shorten one",
            );
        } else if gap < scheduling {
            errors.add(
                slot.fault.clone(),
                format!(
                    "{}: its slot at {} begins {} after the one of {}, and deciding takes {}",
                    slot.owner,
                    readable(slot.at.as_ns()),
                    readable(gap.as_ns()),
                    before.owner,
                    readable(scheduling.as_ns())
                ),
                format!(
                    "begin it at {} or later, or lower `scheduling-time`",
                    readable(before.end.saturating_add(scheduling).as_ns())
                ),
            );
        }
        if slot.end > before.end {
            before = slot;
        }
    }
    let rest = frame.saturating_sub(before.end);
    if rest.saturating_add(first.at) < scheduling {
        errors.add(
            before.fault.clone(),
            format!(
                "{}: its slot ends {} before the first one of the next frame, and deciding takes \
                 {}",
                before.owner,
                readable(rest.saturating_add(first.at).as_ns()),
                readable(scheduling.as_ns())
            ),
            format!(
                "end it {} earlier, or lower `scheduling-time`",
                readable(
                    scheduling
                        .saturating_sub(rest)
                        .saturating_sub(first.at)
                        .as_ns()
                )
            ),
        );
    }
}
