//! A CPU for every task: bin packing with the admission as the scale
//!
//! Units are placed one after the other, the largest utilization first, on a CPU where everything
//! placed so far is admitted: the first such CPU, the fullest, or the emptiest. The first of the
//! three heuristics that places everything wins.
//!
//! # Assumptions
//! 1. Packing is NP-hard (Johnson 1973), and these are heuristics: a placement that they miss may
//!    exist.
//! 2. Tasks that use a resource in common, and the tasks of a scheduler, stay together.
//! 3. A task goes with its parameters as they are; only its CPU changes. Graphs do not move.
//!
//! Sources: Johnson 1973 (first, best and worst fit decreasing); Baruah and Fisher, RTSS 2005 (the
//! schedulability test as the measure of what fits).

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{CpuId, PolicyKind, SchedulerId, System, Task, TaskId};

use super::judge::only;
use super::{NoSuggestion, Search, Setting, Suggestion, as_it_is};
use crate::admit::is_admitted;
use crate::error::Checked;
use crate::lookup::{ancestors, schedulers, share_ppm, task_name, tasks};

/// Which of the CPUs that have room is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fit {
    First,
    Best,
    Worst,
}

impl Fit {
    const ALL: [Fit; 3] = [Fit::First, Fit::Best, Fit::Worst];

    const fn name(self) -> &'static str {
        match self {
            Fit::First => "first fit decreasing",
            Fit::Best => "best fit decreasing",
            Fit::Worst => "worst fit decreasing",
        }
    }
}

/// Parts that are placed as one: tasks, and the schedulers that they are on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Unit {
    tasks: Vec<TaskId>,
    schedulers: Vec<SchedulerId>,
    /// Parts per million.
    share: u64,
}

/// A CPU for every task and scheduler. O(units · CPUs) analyses per heuristic.
pub(crate) fn place(system: &System) -> Search<Suggestion> {
    if is_admitted(system)? {
        return Ok(as_it_is(system));
    }
    if let Some(reason) = why_not(system) {
        return Err(NoSuggestion::Reason(reason.into()));
    }
    let units = units(system);
    let mut stuck = None;
    for fit in Fit::ALL {
        match pack(system, &units, fit)? {
            Ok(placed) => return Ok(found(system, placed, fit)),
            Err(unit) => stuck = stuck.or(Some(unit)),
        }
    }
    let names = stuck.map(|unit| {
        let names = units[unit].tasks.iter().map(|&t| task_name(system, t));
        names.collect::<Vec<_>>().join(", ")
    });
    Err(NoSuggestion::Reason(format!(
        "first, best and worst fit decreasing find no place for {} on {} CPUs; being heuristics \
         they may overlook one",
        names.unwrap_or_default(),
        system.cpus.len()
    )))
}

fn why_not(system: &System) -> Option<&'static str> {
    if system.cpus.len() < 2 {
        return Some("there is one CPU only");
    }
    let tdm = |policy| matches!(policy, PolicyKind::Tdm { .. });
    if system.cpus.iter().any(|cpu| tdm(cpu.policy)) {
        return Some("a CPU divides its time into slots, which belong to their owners");
    }
    None
}

fn found(system: &System, placed: System, fit: Fit) -> Suggestion {
    let on = |system: &System, cpu: CpuId| format!("cpu.{}", system.cpus[cpu.index()].name);
    let setting = |kind: &str, name: &str, from: CpuId, to: CpuId| {
        (from != to).then(|| Setting {
            parameter: format!("{kind}.{name}.on"),
            from: on(system, from),
            to: on(system, to),
        })
    };
    let schedulers = system.schedulers.iter().zip(&placed.schedulers);
    let schedulers = schedulers.filter(|(a, _)| a.parent.is_none());
    let schedulers = schedulers.filter_map(|(a, b)| setting("scheduler", &a.name, a.cpu, b.cpu));
    let tasks = system.tasks.iter().zip(&placed.tasks);
    let tasks = tasks.filter(|(a, _)| a.scheduler.is_none());
    let tasks = tasks.filter_map(|(a, b)| setting("task", &a.name, a.cpu, b.cpu));
    Suggestion {
        changes: schedulers.chain(tasks).collect(),
        system: placed,
        ground: format!(
            "{} with the admission as the measure: a heuristic",
            fit.name()
        ),
    }
}

/// The units, the largest share first, then in the order of the file.
fn units(system: &System) -> Vec<Unit> {
    // By task: the unit that it is in; united where they have a scheduler or a resource in common.
    let mut unit: Vec<usize> = (0..system.tasks.len()).collect();
    let mut unite = |a: usize, b: usize| {
        let (from, to) = (unit[a].max(unit[b]), unit[a].min(unit[b]));
        unit.iter_mut()
            .filter(|u| **u == from)
            .for_each(|u| *u = to);
    };
    for (i, a) in system.tasks.iter().enumerate() {
        for (j, b) in system.tasks.iter().enumerate().skip(i + 1) {
            if belong_together(system, a, b) {
                unite(i, j);
            }
        }
    }
    let mut units: Vec<Unit> = vec![Unit::default(); system.tasks.len()];
    for ((id, task), &place) in tasks(system).zip(&unit) {
        units[place].tasks.push(id);
        units[place].share += share_ppm(task);
        if let Some(top) = root(system, task.scheduler) {
            let below = schedulers(system).map(|(id, _)| id);
            units[place].schedulers = below
                .filter(|&s| root(system, Some(s)) == Some(top))
                .collect();
        }
    }
    units.retain(|unit| !unit.tasks.is_empty());
    units.sort_by_key(|unit| core::cmp::Reverse(unit.share));
    units
}

fn belong_together(system: &System, a: &Task, b: &Task) -> bool {
    let shared = a
        .uses
        .iter()
        .any(|x| b.uses.iter().any(|y| x.resource == y.resource));
    let top = root(system, a.scheduler);
    shared || (top.is_some() && top == root(system, b.scheduler))
}

/// The scheduler right below the CPU's own.
fn root(system: &System, scheduler: Option<SchedulerId>) -> Option<SchedulerId> {
    ancestors(system, scheduler).last().map(|(id, _)| id)
}

/// The system with every unit on a CPU, or the first unit without a place.
fn pack(system: &System, units: &[Unit], fit: Fit) -> Search<Result<System, usize>> {
    let mut placed = system.clone();
    let mut loads = vec![0_u64; system.cpus.len()];
    let mut present = vec![false; system.tasks.len()];
    // A CPU that is the tile of a graph has room for nobody else.
    let actors = system.graphs.iter().flat_map(|graph| &graph.actors);
    let tiles: BTreeSet<usize> = actors.map(|actor| actor.tile.cpu.index()).collect();
    let free = (0..system.cpus.len()).filter(|cpu| !tiles.contains(cpu));
    let free: Vec<usize> = free.collect();
    for (index, unit) in units.iter().enumerate() {
        for task in &unit.tasks {
            present[task.index()] = true;
        }
        let mut cpus = free.clone();
        match fit {
            Fit::First => {}
            Fit::Best => cpus.sort_by_key(|&cpu| core::cmp::Reverse(loads[cpu])),
            Fit::Worst => cpus.sort_by_key(|&cpu| loads[cpu]),
        }
        if unit.share == 0 {
            // Background work stays where it is when it may.
            let now = unit
                .tasks
                .first()
                .map(|t| system.tasks[t.index()].cpu.index());
            cpus.sort_by_key(|&cpu| Some(cpu) != now);
        }
        let mut home = None;
        for cpu in cpus {
            settle(&mut placed, unit, cpu);
            if fits(&placed, &present)? {
                home = Some(cpu);
                break;
            }
        }
        let Some(home) = home else {
            return Ok(Err(index));
        };
        loads[home] += unit.share;
    }
    Ok(Ok(placed))
}

fn settle(system: &mut System, unit: &Unit, cpu: usize) {
    let cpu = CpuId(u16::try_from(cpu).unwrap_or(u16::MAX));
    for task in &unit.tasks {
        system.tasks[task.index()].cpu = cpu;
    }
    for scheduler in &unit.schedulers {
        system.schedulers[scheduler.index()].cpu = cpu;
    }
}

/// Whether what is placed so far is admitted: the others are left out, and what refers to them.
fn fits(system: &System, present: &[bool]) -> Checked<bool> {
    if present.iter().all(|&here| here) {
        return is_admitted(system);
    }
    is_admitted(&only(system, present))
}
