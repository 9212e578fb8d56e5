//! From the records of tasks to the tasks of the model.

use std::ops::Range;

use punctual_model::{
    Arrivals, Class, CpuId, IdleTime, Importance, Instant, Late, Ns, OnOverrun, Priority, Task,
    TaskId, WorkSource,
};

use super::parent::{Parent, Parents, find_parent};
use super::resource::lower_uses;
use super::scheduler::lower_slots;
use super::{Names, find_task};
use crate::file::Named;
use crate::places::TaskPlaces;
use crate::record::{Node, Record, Value};
use crate::report::Report;

/// The tasks in the order of the file. One with a mistake is replaced by an aperiodic one of its
/// name, and edges that lead to it are left out.
pub(super) fn lower_tasks(
    sections: Vec<Named>,
    names: &Names,
    parents: &Parents,
    resources: &[Named],
    report: &mut Report<'_>,
) -> Vec<(Task, TaskPlaces)> {
    let mut tasks: Vec<(Task, TaskPlaces)> = Vec::with_capacity(sections.len());
    for section in sections {
        let parent = find_parent(&section.record, names, report);
        let uses = lower_uses(&section.record, names, resources, report);
        let task = lower_task(&section, parent, parents, report);
        let broken = task.is_none();
        let task = task.map(|task| Task { uses, ..task });
        let task = task.unwrap_or_else(|| Task::new(&*section.name, CpuId(0), Class::Aperiodic));
        let unplaced = parent.is_none_or(|parent| parents.policy_of(parent).is_none());
        let (after, follows) = (Vec::new(), Vec::new());
        tasks.push((
            task,
            TaskPlaces {
                section,
                broken,
                unplaced,
                after,
                follows,
            },
        ));
    }
    let broken: Vec<bool> = tasks.iter().map(|(_, places)| places.broken).collect();
    for (task, places) in &mut tasks {
        let record = &places.section.record;
        (task.after, places.after) = lower_edges(record, "after", names, &broken, report);
        (task.follows, places.follows) = lower_edges(record, "follows", names, &broken, report);
    }
    tasks
}

fn lower_edges(
    record: &Record,
    key: &str,
    names: &Names,
    broken: &[bool],
    report: &mut Report<'_>,
) -> (Vec<TaskId>, Vec<Range<usize>>) {
    let found = record.list(key).iter().filter_map(|node| {
        let id = find_task(node, key, names, report)?;
        let usable = broken.get(id.index()) == Some(&false);
        usable.then(|| (id, node.range.clone()))
    });
    found.unzip()
}

/// `None` when a mistake in it has been reported, now or before.
fn lower_task(
    section: &Named,
    parent: Option<Parent>,
    parents: &Parents,
    report: &mut Report<'_>,
) -> Option<Task> {
    let record = &section.record;
    let class = lower_class(record);
    let late = lower_late(record, report);
    if record.broken {
        return None;
    }
    let (parent, class, late) = (parent?, class?, late?);
    if parents.lacks_priority(parent, section, "task", report) {
        return None;
    }
    let span = |key| record.span(key).unwrap_or_default();
    let max_suspension = span("max-suspension");
    Some(Task {
        priority: Priority::new(record.number("priority").unwrap_or(0)),
        importance: Importance(record.number("importance").unwrap_or(0)),
        phase: span("phase"),
        jitter: span("jitter"),
        late,
        on_overrun: lower_overrun(record),
        max_suspension,
        suspensions: record
            .number("suspensions")
            .unwrap_or(u32::from(!max_suspension.is_zero())),
        non_preemptive: record.work("non-preemptive").unwrap_or_default(),
        arrivals: lower_arrivals(record, class),
        work: record.record("work").map(lower_work),
        kernel_backed: record.word("thread") == Some("kernel-backed"),
        idle: match record.word("idle") {
            Some("keep") => IdleTime::Keep,
            _ => IdleTime::Share,
        },
        scheduler: match parent {
            Parent::Cpu(_) => None,
            Parent::Scheduler(id) => Some(id),
        },
        slots: lower_slots(record),
        own_deadline: matches!(
            class,
            Class::Periodic { period, .. } if record.span("deadline") == Some(period)
        ),
        ..Task::new(&*section.name, parents.cpu_of(parent), class)
    })
}

fn lower_class(record: &Record) -> Option<Class<Ns>> {
    let (span, work) = (|key| record.span(key), |key| record.work(key));
    Some(match record.word("class")? {
        "periodic" => {
            let period = span("period")?;
            let relative_deadline = span("deadline").unwrap_or(period);
            Class::Periodic {
                period,
                wcet: work("wcet")?,
                relative_deadline,
            }
        }
        "sporadic" => Class::Sporadic {
            min_separation: span("min-separation")?,
            wcet: work("wcet")?,
            relative_deadline: span("deadline")?,
        },
        "reservation" => Class::Reservation {
            period: span("period")?,
            slice: work("slice")?,
        },
        "once" => Class::Once {
            size: work("size")?,
            relative_deadline: span("deadline")?,
        },
        _ => Class::Aperiodic,
    })
}

fn lower_late(record: &Record, report: &mut Report<'_>) -> Option<Late> {
    let backlog = record.get("backlog");
    if record.word("late") != Some("skip") {
        let number = record.number("backlog");
        return Some(number.map_or(Late::default(), |backlog| Late::Queue { backlog }));
    }
    if let Some(backlog) = backlog {
        let message = "`backlog` has no meaning when late releases are skipped";
        report.add(&backlog.range, message, || {
            "remove it, or say `late = \"queue\"`".into()
        });
        return None;
    }
    Some(Late::Skip)
}

pub(super) fn lower_overrun(record: &Record) -> OnOverrun {
    match record.word("on-overrun") {
        Some("demote") => OnOverrun::Demote,
        Some("stop") => OnOverrun::Stop,
        Some("signal") => OnOverrun::Signal,
        _ => OnOverrun::Throttle,
    }
}

fn lower_arrivals(record: &Record, class: Class<Ns>) -> Arrivals {
    let given = record.record("arrivals");
    match class {
        Class::Sporadic { min_separation, .. } if given.is_none() => {
            Arrivals::Every(min_separation)
        }
        _ => arrivals_of(given),
    }
}

/// The source that a table describes.
pub(super) fn arrivals_of(given: Option<&Record>) -> Arrivals {
    let span = |key| given.and_then(|given| given.span(key));
    if let Some(every) = span("every") {
        return Arrivals::Every(every);
    }
    if let Some(mean) = span("random") {
        return Arrivals::Random { mean };
    }
    let Some(given) = given.filter(|given| given.get("at").is_some()) else {
        return Arrivals::External;
    };
    let instants = given.list("at").iter().filter_map(|node| match node.value {
        Value::Duration(ns) => Some(Instant::from_ns(ns)),
        _ => None,
    });
    Arrivals::At(instants.collect())
}

pub(super) fn lower_work(record: &Record) -> WorkSource {
    let text = |key| record.text(key).unwrap_or("").to_string();
    if let Some(work) = record.work("burn") {
        WorkSource::Burn(work)
    } else if record.get("call").is_some() {
        WorkSource::Call {
            symbol: text("call"),
            library: text("library"),
        }
    } else if record.get("command").is_some() {
        let words = record.list("command").iter();
        let text = |node: &Node| match &node.value {
            Value::Text(text) => text.clone(),
            _ => String::new(),
        };
        WorkSource::Command(words.map(text).collect())
    } else {
        WorkSource::Function(text("function"))
    }
}
