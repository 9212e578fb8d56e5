//! Precedence: which waits have an end, and which can be known where they are waited for.
//!
//! A job waits for jobs released before it (`follows`) or not after it (`after`). A chain of waits
//! that includes a `follows` edge leads to strictly earlier releases, of which there are finitely
//! many. Only a cycle of `after` edges alone can lead back to the job where it began, so only those
//! cycles are refused.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::Errors;
use crate::id::TaskId;
use crate::system::{Fault, System};
use crate::task::{Class, Task};

/// Names of a long cycle that a message shows before it counts the rest.
const SHOWN_IN_CYCLE: usize = 8;

/// Checks all precedence edges, each by itself and then for cycles. O(n log n) in tasks and edges.
pub(super) fn check(system: &System, errors: &mut Errors) {
    for (id, task) in (0..=u32::MAX).map(TaskId).zip(&system.tasks) {
        check_edges(system, id, "after", &task.after, errors);
        check_edges(system, id, "follows", &task.follows, errors);
    }
    for cycle in find_cycles(system) {
        report_cycle(system, &cycle, errors);
    }
}

fn check_edges(
    system: &System,
    id: TaskId,
    key: &'static str,
    edges: &[TaskId],
    errors: &mut Errors,
) {
    let Some(task) = system.tasks.get(id.index()) else {
        return;
    };
    let mut seen = BTreeSet::new();
    for (index, edge) in edges.iter().enumerate() {
        let fault = Fault::Precedence {
            task: id,
            key,
            index,
        };
        let mut add = |problem: String, help: &str| {
            errors.add(
                fault.clone(),
                format!("task `{}`: {problem}", task.name),
                help,
            );
        };
        let Some(before) = system.tasks.get(edge.index()) else {
            add(
                format!("`{key}` names task number {}, which does not exist", edge.0),
                "remove it",
            );
            continue;
        };
        if !seen.insert(edge) {
            add(
                format!("`{key}` names `{}` twice", before.name),
                "name it once",
            );
        }
        for end in [task, before] {
            if !has_jobs_that_complete(end) {
                add(
                    format!(
                        "`{key}` on {} task `{}`, whose body is endless",
                        end.class.name(),
                        end.name
                    ),
                    "precedence orders periodic, sporadic and once jobs",
                );
                break;
            }
        }
        if matches!(before.class, Class::Sporadic { .. }) && before.cpu != task.cpu {
            add(
                format!(
                    "`{key}` names sporadic `{}` on another CPU, where its arrivals are unknown",
                    before.name
                ),
                "place both on one CPU, or make the predecessor periodic",
            );
        }
    }
}

fn has_jobs_that_complete(task: &Task) -> bool {
    !matches!(task.class, Class::Reservation { .. } | Class::Aperiodic)
}

/// Cycles of `after` edges, each task in at most one of them. Depth first without recursion, so a
/// chain of any length is walked in bounded stack.
fn find_cycles(system: &System) -> Vec<Vec<TaskId>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        Unseen,
        OnPath,
        Done,
    }
    let mut marks = vec![Mark::Unseen; system.tasks.len()];
    let mut cycles = Vec::new();
    let mut path: Vec<(TaskId, usize)> = Vec::new();
    for start in (0..=u32::MAX).map(TaskId).take(system.tasks.len()) {
        if marks[start.index()] != Mark::Unseen {
            continue;
        }
        marks[start.index()] = Mark::OnPath;
        path.push((start, 0));
        while let Some((task, next)) = path.last_mut() {
            let task = *task;
            let Some(&before) = system.tasks[task.index()].after.get(*next) else {
                marks[task.index()] = Mark::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match marks.get(before.index()) {
                Some(Mark::Unseen) => {
                    marks[before.index()] = Mark::OnPath;
                    path.push((before, 0));
                }
                Some(Mark::OnPath) => {
                    // Taking the whole cycle off the path keeps each task in one report.
                    let begin = path.iter().rposition(|step| step.0 == before).unwrap_or(0);
                    let cycle: Vec<TaskId> = path.drain(begin..).map(|step| step.0).collect();
                    for member in &cycle {
                        marks[member.index()] = Mark::Done;
                    }
                    cycles.push(cycle);
                }
                Some(Mark::Done) | None => {}
            }
        }
    }
    cycles
}

fn report_cycle(system: &System, cycle: &[TaskId], errors: &mut Errors) {
    let name = |id: &TaskId| {
        system
            .tasks
            .get(id.index())
            .map_or("?", |task| task.name.as_str())
    };
    let Some(first) = cycle.first() else { return };
    let next = cycle.get(1).unwrap_or(first);
    let index = system.tasks[first.index()]
        .after
        .iter()
        .position(|edge| edge == next);
    let mut shown = format!("`{}`", name(first));
    for id in cycle.iter().skip(1).take(SHOWN_IN_CYCLE) {
        shown += &format!(" after `{}`", name(id));
    }
    if cycle.len() > SHOWN_IN_CYCLE + 1 {
        shown += &format!(" after {} more", cycle.len() - SHOWN_IN_CYCLE - 1);
    }
    errors.add(
        Fault::Precedence {
            task: *first,
            key: "after",
            index: index.unwrap_or(0),
        },
        format!("precedence cycle: {shown} after `{}`", name(first)),
        "remove one of these, or make it `follows`, which waits for earlier releases only",
    );
}
