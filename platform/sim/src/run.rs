//! A simulation, from its tables to its outcome.

use std::fmt;

use punctual_child::ChildScheduler;
use punctual_kern::{Plan, Policy, Sink};
use punctual_model::{Class, Clock, Instant, Span, System, TaskId};
use punctual_tables::{CpuTables, Tables};

use crate::agendas::{Planner, Planning};
use crate::body::Body;
use crate::cpu::{Cpu, Threads};
use crate::faults::Faults;
use crate::groups::groups;
use crate::parts::{CpuInput, CpuOutcome, Observer, Options, Outcome, retimed};
use crate::recorded::Recording;
use crate::requests::Groups;
use crate::together::Group;
use crate::{MAX_CPUS, RATE};

/// Why a simulation was not started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SimError {
    /// More than [`MAX_CPUS`].
    TooManyCpus(usize),
    /// Not one input per CPU of the tables.
    InputsDoNotMatch,
    /// A resource of this name whose users stand on several CPUs: nothing would keep them apart.
    AcrossCpus(String),
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::TooManyCpus(n) => {
                write!(f, "{n} CPUs: virtual time runs at most {MAX_CPUS}")
            }
            SimError::InputsDoNotMatch => {
                write!(f, "one shard and one recorder per CPU needed")
            }
            SimError::AcrossCpus(name) => write!(
                f,
                "resource `{name}`: its users are on several CPUs, and waiting across CPUs is not \
                 bounded: place its users on one CPU"
            ),
        }
    }
}

impl std::error::Error for SimError {}

/// Marks the threads whose arrivals this platform feeds to draw their jitter. Part of the tables,
/// so that whoever replays a recorded run builds the same shards.
pub fn prepare(system: &System, tables: &mut Tables, faults: &Faults) {
    for (task, constraint) in tables.cpus.iter_mut().flat_map(|cpu| &mut cpu.threads) {
        let jitter = system.tasks[task.index()].jitter;
        let periodic = matches!(constraint.class, Class::Periodic { .. });
        let injected = faults.jitter || faults.dense_jitter;
        // Arrivals are fed by the declared period.
        let stays = !retimed(system, *task);
        let by_plan = constraint.fed && matches!(constraint.class, Class::Sporadic { .. });
        constraint.fed = by_plan || injected && periodic && stays && !jitter.is_zero();
    }
}

/// Runs a system, its tables prepared ([`prepare`]), in virtual time. Their frequency must be
/// nanoseconds. It ends when all jobs released in [0, duration) are done, or one longest relative
/// deadline after that.
///
/// Cost: O(events · (log threads + CPUs that exchange messages)).
///
/// # Errors
/// Too many CPUs, inputs that do not match, or a resource across CPUs.
pub fn run<P: Policy, S: Sink>(
    system: &System,
    tables: &Tables,
    inputs: Vec<CpuInput<P, S>>,
    options: &Options,
    observer: &mut impl Observer,
) -> Result<Outcome<S>, SimError> {
    run_with(system, tables, inputs, Guests::default(), options, observer)
}

/// Code that a program brings into a simulation.
#[derive(Default)]
pub struct Guests<'a> {
    /// Of schedulers that decide on their own supply, CPU by CPU. One without code never answers.
    pub children: Vec<Vec<ChildScheduler>>,
    /// The bodies of these tasks, in place of the declared ones.
    pub bodies: Vec<(TaskId, Box<dyn Body + 'a>)>,
    /// Groups that are planned while it runs.
    pub groups: Option<Groups>,
}

impl fmt::Debug for Guests<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks: Vec<TaskId> = self.bodies.iter().map(|(task, _)| *task).collect();
        f.debug_struct("Guests")
            .field("children", &self.children)
            .field("bodies", &tasks)
            .field("groups", &self.groups)
            .finish()
    }
}

/// [`run`] with code of a program: schedulers that decide on their own supply, and bodies.
///
/// # Errors
/// As [`run`].
pub fn run_with<'a, P: Policy, S: Sink>(
    system: &'a System,
    tables: &Tables,
    inputs: Vec<CpuInput<P, S>>,
    guests: Guests<'a>,
    options: &Options,
    observer: &mut impl Observer,
) -> Result<Outcome<S>, SimError> {
    checked(system, tables, inputs.len())?;
    let given = (&options.faults, options.seed);
    let plans = options.plans.iter().cloned();
    let mut plans = plans.chain(core::iter::repeat_with(Plan::default));
    let (horizon, limit) = span_of(system, options);
    let Guests {
        children,
        mut bodies,
        groups: planned,
    } = guests;
    let links = links(system, &bodies);
    let threads = |cpu: &CpuTables| {
        let plan = plans.next().unwrap_or_default();
        Threads::declared(system, cpu, given, (plan, horizon), &mut bodies)
    };
    let grace = planned.as_ref().map_or(Span::ZERO, Groups::grace);
    let limit = limit.max(horizon.saturating_add(grace));
    let planning = planned.map(|groups| Planning::new(groups, &tables.cpus, horizon));
    let cpus = build(tables, inputs, children, given, threads);
    let groups = groups(&tables.cpus, &links);
    let clock = |cpu: &CpuTables| options.faults.clock(cpu.cpu, options.seed);
    let clocks: Vec<Clock> = tables.cpus.iter().map(clock).collect();
    let until = (horizon, limit);
    Ok(play(
        tables,
        cpus,
        (groups, &clocks, planning),
        until,
        observer,
    ))
}

/// The CPUs of bodies that nudge each other, in pairs.
fn links(system: &System, bodies: &[(TaskId, Box<dyn Body + '_>)]) -> Vec<(usize, usize)> {
    let cpu = |task: TaskId| system.tasks.get(task.index()).map(|task| task.cpu.index());
    let pairs = bodies.iter().flat_map(|(task, body)| {
        let peers = body.peers().iter();
        peers.filter_map(move |peer| Some((cpu(*task)?, cpu(*peer)?)))
    });
    pairs.collect()
}

/// Runs what was recorded, CPU by CPU, under the policies of `tables` and of `inputs`, which need
/// not be those of the run. `tables` counts ticks of any frequency, and so do the recordings. It
/// ends when everything released before `horizon` is done, or one longest relative deadline after
/// it.
///
/// # Errors
/// As [`run`].
pub fn run_recorded<P: Policy, S: Sink>(
    tables: &Tables,
    recordings: Vec<Recording>,
    inputs: Vec<CpuInput<P, S>>,
    children: Vec<Vec<ChildScheduler>>,
    horizon: Instant,
    observer: &mut impl Observer,
) -> Result<Outcome<S>, SimError> {
    let changed = later(recordings.iter().map(|recording| &recording.plan));
    let nothing = core::iter::repeat_with(Recording::default);
    let mut recordings = recordings.into_iter().chain(nothing);
    let threads = |cpu: &CpuTables| Threads::recorded(cpu, recordings.next().unwrap_or_default());
    let classes = tables.cpus.iter().flat_map(|cpu| &cpu.threads);
    let deadlines = classes.filter_map(|(_, constraint)| constraint.class.relative_deadline());
    let limit = horizon.saturating_add(deadlines.max().unwrap_or(Span::ZERO).max(changed));
    let faults = Faults::default();
    check_inputs(tables, inputs.len())?;
    let cpus = build(tables, inputs, children, (&faults, 0), threads);
    let groups = groups(&tables.cpus, &[]);
    let until = (horizon, limit);
    Ok(play(tables, cpus, (groups, &[], None), until, observer))
}

fn build<'a, P: Policy, S: Sink>(
    tables: &Tables,
    inputs: Vec<CpuInput<P, S>>,
    children: Vec<Vec<ChildScheduler>>,
    given: (&Faults, u64),
    mut threads: impl FnMut(&CpuTables) -> Threads<'a>,
) -> Vec<Option<Cpu<'a, P, S>>> {
    let children = children
        .into_iter()
        .chain(core::iter::repeat_with(Vec::new));
    let all = inputs.into_iter().zip(&tables.cpus).zip(children);
    let cpu = |((input, tables), codes): ((CpuInput<P, S>, &CpuTables), Vec<ChildScheduler>)| {
        Some(Cpu::new(threads(tables), tables, input, codes, given))
    };
    all.map(cpu).collect()
}

/// Whether a simulation of so many inputs can start.
pub(crate) fn checked(system: &System, tables: &Tables, inputs: usize) -> Result<(), SimError> {
    match shared_across_cpus(system) {
        Some(name) => Err(SimError::AcrossCpus(name.into())),
        None => check_inputs(tables, inputs),
    }
}

fn check_inputs(tables: &Tables, inputs: usize) -> Result<(), SimError> {
    if tables.cpus.len() > MAX_CPUS {
        return Err(SimError::TooManyCpus(tables.cpus.len()));
    }
    match inputs == tables.cpus.len() {
        true => Ok(()),
        false => Err(SimError::InputsDoNotMatch),
    }
}

/// Up to when releases are covered, and when it ends at the latest.
pub(crate) fn span_of(system: &System, options: &Options) -> (Instant, Instant) {
    let horizon = Instant::ZERO.saturating_add(options.duration.ticks_up(RATE));
    let grace = longest_deadline(system).max(later(options.plans.iter()));
    (horizon, horizon.saturating_add(grace))
}

/// Runs the CPUs, together those that exchange messages.
fn play<P: Policy, S: Sink>(
    tables: &Tables,
    mut cpus: Vec<Option<Cpu<'_, P, S>>>,
    (groups, clocks, mut planning): (Vec<Vec<usize>>, &[Clock], Option<Planning>),
    (horizon, limit): (Instant, Instant),
    observer: &mut impl Observer,
) -> Outcome<S> {
    let mut end = Instant::ZERO;
    let mut stopped = false;
    let together = if observer.needs_order() {
        vec![(0..tables.cpus.len()).collect()]
    } else {
        groups
    };
    for group in together {
        let mut members: Vec<(usize, Cpu<'_, P, S>)> = group
            .iter()
            .filter_map(|&i| cpus[i].take().map(|cpu| (i, cpu)))
            .collect();
        if !stopped {
            let planner = Planner::of(planning.as_mut(), &group);
            let mut group = Group::new(&mut members, (horizon, limit), clocks);
            group.planner = planner;
            stopped = !group.run(observer);
            end = end.max(group.now);
        }
        for (i, cpu) in members {
            cpus[i] = Some(cpu);
        }
    }
    let cpus = cpus
        .into_iter()
        .flatten()
        .zip(&tables.cpus)
        .map(|(cpu, tables)| {
            let counters = cpu.counters;
            CpuOutcome {
                cpu: tables.cpu,
                sink: cpu.sink,
                counters,
            }
        });
    Outcome {
        cpus: cpus.collect(),
        end,
        stopped,
        groups: planning.map_or_else(Vec::new, Planning::outcomes),
    }
}

/// The first resource whose users stand on several CPUs: nothing would keep those apart. O(uses).
pub fn shared_across_cpus(system: &System) -> Option<&str> {
    let mut cpu_of = vec![None; system.resources.len()];
    for task in &system.tasks {
        for one in &task.uses {
            let cpu = cpu_of.get_mut(one.resource.index())?;
            if *cpu.get_or_insert(task.cpu) != task.cpu {
                return Some(&system.resources[one.resource.index()].name);
            }
        }
    }
    None
}

/// The longest relative deadline that a change brings.
fn later<'a>(plans: impl Iterator<Item = &'a Plan>) -> Span {
    plans
        .map(Plan::longest_deadline)
        .max()
        .unwrap_or(Span::ZERO)
}

fn longest_deadline(system: &System) -> Span {
    let deadlines = system
        .tasks
        .iter()
        .filter_map(|task| task.class.relative_deadline());
    deadlines.max().unwrap_or(Span::ZERO).ticks_up(RATE)
}
