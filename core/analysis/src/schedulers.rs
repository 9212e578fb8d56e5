//! The schedulers of a system: whether they form trees, and the verdict on each
//!
//! # Assumptions
//! 1. None of its own: it prints what the tests found.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use punctual_model::{MAX_DEPTH, Scheduler, SchedulerId, System};

use crate::entity::Who;
use crate::error::{Checked, invalid};
use crate::lookup::schedulers;
use crate::supply::Supply;
use crate::tree::Solved;
use crate::units::{Span, TICK, UNIT};
use crate::utilization::parts_per_million;
use crate::verdict::{SchedulerVerdict, SliceVerdict};

/// References that the tree follows without asking again. O(schedulers · depth + tasks).
pub(crate) fn check(system: &System) -> Checked<()> {
    for scheduler in &system.schedulers {
        let mut at = scheduler;
        let mut depth = 1;
        while let Some(parent) = at.parent {
            let above = system.schedulers.get(parent.index());
            let above = above.filter(|above| above.cpu == scheduler.cpu && depth < MAX_DEPTH);
            at = above.ok_or_else(|| {
                invalid(&format!(
                    "`{}` does not hang from its CPU within {MAX_DEPTH} levels",
                    scheduler.name
                ))
            })?;
            depth += 1;
        }
        if system.cpus.len() <= scheduler.cpu.index() {
            let what = format!("`{}` is on a CPU that does not exist", scheduler.name);
            return Err(invalid(&what));
        }
    }
    for task in &system.tasks {
        let Some(id) = task.scheduler else { continue };
        let home = system.schedulers.get(id.index());
        if home.is_none_or(|home| home.cpu != task.cpu) {
            let what = format!(
                "`{}` is on a scheduler that its CPU does not have",
                task.name
            );
            return Err(invalid(&what));
        }
    }
    Ok(())
}

/// The verdict on every scheduler, in the order of the file. O(nodes · entities).
pub(crate) fn verdicts(system: &System, nodes: &[Solved]) -> Vec<SchedulerVerdict> {
    schedulers(system)
        .map(|(id, scheduler)| {
            let own = |s: &&Solved| s.node.scheduler == Some(id) && s.node.is_whole;
            let node = nodes.iter().find(own).map(|s| &s.node);
            let supply = node.map_or(&Supply::Nothing, |node| &node.supply);
            let missing = parts_per_million(supply.missing().into_iter());
            SchedulerVerdict {
                scheduler: id,
                name: scheduler.name.clone(),
                cpu: scheduler.cpu,
                utilization_ppm: node.map_or(0, |node| parts_per_million(node.entity_ratios())),
                supply_ppm: 1_000_000_u64.saturating_sub(missing),
                budget_bound: budget_bound(nodes, id),
                blackout: blackout(supply),
                explanation: in_words(supply),
                slice: slice(system, nodes, (id, scheduler)),
            }
        })
        .collect()
}

/// Whether a slice is given whole in each of its periods, and why.
fn slice(
    system: &System,
    nodes: &[Solved],
    (id, scheduler): (SchedulerId, &Scheduler),
) -> Option<SliceVerdict> {
    let receiver = scheduler.receiver.as_ref()?;
    let giver = scheduler.parent?;
    let by = system.schedulers.get(giver.index())?.name.clone();
    let period = match &scheduler.supply {
        punctual_model::Supply::Server(server) => server.period,
        _ => return None,
    };
    let node = nodes.iter().find(|s| s.node.scheduler == Some(giver));
    let bound = budget_bound(nodes, id);
    let is_guaranteed = bound.is_some_and(|bound| bound <= period);
    let reason = match (bound, node.map(|s| &s.node.supply)) {
        (_, None) => "the analysis ended before it, at what refuses the system".to_string(),
        (_, Some(Supply::Nothing)) => format!("nothing is sure of the supply of {by} itself"),
        (Some(bound), Some(supply)) if is_guaranteed => format!(
            "given whole within {}, out of the supply of {by}: {}",
            bound.readable(),
            in_words(supply)
        ),
        (_, Some(supply)) => format!(
            "beside what is as urgent or more in {by}, its supply may not give the slice within \
             {}: {}",
            period.readable(),
            in_words(supply)
        ),
    };
    let to = match (&receiver.task, &receiver.scheduler) {
        (Some(task), _) => format!("task.{task}"),
        (None, Some(name)) => format!("scheduler.{name}"),
        (None, None) => String::new(),
    };
    Some(SliceVerdict {
        by,
        to,
        is_guaranteed,
        reason,
    })
}

fn budget_bound(nodes: &[Solved], id: SchedulerId) -> Option<Span> {
    let mut bounds = nodes
        .iter()
        .flat_map(|s| s.node.entities.iter().zip(&s.bounds));
    let (_, bound) = bounds.find(|(c, _)| c.who == Who::Server(id))?;
    bound.map(|b| b.response)
}

fn blackout(supply: &Supply) -> Option<Span> {
    let first = match supply {
        Supply::Dedicated => TICK,
        _ => supply.time_for(UNIT).ok().flatten()?,
    };
    first.checked_sub(TICK)
}

/// A supply in words: its amount, its period, and the longest time without it.
pub(crate) fn in_words(supply: &Supply) -> String {
    let dark = blackout(supply).unwrap_or_default().readable();
    match supply {
        Supply::Dedicated => "the whole CPU, less what is more urgent".to_string(),
        Supply::Budget(budget) => format!(
            "{} in every {}, at worst nothing for {}",
            budget.budget().readable(),
            budget.period().readable(),
            dark
        ),
        Supply::Slots(table) => format!(
            "{} in every {}, at worst nothing for {}",
            table.total().readable(),
            table.frame().readable(),
            dark
        ),
        Supply::Nothing => "nothing is sure".to_string(),
    }
}
