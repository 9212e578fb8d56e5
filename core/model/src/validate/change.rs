//! Changes: whether each makes sense after those before it, and leaves a system that does.

use alloc::collections::BTreeSet;
use alloc::format;

use super::Errors;
use crate::change::{Step, Subject};
use crate::id::{SchedulerId, TaskId};
use crate::readable::readable;
use crate::scheduler::Scheduler;
use crate::stage::Stage;
use crate::system::{Fault, System};

/// Checks the changes one after the other, from the system at the start. To be asked when the
/// declared system has no mistake.
pub(super) fn check_all(system: &System, errors: &mut Errors) {
    if system.changes.is_empty() {
        return;
    }
    let before = errors.0.len();
    let mut names = BTreeSet::new();
    for (index, change) in system.changes.iter().enumerate() {
        errors.check_name("change", &change.name, Fault::Change(index, "name"));
        if !names.insert(change.name.as_str()) {
            let message = format!("two changes are named `{}`", change.name);
            errors.add(Fault::Change(index, "name"), message, "rename one of them");
        }
        if change.steps.is_empty() {
            let message = format!("change `{}` changes nothing", change.name);
            let help = "say what it starts, stops or changes, or remove it";
            errors.add(Fault::Change(index, "name"), message, help);
        }
    }
    for (index, pair) in system.changes.windows(2).enumerate() {
        if pair[0].at >= pair[1].at {
            let at = readable(pair[1].at.as_ns());
            let message = format!(
                "change `{}` at {at} does not come after `{}`",
                pair[1].name, pair[0].name
            );
            let help = "put what happens at one instant into one change";
            errors.add(Fault::Change(index + 1, "at"), message, help);
        }
    }
    if errors.0.len() > before {
        return;
    }
    check_slices(system, errors);
    if errors.0.len() > before {
        return;
    }
    let mut stage = Stage::at_start(system);
    if let Some((part, home)) = stage.homeless() {
        let home = stage.name(Subject::Scheduler(home));
        let message = format!(
            "{} is there at the start, and {home}, which orders it, is not",
            stage.name(part)
        );
        let help = "start both in one change, or have the scheduler there from the start";
        let fault = match part {
            Subject::Task(id) => Fault::Task(id, "on"),
            Subject::Scheduler(id) => Fault::Scheduler(id, "on"),
            Subject::Cpu(id) => Fault::Cpu(id, "policy"),
        };
        return errors.add(fault, message, help);
    }
    check_stage(&stage, None, errors);
    for index in 0..system.changes.len() {
        if errors.0.len() > before {
            return;
        }
        if let Err(mistakes) = stage.apply(&system.changes[index]) {
            for mistake in mistakes {
                let fault = Fault::ChangeStep(index, mistake.step);
                errors.add(fault, mistake.message, mistake.help);
            }
        } else {
            check_stage(&stage, Some(index), errors);
        }
    }
}

/// The parts that are there must mean something, as in a file of their own.
fn check_stage(stage: &Stage<'_>, after: Option<usize>, errors: &mut Errors) {
    let Err(found) = stage.system().validate() else {
        return;
    };
    for error in found {
        let (fault, message) = match after {
            Some(index) => (
                Fault::Change(index, "name"),
                format!("after this change, {}", error.message),
            ),
            None => (
                Fault::Change(0, "name"),
                format!("before the first change, {}", error.message),
            ),
        };
        errors.add(fault, message, error.help);
    }
}

/// Slices have the same giver, receiver and tasks for the whole run.
/// O(steps · schedulers).
fn check_slices(system: &System, errors: &mut Errors) {
    let slices = || system.schedulers.iter().filter(|s| s.receiver.is_some());
    let takes_part = |id: SchedulerId| {
        let scheduler = system.schedulers.get(id.index());
        let name = scheduler.map(|s| s.name.as_str());
        let holds = |slice: &Scheduler| {
            let receiver = slice.receiver.as_ref();
            receiver.is_some_and(|r| r.scheduler.as_deref() == name)
        };
        scheduler.is_some_and(|s| s.receiver.is_some())
            || slices().any(|slice| slice.parent == Some(id) || holds(slice))
    };
    let executes = |id: TaskId| {
        let home = system.tasks.get(id.index()).and_then(|task| task.scheduler);
        let home = home.and_then(|home| system.schedulers.get(home.index()));
        home.is_some_and(|home| home.receiver.is_some())
    };
    for (index, change) in system.changes.iter().enumerate() {
        for (place, step) in change.steps.iter().enumerate() {
            let about = match *step {
                Step::Join(id) | Step::Leave(id) | Step::Supply(id, _) | Step::Reorder(id, _) => {
                    takes_part(id)
                }
                Step::Move(task, to) => executes(task) || to.is_some_and(takes_part),
                Step::ReorderCpu(..) | Step::Constrain(..) | Step::Stop(_) | Step::Start(_) => {
                    false
                }
            };
            if about {
                let message = format!(
                    "change `{}` changes who gives, holds or executes on a slice",
                    change.name
                );
                let help = "a file keeps its delegations for the whole run: change other parts, \
                            or delegate from a program";
                errors.add(Fault::ChangeStep(index, place), message, help);
            }
        }
    }
}
