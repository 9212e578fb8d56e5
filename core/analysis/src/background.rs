//! The verdict on work without deadlines: the time that it gets
//!
//! # Assumptions
//! 1. None of its own: it prints what the tree says.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{Scheduler, Supply, System, Task, TaskId};

use crate::lookup::ancestors;
use crate::verdict::{Exactness, TaskVerdict, Test};

/// The row of a task as it is before anything bounds it: that of background work.
pub(crate) fn row(system: &System, task: &Task, id: TaskId) -> TaskVerdict {
    let (explanation, assumption) = match funded_by(system, task) {
        Some(scheduler) => on_a_budget(scheduler),
        None => (
            "no bound: it runs when no real-time work of its CPU wants to".to_string(),
            "background work costs real-time work nothing but its sections".to_string(),
        ),
    };
    TaskVerdict {
        task: id,
        name: task.name.clone(),
        cpu: task.cpu,
        response_bound: None,
        relative_deadline: task.class.relative_deadline(),
        exactness: Exactness::Sufficient,
        test: Test {
            name: "none",
            source: "aperiodic work has no deadline",
        },
        explanation,
        terms: Vec::new(),
        assumptions: vec![assumption],
        slack: None,
    }
}

/// The closest scheduler above the task that has a supply of its own; `None`: the CPU's time.
fn funded_by<'a>(system: &'a System, task: &Task) -> Option<&'a Scheduler> {
    let mut above = ancestors(system, task.scheduler).map(|(_, scheduler)| scheduler);
    above.find(|scheduler| scheduler.supply != Supply::Shared)
}

/// Explanation and assumption of work on the supply of a scheduler.
fn on_a_budget(scheduler: &Scheduler) -> (String, String) {
    let name = &scheduler.name;
    let supply = match &scheduler.supply {
        Supply::Server(server) => format!(
            "the budget of {name}, {} in every {}",
            server.budget.readable(),
            server.period.readable()
        ),
        _ => format!("the slots of {name}"),
    };
    (
        format!(
            "no bound: nothing says how much it wants; it runs on {supply}, when no real-time \
             work of {name} wants to"
        ),
        format!(
            "background work of {name} takes none but its supply, which others are held \
             against in full"
        ),
    )
}
