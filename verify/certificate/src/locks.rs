//! Blocking by critical sections: locks that less urgent jobs hold when a busy window begins
//!
//! A section of a less urgent holder blocks when its resource, or one that it is nested in
//! somewhere, is also used by a job at least as urgent. Then that job may wait for it, directly or
//! not. Under a ceiling protocol one section blocks, the longest. Under inheritance each holder
//! blocks once and each resource is held once, so the smaller sum counts (Sha, Rajkumar and
//! Lehoczky 1990; Baker 1991; Baruah 2006 for EDF). Readers count like writers.

use std::collections::BTreeMap;

use crate::Why;
use crate::node::{Entity, Who};
use crate::supply::Supply;
use crate::system::{Policy, System};

/// One section that may block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Section {
    holder: usize,
    resource: usize,
    length: u128,
    /// Urgency of the holder; larger is more urgent.
    rank: i128,
    /// It blocks nobody more urgent than this.
    ceiling: i128,
    inherits: bool,
}

/// The urgency of an entity: its priority, or how near its deadline is from its latest release.
pub(crate) fn rank(policy: Policy, entity: &Entity) -> i128 {
    match policy {
        Policy::Edf => {
            let nearest = entity.deadline.saturating_sub(entity.hits.jitter);
            -i128::try_from(nearest).unwrap_or(i128::MAX)
        }
        _ => entity.priority.into(),
    }
}

/// The sections of a node; resources have to be used on this node alone.
pub(crate) fn sections(
    system: &System,
    policy: Policy,
    supply: &Supply,
    entities: &[Entity],
) -> Result<Vec<Section>, Why> {
    let tasks = || {
        entities.iter().filter_map(|c| match c.who {
            Who::Task(id) => Some((id, c)),
            Who::Server(_) => None,
        })
    };
    if !tasks().any(|(id, _)| !system.tasks[id].uses.is_empty()) {
        return Ok(Vec::new());
    }
    let preemptive = matches!(
        policy,
        Policy::FixedPriority { preemptive: true } | Policy::Edf
    );
    let suspended = tasks().any(|(id, _)| system.tasks[id].suspension > 0);
    let machine = &system.machine;
    if !preemptive || suspended || matches!(supply, Supply::Server { .. }) {
        return Err(Why::new(
            "locks in a server, with suspension, or without preemption",
        ));
    }
    if machine.has_prices() {
        return Err(Why::new("what switching costs around locks"));
    }
    let ceilings = ceilings(system, policy, tasks())?;
    let mut found = Vec::new();
    for (id, entity) in tasks() {
        for section in &system.tasks[id].uses {
            let protocol = system.resources[section.resource].protocol.as_str();
            let nested = nested_otherwise(system, section.resource);
            found.push(Section {
                holder: id,
                resource: section.resource,
                length: section.length.into(),
                rank: rank(policy, entity),
                ceiling: match protocol {
                    "inheritance" | "immediate-ceiling" | "srp" => ceilings[section.resource],
                    "non-preemptive" => i128::MAX,
                    _ => return Err(Why::new(format!("the protocol {protocol}"))),
                },
                inherits: protocol == "inheritance" || nested,
            });
        }
    }
    Ok(found)
}

/// The most urgent user of each resource. A job that waits for a section waits for the locks inside
/// of it, too.
fn ceilings<'a>(
    system: &System,
    policy: Policy,
    tasks: impl Iterator<Item = (usize, &'a Entity)>,
) -> Result<Vec<i128>, Why> {
    let mut ceilings = vec![i128::MIN; system.resources.len()];
    let mut users = vec![0_usize; system.resources.len()];
    let mut here = vec![false; system.tasks.len()];
    for (id, entity) in tasks {
        here[id] = true;
        for section in &system.tasks[id].uses {
            let ceiling = &mut ceilings[section.resource];
            *ceiling = (*ceiling).max(rank(policy, entity));
            users[section.resource] += 1;
        }
    }
    let others = system.tasks.iter().zip(&here).filter(|(_, here)| !**here);
    for (task, _) in others {
        if let Some(section) = task.uses.iter().find(|s| users[s.resource] > 0) {
            let name = &system.resources[section.resource].name;
            return Err(Why::new(format!("{name}, which other nodes use as well")));
        }
    }
    for _ in 0..system.resources.len() {
        for section in system.tasks.iter().flat_map(|t| &t.uses) {
            if let Some(outer) = section.inside {
                ceilings[section.resource] = ceilings[section.resource].max(ceilings[outer]);
            }
        }
    }
    Ok(ceilings)
}

/// Whether sections of this resource are nested with those of another protocol.
fn nested_otherwise(system: &System, resource: usize) -> bool {
    let sections = system.tasks.iter().flat_map(|t| &t.uses);
    let protocol = |r: usize| &system.resources[r].protocol;
    sections
        .filter_map(|s| s.inside.map(|outer| (outer, s.resource)))
        .filter(|&(outer, inner)| outer == resource || inner == resource)
        .any(|(outer, inner)| protocol(outer) != protocol(inner))
}

/// Whatever blocks work of this urgency, but for sections of its own.
pub(crate) fn blocking(sections: &[Section], urgency: i128, own: Option<usize>) -> u128 {
    let mut longest = 0;
    let mut by_holder: BTreeMap<usize, u128> = BTreeMap::new();
    let mut by_resource: BTreeMap<usize, u128> = BTreeMap::new();
    for section in sections {
        let reaches = section.rank < urgency && section.ceiling >= urgency;
        if !reaches || own == Some(section.holder) {
            continue;
        }
        if section.inherits {
            let held = by_holder.entry(section.holder).or_default();
            *held = section.length.max(*held);
            let held = by_resource.entry(section.resource).or_default();
            *held = section.length.max(*held);
        } else {
            longest = section.length.max(longest);
        }
    }
    let sum = |map: &BTreeMap<usize, u128>| map.values().sum::<u128>();
    longest + sum(&by_holder).min(sum(&by_resource))
}

/// Under EDF: the deadlines at which blocking changes.
pub(crate) fn steps(sections: &[Section]) -> impl Iterator<Item = u128> + '_ {
    let both = sections.iter().flat_map(|s| [s.rank, s.ceiling]);
    both.filter_map(|rank| u128::try_from(rank.checked_neg()?).ok())
}
