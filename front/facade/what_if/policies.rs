//! Which policy where, instead of those of the run.

use punctual_kern::{Grant, TraceEvent, WaitOrder};
use punctual_model::{Ns, PolicyKind, Protocol};
use punctual_tables::{CpuTables, Tables};
use punctual_trace::{Log, Record};

use super::WhatIfError;

/// Another policy for a CPU or a scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyChange {
    /// The name of the CPU or the scheduler; `None`: every CPU's own policy.
    pub on: Option<String>,
    /// The policy; a timeslice counts nanoseconds.
    pub policy: PolicyKind<Ns>,
}

/// Changes the tables of `log`.
pub(super) fn change(
    log: &Log,
    tables: &mut Tables,
    changes: &[PolicyChange],
) -> Result<(), WhatIfError> {
    for change in changes {
        let places = places(log, change.on.as_deref())?;
        for (cpu, place) in places {
            let policy = change.policy.in_ticks(log.tables.frequency);
            let unsuitable = |why: String| WhatIfError::Unsuitable {
                on: log.node_name(cpu, place).into(),
                why,
            };
            if is_replaced(log, cpu, place) {
                return Err(unsuitable("its policy is replaced while it runs".into()));
            }
            let target = &mut tables.cpus[cpu];
            check(log, target, (cpu, place), policy).map_err(unsuitable)?;
            set(target, place, policy);
        }
    }
    Ok(())
}

/// Where the name stands: CPUs and places in their trees.
fn places(log: &Log, name: Option<&str>) -> Result<Vec<(usize, usize)>, WhatIfError> {
    let all = log.tables.cpus.iter().enumerate();
    let all: Vec<(usize, usize)> = all
        .flat_map(|(cpu, tables)| (0..=tables.nodes.len()).map(move |place| (cpu, place)))
        .collect();
    let Some(name) = name else {
        return Ok(all.into_iter().filter(|(_, place)| *place == 0).collect());
    };
    let name_of = |&(cpu, place): &(usize, usize)| log.node_name(cpu, place);
    let found: Vec<_> = all
        .iter()
        .copied()
        .filter(|at| name_of(at) == name)
        .collect();
    if found.is_empty() {
        return Err(WhatIfError::Unknown {
            name: name.into(),
            known: all.iter().map(|at| name_of(at).to_string()).collect(),
        });
    }
    Ok(found)
}

/// Whether the run gave the scheduler at this place another policy.
fn is_replaced(log: &Log, cpu: usize, place: usize) -> bool {
    let mut records = log.cpus[cpu].records.iter();
    records.any(|(_, record)| match record {
        Record::Trace(TraceEvent::PolicyReplaced { node, .. }) => node.index() == place,
        _ => false,
    })
}

fn policy_at(tables: &CpuTables, place: usize) -> PolicyKind {
    let node = place
        .checked_sub(1)
        .and_then(|below| tables.nodes.get(below));
    node.map_or(tables.policy, |node| node.policy)
}

/// Whether the policy can stand at that place, by the rules of system files.
fn check(
    log: &Log,
    tables: &CpuTables,
    (cpu, place): (usize, usize),
    policy: PolicyKind,
) -> Result<(), String> {
    if matches!(policy, PolicyKind::Tdm { .. }) {
        return Err("tdm needs slots, which the log does not have".into());
    }
    if matches!(policy_at(tables, place), PolicyKind::Tdm { .. }) {
        return Err("it divides its time into slots, which no other policy knows".into());
    }
    if policy == PolicyKind::EarliestDeadlineFirst {
        let mut below = tables.nodes.iter().enumerate();
        let shared = below.find(|(_, node)| {
            usize::from(node.parent) == place && node.terms.supply == Grant::Shared
        });
        if let Some((at, _)) = shared {
            let name = log.node_name(cpu, at + 1);
            return Err(format!(
                "`{name}` has no server, and so no deadline under edf"
            ));
        }
    }
    for (number, resource) in (0_u32..).zip(&tables.resources) {
        let concerned = tables
            .uses
            .iter()
            .any(|(thread, one)| one.resource == number && stands_under(tables, *thread, place));
        let suits = match (resource.protocol, policy) {
            (Protocol::ImmediateCeiling, PolicyKind::FixedPriority { .. }) => true,
            (Protocol::ImmediateCeiling, _) => false,
            (
                Protocol::StackResource,
                PolicyKind::FixedPriority { .. } | PolicyKind::EarliestDeadlineFirst,
            ) => true,
            (Protocol::StackResource, _) => false,
            _ => true,
        };
        if concerned && !suits {
            let name = log.resource_name(cpu, number);
            let protocol = resource.protocol.name();
            return Err(format!(
                "resource `{name}` is protected by {protocol}, which does not work under {}",
                policy.name()
            ));
        }
    }
    Ok(())
}

/// Whether the thread is ordered by the node at `place`, itself or in the care of one below.
fn stands_under(tables: &CpuTables, thread: u32, place: usize) -> bool {
    let home = tables.homes.get(thread as usize).copied().unwrap_or(0);
    let up = |&at: &usize| {
        let below = at.checked_sub(1)?;
        tables.nodes.get(below).map(|node| usize::from(node.parent))
    };
    std::iter::successors(Some(usize::from(home)), up)
        .take(tables.nodes.len() + 1)
        .any(|at| at == place)
}

fn set(tables: &mut CpuTables, place: usize, policy: PolicyKind) {
    match place
        .checked_sub(1)
        .and_then(|below| tables.nodes.get_mut(below))
    {
        Some(node) => node.policy = policy,
        None => tables.policy = policy,
    }
    for resource in &mut tables.resources {
        if resource.common.index() == place {
            resource.wait_order = WaitOrder::of(policy);
        }
    }
}
