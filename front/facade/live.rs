//! A system for real, on the CPUs of this machine, recorded.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant as Wall};

use punctual_analysis::{
    AnalysisError, GangVerdict, Judge, Transition, Verdict, When, bounds_only,
    without_needless_barriers,
};
use punctual_graph::Applications;
use punctual_kern::{Event, Plan};
use punctual_linux::{GiveBack, Overheads, RunOptions as PlatformOptions, SlotFrame, ThreadInput};
use punctual_model::{
    ArrivalTimes, Class, Frequency, Funding, Instant, Machine, Ns, Reserve, Span, System, Task,
    TaskId, ThreadId, Work,
};
use punctual_policy::AnyPolicy;
use punctual_sim::SimError;
use punctual_tables::{CpuTables, Tables};
use punctual_thread::Workloads;
use punctual_trace::{CpuLog, Header, Log, Mode, Recorder};

use crate::assemble::{asked, header, oracle, recorder, recorder_within, set_promises};
use crate::bodies::{Bodies, Programs, had_since, processor_times, tile_bodies};
use crate::changes::{admit_changes_by, prepare, promises};
use crate::children::ChildPolicies;
use crate::described::{describe_clocks, take_records};
use crate::graph_moves::tell_graphs;
use crate::groups;
use crate::stream::{RING_BYTES, Stream, not_written};
use crate::{Error, Progress, admit, admit_by};

/// How to run for real.
#[derive(Clone, Debug, Default)]
pub struct LiveOptions {
    /// Releases in [0, this) are covered; `None`: as the system says.
    pub duration: Option<Span<Ns>>,
    /// Seed of random arrivals; `None`: as the system says, else 0.
    pub seed: Option<u64>,
    /// Run even what is not admitted.
    pub force: bool,
    /// Ends the run early when it becomes true (Ctrl-C).
    pub stop: Arc<AtomicBool>,
    /// Name of the file or program, for the log.
    pub source: String,
    /// Where relative paths of shared objects begin.
    pub base: PathBuf,
    /// The program's own policies for schedulers that decide on their own supply.
    pub policies: ChildPolicies,
    /// The program's own functions for actors of graphs, and the books of the tiles of the run.
    pub applications: Applications,
    /// The costs of scheduling on this machine; `None`: they are measured just before the run.
    pub terms: Option<GivenTerms>,
    /// How often a thread that runs on is interrupted to look for time that the machine took in its
    /// midst; `None`: every 20 ms.
    pub sample: Option<Span<Ns>>,
    /// An idle CPU with jobs that wait for predecessors looks for these until their deadlines, and
    /// does not sleep: the jobs begin sooner, and nobody else gets that time.
    pub look: bool,
    /// The machine, as (name, value), for the log.
    pub fingerprint: Vec<(String, String)>,
    /// A file for the log, open for reading and writing. It is written while the run goes on, from
    /// recorders of bounded size, and what is there can be read if the process is killed.
    pub record: Option<Arc<File>>,
}

/// The costs of scheduling on a machine, as `punctual doctor --measure` proposes them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenTerms {
    /// The terms, which are added to those of the system.
    pub machine: Machine,
    /// Where they come from, for the report.
    pub from: String,
}

/// A system that this machine has admitted (or that was forced), ready to run.
#[derive(Debug)]
pub struct Admitted {
    /// With the terms of the system alone.
    pub file: Verdict,
    /// With this machine's measured overheads and reserves added.
    pub machine: Verdict,
    /// The measurement of just now; `None`: the terms were given.
    pub overheads: Option<Overheads>,
    /// The verdicts of the same terms on the changes that the system declares, in order.
    pub changes: Vec<Transition>,
    terms: Machine,
}

/// Asks for admission with the terms of this machine: the system's own, plus overheads and the
/// slices given back under real-time priority, as given, else as measured now in less than half a
/// second. If the measured terms alone refuse the system, they are measured again, up to twice: a
/// busy moment of the machine is no property of it.
///
/// # Errors
/// A meaningless system, a CPU without a host, a machine that refuses to be measured.
pub fn admit_here(system: &System, given: Option<&Machine>) -> Result<Admitted, Error> {
    admit_sampled(system, given, None, punctual_analysis::admit)
}

/// A refusal by measured terms alone stands after so many measurements.
const MEASUREMENTS: usize = 3;

/// How often a thread that runs on is interrupted when so often is asked for: every 50 us to 20 ms.
pub fn sample_in_force(asked: Span<Ns>) -> Span<Ns> {
    Span::from_ns(punctual_linux::sample_in_force(asked.as_ns()))
}

/// The same where a thread that runs on is interrupted every `sample`, by this judge.
fn admit_sampled(
    system: &System,
    given: Option<&Machine>,
    sample: Option<Span<Ns>>,
    judge: Judge,
) -> Result<Admitted, Error> {
    let file = admit_by(system, judge)?;
    let hosts = hosts(system)?;
    let first = hosts.first().copied().unwrap_or(0);
    if given.is_some() {
        return admit_with(system, (file, judge), given, None, sample);
    }
    let measured = || {
        let overheads = punctual_linux::measure_overheads(first, &PlatformOptions::default())?;
        admit_with(system, (file.clone(), judge), None, Some(overheads), sample)
    };
    let mut admitted = measured()?;
    for _ in 1..MEASUREMENTS {
        if admitted.machine.admitted || !file.admitted {
            break;
        }
        admitted = measured()?;
    }
    Ok(admitted)
}

/// The same with these terms.
fn admit_with(
    system: &System,
    (file, judge): (Verdict, Judge),
    given: Option<&Machine>,
    overheads: Option<Overheads>,
    sample: Option<Span<Ns>>,
) -> Result<Admitted, Error> {
    let measured = overheads.as_ref().map(Overheads::machine);
    let mut here = given.or(measured.as_ref()).cloned().unwrap_or_default();
    if here.clock_error.is_zero() {
        // What is not to be had in time is looked for again at the start of the run.
        let error = punctual_linux::clock_error(&hosts(system)?);
        here.clock_error = Span::from_ns(error.unwrap_or(0));
    }
    if let Some(period) = sample.map(sample_in_force) {
        let timer = here.timer.saturating_add(system.machine.timer);
        here.reserves.push(Reserve {
            name: "missing-time-samples".to_owned(),
            budget: timer.min(period.as_work()),
            period,
        });
    }
    let real_time = |overheads: &Overheads| overheads.mode == punctual_linux::Mode::RealTime;
    let terms = match overheads.as_ref().is_none_or(real_time) {
        true => terms_on(system, &here)?,
        false => system.machine.with(&here),
    };
    let here = on_machine(system, &terms);
    let machine = admit_by(&here, judge)?;
    let changes = admit_changes_by(&here, judge)?;
    Ok(Admitted {
        file,
        machine,
        changes,
        overheads,
        terms,
    })
}

/// A system with the terms of its machine. Budgets are funded once for the whole run: one that
/// changes is judged and funded at the start, too, as if no task had a leader.
fn on_machine(system: &System, terms: &Machine) -> System {
    System {
        machine: terms.clone(),
        // No test knows graphs beside what a machine takes: their bounds are those of the file.
        graphs: Vec::new(),
        free_phases: system.free_phases || !system.changes.is_empty(),
        ..system.clone()
    }
}

/// The terms of a system on a machine with these, term by term. Where the busiest second of some
/// CPU leaves too little to the rest of the machine, the slices that it gets are a reserve. A file
/// that reserves slices of full length is believed.
///
/// # Errors
/// Those of the analysis.
pub fn terms_on(system: &System, machine: &Machine) -> Result<Machine, AnalysisError> {
    let mut terms = system.machine.with(machine);
    let (share, slice) = (punctual_linux::SHARE_OF_OTHERS, punctual_linux::SLICE);
    let states = |reserve: &Reserve| reserve.name == share && reserve.budget >= slice;
    if terms.reserves.iter().any(states) {
        return Ok(terms);
    }
    terms.reserves.retain(|reserve| reserve.name != share);
    let here = on_machine(system, &terms);
    // Those of the whole run: a change may make a second busier.
    let changed = punctual_analysis::admit_changes_by(&here, bounds_only)?;
    let changed = changed.into_iter().filter(|t| t.when != When::Never);
    let mut all: Vec<System> = changed.map(|t| t.system).collect();
    all.push(crate::at_start(&here));
    let busiest = |window| {
        let cpus = (0..).map(punctual_model::CpuId).take(system.cpus.len());
        let both = cpus.flat_map(|cpu| all.iter().map(move |system| (system, cpu)));
        let mut busiest = both.map(|(system, cpu)| punctual_analysis::busiest(system, cpu, window));
        busiest.try_fold(Work::ZERO, |most, one| {
            Ok::<_, AnalysisError>(most.max(one?))
        })
    };
    let reserve = punctual_linux::share_of_others(&terms, busiest)?;
    terms.reserves.extend(reserve);
    Ok(terms)
}

impl Admitted {
    /// Refuses a run of what is not admitted here, changes included, unless it is forced. Graphs
    /// are judged by the file alone. The refusal has its fixes, which only now are looked for.
    fn must_be(&self, system: &System, forced: bool) -> Result<(), Error> {
        let here = on_machine(system, &self.terms);
        match (self.file.admitted, self.machine.admitted) {
            _ if forced => return Ok(()),
            (false, _) => return Err(Error::Refused(Box::new(admit(system)?))),
            (true, false) => return Err(Error::Refused(Box::new(admit(&here)?))),
            (true, true) => {}
        }
        let never = |change: &&Transition| change.when == When::Never;
        let change = self.changes.iter().find(never);
        let Some(change) = change else { return Ok(()) };
        let whole = crate::admit_changes(&here)?;
        let change = whole.iter().find(never).unwrap_or(change);
        Err(Error::ChangeRefused(Box::new(change.clone())))
    }
}

/// Runs a system on this machine, under real-time priority if that is permitted, else labelled
/// best-effort. Refuses what is not admitted here, unless forced.
///
/// `progress` is called about ten times a second from a thread of its own; when it returns `false`
/// the run ends early, cleanly.
///
/// # Errors
/// As [`admit_here`]; [`Error::Refused`]; unknown functions and shared objects; a missing need of
/// the platform.
pub fn run(
    system: &System,
    options: &LiveOptions,
    workloads: &mut Workloads,
    progress: &mut (dyn FnMut(Progress) -> bool + Send),
) -> Result<Log, Error> {
    groups::refuse(system)?;
    let (duration, seed) = asked(system, options.duration, options.seed)?;
    options.policies.check(system)?;
    let given = options.terms.as_ref().map(|given| &given.machine);
    let admitted = admit_sampled(system, given, options.sample, bounds_only)?;
    admitted.must_be(system, options.force)?;
    let of_file = admit_changes_by(system, bounds_only)?;
    let of_file = promises(system, &admitted.file, &of_file);
    let of_machine = promised_here(system, &admitted, options.force);
    // Also when forced: each CPU would keep its own users apart, and nobody the others.
    if let Some(name) = punctual_sim::shared_across_cpus(system) {
        return Err(SimError::AcrossCpus(name.into()).into());
    }
    let frequency = punctual_linux::clock_rate().frequency;
    let funding = punctual_analysis::funding(&on_machine(system, &admitted.terms))?;
    let tiles = options
        .applications
        .tiles(system)
        .map_err(Error::Application)?;
    // Behind the tasks of the file stand the threads of its graphs.
    let threads = &*system.graph_threads();
    let system = &without_needless_barriers(system, &of_machine.gangs);
    let system = &*system.with_graph_threads();
    let mut tables = Tables::new(system, frequency);
    tables.set_duration(system, duration);
    tables.fund(system, &funding);
    let header = header_of(&admitted, options, (duration, seed));
    let mut log = Log::new(header, system, tables.clone());
    let (mut plans, changes) = prepare(system, &tables, duration, &admitted.changes);
    fund_changes(&mut plans, &tables, system, &funding);
    log.changes = changes;

    // Whatever happens from here on, they are ended when this goes out of scope.
    let mut programs = Programs::new();
    let times = (duration, seed);
    let planned = (&tables, &*plans);
    let bodies = Bodies {
        base: &options.base,
        workloads,
        programs: &mut programs,
        tiles: tile_bodies(threads, tiles),
    };
    let mut cpus = platform_inputs(system, planned, options, bodies, times)?;
    let record = options.record.as_ref();
    let mut stream = record.map(|file| {
        let mut head = log.clone();
        head.cpus.extend(cpus.iter().map(named));
        set_promises(&mut head, &of_file, Some(&of_machine));
        Stream::start(&head, file, &mut cpus)
    });
    let times = (duration, grace(system, &plans, frequency));
    let platform = for_platform(options, &admitted, &tables, times);
    let before = processor_times(&programs);
    let outcome = while_watched(&platform, duration, progress, || {
        punctual_linux::run(cpus, &platform)
    })?;
    let had = had_since(&before, &programs);
    describe_clocks(&outcome, admitted.terms.clock_error, &mut log.header);
    take_records(outcome, system, &mut log);
    tell_programs(system, &had, &mut log);
    set_promises(&mut log, &of_file, Some(&of_machine));
    log.oracle = oracle(workloads);
    // The preemptions of actors come from records that a stream has taken out of memory.
    if let Some(Ok(stream)) = &mut stream {
        stream.give_back(&mut log);
    }
    tell_graphs((system, threads), &options.applications, &mut log);
    log.header.lost.extend(ended_early(system, &mut programs));
    match stream {
        Some(Ok(stream)) => stream.finish(&mut log),
        Some(Err(error)) => log.header.faults.push(not_written(&error)),
        None => {}
    }
    Ok(log)
}

/// The promises with the terms of this machine; by force without the barriers of gangs.
fn promised_here(system: &System, admitted: &Admitted, force: bool) -> Verdict {
    let mut verdict = promises(system, &admitted.machine, &admitted.changes);
    if force {
        let gangs = verdict.gangs.iter_mut();
        gangs.for_each(GangVerdict::leave_out_all);
    }
    verdict
}

/// The processor time of each program, in the log of its CPU.
fn tell_programs(system: &System, had: &[(TaskId, u64)], log: &mut Log) {
    for (task, ns) in had {
        let cpu = system.tasks[task.index()].cpu.index();
        log.cpus[cpu].counters.programs.push((*task, *ns));
    }
}

/// Programs that did not wait for the end of the run.
fn ended_early(system: &System, programs: &mut Programs) -> Vec<String> {
    let ends = programs.iter_mut().filter_map(|(id, program)| {
        let how = program.ended()?;
        let name = &system.tasks[id.index()].name;
        Some(format!("the program of `{name}` ended by itself: {how}"))
    });
    ends.collect()
}

fn header_of(admitted: &Admitted, options: &LiveOptions, times: (Span<Ns>, u64)) -> Header {
    let (duration, seed) = times;
    let mut header = Header {
        source: options.source.clone(),
        machine: options.fingerprint.clone(),
        seed,
        duration,
        ..header("linux", Mode::RealTime)
    };
    let given = options.terms.as_ref();
    header.machine.extend(term_facts(admitted, given));
    header
}

/// The options of the platform for a run that is admitted so. Timers are set early where their
/// price was measured here: terms from elsewhere do not say whether they hold it.
fn for_platform(
    options: &LiveOptions,
    admitted: &Admitted,
    tables: &Tables,
    (duration, grace): (Span<Ns>, Span<Ns>),
) -> PlatformOptions {
    let frames = tables.cpus.iter();
    let frames = frames.map(|cpu| SlotFrame::of(cpu.policy, &cpu.slots));
    let defaults = PlatformOptions::default();
    PlatformOptions {
        duration_ns: Some(duration.as_ns()),
        grace_ns: grace.as_ns(),
        stop: Arc::clone(&options.stop),
        sample_ns: options.sample.map_or(defaults.sample_ns, Span::as_ns),
        give_back: GiveBack::of(&admitted.terms),
        look_for_predecessors: options.look,
        early_ns: admitted.overheads.as_ref().map_or(0, |o| o.early_ns),
        watch_clocks: (!admitted.machine.gangs.is_empty())
            .then(|| admitted.terms.clock_error.as_ns()),
        frames: frames.collect(),
        ..defaults
    }
}

/// A CPU before its run.
fn named(cpu: &LinuxInput) -> CpuLog {
    CpuLog {
        name: cpu.name.clone(),
        host: Some(cpu.host),
        ..CpuLog::default()
    }
}

/// The host CPU of each CPU.
fn hosts(system: &System) -> Result<Vec<u32>, Error> {
    let host = |cpu: &punctual_model::Cpu| cpu.host.ok_or_else(|| Error::NoHost(cpu.name.clone()));
    system.cpus.iter().map(host).collect()
}

/// Funds the constraints that come later, as those of the start are.
fn fund_changes(plans: &mut [Plan], tables: &Tables, system: &System, funding: &Funding) {
    for (plan, cpu) in plans.iter_mut().zip(&tables.cpus) {
        for event in plan
            .steps_mut()
            .iter_mut()
            .flat_map(|step| &mut step.events)
        {
            if let Event::Change { thread, constraint } = event
                && let Some((id, _)) = cpu.threads.get(thread.index())
            {
                *constraint = tables.funded(*constraint, (*id, system), funding);
            }
        }
    }
}

type LinuxInput = punctual_linux::CpuInput<AnyPolicy, Recorder>;

fn platform_inputs(
    system: &System,
    (tables, plans): (&Tables, &[Plan]),
    options: &LiveOptions,
    mut bodies: Bodies<'_>,
    (duration, seed): (Span<Ns>, u64),
) -> Result<Vec<LinuxInput>, Error> {
    let frequency = tables.frequency;
    let hosts = hosts(system)?;
    let mut cpus = Vec::new();
    for ((cpu, plan), host) in tables.cpus.iter().zip(plans).zip(hosts) {
        let mut threads = Vec::new();
        for (index, (id, _)) in (0_u32..).zip(&cpu.threads) {
            let task = &system.tasks[id.index()];
            let work = (*id, task);
            let body = bodies.of(work, (cpu, host))?;
            threads.push(ThreadInput {
                id: ThreadId::new(index, 0),
                name: task.name.clone(),
                body,
            });
        }
        cpus.push(LinuxInput {
            host,
            name: system.cpus[cpu.cpu.index()].name.clone(),
            shard: cpu.build_for(plan, AnyPolicy::new).map_err(Error::Config)?,
            sink: match options.record {
                Some(_) => recorder_within(RING_BYTES, (cpu, plan), frequency, (duration, 0))?,
                None => recorder((cpu, plan), frequency, (duration, 0))?,
            },
            threads,
            children: options.policies.inputs(system, (cpu, plan)),
            resources: names_of_resources(system, cpu),
            arrivals: arrivals(system, (cpu, frequency), seed, duration),
            plan: plan.clone(),
        });
    }
    Ok(cpus)
}

/// The resources of a CPU by their number there.
fn names_of_resources(system: &System, cpu: &CpuTables) -> Vec<String> {
    let name = |id: punctual_model::ResourceId| system.resources.get(id.index());
    let all = cpu.resources.iter().map(|terms| name(terms.resource));
    all.map(|r| r.map(|r| r.name.clone()).unwrap_or_default())
        .collect()
}

/// All arrivals of the sporadic threads of one CPU before the end, in order of time, also of those
/// that a change starts: the core takes what comes while the constraint in force covers it.
fn arrivals(
    system: &System,
    (cpu, frequency): (&CpuTables, Frequency),
    seed: u64,
    duration: Span<Ns>,
) -> Vec<(Instant, ThreadId)> {
    let end = Instant::ZERO.saturating_add(duration.ticks_up(frequency));
    let mut list = Vec::new();
    for (index, (id, _)) in (0_u32..).zip(&cpu.threads) {
        let task = &system.tasks[id.index()];
        let times = sporadic_times(task, seed.wrapping_add(u64::from(id.0) << 32));
        let times = times.into_iter().flatten();
        let instants = times.map(|at| at.ticks_up(frequency));
        let instants = instants.take_while(|at| *at < end);
        list.extend(instants.map(|at| (at, ThreadId::new(index, 0))));
    }
    list.sort_by_key(|(at, thread)| (*at, thread.index()));
    list
}

fn sporadic_times(task: &Task, seed: u64) -> Option<ArrivalTimes<'_>> {
    match task.class {
        Class::Sporadic { min_separation, .. } => Some(ArrivalTimes::new(
            &task.arrivals,
            task.phase,
            min_separation,
            seed,
        )),
        _ => None,
    }
}

/// The longest relative deadline, now or after a change: jobs released before the end have so long.
fn grace(system: &System, plans: &[Plan], frequency: Frequency) -> Span<Ns> {
    let tasks = system.tasks.iter();
    let declared = tasks.filter_map(|task| task.class.relative_deadline());
    let later = plans
        .iter()
        .map(|plan| plan.longest_deadline().ns_up(frequency));
    declared.chain(later).max().unwrap_or(Span::ZERO)
}

/// Runs `work` while another thread reports its progress and passes on a wish to stop.
fn while_watched<T>(
    platform: &PlatformOptions,
    total: Span<Ns>,
    progress: &mut (dyn FnMut(Progress) -> bool + Send),
    work: impl FnOnce() -> T,
) -> T {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = thread::Builder::new().name("punctual/progress".into());
        let watcher = watcher.spawn_scoped(scope, || {
            let start = Wall::now();
            while !over.load(Ordering::Relaxed) {
                thread::park_timeout(Duration::from_millis(100));
                let passed = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let passed = Span::from_ns(passed.min(total.as_ns()));
                if !progress(Progress { passed, total }) {
                    platform.stop.store(true, Ordering::Relaxed);
                }
            }
        });
        let result = work();
        over.store(true, Ordering::Relaxed);
        if let Ok(watcher) = watcher {
            watcher.thread().unpark();
        }
        result
    })
}

/// Which terms were added to the system's, and from where.
fn term_facts(admitted: &Admitted, given: Option<&GivenTerms>) -> Vec<(String, String)> {
    let fact = |name: &str, ns: u64, from: &str| {
        let value = format!("{}{from}", punctual_model::readable(ns));
        (name.to_string(), value)
    };
    let Some(overheads) = &admitted.overheads else {
        let Some(GivenTerms { machine, from }) = given else {
            return Vec::new();
        };
        let mut facts = vec![
            ("terms".to_string(), format!("from {from}")),
            fact("switch", machine.switch.as_ns(), ""),
            fact("timer entry", machine.timer.as_ns(), ""),
            fact("timer set anew", machine.budget_timer.as_ns(), ""),
            fact("preemption", machine.preemption.as_ns(), ""),
        ];
        facts.extend(machine.reserves.iter().map(|reserve| {
            let period = punctual_model::readable(reserve.period.as_ns());
            fact(
                &reserve.name,
                reserve.budget.as_ns(),
                &format!(" in every {period}"),
            )
        }));
        return facts;
    };
    let measured = |n: usize| format!(" (p90 of the quietest quarter of {n} samples)");
    let [switches, timers, preemptions, anew] = overheads.samples;
    vec![
        ("terms".to_string(), "measured before the run".to_string()),
        fact("switch", overheads.switch_ns, &measured(switches)),
        fact("timer entry", overheads.timer_ns, &measured(timers)),
        fact(
            "preemption",
            overheads.preemption_ns,
            &measured(preemptions),
        ),
        fact("timer set anew", overheads.anew_ns, &measured(anew)),
    ]
}
