//! Nodes that can be simulated: with known arrivals, alone on a CPU or in slots
//!
//! # Assumptions
//! 1. Those of [`crate::hyperperiod`]. A violation is a reason in words, not an error.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use punctual_model::{CpuId, Ns, PolicyKind, Slot, Supply, System, Task, TaskId};

use crate::component::Component;
use crate::error::Checked;
use crate::lookup::{schedulers, tasks_of};
use crate::overhead;
use crate::together;
use crate::units::{Span, TICK, Work};
use crate::utilization::{Ratio, compare_with_one, hyperperiod};

/// The length of a frame, and the slots in it: start and length.
pub(crate) type Frame = (Span, Vec<(Span, Span)>);

/// One node with a supply of its own: from here on no other node concerns it but by precedence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lane {
    pub(crate) policy: PolicyKind<Ns>,
    /// The frame and the slots within it; `None`: the whole CPU.
    pub(crate) slots: Option<Frame>,
    pub(crate) contestants: Vec<Contestant>,
}

/// A task of a lane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Contestant {
    pub(crate) task: TaskId,
    pub(crate) first: Span,
    /// `None`: a single job.
    pub(crate) period: Option<Span>,
    pub(crate) cost: Work,
    /// Before this instant its leader is not there yet, and a job costs so much.
    pub(crate) alone: (Span, Work),
    pub(crate) deadline: Span,
    pub(crate) priority: u32,
    /// Once it has started, no sibling runs until it is done.
    pub(crate) runs_through: bool,
    /// Most unfinished jobs; one more is dropped.
    pub(crate) places: u64,
    /// For whom, and whether for jobs strictly before its own only.
    pub(crate) waits_for: Vec<(TaskId, bool)>,
}

impl Lane {
    /// Whether its tasks need more than it has.
    pub(crate) fn is_overloaded(&self) -> bool {
        let tasks = self.contestants.iter();
        let ratios = tasks.filter_map(|c| Some(Ratio::of(c.cost, c.period?)));
        let others = self.slots.as_ref().map(|(frame, slots)| {
            let lengths = slots.iter().map(|&(_, length)| length);
            let others = lengths.fold(*frame, Span::saturating_sub);
            Ratio::of(others.as_work(), *frame)
        });
        compare_with_one(ratios.chain(others)) == Ordering::Greater
    }
}

/// When everything repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// Everything that arrives at all has arrived for the first time.
    pub(crate) settled: Span,
    /// Least common multiple of periods and frames.
    pub(crate) round: Span,
    pub(crate) jobs_before: u64,
    pub(crate) jobs_per_round: u64,
}

impl Shape {
    /// `None` beyond 64 bits.
    pub(crate) fn of(lanes: &[Lane]) -> Option<Shape> {
        let all = || lanes.iter().flat_map(|l| &l.contestants);
        let frames = lanes
            .iter()
            .filter_map(|l| l.slots.as_ref().map(|(frame, _)| *frame));
        let round = hyperperiod(all().filter_map(|c| c.period).chain(frames))?;
        // A single job that has not arrived yet is in no state, so it has to be past.
        let past = |c: &Contestant| match c.period {
            None => c.first.saturating_add(TICK),
            Some(_) => c.first,
        };
        let settled = all().map(past).max().unwrap_or_default();
        let before = |c: &Contestant| {
            c.period
                .map_or(1, |t| settled.saturating_sub(c.first) / t + 1)
        };
        let each = |c: &Contestant| c.period.map_or(0, |t| round / t);
        Some(Shape {
            settled,
            round,
            jobs_before: all().map(before).sum(),
            jobs_per_round: all().map(each).sum(),
        })
    }
}

/// The lanes of the CPUs of `component`, or why they cannot be simulated. O(nodes · tasks).
pub(crate) fn lanes(system: &System, component: &Component) -> Checked<Result<Vec<Lane>, String>> {
    if let Some(reason) = unknown_reserved(system) {
        return Ok(Err(reason));
    }
    let behind = together::behind(system)?;
    let leaders = system.leaders();
    let mut lanes = Vec::new();
    for cpu in component.cpus() {
        let Some(description) = system.cpus.get(cpu.index()) else {
            continue;
        };
        let nodes = match nodes_of(system, cpu, description.policy) {
            Ok(nodes) => nodes,
            Err(reason) => return Ok(Err(reason)),
        };
        for (policy, slots, tasks) in nodes {
            let mut contestants = Vec::new();
            for id in tasks {
                let leader = leaders[id.index()].filter(|_| behind[id.index()]);
                match contestant(system, policy, (id, leader))? {
                    Ok(Some(contestant)) => contestants.push(contestant),
                    Ok(None) => {}
                    Err(reason) => return Ok(Err(reason)),
                }
            }
            lanes.push(Lane {
                policy,
                slots,
                contestants,
            });
        }
    }
    Ok(Ok(lanes))
}

fn unknown_reserved(system: &System) -> Option<String> {
    let machine = &system.machine;
    if !machine.timer.is_zero() || !machine.budget_timer.is_zero() {
        return Some("timer entries come at instants of their own".into());
    }
    let taken = machine.reserves.iter().chain(&machine.missing_time);
    let taken = taken
        .filter(|r| !r.budget.is_zero())
        .map(|r| &r.name)
        .next();
    taken.map(|name| format!("`{name}` is taken at instants that the file does not say"))
}

type SuppliedNode = (PolicyKind<Ns>, Option<Frame>, Vec<TaskId>);

/// The nodes of one CPU that have a supply of their own.
fn nodes_of(
    system: &System,
    cpu: CpuId,
    policy: PolicyKind<Ns>,
) -> Result<Vec<SuppliedNode>, String> {
    let on = |scheduler| tasks_of(system, (cpu, scheduler)).map(|(id, _)| id);
    let children = || schedulers(system).filter(|(_, s)| s.cpu == cpu);
    let PolicyKind::Tdm { frame, .. } = policy else {
        if let Some((_, child)) = children().next() {
            return Err(format!(
                "the scheduler {} shares its CPU without slots",
                child.name
            ));
        }
        if matches!(policy, PolicyKind::RoundRobin { .. }) {
            return Err("round robin is not simulated here".into());
        }
        return Ok(alloc::vec![(policy, None, on(None).collect())]);
    };
    let places = |slots: &[Slot<Ns>]| {
        let list = slots.iter().map(|s| (s.at, s.length));
        let mut list: Vec<(Span, Span)> = list.filter(|(_, length)| !length.is_zero()).collect();
        list.sort_unstable();
        Some((frame, list))
    };
    let mut nodes = Vec::new();
    for id in on(None).filter(|id| system.tasks[id.index()].class.is_real_time()) {
        let slots = places(&system.tasks[id.index()].slots);
        let alone = PolicyKind::FixedPriority { preemptive: true };
        nodes.push((alone, slots, alloc::vec![id]));
    }
    for (id, child) in children() {
        let Supply::Slots(slots) = &child.supply else {
            return Err(format!(
                "the scheduler {} has no slots of its own",
                child.name
            ));
        };
        if matches!(
            child.policy,
            PolicyKind::RoundRobin { .. } | PolicyKind::Tdm { .. }
        ) {
            let policy = child.policy.name();
            return Err(format!(
                "{policy} in the scheduler {} is not simulated here",
                child.name
            ));
        }
        nodes.push((child.policy, places(slots), on(Some(id)).collect()));
    }
    Ok(nodes)
}

/// `None` for background work, which delays nobody. `leader`: it goes first, and so spares the task
/// its preemption.
fn contestant(
    system: &System,
    policy: PolicyKind<Ns>,
    (id, leader): (TaskId, Option<TaskId>),
) -> Checked<Result<Option<Contestant>, String>> {
    let task = &system.tasks[id.index()];
    if let Some(what) = unknown(task) {
        return Ok(Err(format!("{}: {what}", task.name)));
    }
    let (Some(deadline), Some(budget)) = (task.class.relative_deadline(), task.class.budget())
    else {
        return Ok(Ok(None));
    };
    let waits = |list: &[TaskId], strictly| -> Vec<(TaskId, bool)> {
        list.iter().map(|&from| (from, strictly)).collect()
    };
    let mut waits_for = waits(&task.after, false);
    waits_for.extend(waits(&task.follows, true));
    let known = |&(from, _): &(TaskId, bool)| system.tasks[from.index()].class.is_real_time();
    if !waits_for.iter().all(known) {
        return Ok(Err(format!("{} waits for aperiodic work", task.name)));
    }
    let runs_through = match policy {
        PolicyKind::Fifo | PolicyKind::FixedPriority { preemptive: false } => true,
        _ => !budget.is_zero() && task.non_preemptive >= budget,
    };
    let cost = |is_behind| overhead::cost(system, policy, (task, is_behind), budget)?.total();
    let from = leader.map_or(Span::ZERO, |leader| system.tasks[leader.index()].phase);
    Ok(Ok(Some(Contestant {
        task: id,
        first: task.phase,
        period: task.class.min_separation(),
        cost: cost(leader.is_some())?,
        alone: (from, cost(false)?),
        deadline,
        priority: task.priority.number(),
        runs_through,
        places: task.late.places(),
        waits_for,
    })))
}

/// The unknown of the schedule of this task.
fn unknown(task: &Task) -> Option<&'static str> {
    let budget = task.class.budget().unwrap_or(Work::ZERO);
    let whole = task.non_preemptive.is_zero() || task.non_preemptive >= budget;
    if matches!(task.class, punctual_model::Class::Sporadic { .. }) {
        Some("it arrives when it likes")
    } else if !task.jitter.is_zero() {
        Some("its release jitter is not known beforehand")
    } else if !task.max_suspension.is_zero() {
        Some("when it suspends itself is not known")
    } else if !task.uses.is_empty() {
        Some("where in its jobs it locks is left open")
    } else if !task.class.is_real_time() && !task.non_preemptive.is_zero() {
        Some("it is background work with a section that nobody preempts")
    } else if !whole {
        Some("where in its jobs the section stands that nobody preempts is left open")
    } else {
        None
    }
}
