//! Parameters for a system that has none that work: budgets, slots, priorities, places, capacities
//!
//! Every suggestion is a whole system that [`crate::is_admitted`] admits; an answer "there is none"
//! says on what ground. The searches use the admission itself, so they are as sharp as it is and
//! know nothing of their own about schedulability.
//!
//! # Assumptions
//! 1. Those of the admission, and those that each search lists.

mod budget;
mod capacities;
mod judge;
mod partition;
mod priorities;
mod slots;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use punctual_model::System;

use crate::admit::is_admitted;
use crate::error::AnalysisError;
pub(crate) use judge::only;

/// The parameters to look for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aim {
    /// The smallest budgets of servers, for their periods.
    Budgets,
    /// The shortest slots of frames, at their starts.
    Slots,
    /// Priorities of every node under fixed priority.
    Priorities,
    /// The CPU of every task.
    Partition,
    /// The smallest capacities of the FIFOs of graphs.
    Capacities,
}

/// A system that is admitted, and how it differs from the one given.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct Suggestion {
    /// The changed system.
    pub system: System,
    /// The changes, in the order of the file; empty: none is needed.
    pub changes: Vec<Setting>,
    /// How it was found, and what may be said of it: whether a better one can exist.
    pub ground: String,
}

/// One key of the file and its new value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Its place, such as `task.planner.priority`.
    pub parameter: String,
    /// Its value now, as in the file.
    pub from: String,
    /// Its new value.
    pub to: String,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} = {} instead of {}",
            self.parameter, self.to, self.from
        )
    }
}

/// Why nothing is suggested.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoSuggestion {
    /// The search found nothing, or does not apply; in words.
    Reason(String),
    /// The analysis has no answer.
    Analysis(AnalysisError),
}

impl From<AnalysisError> for NoSuggestion {
    fn from(error: AnalysisError) -> Self {
        NoSuggestion::Analysis(error)
    }
}

impl fmt::Display for NoSuggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSuggestion::Reason(reason) => f.write_str(reason),
            NoSuggestion::Analysis(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for NoSuggestion {}

/// The result of a search.
pub(crate) type Search<T> = Result<T, NoSuggestion>;

/// Looks for parameters with which `system` is admitted. Pure and deterministic.
///
/// # Errors
///
/// [`NoSuggestion`]: there is nothing to suggest, and why.
pub fn suggest(system: &System, aim: Aim) -> Result<Suggestion, NoSuggestion> {
    match aim {
        Aim::Budgets => budget::shorten(system),
        Aim::Slots => slots::shorten(system),
        Aim::Priorities => priorities::assign(system),
        Aim::Partition => partition::place(system),
        Aim::Capacities => capacities::shrink(system),
    }
}

/// The suggestion of a system that a search has built; if that is refused, `but` says what for.
fn suggested(
    changed: System,
    changes: Vec<Setting>,
    ground: &str,
    but: &str,
) -> Search<Suggestion> {
    if !is_admitted(&changed)? {
        return Err(judge::still_refused(&changed, but));
    }
    Ok(Suggestion {
        system: changed,
        changes,
        ground: ground.to_string(),
    })
}

/// A suggestion to change nothing.
fn as_it_is(system: &System) -> Suggestion {
    Suggestion {
        system: system.clone(),
        changes: Vec::new(),
        ground: "the admission, which admits it as it is".to_string(),
    }
}
