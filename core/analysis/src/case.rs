//! One node as the tests see it: streams of jobs with every overhead inside, and what goes above
//!
//! A node is a CPU's own policy or a scheduler below it. Its contenders are its tasks and the
//! servers among its children; a child without a budget of its own is a *guest*: its jobs contend
//! here at the child's priority, and are judged in a case of their own, where everything more
//! urgent is taken from them.
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

use punctual_model::{Class, CpuId, Ns, PolicyKind, SchedulerId, System, Task, TaskId};

use crate::blocking::{self, Blocking, Locks};
use crate::demand::Flow;
use crate::error::{AnalysisError, Checked};
use crate::overhead;
use crate::supply::Supply;
use crate::utilization::{Ratio, compare_with_one, hyperperiod};

/// Who contends. Tasks stand before schedulers where nothing else decides, as in `kern`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Who {
    /// A task of the node.
    Task(TaskId),
    /// A child of the node, with a server.
    Server(SchedulerId),
}

impl Who {
    /// The task, if it is one.
    pub(crate) fn task(self) -> Option<TaskId> {
        match self {
            Who::Task(task) => Some(task),
            Who::Server(_) => None,
        }
    }

    /// The name in the file.
    pub(crate) fn name(self, system: &System) -> &str {
        let found = match self {
            Who::Task(task) => system.tasks.get(task.index()).map(|t| &t.name),
            Who::Server(server) => system.schedulers.get(server.index()).map(|s| &s.name),
        };
        found.map_or("?", String::as_str)
    }
}

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

/// A real-time task of this node, or a server below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Contender {
    pub(crate) who: Who,
    pub(crate) flow: Flow,
    /// Part of `flow.jitter` that only others feel: a budget may be kept for so long.
    pub(crate) kept: u64,
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

impl Contender {
    /// The jitter of its own releases.
    pub(crate) fn own_jitter(&self) -> u64 {
        self.flow.jitter - self.kept
    }
}

/// Work of a child without a budget of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Guest {
    /// The child of this node through which it comes.
    pub(crate) child: SchedulerId,
    /// With the priority of the child.
    pub(crate) contender: Contender,
}

/// Supply taken from all tasks of a node: a reserve, missing time, timer entries, what is more
/// urgent above, or time outside of the slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Taking {
    pub(crate) name: String,
    pub(crate) flow: Flow,
    pub(crate) source: Source,
}

/// Who takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// The machine, at any time.
    Machine,
    /// A task's jobs, which arrive like this.
    Work(Arrival),
    /// A server, which may take less than its budget.
    Budget,
}

/// What a node inherits from above.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Grant {
    pub(crate) supply: Supply,
    pub(crate) takings: Vec<Taking>,
    /// Longest section that may block everybody here: of background work, or of a less urgent task
    /// of a node above without a server between.
    pub(crate) background: Option<(TaskId, u64)>,
    /// Sections of resources shared above, as long as they may block everybody here.
    pub(crate) held_above: u64,
}

/// One node with everything that its tests need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Case {
    pub(crate) cpu: CpuId,
    /// The scheduler; `None`: the CPU's own.
    pub(crate) node: Option<SchedulerId>,
    /// It stands for the node; else for one task of a node that divides time, alone in its slots.
    pub(crate) is_node: bool,
    pub(crate) policy: PolicyKind<Ns>,
    pub(crate) supply: Supply,
    /// In the order of the file, tasks first.
    pub(crate) contenders: Vec<Contender>,
    pub(crate) guests: Vec<Guest>,
    pub(crate) takings: Vec<Taking>,
    /// Longest section that may block everybody, and whose it is: see [`Grant`].
    pub(crate) background: Option<(TaskId, u64)>,
    /// See [`Grant`].
    pub(crate) held_above: u64,
    /// Critical sections that count in this node.
    pub(crate) locks: Locks,
}

impl Case {
    /// Collects the tasks of one node; `waiting[task]` is what precedence adds to a task's jitter.
    /// Servers and guests are the tree's to add. O(tasks), O(tasks²) when tasks suspend themselves.
    pub(crate) fn build(
        system: &System,
        (cpu, node): (CpuId, Option<SchedulerId>),
        grant: Grant,
        waiting: &[u64],
    ) -> Checked<Case> {
        let policy = policy_of(system, cpu, node)?;
        let mut case = Case {
            cpu,
            node,
            is_node: true,
            policy,
            supply: grant.supply,
            contenders: Vec::new(),
            guests: Vec::new(),
            takings: grant.takings,
            background: grant.background,
            held_above: grant.held_above,
            locks: Locks::of_node(system, (cpu, node), policy),
        };
        for (task, id) in system.tasks.iter().zip(0_u32..) {
            if task.cpu != cpu || task.scheduler != node {
                continue;
            }
            let id = TaskId(id);
            if !matches!(task.class, Class::Aperiodic) {
                let waiting = waiting.get(id.index()).copied().unwrap_or(0);
                case.contenders
                    .push(contender(system, policy, task, id, waiting)?);
            }
            if matches!(task.class, Class::Aperiodic | Class::Once { .. }) {
                note_background(&mut case.background, id, task.non_preemptive.as_ns());
            }
        }
        let held = blocking::held_in_background(system, (cpu, node), policy)?;
        let held = case.held_above.checked_add(held);
        case.held_above = crate::error::in_range(held, "blocking")?;
        overhead::add_suspensions(&mut case, system)?;
        Ok(case)
    }

    /// Whether less urgent holders can keep more urgent work waiting: where nobody is preempted
    /// they do not, and where turns decide the busy window counts everybody's work.
    pub(crate) fn has_locks(&self) -> bool {
        let ordered = matches!(
            self.policy,
            PolicyKind::EarliestDeadlineFirst | PolicyKind::FixedPriority { preemptive: true }
        );
        ordered && !self.locks.is_empty()
    }

    /// What locks add to the blocking of work of this urgency.
    pub(crate) fn blocking(&self, urgency: i128, own: Option<Who>) -> Checked<Blocking<'_>> {
        if self.has_locks() {
            self.locks.blocking(urgency, own)
        } else {
            Ok(Blocking::default())
        }
    }

    /// Everything that contends here: tasks, servers, guests.
    pub(crate) fn everybody(&self) -> impl Iterator<Item = &Contender> {
        let guests = self.guests.iter().map(|g| &g.contender);
        self.contenders.iter().chain(guests)
    }

    /// The shares of the tasks, servers and guests, and of the takings. Of a node that divides time
    /// its slots: the takings are inside of them.
    pub(crate) fn ratios(&self) -> Vec<Ratio> {
        let tasks = self.everybody().filter_map(|c| c.flow.ratio());
        let takings = match self.policy {
            PolicyKind::Tdm { .. } => &[],
            _ => &self.takings[..],
        };
        tasks
            .chain(takings.iter().filter_map(|t| t.flow.ratio()))
            .collect()
    }

    /// The same, and the share of the processor that this node does not get.
    pub(crate) fn ratios_with_missing(&self) -> Vec<Ratio> {
        let mut ratios = self.ratios();
        ratios.extend(self.supply.missing());
        ratios
    }

    /// Whether it stands for a whole CPU.
    pub(crate) fn is_cpu(&self) -> bool {
        self.node.is_none() && self.is_node
    }

    /// Least common multiple of all separations, the supply's included; `None` beyond 64 bits.
    pub(crate) fn hyperperiod(&self) -> Option<u64> {
        let tasks = self.everybody().filter_map(|c| c.flow.separation);
        let takings = self.takings.iter().filter_map(|t| t.flow.separation);
        hyperperiod(tasks.chain(takings).chain(self.supply.period()))
    }

    /// How the utilization compares with all that the node gets.
    pub(crate) fn load(&self) -> Ordering {
        compare_with_one(&self.ratios_with_missing())
    }
}

/// The policy of a node.
pub(crate) fn policy_of(
    system: &System,
    cpu: CpuId,
    node: Option<SchedulerId>,
) -> Checked<PolicyKind<Ns>> {
    let found = match node {
        Some(node) => system.schedulers.get(node.index()).map(|s| s.policy),
        None => system.cpus.get(cpu.index()).map(|c| c.policy),
    };
    found.ok_or_else(|| invalid("a task is placed on a CPU or scheduler that does not exist"))
}

/// Remembers the longest section.
pub(crate) fn note_background(known: &mut Option<(TaskId, u64)>, id: TaskId, section: u64) {
    if section > known.map_or(1, |(_, longest)| longest) {
        *known = Some((id, section));
    }
}

fn contender(
    system: &System,
    policy: PolicyKind<Ns>,
    task: &Task,
    id: TaskId,
    waiting: u64,
) -> Checked<Contender> {
    let (Some(deadline), Some(budget)) = (task.class.relative_deadline(), task.class.budget())
    else {
        return Err(invalid(&format!("`{}` has no deadline", task.name)));
    };
    let separation = task.class.min_separation().map(punctual_model::Span::as_ns);
    if separation == Some(0) {
        return Err(invalid(&format!("`{}` arrives every 0s", task.name)));
    }
    let cost = overhead::cost(system, policy, task, budget.as_ns())?;
    let runs_through = match policy {
        PolicyKind::Fifo | PolicyKind::FixedPriority { preemptive: false } => true,
        PolicyKind::RoundRobin { .. } => false,
        _ => task.non_preemptive >= budget,
    };
    let whole = runs_through && task.max_suspension.is_zero();
    let section = if runs_through {
        cost.computing()?
    } else {
        task.non_preemptive.min(budget).as_ns()
    };
    let released = crate::error::in_range(
        task.phase.as_ns().checked_add(task.jitter.as_ns()),
        "phase and jitter",
    )?;
    let jitter = crate::error::in_range(
        task.jitter.as_ns().checked_add(waiting),
        "jitter and waiting",
    )?;
    Ok(Contender {
        who: Who::Task(id),
        kept: 0,
        flow: Flow {
            separation,
            cost: cost.total()?,
            jitter,
            is_fluid: false,
        },
        deadline: deadline.as_ns(),
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

pub(crate) fn invalid(what: &str) -> AnalysisError {
    AnalysisError::Invalid { what: what.into() }
}
