//! From the sections of changes to the changes of the model.

use punctual_model::{
    Change, Class, CpuId, Instant, PolicyKind, Priority, Scheduler, SchedulerId, Step, Task,
    TaskId, Terms,
};

use super::parent::Parent;
use super::policy::lower_policy;
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
    parts: &Parts<'_>,
    report: &mut Report<'_>,
) -> (Vec<Change>, Vec<ChangePlaces>) {
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
        found.read(&section.record, parts, report);
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
    changes.into_iter().unzip()
}

/// The declared parts, and where each stands.
pub(super) struct Parts<'a> {
    pub(super) names: &'a Names,
    pub(super) tasks: &'a [Task],
    pub(super) schedulers: &'a [Scheduler],
    pub(super) places: &'a Places,
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
    fn read(&mut self, record: &Record, parts: &Parts<'_>, report: &mut Report<'_>) {
        let (names, tasks) = (parts.names, parts.tasks);
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
        for node in record.list("policy") {
            let step = lower_reorder(node, parts, report);
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

fn lower_reorder(node: &Node, parts: &Parts<'_>, report: &mut Report<'_>) -> Option<Step> {
    let Value::Record(given) = &node.value else {
        return None;
    };
    let of = given.get("of")?;
    let _named = given.word("policy")?;
    let policy = lower_policy(given);
    let (step, orderer) = match part(of, "of", parts.names, report)? {
        Part::Scheduler(id) => (Step::Reorder(id, policy), Parent::Scheduler(id)),
        Part::Cpu(id) => (Step::ReorderCpu(id, policy), Parent::Cpu(id)),
        Part::Task(_) => {
            report.add(&of.range, "a task orders no tasks", || {
                "name a scheduler or the CPU".into()
            });
            return None;
        }
    };
    let by_priority = matches!(policy, PolicyKind::FixedPriority { .. });
    if let Some(name) = parts.without_priority(orderer).filter(|_| by_priority) {
        let message = format!("[{name}] needs `priority`: fixed-priority is to order it then");
        report.add(&node.range, message, || {
            format!("add `priority = 1` to [{name}]; a larger number is more urgent")
        });
        return None;
    }
    Some(step)
}

impl Parts<'_> {
    /// The first part that a scheduler orders and that has no priority.
    fn without_priority(&self, orderer: Parent) -> Option<String> {
        let is_it = |cpu, scheduler: Option<SchedulerId>| match orderer {
            Parent::Cpu(id) => scheduler.is_none() && cpu == id,
            Parent::Scheduler(id) => scheduler == Some(id),
        };
        let lacks = |section: &Named| section.record.get("priority").is_none();
        let tasks = self.tasks.iter().zip(&self.places.tasks);
        let tasks = tasks.filter(|(t, at)| is_it(t.cpu, t.scheduler) && lacks(&at.section));
        let schedulers = self.schedulers.iter().zip(&self.places.schedulers);
        let schedulers = schedulers.filter(|(s, at)| is_it(s.cpu, s.parent) && lacks(&at.section));
        let tasks = tasks.map(|(task, _)| format!("task.{}", task.name));
        tasks
            .chain(schedulers.map(|(s, _)| format!("scheduler.{}", s.name)))
            .next()
    }
}
