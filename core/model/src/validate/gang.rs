//! Gangs: one constraint for all members, each on a CPU of its own.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;

use super::Errors;
use crate::change::Subject;
use crate::gang::Gang;
use crate::id::TaskId;
use crate::readable::readable;
use crate::system::{Fault, System};
use crate::task::{Class, Task};
use crate::time::{Ns, Span};

/// Checks every gang by itself, and that no task is in two. O(n log n) in their members.
pub(super) fn check_all(system: &System, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    let mut taken: BTreeMap<TaskId, &str> = BTreeMap::new();
    for (place, gang) in system.gangs.iter().enumerate() {
        errors.check_name("gang", &gang.name, Fault::Gang(place, "name"));
        if !names.insert(gang.name.as_str()) {
            errors.add(
                Fault::Gang(place, "name"),
                format!("two gangs are named `{}`", gang.name),
                "rename one of them",
            );
        }
        for id in gang.members() {
            if let Some(other) = taken.insert(id, &gang.name) {
                let task = system.tasks.get(id.index());
                let name = task.map_or("", |task| task.name.as_str());
                errors.add(
                    Fault::Gang(place, "members"),
                    format!("`{name}` is a member of `{other}` already"),
                    "a task is a member once, of one gang",
                );
            }
        }
        check_sizes(gang, place, errors);
        for superstep in 0..gang.supersteps.len() {
            check_superstep(system, gang, (place, superstep), errors);
        }
        check_instants(system, gang, place, errors);
    }
    for (index, change) in system.changes.iter().enumerate() {
        for (step, part) in change.steps.iter().enumerate() {
            if let Subject::Task(id) = part.subject()
                && let Some(gang) = taken.get(&id)
            {
                errors.add(
                    Fault::ChangeStep(index, step),
                    format!("it changes a member of gang `{gang}` without the others"),
                    "members of a gang stay as they are while the system runs",
                );
            }
        }
    }
}

fn check_sizes(gang: &Gang, place: usize, errors: &mut Errors) {
    let supersteps = gang.supersteps.len();
    if supersteps > System::MAX_SUPERSTEPS {
        let most = System::MAX_SUPERSTEPS;
        errors.add(
            Fault::Gang(place, "supersteps"),
            format!("gang `{}` has {supersteps} supersteps", gang.name),
            format!("a gang has at most {most}"),
        );
    }
    if gang.members().next().is_none() {
        errors.add(
            Fault::Gang(place, "members"),
            format!("gang `{}` has no member", gang.name),
            "name at least one task, or one CPU",
        );
    }
    let mut names = BTreeSet::new();
    for (index, superstep) in gang.supersteps.iter().enumerate() {
        let fault = Fault::Superstep(place, index);
        if supersteps > 1 || !superstep.name.is_empty() {
            errors.check_name("superstep", &superstep.name, fault.clone());
        }
        if !names.insert(superstep.name.as_str()) {
            errors.add(
                fault,
                format!("two supersteps are named `{}`", superstep.name),
                "rename one of them",
            );
        }
    }
}

/// All members have one constraint, and a CPU each.
fn check_superstep(
    system: &System,
    gang: &Gang,
    (place, index): (usize, usize),
    errors: &mut Errors,
) {
    let members = &gang.supersteps[index].members;
    let fault = || match gang.supersteps.len() {
        1 => Fault::Gang(place, "members"),
        _ => Fault::Superstep(place, index),
    };
    let mut cpus = BTreeMap::new();
    let mut first: Option<&Task> = None;
    for id in members {
        let Some(task) = system.tasks.get(id.index()) else {
            let message = format!("gang `{}` has a member that is not there", gang.name);
            errors.add(fault(), message, "name a task of the system");
            continue;
        };
        if let Some(other) = cpus.insert(task.cpu, task.name.as_str()) {
            errors.add(
                fault(),
                format!("`{other}` and `{}` are on one CPU", task.name),
                "members that run in step have a CPU each",
            );
        }
        if let Some((message, help)) = unfit(task) {
            errors.add(fault(), message, help);
        }
        match first {
            None => first = Some(task),
            Some(other) if (task.class, task.phase) != (other.class, other.phase) => {
                errors.add(
                    fault(),
                    format!(
                        "`{}` and `{}` differ in their constraint",
                        other.name, task.name
                    ),
                    "all members have one class, with the same times, and one phase",
                );
            }
            Some(_) => {}
        }
    }
}

/// Why a task cannot be a member, and the remedy.
fn unfit(task: &Task) -> Option<(String, &'static str)> {
    if !matches!(
        task.class,
        Class::Periodic { .. } | Class::Reservation { .. }
    ) {
        let class = task.class.name();
        return Some((
            format!(
                "`{}` is {class}: it arrives at no agreed instants",
                task.name
            ),
            "members are periodic, or reservations",
        ));
    }
    (!task.jitter.is_zero()).then(|| {
        let jitter = readable(task.jitter.as_ns());
        (
            format!("`{}` is released up to {jitter} late", task.name),
            "members are released as they arrive: remove `jitter`",
        )
    })
}

/// Supersteps follow each other within one period.
fn check_instants(system: &System, gang: &Gang, place: usize, errors: &mut Errors) {
    if gang.supersteps.len() < 2 {
        return;
    }
    let mut last: Option<(Span<Ns>, Span<Ns>)> = None;
    let mut first = None;
    for (index, superstep) in gang.supersteps.iter().enumerate() {
        let member = superstep.members.first();
        let task = member.and_then(|id| system.tasks.get(id.index()));
        let times = task.and_then(|task| Some((task.class.min_separation()?, task.phase)));
        let Some((period, phase)) = times else {
            continue;
        };
        let fault = Fault::Superstep(place, index);
        if let Some((other, before)) = last {
            if period != other {
                errors.add(
                    fault.clone(),
                    format!("superstep `{}` has another period", superstep.name),
                    "the supersteps of a gang have one period",
                );
            } else if phase <= before {
                errors.add(
                    fault.clone(),
                    format!(
                        "superstep `{}` begins before the one above it",
                        superstep.name
                    ),
                    "write the supersteps in the order of their instants",
                );
            }
        }
        let begun = *first.get_or_insert(phase);
        if phase.saturating_sub(begun) >= period {
            errors.add(
                fault,
                format!("superstep `{}` begins in the next period", superstep.name),
                "all supersteps begin within one period",
            );
        }
        last = Some((period, phase));
    }
}
