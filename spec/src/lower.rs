//! From records to the model: names become numbers, defaults are filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use punctual_model::{
    Cpu, CpuId, Limits, Machine, PolicyKind, Requirement, Reserve, RunOptions, Share, Span, System,
    Task, TaskId, Work,
};
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Report, quote};
use crate::lower_task::lower_tasks;
use crate::nearest::nearest;
use crate::places::{Places, TaskPlaces};
use crate::read::{Node, Record, Value, in_order, read_record};
use crate::sections::{self, SECTIONS, Section};

/// The longest turn under round robin that is not told otherwise.
const DEFAULT_TIMESLICE: Span = Span::from_ms(10);

/// `defaults = "nautilus"`: 99 % in all, 10 % each for sporadic and aperiodic work (Nautilus §3.2
/// and §6). Nautilus counts shares alone; the server with the shortest slice that it grants, 10 us,
/// disturbs deadlines least and so comes nearest.
const NAUTILUS_LIMIT_PPM: u32 = 990_000;
const NAUTILUS_RESERVES: [&str; 2] = ["sporadic", "aperiodic"];
const NAUTILUS_BUDGET: Work = Work::from_us(10);
const NAUTILUS_PERIOD: Span = Span::from_us(100);

/// A section with a name of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) name_range: Range<usize>,
    pub(crate) record: Record,
}

/// All sections of a file, read.
#[derive(Debug, Default)]
pub(crate) struct File {
    single: BTreeMap<&'static str, Record>,
    named: BTreeMap<&'static str, Vec<Named>>,
}

/// Reads every section of the tree.
pub(crate) fn read_file(root: &DeTable<'_>, report: &mut Report<'_>) -> File {
    let mut file = File::default();
    for (name, value) in in_order(root) {
        let Some(section) = sections::find(name.get_ref()) else {
            unknown_section(name.get_ref(), &name.span(), report);
            continue;
        };
        let DeValue::Table(table) = value.get_ref() else {
            let form = if section.named { ".NAME" } else { "" };
            report.add(
                &name.span(),
                format!("`{}` is a section", section.name),
                || format!("write its keys under a header `[{}{form}]`", section.name),
            );
            continue;
        };
        if section.named {
            let named = read_named(table, section, report);
            file.named.insert(section.name, named);
        } else {
            let place = format!("[{}]", section.name);
            let record = read_record(table, value.span(), section.keys, &place, report);
            file.single.insert(section.name, record);
        }
    }
    for section in SECTIONS.iter().filter(|section| section.needed) {
        if !root.contains_key(section.name) {
            report.add(
                &(0..0),
                format!("the file has no [{}] section", section.name),
                || {
                    let keys = section.keys.list.iter().filter(|key| key.needed != 0);
                    let keys = keys.map(|key| format!("`{} = {}`", key.name, key.example));
                    format!(
                        "add `[{}]` with {}",
                        section.name,
                        keys.collect::<Vec<_>>().join(", ")
                    )
                },
            );
        }
    }
    file
}

fn read_named(table: &DeTable<'_>, section: &Section, report: &mut Report<'_>) -> Vec<Named> {
    let mut found = Vec::new();
    for (name, value) in in_order(table) {
        let DeValue::Table(table) = value.get_ref() else {
            let message = format!(
                "{} stands outside of a {}",
                quote(name.get_ref()),
                section.name
            );
            report.add(&name.span(), message, || {
                format!(
                    "give every {0} a header of its own, `[{0}.NAME]`",
                    section.name
                )
            });
            continue;
        };
        let place = format!(
            "[{}.{}]",
            section.name,
            quote(name.get_ref()).trim_matches('`')
        );
        let record = read_record(table, value.span(), section.keys, &place, report);
        let name_range = name.span();
        found.push(Named {
            name: name.get_ref().to_string(),
            name_range,
            record,
        });
    }
    found
}

fn unknown_section(name: &str, range: &Range<usize>, report: &mut Report<'_>) {
    report.add(range, format!("unknown section {}", quote(name)), || {
        let home = SECTIONS
            .iter()
            .find(|section| section.keys.find(name).is_some());
        let sections = SECTIONS.iter().map(|section| section.name);
        match (home, nearest(name, sections)) {
            (Some(home), _) if !home.named => format!("this key belongs in [{}]", home.name),
            (Some(home), _) => format!("this key belongs in a [{}.NAME] section", home.name),
            (None, Some(meant)) => format!("did you mean `[{meant}]`?"),
            (None, None) => {
                let known: Vec<_> = SECTIONS.iter().map(|section| section.name).collect();
                format!("the sections are {}", known.join(", "))
            }
        }
    });
}

/// What the names of a file stand for.
pub(crate) struct Names {
    pub(crate) cpus: BTreeMap<String, CpuId>,
    pub(crate) tasks: BTreeMap<String, TaskId>,
}

/// The system that the file describes, and where each part of it stands. Parts with a mistake are
/// replaced by harmless ones, so that the mistakes of the others can still be found.
pub(crate) fn lower(mut file: File, report: &mut Report<'_>) -> (System, Places) {
    let single = |file: &mut File, name| file.single.remove(name).unwrap_or(Record::empty(0..0));
    let mut places = Places {
        system: single(&mut file, "system"),
        ..Places::default()
    };
    let cpu_sections = file.named.remove("cpu").unwrap_or_default();
    let cpus = lower_cpus(cpu_sections, &mut places, report);
    let task_sections = file.named.remove("task").unwrap_or_default();
    let ids = (0..=u32::MAX).map(TaskId);
    let names = Names {
        cpus: (0..=u16::MAX)
            .map(CpuId)
            .zip(&cpus)
            .map(|(id, cpu)| (cpu.name.clone(), id))
            .collect(),
        tasks: ids
            .zip(&task_sections)
            .map(|(id, task)| (task.name.clone(), id))
            .collect(),
    };
    let (tasks, task_places): (Vec<Task>, Vec<TaskPlaces>) =
        lower_tasks(task_sections, &names, &cpus, report)
            .into_iter()
            .unzip();
    places.tasks = task_places;
    places.machine = single(&mut file, "machine");
    let machine = lower_machine(&mut places);
    let require = single(&mut file, "require");
    let requirements = lower_requirements(&require, &names, &mut places, report);
    places.run = single(&mut file, "run");
    let run = RunOptions {
        duration: places.run.duration("for").map(Span::from_ns),
        seed: places.run.integer("seed"),
    };
    (
        System {
            cpus,
            tasks,
            machine,
            requirements,
            run,
        },
        places,
    )
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
    let policy = match record.word("policy") {
        Some("round-robin") => PolicyKind::RoundRobin {
            timeslice: record
                .duration("timeslice")
                .map_or(DEFAULT_TIMESLICE, Span::from_ns),
        },
        Some("fixed-priority") => PolicyKind::FixedPriority {
            preemptive: record.flag("preemptive").unwrap_or(true),
        },
        Some("edf") => PolicyKind::EarliestDeadlineFirst,
        // Also for a broken section, whose mistake is known: nothing follows from this policy.
        _ => PolicyKind::Fifo,
    };
    let named_number = section.name.parse().ok().filter(|number: &u32| {
        // `007` is a name, not a number: two names must not mean one host CPU by accident.
        number.to_string() == section.name
    });
    Cpu {
        name: section.name.clone(),
        host: record.number("host").or(named_number),
        policy,
    }
}

fn lower_machine(places: &mut Places) -> Machine {
    let record = &places.machine;
    let work = |key| Work::from_ns(record.duration(key).unwrap_or(0));
    let mut machine = Machine {
        switch: work("switch"),
        timer: work("timer"),
        preemption: work("preemption"),
        cache_delay: work("cache-delay"),
        missing_time: record
            .record("missing-time")
            .filter(|missing| !missing.broken)
            .map(|missing| lower_reserve(missing, "missing-time".into())),
        ..Machine::default()
    };
    if record.word("defaults") == Some("nautilus") {
        let share = Share::try_from_ppm(NAUTILUS_LIMIT_PPM).unwrap_or(Share::WHOLE);
        machine.limits = Limits { utilization: share };
        let range = record
            .get("defaults")
            .map_or(record.range.clone(), |node| node.range.clone());
        for name in NAUTILUS_RESERVES {
            let (budget, period) = (NAUTILUS_BUDGET, NAUTILUS_PERIOD);
            machine.reserves.push(Reserve {
                name: name.into(),
                budget,
                period,
            });
            places.reserves.push(range.clone());
        }
    }
    if let Some(share) = record
        .record("limits")
        .and_then(|limits| limits.percentage("utilization"))
    {
        machine.limits = Limits { utilization: share };
    }
    // Names of default reserves that no given one has replaced yet.
    let mut replaceable: Vec<&str> = NAUTILUS_RESERVES
        .into_iter()
        .take(machine.reserves.len())
        .collect();
    for node in record.list("reserve") {
        let Value::Record(given) = &node.value else {
            continue;
        };
        if given.broken {
            continue;
        }
        let reserve = lower_reserve(given, given.text("name").unwrap_or("").into());
        if let Some(at) = replaceable.iter().position(|name| *name == reserve.name) {
            replaceable.swap_remove(at);
            if let Some(index) = machine.reserves.iter().position(|r| r.name == reserve.name) {
                machine.reserves[index] = reserve;
                places.reserves[index] = node.range.clone();
            }
        } else {
            machine.reserves.push(reserve);
            places.reserves.push(node.range.clone());
        }
    }
    machine
}

fn lower_reserve(record: &Record, name: String) -> Reserve {
    Reserve {
        name,
        budget: Work::from_ns(record.duration("budget").unwrap_or(0)),
        period: Span::from_ns(record.duration("period").unwrap_or(0)),
    }
}

fn lower_requirements(
    record: &Record,
    names: &Names,
    places: &mut Places,
    report: &mut Report<'_>,
) -> Vec<Requirement> {
    let mut requirements = Vec::new();
    for node in record.list("response") {
        let Value::Record(given) = &node.value else {
            continue;
        };
        let (Some(task), Some(within)) = (given.get("task"), given.duration("within")) else {
            continue;
        };
        if let Some(task) = find_task(task, "task", names, report) {
            requirements.push(Requirement::Response {
                task,
                within: Span::from_ns(within),
            });
            places.requirements.push(node.range.clone());
        }
    }
    requirements
}

/// The task that a value names, or its mistake.
pub(crate) fn find_task(
    node: &Node,
    key: &str,
    names: &Names,
    report: &mut Report<'_>,
) -> Option<TaskId> {
    let Value::Text(name) = &node.value else {
        return None;
    };
    let found = names.tasks.get(name).copied();
    if found.is_none() {
        report.add(
            &node.range,
            format!("`{key}` names task {}, which is not there", quote(name)),
            || match nearest(name, names.tasks.keys().map(String::as_str)) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => format!("add a section `[task.{name}]`, or name another task"),
            },
        );
    }
    found
}
