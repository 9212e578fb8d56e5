//! From the sections of changes to the changes of the model.

use punctual_model::{
    Change, Class, CpuId, Instant, PolicyKind, Priority, SchedulerId, Step, Task, TaskId, Terms,
};

use super::course::Course;
use super::delegate::find_receiver;
use super::parent::Parent;
use super::policy::lower_policy;
use super::scheduler::{lower_code, lower_server};
use super::{Names, find, find_task};
use crate::file::Named;
use crate::nearest::nearest;
use crate::places::{ChangePlaces, Places, SchedulerPlaces};
use crate::record::{Node, Record, Value};
use crate::report::{Report, quote};

/// The changes in the order of time, their places, and those of slices that they delegate. Steps
/// with a mistake are left out. `sections` are in the order of time.
pub(super) fn lower_changes(
    sections: Vec<Named>,
    parts: &Parts<'_>,
    course: &mut Course,
    report: &mut Report<'_>,
) -> (Vec<Change>, Vec<ChangePlaces>, Vec<SchedulerPlaces>) {
    let (mut changes, mut places, mut slices) = (Vec::new(), Vec::new(), Vec::new());
    for section in sections {
        let Some(at) = section.record.span("at") else {
            continue;
        };
        let mut found = Found {
            course,
            steps: Vec::new(),
            places: Vec::new(),
            slices: Vec::new(),
            broken: section.record.broken,
        };
        found.read(&section.record, parts, report);
        slices.append(&mut found.slices);
        changes.push(Change {
            name: section.name.clone(),
            at: Instant::from_ns(at.as_ns()),
            steps: found.steps,
        });
        places.push(ChangePlaces {
            steps: found.places,
            broken: found.broken,
            section,
        });
    }
    (changes, places, slices)
}

/// The declared parts, and where each stands.
pub(super) struct Parts<'a> {
    pub(super) names: &'a Names,
    pub(super) tasks: &'a [Task],
    pub(super) places: &'a Places,
}

/// A part of the system that a step names.
enum Part {
    Task(TaskId),
    Scheduler(SchedulerId),
    Cpu(CpuId),
}

/// One change as far as it is read.
struct Found<'a> {
    course: &'a mut Course,
    steps: Vec<Step>,
    places: Vec<std::ops::Range<usize>>,
    /// The places of slices that stand in no section.
    slices: Vec<SchedulerPlaces>,
    broken: bool,
}

impl Found<'_> {
    /// Each kind of step builds on those before it: a move on policies, a delegation on moves.
    fn read(&mut self, record: &Record, parts: &Parts<'_>, report: &mut Report<'_>) {
        for node in record.list("take-back") {
            let step = self.take_back(node, parts, report);
            self.add(node, step);
        }
        for node in record.list("constraint") {
            let step = lower_constraint(node, parts.names, parts.tasks, report);
            if let Some(Step::Constrain(id, terms)) = &step
                && terms.priority.is_some()
            {
                self.course.gets_priority(*id);
            }
            self.add(node, step);
        }
        for node in record.list("supply") {
            let step = lower_supply(node, parts.names, report);
            self.add(node, step);
        }
        for node in record.list("policy") {
            let step = self.reorder(node, parts, report);
            self.add(node, step);
        }
        for (key, comes) in [("start", true), ("stop", false)] {
            for node in record.list(key) {
                let step = self.come_or_go((key, comes), node, parts, report);
                let slices = match step {
                    Some(Step::Join(id) | Step::Leave(id)) => self.course.with_giver(id, comes),
                    _ => Vec::new(),
                };
                self.add(node, step);
                for slice in slices {
                    self.add(node, Some(slice));
                }
            }
        }
        for node in record.list("move") {
            let step = lower_move(node, parts.names, parts.tasks, report);
            if let Some(Step::Move(id, to)) = step {
                self.course.moves(id, to);
                self.must_have_priority(id, node, parts, report);
            }
            self.add(node, step);
        }
        for node in record.list("delegate") {
            let step = self.delegate(node, parts, report);
            self.add(node, step);
        }
        if let Some(node) = record.get("transfer") {
            let step = lower_transfer(node, parts.names, report);
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

    fn come_or_go(
        &mut self,
        (key, comes): (&str, bool),
        node: &Node,
        parts: &Parts<'_>,
        report: &mut Report<'_>,
    ) -> Option<Step> {
        Some(match part(node, key, parts.names, report)? {
            Part::Task(id) if comes => {
                self.course.starts(id);
                self.must_have_priority(id, node, parts, report);
                Step::Start(id)
            }
            Part::Task(id) => Step::Stop(id),
            Part::Scheduler(id) if comes => Step::Join(id),
            Part::Scheduler(id) => Step::Leave(id),
            Part::Cpu(_) => {
                report.add(&node.range, "no CPU comes or goes", || {
                    "name tasks and schedulers".into()
                });
                return None;
            }
        })
    }

    /// A task that comes under fixed priority has a priority, or the mistake is reported.
    fn must_have_priority(
        &mut self,
        id: TaskId,
        node: &Node,
        parts: &Parts<'_>,
        report: &mut Report<'_>,
    ) {
        let task = &parts.tasks[id.index()];
        if parts.places.tasks[id.index()].broken {
            return;
        }
        if let Some(by) = self.course.demands_priority(task, id) {
            let name = &task.name;
            let message =
                format!("[task.{name}] needs `priority`: fixed-priority orders it below {by} then");
            report.add(&node.range, message, || {
                format!("add `priority = 1` to [task.{name}]; a larger number is more urgent")
            });
            self.broken = true;
        }
    }

    fn delegate(
        &mut self,
        node: &Node,
        parts: &Parts<'_>,
        report: &mut Report<'_>,
    ) -> Option<Step> {
        let Value::Record(given) = &node.value else {
            return None;
        };
        let giver = lower_giver(given, parts.names, report)?;
        let all = (parts.names, parts.tasks, parts.places);
        let (step, places) = self.course.delegate(giver, given, all, report)?;
        self.slices.extend(places);
        Some(step)
    }

    fn take_back(
        &mut self,
        node: &Node,
        parts: &Parts<'_>,
        report: &mut Report<'_>,
    ) -> Option<Step> {
        let Value::Record(given) = &node.value else {
            return None;
        };
        let giver = lower_giver(given, parts.names, report)?;
        let to = find_receiver(given.get("to")?, parts.names, report)?;
        self.course
            .take_back((giver, to), node, parts.tasks, report)
    }

    fn reorder(&mut self, node: &Node, parts: &Parts<'_>, report: &mut Report<'_>) -> Option<Step> {
        let Value::Record(given) = &node.value else {
            return None;
        };
        let of = given.get("of")?;
        let _named = given.word("policy")?;
        let policy = lower_policy(given);
        let code = lower_code(given);
        let (step, orderer) = match part(of, "of", parts.names, report)? {
            Part::Scheduler(id) => (Step::Reorder(id, policy, code), Parent::Scheduler(id)),
            Part::Cpu(_) if code.is_some() => {
                report.add(
                    &of.range,
                    "a CPU's own scheduler decides inside the core",
                    || "name a scheduler that decides on its own supply, or remove `code`".into(),
                );
                return None;
            }
            Part::Cpu(id) => (Step::ReorderCpu(id, policy), Parent::Cpu(id)),
            Part::Task(_) => {
                report.add(&of.range, "a task orders no tasks", || {
                    "name a scheduler or the CPU".into()
                });
                return None;
            }
        };
        self.course.reorders(orderer, policy);
        let by_priority = matches!(policy, PolicyKind::FixedPriority { .. });
        let all = (parts.tasks, parts.places);
        let lacking = self.course.without_priority(orderer, all);
        if let Some(name) = lacking.filter(|_| by_priority) {
            let message = format!("[{name}] needs `priority`: fixed-priority is to order it then");
            report.add(&node.range, message, || {
                format!("add `priority = 1` to [{name}]; a larger number is more urgent")
            });
            return None;
        }
        Some(step)
    }
}

/// The scheduler that delegates, or the mistake.
fn lower_giver(given: &Record, names: &Names, report: &mut Report<'_>) -> Option<SchedulerId> {
    lower_scheduler(
        given,
        ("from", "only a scheduler delegates slices"),
        names,
        report,
    )
}

/// The scheduler that a key names, or the mistake that it is none.
fn lower_scheduler(
    given: &Record,
    (key, mistake): (&str, &str),
    names: &Names,
    report: &mut Report<'_>,
) -> Option<SchedulerId> {
    let node = given.get(key)?;
    match part(node, key, names, report)? {
        Part::Scheduler(id) => Some(id),
        Part::Task(_) | Part::Cpu(_) => {
            report.add(&node.range, mistake, || {
                "name a scheduler with a server, such as \"scheduler.NAME\"".into()
            });
            None
        }
    }
}

fn lower_transfer(node: &Node, names: &Names, report: &mut Report<'_>) -> Option<Step> {
    let Value::Record(given) = &node.value else {
        return None;
    };
    let mistake = "only schedulers transfer budget";
    Some(Step::Transfer {
        from: lower_scheduler(given, ("from", mistake), names, report)?,
        to: lower_scheduler(given, ("to", mistake), names, report)?,
        budget: given.work("budget")?,
    })
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
