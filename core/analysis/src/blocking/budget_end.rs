//! Sections and budgets: the end of a server's budget inside of a section, and its cost
//!
//! * *Overrun* with payback (Davis and Burns 2006, §4.2): a holder goes on to the end of its
//!   section, at most its declared length beyond the budget; the next budget is so much shorter.
//!   Beside the server, that is one more section once in a busy window; below it, so much of the
//!   supply was used up before the window began.
//! * *Check first* (after SIRAP: Behnam, Shin, Nolte and Nolin 2007): a section that does not fit
//!   waits for the next budget with its task. Others may use that one first, so that it does not
//!   fit again: in every period as much as the longest section, less one tick, may be of no use.
//!
//! # Assumptions
//! 1. When a budget ends, every task below may be in one section, and each goes on to its end; only
//!    they run beyond it.
//! 2. A budget is of no use only while all that is pending waits for the next one: then less is
//!    left of it than the shortest section waiting.

use punctual_model::{AtBudgetEnd, SchedulerId, System, Task, Use};

use crate::error::{Checked, in_range};
use crate::lookup::is_below;
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

/// Most that a server may give beyond its budget. O(tasks · sections · depth).
pub(crate) fn overrun(system: &System, server: SchedulerId) -> Checked<Work> {
    if system.resources.is_empty() {
        return Ok(Work::ZERO);
    }
    let mut sum = Work::ZERO;
    for task in users_below(system, server) {
        let sections = task.uses.iter();
        let goes_on = sections.filter(|s| rule(system, s) == Some(AtBudgetEnd::Overrun));
        let longest = goes_on.map(|s| s.length).max().unwrap_or_default();
        sum = in_range(sum.checked_add(longest), WHAT)?;
    }
    Ok(sum)
}

/// The part of each budget that may be of no use, for no section fits into it. O(tasks · sections ·
/// depth).
pub(crate) fn unused(system: &System, server: SchedulerId) -> Work {
    let sections = users_below(system, server).flat_map(|task| &task.uses);
    let checked = sections.filter(|s| rule(system, s) == Some(AtBudgetEnd::CheckFirst));
    let longest = checked.map(|s| s.length).max();
    longest.unwrap_or_default().saturating_sub(UNIT)
}
