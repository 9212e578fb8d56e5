//! A system in virtual time, recorded.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::thread;

use punctual_analysis::{Transition, bounds_only, without_needless_barriers};
use punctual_kern::Plan;
use punctual_model::{
    Clock, CpuId, Frequency, Funding, GraphThread, Instant, Ns, PlannedThread, Span, System,
    WorkSource,
};
use punctual_policy::AnyPolicy;
use punctual_sim::{
    Completion, CpuInput, CpuOutcome, Faults, GroupTerms, Groups, Guests, Moves, Observer, Outcome,
    SimError, TileFault, graph_bodies,
};
use punctual_tables::{CpuTables, Tables};
use punctual_thread::{JobContext, Step, Workloads};
use punctual_trace::{CpuLog, Header, Log, Mode, Recorder};

use crate::assemble::{asked, header, oracle, recorder, recorder_within, set_promises};
use crate::changes::{admit_changes_by, prepare, promises};
use crate::children::ChildPolicies;
use crate::groups;
use crate::stream::{RING_BYTES, Steps, not_written};
use crate::{Error, Progress, Verdict, admit_by};

/// How to simulate.
#[derive(Clone, Debug, Default)]
pub struct SimOptions {
    /// Releases in [0, this) are covered; `None`: as the system says.
    pub duration: Option<Span<Ns>>,
    /// Seed of arrivals and faults; `None`: as the system says, else 0.
    pub seed: Option<u64>,
    /// Injected faults.
    pub faults: Faults,
    /// Name of the file or program, for the log.
    pub source: String,
    /// Where the run comes from, as (name, value), for the log.
    pub fingerprint: Vec<(String, String)>,
    /// The program's own policies for schedulers that decide on their own supply.
    pub policies: ChildPolicies,
    /// The verdict on the system at its start, for callers that have it; `None`: the analysis is
    /// asked, for bounds alone.
    pub verdict: Option<Verdict>,
    /// The judgement of the changes, for callers that have it; `None`: the analysis is asked.
    pub transitions: Option<Vec<Transition>>,
    /// A file for the log, as [`crate::LiveOptions::record`] has it.
    pub record: Option<Arc<File>>,
}

/// Runs a system in virtual time. Functions are executed, in the order in which their jobs
/// complete; their virtual cost is the declared wcet. A system that is not admitted runs too: to
/// see what would happen is what virtual time is for.
///
/// `progress` is called now and then; when it returns `false`, the simulation ends early.
///
/// # Errors
/// A meaningless system, no duration, an unknown function, or more CPUs than virtual time has.
pub fn simulate(
    system: &System,
    options: &SimOptions,
    workloads: &mut Workloads,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Log, Error> {
    system.validate().map_err(Error::Model)?;
    let verdict = match &options.verdict {
        Some(verdict) => verdict.clone(),
        None => admit_by(system, bounds_only)?,
    };
    let transitions = judged(system, options)?;
    let verdict = promises(system, &verdict, &transitions);
    let system = &without_needless_barriers(system, &verdict.gangs);
    let judged = (Some(&verdict), &*transitions);
    run_lowered(system, judged, options, workloads, progress)
}

/// The same without asking the analysis: the log holds no bounds. For callers that have the
/// verdict, or that simulate one system many times.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_unjudged(
    system: &System,
    options: &SimOptions,
    workloads: &mut Workloads,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Log, Error> {
    let transitions = judged(system, options)?;
    run_lowered(system, (None, &transitions), options, workloads, progress)
}

/// With a task for each thread of a graph and of a group.
fn run_lowered(
    system: &System,
    judged: (Option<&Verdict>, &[Transition]),
    options: &SimOptions,
    workloads: &mut Workloads,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Log, Error> {
    let threads = system.graph_threads();
    let terms = groups::terms(system, judged.0)?;
    let system = system.with_graph_threads();
    let planned = system.planned_threads();
    let system = system.with_planned_threads();
    let threads = Lowered {
        graphs: &threads,
        planned: &planned,
        terms,
    };
    run_virtually((&system, &threads), judged, options, workloads, progress)
}

/// The threads of graphs and of groups, which are the last tasks of a system.
pub(crate) struct Lowered<'a> {
    graphs: &'a [GraphThread],
    pub(crate) planned: &'a [PlannedThread],
    /// Of the groups, if there are any.
    pub(crate) terms: Option<GroupTerms>,
}

fn judged(system: &System, options: &SimOptions) -> Result<Vec<Transition>, Error> {
    match &options.transitions {
        Some(transitions) => Ok(transitions.clone()),
        None => admit_changes_by(system, bounds_only),
    }
}

fn run_virtually(
    (system, threads): (&System, &Lowered<'_>),
    (verdict, transitions): (Option<&Verdict>, &[Transition]),
    options: &SimOptions,
    workloads: &mut Workloads,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Log, Error> {
    let (duration, seed) = asked(system, options.duration, options.seed)?;
    groups::check_count(system, duration)?;
    options.policies.check(system)?;
    let mut tables = Tables::new(system, Frequency::NANOSECONDS);
    fund(&mut tables, system, &options.faults);
    let planned = groups::planned((system, threads), &mut tables, (duration, seed));
    tables.set_duration(system, duration);
    punctual_sim::prepare(system, &mut tables, &options.faults);
    let steps = steps(system, workloads)?;
    let header = Header {
        source: options.source.clone(),
        machine: options.fingerprint.clone(),
        seed,
        duration,
        ..header("sim", Mode::Virtual)
    };
    let mut log = Log::new(header, system, tables.clone());
    let (plans, changes) = prepare(system, &tables, duration, transitions);
    log.changes = changes;
    let room = (options.record.is_some(), planned.as_ref());
    let mut inputs = inputs(&tables, &plans, duration, room)?;
    let clock = |cpu: usize| {
        let cpu = u16::try_from(cpu).map_or(CpuId(u16::MAX), CpuId);
        options.faults.clock(cpu, seed)
    };
    let record = options.record.as_ref().map(|file| {
        let recorders = inputs.iter_mut().map(|cpu| &mut cpu.sink);
        Steps::start(&head(&log, system, verdict, &clock), file, recorders)
    });
    let mut player = Player {
        steps,
        tables: &tables,
        duration,
        progress,
        record,
    };
    let sim_options = punctual_sim::Options {
        duration,
        seed,
        faults: options.faults.clone(),
        plans,
    };
    let policies = |cpu| options.policies.of(system, cpu).into_iter();
    let codes = |cpu| policies(cpu).map(|(_, code)| code).collect();
    let cpus = tables.cpus.iter().zip(&sim_options.plans);
    let moves = Moves::default();
    let given = (&options.faults, seed);
    let guests = Guests {
        children: cpus.map(codes).collect(),
        bodies: graph_bodies(system, threads.graphs, given, &moves),
        groups: planned,
    };
    let outcome = play((system, &tables), inputs, guests, &sim_options, &mut player)?;
    log.header.end = outcome.end;
    log.requests = groups::requests(system, &outcome);
    log.header.stopped = outcome.stopped.then(|| "stopped by request".to_string());
    let record = player.record;
    take_cpus(&mut log, system, outcome.cpus, (&moves, &clock));
    log.header.faults = faults(system, &moves);
    if let Some(verdict) = verdict {
        set_promises(&mut log, verdict, None);
    }
    log.oracle = oracle(workloads);
    finish(record, &mut log);
    Ok(log)
}

/// On several cores of the host, if no code of the program's is executed (its policies may share
/// what they like) and nothing is written meanwhile; the log is the same.
fn play(
    (system, tables): (&System, &Tables),
    inputs: Vec<Input>,
    guests: Guests<'_>,
    options: &punctual_sim::Options,
    player: &mut Player<'_>,
) -> Result<Outcome<Recorder>, SimError> {
    let is_declared = guests.bodies.is_empty()
        && guests.groups.is_none()
        && guests.children.iter().all(Vec::is_empty);
    let is_watched = !player.steps.is_empty() || player.record.is_some();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if is_declared && !is_watched && cores.min(tables.cpus.len()) > 1 {
        let goes_on = &mut |now| player.goes_on(now);
        let given = (options, cores);
        return punctual_sim::run_on_cores(system, tables, inputs, guests.children, given, goes_on);
    }
    punctual_sim::run_with(system, tables, inputs, guests, options, player)
}

/// The CPUs of a run, with the transitions of actors there.
fn take_cpus(
    log: &mut Log,
    system: &System,
    cpus: Vec<CpuOutcome<Recorder>>,
    (moves, clock): (&Moves, &dyn Fn(usize) -> Clock),
) {
    for (at, (cpu, of_system)) in cpus.into_iter().zip(&system.cpus).enumerate() {
        let one = log.add_cpu(&of_system.name, None, cpu.sink);
        let (moved, lost_from) = moves.take(at);
        one.moves = moved;
        one.clock = clock(at);
        one.lost_from = one.lost_from.into_iter().chain(lost_from).min();
    }
}

/// The task schedulers of graphs that were wrong, in words.
fn faults(system: &System, moves: &Moves) -> Vec<String> {
    let words = |fault: TileFault| {
        let name = &system.tasks[fault.task.index()].name;
        match fault.refused {
            0 => format!("graph {name}: the task scheduler has not returned"),
            refused => {
                format!("graph {name}: {refused} answers of the task scheduler were refused")
            }
        }
    };
    moves.faults().into_iter().map(words).collect()
}

/// Budgets as on a machine that takes time for itself. The clock of virtual time charges an entry
/// to nobody, so nobody gets one back.
fn fund(tables: &mut Tables, system: &System, faults: &Faults) {
    if let Some(funding) = &faults.funding {
        let funding = Funding {
            entry: funding.entry.saturating_sub(faults.timer_cost),
            ..funding.clone()
        };
        tables.fund(system, &funding);
    }
}

/// Has the rest of the log written, if it is written at all.
fn finish(record: Option<io::Result<Steps>>, log: &mut Log) {
    match record {
        Some(Ok(record)) => record.finish(log),
        Some(Err(error)) => log.header.faults.push(not_written(&error)),
        None => {}
    }
}

/// The CPUs, with recorders that are emptied while the run goes on, or have room for all of it.
fn inputs(
    tables: &Tables,
    plans: &[Plan],
    duration: Span<Ns>,
    (emptied, planned): (bool, Option<&Groups>),
) -> Result<Vec<Input>, Error> {
    let ticks = duration.ticks_up(tables.frequency);
    let steps = planned.map_or(0, |groups| groups.steps(ticks));
    let input = |(cpu, plan): (&CpuTables, &Plan)| {
        let sink = match emptied {
            true => recorder_within(RING_BYTES, (cpu, plan), tables.frequency, (duration, steps))?,
            false => recorder((cpu, plan), tables.frequency, (duration, steps))?,
        };
        let shard = cpu.build_for(plan, AnyPolicy::new).map_err(Error::Config)?;
        Ok(CpuInput { shard, sink })
    };
    tables.cpus.iter().zip(plans).map(input).collect()
}

type Input = CpuInput<AnyPolicy, Recorder>;

/// The part of a log that is known before its run.
fn head(
    log: &Log,
    system: &System,
    verdict: Option<&Verdict>,
    clock: &dyn Fn(usize) -> Clock,
) -> Log {
    let mut head = log.clone();
    let cpus = system.cpus.iter().enumerate();
    head.cpus.extend(cpus.map(|(at, cpu)| CpuLog {
        name: cpu.name.clone(),
        clock: clock(at),
        ..CpuLog::default()
    }));
    if let Some(verdict) = verdict {
        set_promises(&mut head, verdict, None);
    }
    head
}

/// The functions of the tasks that have one, by task.
fn steps(system: &System, workloads: &mut Workloads) -> Result<HashMap<u32, Step>, Error> {
    let mut steps = HashMap::new();
    for (id, task) in (0_u32..).zip(&system.tasks) {
        if let Some(WorkSource::Function(name)) = &task.work {
            let _ = steps.insert(id, workloads.resolve(name)?);
        }
    }
    Ok(steps)
}

/// Executes the functions as their jobs complete, and has the log written.
struct Player<'a> {
    steps: HashMap<u32, Step>,
    tables: &'a Tables,
    duration: Span<Ns>,
    progress: &'a mut dyn FnMut(Progress) -> bool,
    record: Option<io::Result<Steps>>,
}

impl Observer for Player<'_> {
    fn completed(&mut self, completion: Completion) {
        if let Some(step) = self.steps.get_mut(&completion.task.0) {
            let arrival_ns = completion.arrival.ns_up(self.tables.frequency).as_ns();
            step(JobContext {
                job: completion.job,
                arrival_ns,
            });
        }
    }

    fn needs_order(&self) -> bool {
        !self.steps.is_empty() && self.tables.cpus.len() > 1
    }

    fn goes_on(&mut self, now: Instant) -> bool {
        if let Some(Ok(record)) = &mut self.record {
            record.write();
        }
        let passed = now.since(Instant::ZERO).ns_up(self.tables.frequency);
        (self.progress)(Progress {
            passed,
            total: self.duration,
        })
    }
}
