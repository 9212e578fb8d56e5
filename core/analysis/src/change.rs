//! Admission of a running system: a change is a new system, judged like any other

use alloc::format;
use alloc::vec::Vec;

use punctual_model::{
    Ns, PolicyKind, Scheduler, SchedulerId, Server, Supply, System, Task, TaskId,
};

use crate::admit::admit;
use crate::error::AnalysisError;
use crate::lookup::{task_name, tasks};
use crate::synthesis::only;
use crate::verdict::Verdict;

/// A change of one task or scheduler of a system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// The task comes in, last in the order.
    Add(Task),
    /// The task leaves, with what is required of it. Those after it move up by one.
    Remove(TaskId),
    /// The task gets other constraints.
    Replace(TaskId, Task),
    /// The server of a scheduler gets another budget, period or kind.
    Serve(SchedulerId, Server<Ns>),
    /// The scheduler comes in, last in the order.
    Join(Scheduler),
    /// The scheduler leaves, which has no tasks and no children. Those after it move up by one.
    Leave(SchedulerId),
    /// Another scheduler of its CPU orders the task; `None`: the CPU's own.
    Move(TaskId, Option<SchedulerId>),
    /// The policy of a scheduler becomes another.
    Reorder(SchedulerId, PolicyKind<Ns>),
}

impl Change {
    /// The system after the change. The phases of what comes while it runs lie anywhere.
    /// O(tasks + edges).
    ///
    /// # Errors
    ///
    /// [`AnalysisError::Invalid`] when there is no such task or server, or another task waits for
    /// the one that leaves.
    pub fn apply(&self, system: &System) -> Result<System, AnalysisError> {
        let mut changed = system.clone();
        match self {
            Change::Add(task) => {
                changed.free_phases = true;
                changed.tasks.push(task.clone());
            }
            Change::Replace(id, task) => {
                changed.free_phases = true;
                *changed
                    .tasks
                    .get_mut(id.index())
                    .ok_or_else(|| unknown(*id))? = task.clone();
            }
            Change::Remove(id) => remove(&mut changed, *id)?,
            Change::Serve(id, server) => serve(&mut changed, *id, *server)?,
            Change::Join(scheduler) => {
                changed.free_phases = true;
                changed.schedulers.push(scheduler.clone());
            }
            Change::Leave(id) => leave(&mut changed, *id)?,
            Change::Move(id, to) => {
                changed.free_phases = true;
                changed
                    .tasks
                    .get_mut(id.index())
                    .ok_or_else(|| unknown(*id))?
                    .scheduler = *to;
            }
            Change::Reorder(id, policy) => {
                let scheduler = changed.schedulers.get_mut(id.index());
                scheduler.ok_or_else(|| unknown_scheduler(*id))?.policy = *policy;
            }
        }
        Ok(changed)
    }
}

/// Judges the system as it would be after `change`: the same function as for a file, so `check` and
/// a running system cannot disagree. Returns that system with its verdict.
///
/// # Errors
///
/// As [`admit`] and [`Change::apply`].
pub fn admit_change(system: &System, change: &Change) -> Result<(System, Verdict), AnalysisError> {
    let changed = change.apply(system)?;
    let verdict = admit(&changed)?;
    Ok((changed, verdict))
}

fn unknown(id: TaskId) -> AnalysisError {
    AnalysisError::Invalid {
        what: format!("there is no task number {}", id.0),
    }
}

fn unknown_scheduler(id: SchedulerId) -> AnalysisError {
    AnalysisError::Invalid {
        what: format!("there is no scheduler number {}", id.0),
    }
}

fn leave(system: &mut System, id: SchedulerId) -> Result<(), AnalysisError> {
    let scheduler = system.schedulers.get(id.index());
    let name = scheduler.ok_or_else(|| unknown_scheduler(id))?.name.clone();
    let has_task = system.tasks.iter().any(|t| t.scheduler == Some(id));
    if has_task || system.schedulers.iter().any(|s| s.parent == Some(id)) {
        let what = format!("`{name}` would leave while something is in its care");
        return Err(AnalysisError::Invalid { what });
    }
    system.schedulers.remove(id.index());
    let up = |other: SchedulerId| match other > id {
        true => SchedulerId(other.0 - 1),
        false => other,
    };
    for scheduler in &mut system.schedulers {
        scheduler.parent = scheduler.parent.map(up);
    }
    for task in &mut system.tasks {
        task.scheduler = task.scheduler.map(up);
    }
    Ok(())
}

fn serve(system: &mut System, id: SchedulerId, server: Server<Ns>) -> Result<(), AnalysisError> {
    match system.schedulers.get_mut(id.index()).map(|s| &mut s.supply) {
        Some(Supply::Server(now)) => {
            *now = server;
            Ok(())
        }
        _ => Err(AnalysisError::Invalid {
            what: format!("there is no server of a scheduler number {}", id.0),
        }),
    }
}

fn remove(system: &mut System, id: TaskId) -> Result<(), AnalysisError> {
    if id.index() >= system.tasks.len() {
        return Err(unknown(id));
    }
    for task in &system.tasks {
        if task.after.contains(&id) || task.follows.contains(&id) {
            let gone = task_name(system, id);
            let what = format!("`{}` waits for `{gone}`, which would leave", task.name);
            return Err(AnalysisError::Invalid { what });
        }
    }
    let present: Vec<bool> = tasks(system).map(|(other, _)| other != id).collect();
    *system = only(system, &present);
    Ok(())
}
