//! From the sections of changes to the changes of the model.

use punctual_model::{
    Change, Class, CpuId, Instant, Priority, SchedulerId, Step, Task, TaskId, Terms,
};

use super::scheduler::lower_server;
use super::{Names, find, find_task};
use crate::file::Named;
use crate::nearest::nearest;
use crate::places::{ChangePlaces, Places};
use crate::record::{Node, Record, Value};
use crate::report::{Report, quote};

/// The changes in the order of time, and their places. Steps with a mistake are left out.
pub(super) fn lower_changes(
    sections: Vec<Named>,
    names: &Names,
    tasks: &[Task],
    places: &mut Places,
    report: &mut Report<'_>,
) -> Vec<Change> {
    let mut changes = Vec::new();
    for section in sections {
        let Some(at) = section.record.span("at") else {
            continue;
        };
        let mut found = Found {
            steps: Vec::new(),
            places: Vec::new(),
            broken: section.record.broken,
        };
        found.read(&section.record, names, tasks, report);
        let change = Change {
            name: section.name.clone(),
            at: Instant::from_ns(at.as_ns()),
            steps: found.steps,
        };
        let place = ChangePlaces {
            section,
            steps: found.places,
            broken: found.broken,
        };
        changes.push((change, place));
    }
    changes.sort_by_key(|(change, _)| change.at);
    let (changes, found) = changes.into_iter().unzip();
    places.changes = found;
    changes
}

/// A part of the system that a step names.
enum Part {
    Task(TaskId),
    Scheduler(SchedulerId),
    Cpu(CpuId),
}

struct Found {
    steps: Vec<Step>,
    places: Vec<std::ops::Range<usize>>,
    broken: bool,
}

impl Found {
    fn read(&mut self, record: &Record, names: &Names, tasks: &[Task], report: &mut Report<'_>) {
        for (key, comes) in [("start", true), ("stop", false)] {
            for node in record.list(key) {
                let step = match part(node, key, names, report) {
                    Some(Part::Task(id)) if comes => Some(Step::Start(id)),
                    Some(Part::Task(id)) => Some(Step::Stop(id)),
                    Some(Part::Scheduler(id)) if comes => Some(Step::Join(id)),
                    Some(Part::Scheduler(id)) => Some(Step::Leave(id)),
                    Some(Part::Cpu(_)) => {
                        report.add(&node.range, "no CPU comes or goes", || {
                            "name tasks and schedulers".into()
                        });
                        None
                    }
                    None => None,
                };
                self.add(node, step);
            }
        }
        for node in record.list("move") {
            let step = lower_move(node, names, tasks, report);
            self.add(node, step);
        }
        for node in record.list("constraint") {
            let step = lower_constraint(node, names, tasks, report);
            self.add(node, step);
        }
        for node in record.list("supply") {
            let step = lower_supply(node, names, report);
            self.add(node, step);
        }
    }

    fn add(&mut self, node: &Node, step: Option<Step>) {
        self.broken |= step.is_none();
        if let Some(step) = step {
            self.steps.push(step);
            self.places.push(node.range.clone());
        }
    }
}

/// The meaning of "task.NAME", "scheduler.NAME" or "cpu.NAME".
fn part(node: &Node, key: &str, names: &Names, report: &mut Report<'_>) -> Option<Part> {
    let Value::Text(text) = &node.value else {
        return None;
    };
    let (kind, name) = text.split_once('.').unwrap_or((text, ""));
    let found = match kind {
        "task" => names.tasks.get(name).copied().map(Part::Task),
        "scheduler" => names.schedulers.get(name).copied().map(Part::Scheduler),
        "cpu" => names.cpus.get(name).copied().map(Part::Cpu),
        _ => None,
    };
    if found.is_none() {
        let message = format!("`{key}` names {}, which is not there", quote(text));
        report.add(&node.range, message, || {
            let tasks = names.tasks.keys().map(|name| format!("task.{name}"));
            let nodes = names
                .schedulers
                .keys()
                .map(|name| format!("scheduler.{name}"));
            let cpus = names.cpus.keys().map(|name| format!("cpu.{name}"));
            let known: Vec<String> = tasks.chain(nodes).chain(cpus).collect();
            match nearest(text, known.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => "name a declared part as \"task.NAME\" or \"scheduler.NAME\"".into(),
            }
        });
    }
    found
}

fn lower_move(node: &Node, names: &Names, tasks: &[Task], report: &mut Report<'_>) -> Option<Step> {
    let Value::Record(given) = &node.value else {
        return None;
    };
    let id = find_task(given.get("task")?, "task", names, report)?;
    let to = given.get("to")?;
    match part(to, "to", names, report)? {
        Part::Scheduler(home) => Some(Step::Move(id, Some(home))),
        Part::Cpu(cpu) if tasks.get(id.index()).is_some_and(|task| task.cpu == cpu) => {
            Some(Step::Move(id, None))
        }
        Part::Cpu(_) => {
            report.add(&to.range, "a task does not leave its CPU", || {
                "name its own CPU, or a scheduler there".into()
            });
            None
        }
        Part::Task(_) => {
            report.add(&to.range, "a task orders no tasks", || {
                "name a scheduler or the CPU".into()
            });
            None
        }
    }
}

fn lower_constraint(
    node: &Node,
    names: &Names,
    tasks: &[Task],
    report: &mut Report<'_>,
) -> Option<Step> {
    let Value::Record(given) = &node.value else {
        return None;
    };
    let id = find_task(given.get("task")?, "task", names, report)?;
    let class = tasks.get(id.index())?.class;
    let (separation, budget): (&[&str], &[&str]) = match class {
        Class::Periodic { .. } => (&["period"], &["wcet"]),
        Class::Sporadic { .. } => (&["min-separation"], &["wcet"]),
        Class::Reservation { .. } => (&["period"], &["slice"]),
        Class::Once { .. } | Class::Aperiodic => (&[], &[]),
    };
    for key in ["period", "min-separation", "wcet", "slice"] {
        let fits = separation.contains(&key) || budget.contains(&key);
        if let Some(value) = given.get(key).filter(|_| !fits) {
            let message = format!("`{key}` has no meaning for a task that is {}", class.name());
            report.add(&value.range, message, || "remove it".into());
            return None;
        }
    }
    Some(Step::Constrain(
        id,
        Terms {
            separation: separation.iter().find_map(|key| given.span(key)),
            budget: budget.iter().find_map(|key| given.work(key)),
            relative_deadline: given.span("deadline"),
            priority: given.number("priority").map(Priority::new),
        },
    ))
}

fn lower_supply(node: &Node, names: &Names, report: &mut Report<'_>) -> Option<Step> {
    let Value::Record(given) = &node.value else {
        return None;
    };
    let named = given.get("scheduler")?;
    let id = find(named, "scheduler", "scheduler", &names.schedulers, report)?;
    let server = lower_server(given.record("server")?)?;
    Some(Step::Supply(id, server))
}
