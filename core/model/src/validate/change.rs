//! Changes: whether each makes sense after those before it, and leaves a system that does.

use alloc::collections::BTreeSet;
use alloc::format;

use super::Errors;
use crate::change::Subject;
use crate::id::TaskId;
use crate::readable::readable;
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
    let mut stage = Stage::at_start(system);
    if let Some((part, home)) = stage.homeless() {
        let home = stage.name(Subject::Scheduler(home));
        let message = format!(
            "{} is there at the start, and {home}, which orders or holds it, is not",
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
    for (id, task) in (0..).map(TaskId).zip(&system.tasks) {
        if stage.task(id).is_some() && stage.place(id) != task.scheduler {
            let message = format!(
                "{} is not where its slice is",
                stage.name(Subject::Task(id))
            );
            let help = "with changes, tasks execute on the slice that is in their hands, if any";
            errors.add(Fault::Task(id, "on"), message, help);
        }
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
