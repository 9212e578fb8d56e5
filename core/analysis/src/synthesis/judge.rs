//! Which tasks and servers are late: the answer that searches need, one by one
//!
//! # Assumptions
//! 1. Those of the tests. Where the analysis does not end within its steps, all are late.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{Requirement, System, Task, TaskId};

use super::NoSuggestion;
use crate::admit::{self, bounds_only};
use crate::bounds;
use crate::decide;
use crate::entity::Who;
use crate::error::{AnalysisError, Checked};
use crate::precedence;
use crate::solve::{self, Options};

/// The tasks and servers that may be late.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Late {
    /// By task: nothing bounds its response within its deadline and what is required of it.
    /// Aperiodic tasks are never late.
    pub(crate) tasks: Vec<bool>,
    /// By scheduler: its server may get its budget late.
    pub(crate) servers: Vec<bool>,
}

/// Judges every task and server. One response analysis per task and server.
pub(crate) fn late(system: &System) -> Checked<Late> {
    admit::check(system)?;
    let real_time = system.tasks.iter().map(|t| t.class.is_real_time());
    let mut late = Late {
        tasks: real_time.collect(),
        servers: vec![true; system.schedulers.len()],
    };
    let edges = precedence::edges(system);
    let solution = match solve::solve(system, &edges, &Options::all(&bounds::query())) {
        Err(AnalysisError::TooLong { .. } | AnalysisError::Overflow { .. }) => return Ok(late),
        found => found?,
    };
    for solved in &solution.nodes {
        for (entity, bound) in solved.node.entities.iter().zip(&solved.bounds) {
            let allowed = decide::allowed_of(system, entity);
            let is_late = bound.is_none_or(|b| b.response > allowed);
            match entity.who {
                Who::Task(task) => late.tasks[task.index()] = is_late,
                Who::Server(server) => late.servers[server.index()] = is_late,
            }
        }
    }
    Ok(late)
}

/// Why a system that a search has built is refused all the same: the first reason.
pub(crate) fn still_refused(system: &System, what: &str) -> NoSuggestion {
    match bounds_only(system) {
        Ok(verdict) => {
            let first = verdict.refusals.first();
            let reason = first.map_or(String::new(), |first| {
                format!("{what}, but {}: {}", first.name, first.reason)
            });
            NoSuggestion::Reason(reason)
        }
        Err(error) => NoSuggestion::Analysis(error),
    }
}

/// The system with these tasks alone, and without what refers to the others.
pub(crate) fn only(system: &System, present: &[bool]) -> System {
    let mut partial = system.clone();
    let mut next = 0;
    let mut moved = Vec::with_capacity(present.len());
    for &here in present {
        moved.push(here.then_some(TaskId(next)));
        next += u32::from(here);
    }
    let renamed =
        |list: &[TaskId]| -> Vec<TaskId> { list.iter().filter_map(|t| moved[t.index()]).collect() };
    let kept = system.tasks.iter().zip(present).filter(|&(_, &here)| here);
    partial.tasks = kept
        .map(|(task, _)| Task {
            after: renamed(&task.after),
            follows: renamed(&task.follows),
            ..task.clone()
        })
        .collect();
    let to = |task: &TaskId| moved.get(task.index()).copied().flatten();
    let gangs = system.gangs.iter();
    partial.gangs = gangs.filter_map(|gang| gang.renumbered(to)).collect();
    let requirements = system.requirements.iter();
    partial.requirements = requirements.filter_map(|r| rename(r, &moved)).collect();
    partial
}

fn rename(requirement: &Requirement, moved: &[Option<TaskId>]) -> Option<Requirement> {
    let to = |task: &TaskId| moved.get(task.index()).copied().flatten();
    Some(match requirement {
        Requirement::Response { task, within } => Requirement::Response {
            task: to(task)?,
            within: *within,
        },
        Requirement::Jitter { task, within } => Requirement::Jitter {
            task: to(task)?,
            within: *within,
        },
        Requirement::Chain { tasks, within } => Requirement::Chain {
            tasks: tasks.iter().map(to).collect::<Option<Vec<_>>>()?,
            within: *within,
        },
    })
}
