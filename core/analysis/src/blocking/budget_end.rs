//! Sections and budgets: the end of a server's budget inside of a section, and its cost
//!
//! * *Overrun* with payback (Davis and Burns 2006, §4.2): a holder goes on to the end of its
//!   section, at most its declared length beyond the budget; the next budget is so much shorter.
//!   Beside the server, that is one more section once in a busy window; below it, so much of the
//!   supply was used up before the window began. A section that blocks a window is among these.
//!   Either a budget ended before the window and the section went on then, or it is held when the
//!   window begins, and ends in it on budget or beyond. So it counts once, as what is owed.
//! * *Check first* (after SIRAP: Behnam, Shin, Nolte and Nolin 2007): a section that does not fit
//!   waits for the next budget with its task. Others may use that one first, so that it does not
//!   fit again: in every period as much as the longest section, less one tick, may be of no use.
//!   Where others overrun, they may do so on each rest, and each next budget is so much shorter. (A
//!   constant-bandwidth server gives the rest up, so nobody runs on it.)
//!
//! # Assumptions
//! 1. When a budget ends, every task below may be in one section, and each goes on to its end; only
//!    they run beyond it. Two of them write to different resources. Under priorities and deadlines
//!    no section begins without budget.
//! 2. A budget is of no use to what is pending only while that waits for the next one: then less is
//!    left of it than the shortest section waiting.

use alloc::collections::BTreeMap;

use punctual_model::{
    AtBudgetEnd, Mode, PolicyKind, ResourceId, Scheduler, SchedulerId, ServerKind, Supply, System,
    Task, Use,
};

use crate::error::{Checked, in_range};
use crate::lookup::{ancestors, is_below, schedulers};
use crate::units::{UNIT, Work};

const WHAT: &str = "sections at the end of a budget";

fn rule(system: &System, section: &Use) -> Option<AtBudgetEnd> {
    let resource = system.resources.get(section.resource.index());
    resource.map(|r| r.at_budget_end)
}

/// Tasks with sections below a server.
fn users_below(system: &System, server: SchedulerId) -> impl Iterator<Item = &Task> {
    let uses = system.tasks.iter().filter(|task| !task.uses.is_empty());
    uses.filter(move |task| is_below(system, task.scheduler, server))
}

/// Most that a server may give beyond its budget. O(tasks · sections · (depth + log resources)).
pub(crate) fn overrun(system: &System, server: SchedulerId) -> Checked<Work> {
    if system.resources.is_empty() {
        return Ok(Work::ZERO);
    }
    let mut by_task = Work::ZERO;
    let mut held: BTreeMap<ResourceId, Held> = BTreeMap::new();
    for task in users_below(system, server) {
        let mut longest = Work::ZERO;
        let mut read: BTreeMap<ResourceId, Work> = BTreeMap::new();
        for section in task.uses.iter().filter(|s| goes_on(system, s)) {
            longest = longest.max(section.length);
            let kind = held.entry(section.resource).or_default();
            if section.mode == Mode::Exclusive {
                kind.written = kind.written.max(section.length);
            } else {
                let known = read.entry(section.resource).or_default();
                *known = (*known).max(section.length);
            }
        }
        for (resource, length) in read {
            let known = &mut held.entry(resource).or_default().read;
            *known = in_range(known.checked_add(length), WHAT)?;
        }
        by_task = in_range(by_task.checked_add(longest), WHAT)?;
    }
    if !asks_again(system, server) {
        return Ok(by_task);
    }
    let mut by_resource = Work::ZERO;
    for kind in held.values() {
        let most = kind.written.max(kind.read);
        by_resource = in_range(by_resource.checked_add(most), WHAT)?;
    }
    Ok(by_task.min(by_resource))
}

/// The sections of one resource that may be held together: one that writes, or all that read.
#[derive(Clone, Copy, Default)]
struct Held {
    written: Work,
    read: Work,
}

/// Whether a section goes on at the end of a budget.
pub(crate) fn goes_on(system: &System, section: &Use) -> bool {
    rule(system, section) == Some(AtBudgetEnd::Overrun)
}

/// Whether a task below a server that waits for a lock asks again when it is chosen, which takes
/// budget. Where tasks take turns it has the lock as soon as the holder gives it back.
fn asks_again(system: &System, server: SchedulerId) -> bool {
    let mut below = schedulers(system).filter(|(id, _)| is_below(system, Some(*id), server));
    below.all(|(_, scheduler)| {
        matches!(
            scheduler.policy,
            PolicyKind::FixedPriority { preemptive: true } | PolicyKind::EarliestDeadlineFirst
        )
    })
}

/// Whether what a server owes covers the overruns of these holders, whichever of them block: they
/// are below a server, and none begins a section while more urgent work [rests](may_rest).
pub(crate) fn are_owed(system: &System, scheduler: Option<SchedulerId>) -> bool {
    let Some(node) = scheduler else { return false };
    let served = |(_, s): (SchedulerId, &Scheduler)| matches!(s.supply, Supply::Server(_));
    let mut tasks = system.tasks.iter();
    ancestors(system, scheduler).any(served)
        && !tasks.any(|t| may_rest(system, t) && is_below(system, t.scheduler, node))
}

/// Whether a task may let less urgent ones execute before its job is over: it suspends itself, or
/// waits for a budget that its section fits into.
fn may_rest(system: &System, task: &Task) -> bool {
    let waits = |section: &Use| rule(system, section) == Some(AtBudgetEnd::CheckFirst);
    !task.max_suspension.is_zero() || task.uses.iter().any(waits)
}

/// The part of each budget that may be of no use, for no section fits into it. O(tasks · sections ·
/// depth).
pub(crate) fn unused(system: &System, server: SchedulerId) -> Work {
    let sections = users_below(system, server).flat_map(|task| &task.uses);
    let checked = sections.filter(|s| rule(system, s) == Some(AtBudgetEnd::CheckFirst));
    let longest = checked.map(|s| s.length).max();
    longest.unwrap_or_default().saturating_sub(UNIT)
}

/// The part of each budget of a server that its sections cost: that which none of them fits into,
/// and that which others overrun of a rest while one waits for the next. A bandwidth server gives
/// its rest up instead.
///
/// # Errors
/// As [`overrun`].
pub(crate) fn lost(system: &System, server: SchedulerId, kind: ServerKind) -> Checked<Work> {
    let unused = unused(system, server);
    let overruns_rests = !unused.is_zero() && kind != ServerKind::ConstantBandwidth;
    Ok(match overruns_rests {
        true => unused.saturating_add(overrun(system, server)?),
        false => unused,
    })
}
