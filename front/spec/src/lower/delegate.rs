//! From the slices that schedulers delegate to schedulers of the model, each with its receiver.

use std::collections::BTreeSet;

use punctual_model::{
    PolicyKind, Priority, Receiver, Scheduler, SchedulerId, Server, ServerKind, Supply, Task,
    TaskId, Trust,
};

use super::Names;
use crate::file::Named;
use crate::nearest::nearest;
use crate::places::{Places, SchedulerPlaces};
use crate::record::{Node, Record, Value};
use crate::report::{Report, quote};

/// The end of a delegation, found in the file.
#[derive(Clone, Copy)]
pub(super) enum To {
    Scheduler(SchedulerId),
    Task(TaskId),
}

/// Adds a scheduler for each slice, below its giver, and places on it the tasks that execute on
/// it, unless the giver comes later. A delegation with a mistake is left out, and its giver is
/// broken. Returns the home of each task as the file states it.
pub(super) fn lower_delegations(
    schedulers: &mut Vec<Scheduler>,
    tasks: &mut [Task],
    (names, later): (&Names, &BTreeSet<SchedulerId>),
    places: &mut Places,
    report: &mut Report<'_>,
) -> Vec<Option<SchedulerId>> {
    // The homes that the file states: those of tasks that have a slice change below.
    let homes: Vec<Option<SchedulerId>> = tasks.iter().map(|task| task.scheduler).collect();
    let givers = names.schedulers.len().min(schedulers.len());
    for giver in (0..).map(SchedulerId).take(givers) {
        let section = places.schedulers[giver.index()].section.clone();
        for entry in section.record.list("delegate") {
            let Value::Record(record) = &entry.value else {
                continue;
            };
            let slice = lower_slice((giver, schedulers), record, names, report);
            let Some((to, mut slice)) = slice else {
                places.schedulers[giver.index()].broken = true;
                continue;
            };
            let id = SchedulerId(u16::try_from(schedulers.len()).unwrap_or(u16::MAX));
            slice.receiver = Some(receiver(to, &homes, (tasks, schedulers)));
            let bound = homes.iter().zip((0..).map(TaskId));
            let bound = bound.filter(|(home, task)| match to {
                To::Scheduler(to) => **home == Some(to),
                To::Task(to) => *task == to,
            });
            for (home, task) in bound {
                let place = &places.tasks[task.index()];
                let task = &mut tasks[task.index()];
                if task.cpu != slice.cpu {
                    let known = !place.broken && !place.unplaced;
                    if known && home.is_none() {
                        let message =
                            format!("the slice is of another CPU than task `{}`", task.name);
                        report.add(&entry.range, message, || {
                            "name a scheduler or a task of the same CPU".into()
                        });
                    }
                    continue;
                }
                if later.contains(&giver) {
                    continue;
                }
                if task.scheduler != *home {
                    let message = format!("task `{}` executes on two slices", task.name);
                    report.add(&entry.range, message, || {
                        "each thread executes on one: remove one of the delegations".into()
                    });
                }
                task.scheduler = Some(id);
            }
            let giver = &places.schedulers[giver.index()];
            let (broken, unplaced) = (giver.broken, giver.unplaced);
            places.schedulers.push(SchedulerPlaces {
                section: Named {
                    name: slice.name.clone(),
                    name_range: entry.range.clone(),
                    record: Record::empty(entry.range.clone()),
                },
                broken,
                unplaced,
            });
            schedulers.push(slice);
        }
    }
    homes
}

/// The hands that a slice goes into: a task is in the care of its home.
pub(super) fn receiver(
    to: To,
    homes: &[Option<SchedulerId>],
    (tasks, schedulers): (&[Task], &[Scheduler]),
) -> Receiver {
    let name = |id: SchedulerId| schedulers.get(id.index()).map(|s| s.name.clone());
    match to {
        To::Scheduler(to) => Receiver {
            scheduler: name(to),
            task: None,
        },
        To::Task(task) => Receiver {
            scheduler: homes[task.index()].and_then(name),
            task: Some(tasks[task.index()].name.clone()),
        },
    }
}

/// Whether a slice is in these hands.
pub(super) fn is_held_by(
    slice: &Scheduler,
    to: To,
    (tasks, schedulers): (&[Task], &[Scheduler]),
) -> bool {
    let Some(receiver) = &slice.receiver else {
        return false;
    };
    match to {
        To::Task(id) => receiver.task.as_ref() == Some(&tasks[id.index()].name),
        To::Scheduler(id) => {
            let name = &schedulers[id.index()].name;
            receiver.task.is_none() && receiver.scheduler.as_ref() == Some(name)
        }
    }
}

/// The slice as a scheduler below its giver, and where it goes.
pub(super) fn lower_slice(
    (id, schedulers): (SchedulerId, &[Scheduler]),
    record: &Record,
    names: &Names,
    report: &mut Report<'_>,
) -> Option<(To, Scheduler)> {
    let giver = schedulers.get(id.index())?;
    let node = record.get("to")?;
    let to = find_receiver(node, names, report)?;
    let (budget, period) = (record.work("slice")?, record.span("every")?);
    let priority = record.number("priority");
    let by_priority = matches!(giver.policy, PolicyKind::FixedPriority { .. });
    if by_priority && priority.is_none() {
        let message = format!(
            "a slice needs `priority`: the policy of scheduler {} is fixed-priority",
            quote(&giver.name)
        );
        report.add(&record.range, message, || {
            "add `priority = 1`; a larger number is more urgent".into()
        });
        return None;
    }
    let (receiver, policy) = match to {
        To::Scheduler(to) => {
            let to = schedulers.get(to.index())?;
            (to.name.as_str(), to.policy)
        }
        To::Task(task) => {
            let mut tasks = names.tasks.iter();
            let (name, _) = tasks.find(|(_, known)| **known == task)?;
            let alone = PolicyKind::FixedPriority { preemptive: true };
            (name.as_str(), alone)
        }
    };
    let slice = Scheduler {
        name: format!("{}:{receiver}", giver.name),
        cpu: giver.cpu,
        parent: Some(id),
        policy,
        priority: Priority::new(priority.unwrap_or(0)),
        supply: Supply::Server(Server {
            kind: ServerKind::Deferrable,
            budget,
            period,
        }),
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    };
    Some((to, slice))
}

/// The part that `to` names, or its mistake.
pub(super) fn find_receiver(node: &Node, names: &Names, report: &mut Report<'_>) -> Option<To> {
    let Value::Text(to) = &node.value else {
        return None;
    };
    let scheduler = to.strip_prefix("scheduler.");
    let task = to.strip_prefix("task.");
    let scheduler_id = scheduler.and_then(|name| names.schedulers.get(name));
    let task_id = task.and_then(|name| names.tasks.get(name));
    let found = scheduler_id.map(|id| To::Scheduler(*id));
    let found = found.or(task_id.map(|id| To::Task(*id)));
    if found.is_none() {
        let message = format!("{} is no scheduler and no task of this file", quote(to));
        report.add(&node.range, message, || {
            let near = match (scheduler, task) {
                (Some(name), _) => nearest(name, names.schedulers.keys().map(String::as_str))
                    .map(|name| format!("scheduler.{name}")),
                (None, Some(name)) => nearest(name, names.tasks.keys().map(String::as_str))
                    .map(|name| format!("task.{name}")),
                (None, None) => None,
            };
            match near {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => "name a receiver, such as \"scheduler.NAME\" or \"task.NAME\"".into(),
            }
        });
    }
    found
}
