//! From records to the model: names become numbers, defaults are filled in.

mod change;
mod course;
mod delegate;
mod gang;
mod graph;
mod group;
mod machine;
mod parent;
mod policy;
mod require;
mod resource;
mod scheduler;
mod task;

use std::collections::{BTreeMap, BTreeSet};

use punctual_model::{
    Change, Cpu, CpuId, ResourceId, RunOptions, Scheduler, SchedulerId, System, Task, TaskId,
};

use crate::file::{File, Named};
use crate::nearest::nearest;
use crate::places::{Places, SchedulerPlaces, TaskPlaces};
use crate::record::{Node, Record, Value};
use crate::report::{Report, quote};
use change::{Parts, lower_changes};
use course::{Course, comes_later};
use delegate::lower_delegations;
use gang::{add_members, keep_barriers, lower_gangs};
use graph::{lower_graph_requirements, lower_graphs};
use group::{lower_groups, lower_planning};
pub(crate) use machine::lower_machine;
use parent::Parents;
use policy::lower_policy;
use require::lower_requirements;
use resource::lower_resources;
use scheduler::lower_schedulers;
use task::lower_tasks;

/// The meanings of the names of a file.
struct Names {
    cpus: BTreeMap<String, CpuId>,
    schedulers: BTreeMap<String, SchedulerId>,
    resources: BTreeMap<String, ResourceId>,
    tasks: BTreeMap<String, TaskId>,
}

impl Names {
    fn new(cpus: &[Cpu], schedulers: &[Named], resources: &[Named], tasks: &[Named]) -> Names {
        fn named(sections: &[Named]) -> impl Iterator<Item = &String> {
            sections.iter().map(|section| &section.name)
        }
        Names {
            cpus: number(cpus.iter().map(|cpu| &cpu.name), (0..=u16::MAX).map(CpuId)),
            schedulers: number(named(schedulers), (0..=u16::MAX).map(SchedulerId)),
            resources: number(named(resources), (0..=u16::MAX).map(ResourceId)),
            tasks: number(named(tasks), (0..=u32::MAX).map(TaskId)),
        }
    }
}

/// The system that the file describes, and where each part of it stands. Parts with a mistake are
/// replaced by harmless ones, so that the mistakes of the others can still be found.
pub(crate) fn lower(mut file: File, report: &mut Report<'_>) -> (System, Places) {
    let mut places = Places {
        system: file.take("system"),
        machine: file.take("machine"),
        run: file.take("run"),
        planning: file.take("planning"),
        ..Places::default()
    };
    let cpus = lower_cpus(file.take_named("cpu"), &mut places, report);
    let (nodes, mut work) = (file.take_named("scheduler"), file.take_named("task"));
    let gang_sections = file.take_named("gang");
    add_members(&gang_sections, &mut work, report);
    places.resources = file.take_named("resource");
    let names = Names::new(&cpus, &nodes, &places.resources, &work);
    let parents = Parents::new(&nodes, &places.cpus, &names, report);
    let (mut schedulers, scheduler_places): (Vec<Scheduler>, Vec<SchedulerPlaces>) =
        lower_schedulers(nodes, &parents, report)
            .into_iter()
            .unzip();
    places.schedulers = scheduler_places;
    let resources = lower_resources(&places.resources);
    let (mut tasks, task_places): (Vec<Task>, Vec<TaskPlaces>) =
        lower_tasks(work, &names, &parents, &places.resources, report)
            .into_iter()
            .unzip();
    places.tasks = task_places;
    let mut change_sections = file.take_named("change");
    change_sections.sort_by_key(|section| section.record.span("at"));
    let later = comes_later(&change_sections, &names);
    let known = (&names, &later);
    let homes = lower_delegations(&mut schedulers, &mut tasks, known, &mut places, report);
    let machine = lower_machine(&mut places);
    let required = file.take("require");
    let requirements = lower_requirements(&required, &names, &mut places, report);
    let graph_sections = file.take_named("graph");
    let mut graphs = lower_graphs(graph_sections, &names, &schedulers, &mut places, report);
    let gangs = lower_gangs(gang_sections, &names, &mut places, report);
    let groups = lower_groups(file.take_named("group"), &names, &mut places, report);
    let planning = lower_planning(&places.planning, report);
    lower_graph_requirements(&required, &mut graphs, &mut places, report);
    let course = Course::new((&cpus, &tasks), homes, &schedulers, (&places, &later));
    let (changes, slices) = follow(
        change_sections,
        course,
        (&names, &tasks),
        &mut places,
        report,
    );
    schedulers.extend(slices);
    let run = lower_run(&places.run);
    let mut system = System {
        cpus,
        schedulers,
        resources,
        tasks,
        free_phases: false,
        machine,
        requirements,
        run,
        changes,
        graphs,
        gangs,
        groups,
        planning,
    };
    keep_barriers(&mut system, &places);
    (system, places)
}

fn lower_run(record: &Record) -> RunOptions {
    RunOptions {
        duration: record.span("for"),
        seed: record.integer("seed"),
    }
}

/// The changes, and the slices that only they delegate.
fn follow(
    sections: Vec<Named>,
    mut course: Course,
    (names, tasks): (&Names, &[Task]),
    places: &mut Places,
    report: &mut Report<'_>,
) -> (Vec<Change>, Vec<Scheduler>) {
    let parts = Parts {
        names,
        tasks,
        places,
    };
    let (changes, change_places, slices) = lower_changes(sections, &parts, &mut course, report);
    places.changes = change_places;
    places.schedulers.extend(slices);
    (changes, course.of_changes().to_vec())
}

/// Names with their numbers.
fn number<'a, Id>(
    names: impl Iterator<Item = &'a String>,
    ids: impl Iterator<Item = Id>,
) -> BTreeMap<String, Id> {
    names.cloned().zip(ids).collect()
}

fn lower_cpus(sections: Vec<Named>, places: &mut Places, report: &mut Report<'_>) -> Vec<Cpu> {
    let mut unused: BTreeMap<String, Named> = sections
        .into_iter()
        .map(|section| (section.name.clone(), section))
        .collect();
    let mut listed = BTreeSet::new();
    let mut cpus = Vec::new();
    for Node { range, value } in places.system.list("cpus").to_vec() {
        let Value::Text(name) = value else { continue };
        if !listed.insert(name.clone()) {
            let message = format!("CPU {} is listed twice", quote(&name));
            report.add(&range, message, || "remove one of them".into());
            continue;
        }
        let section = unused.remove(&name).unwrap_or_else(|| {
            report.add(
                &range,
                format!("CPU {} has no section", quote(&name)),
                || format!("add a section `[cpu.{name}]` with `policy = \"fixed-priority\"`"),
            );
            Named {
                name: name.clone(),
                name_range: range.clone(),
                record: Record::empty(range),
            }
        });
        cpus.push(lower_cpu(&section));
        places.cpus.push(section);
    }
    // Without a list of CPUs, that is the mistake.
    let orphans = unused
        .values()
        .filter(|_| places.system.get("cpus").is_some());
    for section in orphans {
        let message = format!(
            "CPU {} is not among the CPUs of [system]",
            quote(&section.name)
        );
        report.add(&section.name_range, message, || {
            match nearest(&section.name, listed.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean `[cpu.{meant}]`?"),
                None => "add it to `cpus`, or remove the section".into(),
            }
        });
    }
    cpus
}

fn lower_cpu(section: &Named) -> Cpu {
    let record = &section.record;
    let named_number = section.name.parse().ok().filter(|number: &u32| {
        // `007` is a name, not a number: two names must not mean one host CPU by accident.
        number.to_string() == section.name
    });
    Cpu {
        name: section.name.clone(),
        host: record.number("host").or(named_number),
        policy: lower_policy(record),
    }
}

/// The task that a value names, or its mistake.
fn find_task(node: &Node, key: &str, names: &Names, report: &mut Report<'_>) -> Option<TaskId> {
    find(node, key, "task", &names.tasks, report)
}

/// The part of this kind that a value names, or its mistake.
fn find<Id: Copy>(
    node: &Node,
    key: &str,
    kind: &str,
    known: &BTreeMap<String, Id>,
    report: &mut Report<'_>,
) -> Option<Id> {
    let Value::Text(name) = &node.value else {
        return None;
    };
    let found = known.get(name).copied();
    if found.is_none() {
        let message = format!("`{key}` names {kind} {}, which is not there", quote(name));
        report.add(&node.range, message, || {
            match nearest(name, known.keys().map(String::as_str)) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => format!("add a section `[{kind}.{name}]`, or name another {kind}"),
            }
        });
    }
    found
}
