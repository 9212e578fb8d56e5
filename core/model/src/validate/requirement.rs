//! Requirements: of which tasks they can be demanded.

use alloc::collections::BTreeSet;
use alloc::format;

use super::Errors;
use crate::id::TaskId;
use crate::system::{Fault, Requirement, System};
use crate::task::{Class, Task};
use crate::time::{Ns, Span};

/// Checks every requirement by itself.
pub(super) fn check_all(system: &System, errors: &mut Errors) {
    for (index, requirement) in system.requirements.iter().enumerate() {
        let fault = Fault::Requirement(index);
        match requirement {
            Requirement::Response { task, within } => {
                check_response(system, *task, *within, fault, errors);
            }
            Requirement::Jitter { task, .. } => {
                check_task(system, *task, "jitter", fault, errors);
            }
            Requirement::Chain { tasks, within } => {
                check_chain(system, tasks, *within, fault, errors);
            }
        }
    }
}

fn check_response(
    system: &System,
    id: TaskId,
    within: Span<Ns>,
    fault: Fault,
    errors: &mut Errors,
) {
    let Some(task) = check_task(system, id, "response", fault.clone(), errors) else {
        return;
    };
    if within.is_zero() {
        errors.add(
            fault,
            format!("task `{}` is required to respond within 0s", task.name),
            "allow at least its wcet",
        );
    }
}

/// The task of a requirement about one, if it exists.
fn check_task<'a>(
    system: &'a System,
    id: TaskId,
    what: &str,
    fault: Fault,
    errors: &mut Errors,
) -> Option<&'a Task> {
    let Some(task) = system.tasks.get(id.index()) else {
        errors.add(
            fault,
            format!(
                "a required {what} of task number {}, which does not exist",
                id.0
            ),
            "name a task of the system",
        );
        return None;
    };
    if matches!(task.class, Class::Aperiodic) {
        errors.add(
            fault,
            format!(
                "task `{}` is aperiodic: no response of it is bounded",
                task.name
            ),
            "require responses of tasks with a deadline",
        );
    }
    Some(task)
}

fn check_chain(
    system: &System,
    tasks: &[TaskId],
    within: Span<Ns>,
    fault: Fault,
    errors: &mut Errors,
) {
    if tasks.len() < 2 {
        errors.add(
            fault.clone(),
            match tasks {
                [] => "a chain of no task".into(),
                _ => "a chain of one task".into(),
            },
            "name at least two, or require a `response` of one",
        );
    }
    if within.is_zero() {
        errors.add(
            fault.clone(),
            "a chain is required to end within 0s".into(),
            "allow at least the wcets of its tasks together",
        );
    }
    let mut seen = BTreeSet::new();
    for id in tasks {
        let Some(task) = system.tasks.get(id.index()) else {
            errors.add(
                fault.clone(),
                format!("a chain with task number {}, which does not exist", id.0),
                "name tasks of the system",
            );
            continue;
        };
        if !seen.insert(id) {
            errors.add(
                fault.clone(),
                format!("the chain names `{}` twice", task.name),
                "name each task once, in the order in which they hand on",
            );
        }
        if !matches!(
            task.class,
            Class::Periodic { .. } | Class::Sporadic { .. } | Class::Once { .. }
        ) {
            errors.add(
                fault.clone(),
                format!(
                    "the chain names {} task `{}`, whose body is endless",
                    task.class.name(),
                    task.name
                ),
                "a chain consists of tasks whose jobs complete",
            );
        }
    }
}
