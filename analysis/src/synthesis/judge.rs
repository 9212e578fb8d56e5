//! Who is late: the question that searches ask, task by task
//!
//! # Assumptions
//! 1. Those of the tests. A task whose analysis does not end within its steps is late.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{System, TaskId};

use super::NoSuggestion;
use crate::admit::{self, admit};
use crate::decide;
use crate::error::{AnalysisError, Checked};
use crate::precedence;

/// By task: whether nothing bounds its response within its deadline and what is required of it.
/// Aperiodic tasks are never late. One response analysis per task.
pub(crate) fn late(system: &System) -> Checked<Vec<bool>> {
    admit::check(system)?;
    let edges = precedence::edges(system);
    let solution = match precedence::solve(system, &edges, |_| true, |_| false) {
        Err(AnalysisError::TooLong { .. } | AnalysisError::Overflow { .. }) => {
            return Ok(vec![true; system.tasks.len()]);
        }
        found => found?,
    };
    let is_late = |(task, id): (&punctual_model::Task, u32)| {
        let id = TaskId(id);
        let Some(deadline) = task.class.relative_deadline() else {
            return false;
        };
        let allowed = decide::allowed(system, id, deadline.ticks());
        let bound = solution.bounds.get(id.index()).copied().flatten();
        bound.is_none_or(|b| b.response > allowed)
    };
    Ok(system.tasks.iter().zip(0_u32..).map(is_late).collect())
}

/// Why a system that a search has built is refused all the same: the first reason.
pub(crate) fn still_refused(system: &System, what: &str) -> NoSuggestion {
    let reason = match admit(system) {
        Ok(verdict) => verdict.refusals.first().map_or(String::new(), |first| {
            format!("{what}, but {}: {}", first.name, first.reason)
        }),
        Err(error) => return NoSuggestion::Analysis(error),
    };
    NoSuggestion::Reason(reason)
}
