//! One CPU as the tests see it: streams of jobs with every overhead inside, and what goes above
//!
//! # Assumptions
//! 1. Real-time work runs before background work, whatever its priority (`kern` does so); the
//!    non-preemptive sections of background work block everybody.
//! 2. A job that overruns is stopped by its budget, so `wcet` is a promise that is kept.
//! 3. A reservation's body is always ready; its jobs are its slices.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use punctual_model::{Class, CpuId, PolicyKind, System, Task, TaskId};

use crate::demand::Flow;
use crate::error::{AnalysisError, Checked};
use crate::overhead;
use crate::utilization::{Ratio, compare_with_one, hyperperiod};

/// Why a task's jobs may meet the critical instant, or may not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// Any arrivals with the separation are legal: every alignment happens.
    Free,
    /// By the clock, first released (at the latest) at this instant.
    Clock(u64),
    /// Once, released (at the latest) at this instant.
    Once(u64),
}

/// A real-time task on this CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Contender {
    pub(crate) task: TaskId,
    pub(crate) flow: Flow,
    /// From arrival to deadline.
    pub(crate) deadline: u64,
    pub(crate) priority: u32,
    /// Longest stretch that lets nobody preempt it, its overheads included; zero: none.
    pub(crate) section: u64,
    /// The section is the whole job: once started it runs to its end.
    pub(crate) whole: bool,
    pub(crate) arrival: Arrival,
    /// The parts of `flow.cost`.
    pub(crate) cost: overhead::Cost,
    /// Part of `flow.jitter` that comes from waiting for predecessors.
    pub(crate) waiting: u64,
}

/// Supply taken by the machine above all tasks: a reserve, missing time, or timer entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Taking {
    pub(crate) name: String,
    pub(crate) flow: Flow,
}

/// One CPU with everything that its tests need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Case {
    pub(crate) cpu: CpuId,
    pub(crate) policy: PolicyKind,
    /// In the order of the file.
    pub(crate) contenders: Vec<Contender>,
    pub(crate) takings: Vec<Taking>,
    /// Longest non-preemptive section of background work, and whose it is.
    pub(crate) background: Option<(TaskId, u64)>,
}

impl Case {
    /// Collects one CPU of `system`; `waiting[task]` is what precedence adds to a task's jitter.
    /// O(tasks + reserves), O(tasks²) when tasks suspend themselves.
    pub(crate) fn build(system: &System, cpu: CpuId, waiting: &[u64]) -> Checked<Case> {
        let policy = system
            .cpus
            .get(cpu.index())
            .ok_or_else(|| invalid("a task is placed on a CPU that does not exist"))?
            .policy;
        let mut case = Case {
            cpu,
            policy,
            contenders: Vec::new(),
            takings: overhead::reserves(&system.machine)?,
            background: None,
        };
        for (task, id) in system.tasks.iter().zip(0_u32..) {
            if task.cpu != cpu {
                continue;
            }
            let id = TaskId(id);
            if !matches!(task.class, Class::Aperiodic) {
                let waiting = waiting.get(id.index()).copied().unwrap_or(0);
                case.contenders
                    .push(contender(system, policy, task, id, waiting)?);
            }
            if matches!(task.class, Class::Aperiodic | Class::Once { .. }) {
                case.note_background(id, task.non_preemptive.ticks());
            }
            case.takings.extend(overhead::timer(&system.machine, task)?);
        }
        overhead::add_suspensions(&mut case, system)?;
        Ok(case)
    }

    fn note_background(&mut self, id: TaskId, section: u64) {
        if section > self.background.map_or(1, |(_, longest)| longest) {
            self.background = Some((id, section));
        }
    }

    /// The shares of the tasks and of the takings.
    pub(crate) fn ratios(&self) -> Vec<Ratio> {
        let tasks = self.contenders.iter().filter_map(|c| c.flow.ratio());
        tasks
            .chain(self.takings.iter().filter_map(|t| t.flow.ratio()))
            .collect()
    }

    /// Least common multiple of all separations; `None` beyond 64 bits.
    pub(crate) fn hyperperiod(&self) -> Option<u64> {
        let tasks = self.contenders.iter().filter_map(|c| c.flow.separation);
        let takings = self.takings.iter().filter_map(|t| t.flow.separation);
        hyperperiod(tasks.chain(takings))
    }

    /// How the utilization compares with the whole processor.
    pub(crate) fn load(&self) -> Ordering {
        compare_with_one(&self.ratios())
    }
}

fn contender(
    system: &System,
    policy: PolicyKind,
    task: &Task,
    id: TaskId,
    waiting: u64,
) -> Checked<Contender> {
    let (Some(deadline), Some(budget)) = (task.class.relative_deadline(), task.class.budget())
    else {
        return Err(invalid(&format!("`{}` has no deadline", task.name)));
    };
    let separation = task.class.min_separation().map(punctual_model::Span::ticks);
    if separation == Some(0) {
        return Err(invalid(&format!("`{}` arrives every 0s", task.name)));
    }
    let cost = overhead::cost(system, policy, task, budget.ticks())?;
    let runs_through = match policy {
        PolicyKind::Fifo | PolicyKind::FixedPriority { preemptive: false } => true,
        PolicyKind::RoundRobin { .. } => false,
        _ => task.non_preemptive >= budget,
    };
    let whole = runs_through && task.max_suspension.is_zero();
    let section = if runs_through {
        cost.computing()?
    } else {
        task.non_preemptive.min(budget).ticks()
    };
    let released = crate::error::in_range(
        task.phase.ticks().checked_add(task.jitter.ticks()),
        "phase and jitter",
    )?;
    let jitter = crate::error::in_range(
        task.jitter.ticks().checked_add(waiting),
        "jitter and waiting",
    )?;
    Ok(Contender {
        task: id,
        flow: Flow {
            separation,
            cost: cost.total()?,
            jitter,
        },
        deadline: deadline.ticks(),
        priority: task.priority.number(),
        section,
        whole,
        arrival: match task.class {
            Class::Sporadic { .. } | Class::Aperiodic => Arrival::Free,
            Class::Once { .. } => Arrival::Once(released),
            Class::Periodic { .. } | Class::Reservation { .. } => Arrival::Clock(released),
        },
        cost,
        waiting,
    })
}

fn invalid(what: &str) -> AnalysisError {
    AnalysisError::Invalid { what: what.into() }
}
