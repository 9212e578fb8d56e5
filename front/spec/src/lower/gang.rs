//! From the sections of gangs to tasks, one on each CPU, and to the gangs of the model.

use punctual_model::{Gang, Superstep, System, TaskId};

use super::{Names, find_task};
use crate::file::Named;
use crate::places::{GangPlaces, Places};
use crate::record::{Node, Record, Value};
use crate::report::{Report, quote};

/// Keys that say something about the gang and nothing about its tasks.
const OF_THE_GANG: [&str; 3] = ["members", "on", "supersteps"];

/// Adds the tasks of the gangs that say on which nodes they are, behind those of the file. Each has
/// a section made of that of its gang, so its mistakes are found where they stand.
pub(super) fn add_members(gangs: &[Named], work: &mut Vec<Named>, report: &mut Report<'_>) {
    for gang in gangs {
        report.fold(&reach(gang));
        let record = &gang.record;
        let declared = record.get("members").is_some() || has_declared(record);
        let found = match (record.get("on"), declared) {
            (Some(_), false) => None,
            (Some(_), true) => Some(("has `on` beside tasks of the file", "remove one of both")),
            (None, true) if record.get("class").is_none() => None,
            (None, true) => Some((
                "has a class beside members that are tasks",
                "remove `class` and the times: the tasks have theirs",
            )),
            (None, false) => Some((
                "has no members",
                "add `on = [\"cpu.0\", \"cpu.1\"]`, or `members = [...]` with tasks",
            )),
        };
        if let Some((mistake, help)) = found {
            let message = format!("gang {} {mistake}", quote(&gang.name));
            report.add(&gang.name_range, message, || help.into());
            continue;
        }
        if record.get("on").is_none() {
            continue;
        }
        if record.get("class").is_none() {
            let message = format!("[gang.{}] needs `class`", gang.name);
            report.add(&record.range, message, || {
                "add `class = \"periodic\"`, with `period` and `wcet`".into()
            });
            continue;
        }
        if let Some(node) = record.get("supersteps")
            && record.list("supersteps").is_empty()
        {
            // Without any, its members would have neither a budget nor a mistake.
            let message = format!("gang {} has no superstep", quote(&gang.name));
            report.add(&node.range, message, || {
                "write at least one, `{ at = \"0s\", name = \"compute\", wcet = \"1ms\" }`, or \
                 `wcet` of the gang in its place"
                    .into()
            });
            continue;
        }
        let budgets = ["wcet", "supersteps"].map(|key| record.get(key).is_some());
        if record.word("class") == Some("periodic") && budgets[0] == budgets[1] {
            let message = format!("[gang.{}] needs `wcet`, or `supersteps`", gang.name);
            report.add(&record.range, message, || {
                "write `wcet` for one piece of work, `supersteps` for several with barriers".into()
            });
            continue;
        }
        for superstep in supersteps(record) {
            if is_too_late(gang, superstep, report) {
                continue;
            }
            for node in record.list("on") {
                work.extend(member(gang, node, superstep));
            }
        }
    }
}

/// Whether a superstep begins beyond the end of time: without a mistake it would be left out.
fn is_too_late(gang: &Named, superstep: Option<&Record>, report: &mut Report<'_>) -> bool {
    let Some(at) = superstep.and_then(|superstep| superstep.get("at")) else {
        return false;
    };
    let (phase, begins) = (gang.record.duration("phase"), &at.value);
    let Value::Duration(begins) = begins else {
        return false;
    };
    let late = phase.unwrap_or(0).checked_add(*begins).is_none();
    if late {
        let message = "`phase` and `at` together do not fit into 64 bits of nanoseconds";
        report.add(&at.range, message, || {
            "a superstep begins within the period: lower both".into()
        });
    }
    late
}

/// From the head of a gang to the end of its last value.
fn reach(gang: &Named) -> std::ops::Range<usize> {
    let ends = gang.record.nodes().map(|node| node.range.end);
    gang.record.range.start..ends.max().unwrap_or(gang.name_range.end)
}

/// Whether its supersteps name tasks.
fn has_declared(record: &Record) -> bool {
    let mut all = record.list("supersteps").iter().map(as_record);
    all.any(|superstep| superstep.is_some_and(|superstep| superstep.get("members").is_some()))
}

fn as_record(node: &Node) -> Option<&Record> {
    match &node.value {
        Value::Record(record) => Some(record),
        _ => None,
    }
}

/// Its supersteps; nothing for a gang without.
fn supersteps(record: &Record) -> Vec<Option<&Record>> {
    let all: Vec<_> = record.list("supersteps").iter().map(as_record).collect();
    if all.is_empty() { vec![None] } else { all }
}

/// The section of one task.
fn member(gang: &Named, node: &Node, superstep: Option<&Record>) -> Option<Named> {
    let Value::Text(on) = &node.value else {
        return None;
    };
    let mut record = gang.record.without(&OF_THE_GANG);
    record.set("on", node.clone());
    if let Some(superstep) = superstep {
        for key in ["wcet", "work"] {
            if let Some(node) = superstep.get(key) {
                record.set(key, node.clone());
            }
        }
        let begins = record.duration("phase").unwrap_or(0);
        let at = superstep.get("at")?;
        record.set(
            "phase",
            Node {
                range: at.range.clone(),
                value: Value::Duration(begins.checked_add(superstep.duration("at")?)?),
            },
        );
    }
    Some(Named {
        name: name_of(gang, on, superstep)?,
        name_range: gang.name_range.clone(),
        record,
    })
}

/// `gang.node`, or `gang.superstep.node`.
fn name_of(gang: &Named, on: &str, superstep: Option<&Record>) -> Option<String> {
    let node = on.split_once('.').map_or(on, |(_, name)| name);
    Some(match superstep {
        Some(superstep) => format!("{}.{}.{node}", gang.name, superstep.text("name")?),
        None => format!("{}.{node}", gang.name),
    })
}

/// The gangs in the order of the file, without members whose mistakes have been reported.
pub(super) fn lower_gangs(
    sections: Vec<Named>,
    names: &Names,
    places: &mut Places,
    report: &mut Report<'_>,
) -> Vec<Gang> {
    let mut gangs = Vec::new();
    for section in sections {
        let gang = lower_gang(&section, names, report);
        let task_broken = |id: TaskId| places.tasks.get(id.index()).is_none_or(|t| t.broken);
        let broken = section.record.broken
            || gang.members().next().is_none()
            || gang.members().any(task_broken);
        gangs.push(gang);
        places.gangs.push(GangPlaces { section, broken });
    }
    gangs
}

fn lower_gang(section: &Named, names: &Names, report: &mut Report<'_>) -> Gang {
    let record = &section.record;
    let mut declared = |nodes: &[Node]| -> Vec<TaskId> {
        let found = nodes.iter();
        let found = found.filter_map(|node| find_task(node, "members", names, report));
        found.collect()
    };
    let supersteps = supersteps(record).into_iter().map(|superstep| {
        let members = match superstep
            .map_or(record, |superstep| superstep)
            .list("members")
        {
            [] => made(section, superstep, names),
            nodes => declared(nodes),
        };
        let name = superstep.and_then(|superstep| superstep.text("name"));
        Superstep {
            name: name.unwrap_or_default().into(),
            members,
        }
    });
    Gang {
        supersteps: supersteps.collect(),
        name: section.name.clone(),
    }
}

/// The tasks that [`add_members`] added.
fn made(section: &Named, superstep: Option<&Record>, names: &Names) -> Vec<TaskId> {
    let nodes = section.record.list("on").iter();
    let tasks = nodes.filter_map(|node| match &node.value {
        Value::Text(on) => names.tasks.get(&name_of(section, on, superstep)?).copied(),
        _ => None,
    });
    tasks.collect()
}

/// Adds the waits of the barriers of gangs that have no tasks of the file as members.
pub(super) fn keep_barriers(system: &mut System, places: &Places) {
    for place in 0..system.gangs.len() {
        let own = places.gangs.get(place);
        let own = own.is_some_and(|own| !own.broken && own.section.record.get("on").is_some());
        if own {
            for barrier in system.gangs[place].barriers() {
                system.keep_barrier(place, barrier);
            }
        }
    }
}
