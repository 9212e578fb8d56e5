//! Admission of a running system: a change is a new system, judged like any other

use alloc::format;

use punctual_model::{Ns, Requirement, SchedulerId, Server, Supply, System, Task, TaskId};

use crate::admit::admit;
use crate::error::AnalysisError;
use crate::verdict::Verdict;

/// A change of one task or server of a system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// The task comes in, last in the order.
    Add(Task),
    /// The task leaves, with what is required of it. Those after it move up by one.
    Remove(TaskId),
    /// The task asks for other constraints.
    Replace(TaskId, Task),
    /// The server of a scheduler gets another budget, period or kind.
    Serve(SchedulerId, Server<Ns>),
}

impl Change {
    /// The system after the change. O(tasks + edges).
    ///
    /// # Errors
    ///
    /// [`AnalysisError::Invalid`] when there is no such task or server, or another task waits for
    /// the one that leaves.
    pub fn apply(&self, system: &System) -> Result<System, AnalysisError> {
        let mut changed = system.clone();
        match self {
            Change::Add(task) => changed.tasks.push(task.clone()),
            Change::Replace(id, task) => {
                *changed
                    .tasks
                    .get_mut(id.index())
                    .ok_or_else(|| unknown(*id))? = task.clone();
            }
            Change::Remove(id) => remove(&mut changed, *id)?,
            Change::Serve(id, server) => serve(&mut changed, *id, *server)?,
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
    let gone = system.tasks.remove(id.index());
    for task in &mut system.tasks {
        if task.after.contains(&id) || task.follows.contains(&id) {
            let what = format!(
                "`{}` waits for `{}`, which would leave",
                task.name, gone.name
            );
            return Err(AnalysisError::Invalid { what });
        }
        task.after
            .iter_mut()
            .chain(&mut task.follows)
            .for_each(|other| move_up(other, id));
    }
    system.requirements.retain(|r| match r {
        Requirement::Response { task, .. } | Requirement::Jitter { task, .. } => *task != id,
        Requirement::Chain { tasks, .. } => !tasks.contains(&id),
    });
    for requirement in &mut system.requirements {
        match requirement {
            Requirement::Response { task, .. } | Requirement::Jitter { task, .. } => {
                move_up(task, id);
            }
            Requirement::Chain { tasks, .. } => tasks.iter_mut().for_each(|t| move_up(t, id)),
        }
    }
    Ok(())
}

fn move_up(other: &mut TaskId, gone: TaskId) {
    if *other > gone {
        other.0 -= 1;
    }
}
