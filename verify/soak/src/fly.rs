//! One round: the system of a seed for real, recorded, checked and replayed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_child::ChildScheduler;
use punctual_generate::Random;
use punctual_kern::{NodeId, TraceEvent};
use punctual_linux::{
    Body, ChildInput, CpuOutcome, JobInfo, Mode, RunOptions, ThreadInput, clock_rate, job,
};
use punctual_model::{ArrivalTimes, Class, CpuId, Instant, Ns, PolicyKind, Span, ThreadId, Trust};
use punctual_policy::AnyPolicy;
use punctual_tables::{CpuTables, Tables};
use punctual_thread::sync::Notify;
use punctual_thread::thread;
use punctual_trace::{Header, Log, Record, Recorder};
use serde::{Deserialize, Serialize};

use crate::Cli;
use crate::book::{Book, Entry, Kept};
use crate::draw::{POOL, Role, Scenario, draw};
use crate::field::{Field, Round, compute};
use crate::manage::Manager;
use crate::manner::Child;

/// What one CPU may record: a bit more than a second of preemptions every 20 us.
pub(crate) const RECORDER_BYTES: usize = 96 << 20;
/// Threads that have not left the field after so many sleeps of the conductor are told of, and left
/// behind. Time would not do: where the processor is missing, nobody can leave.
const MOST_SLEEPS: u32 = 40_000;
const SLEEP: Span<Ns> = Span::from_us(500);
/// Longest time after its end that a round may take to settle, in nanoseconds.
const LONGEST_END_NS: u64 = 60_000_000_000;

/// The names of schedulers that decide on their own supply begin so.
const CHILD: &str = "child ";

/// What came out of a round.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) real_time: bool,
    pub(crate) preemptions: u64,
    pub(crate) entries: u64,
    pub(crate) switches: u64,
    pub(crate) deferrals: u64,
    pub(crate) deferred_max_ns: u64,
    pub(crate) missing_ns: u64,
    /// Signals that hit the way out of another signal.
    pub(crate) nested: u64,
    pub(crate) operations: u64,
    pub(crate) caught: u64,
    /// Requests about a tree that were done, and those that were refused.
    pub(crate) changes: u64,
    pub(crate) refused: u64,
    /// Gangs, admissions of them, refusals, and operations that a death has broken.
    pub(crate) gangs: u64,
    pub(crate) of_gangs: [u64; 3],
    /// Policies of children that came in the place of others.
    pub(crate) own: u64,
    /// Children that fell back to another policy.
    pub(crate) fell_back: u64,
    /// Events, changes and decisions that were the same when they were fed through the core again.
    pub(crate) replayed: u64,
    /// Entries from here on were not recorded, so not checked.
    pub(crate) cut: bool,
    pub(crate) violations: Vec<String>,
}

/// Flies the round of a seed on some of these host CPUs.
pub(crate) fn fly(cli: &Cli, hosts: &[u32]) -> Report {
    let scenario = draw(cli.seed, hosts);
    let mut report = Report {
        name: scenario.name.clone(),
        ..Report::default()
    };
    let flown = run(&scenario, cli, &mut report);
    judged(cli, flown, report)
}

/// The report of a round, with what its log shows.
pub(crate) fn judged(cli: &Cli, flown: Result<Log, String>, mut report: Report) -> Report {
    match flown {
        Ok(log) => {
            judge(&log, &mut report);
            if let Some(path) = cli.keep.as_ref().filter(|_| !report.violations.is_empty())
                && let Err(error) = keep(&log, path)
            {
                report.violations.push(format!("not kept: {error}"));
            }
        }
        Err(message) => report.violations.push(message),
    }
    report
}

fn judge(log: &Log, report: &mut Report) {
    report.cut = log.is_cut();
    let records = log.cpus.iter().flat_map(|cpu| cpu.records.iter());
    let fell =
        |(_, record): &(_, Record)| matches!(record, Record::Trace(TraceEvent::FellBack { .. }));
    report.fell_back = records.filter(fell).count() as u64;
    let found = punctual_rules::check(log);
    report
        .violations
        .extend(found.iter().take(5).map(ToString::to_string));
    match punctual_trace::replay(log, AnyPolicy::new) {
        Ok(stats) => report.replayed = stats.events + stats.changes + stats.decisions,
        Err(difference) => report.violations.push(format!("replay: {difference}")),
    }
}

fn keep(log: &Log, path: &Path) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    punctual_trace::text::write(log, &mut file)?;
    std::io::Write::flush(&mut file)
}

/// The tables of a scenario, with room for threads that are created.
fn tables(scenario: &Scenario, ms: u64) -> Tables {
    let system = &scenario.system;
    let frequency = clock_rate().frequency;
    let mut tables = Tables::new(system, frequency);
    tables.set_duration(system, Span::from_ms(ms));
    for cpu in &mut tables.cpus {
        // The body of a reservation needs more slices to come to its end.
        for (_, constraint) in &mut cpu.threads {
            if matches!(constraint.class, Class::Reservation { .. }) {
                constraint.until = Instant::MAX;
            }
        }
        // Slots name schedulers by numbers that follow those of the threads.
        let schedulers = cpu.capacity.entity_of(0);
        cpu.capacity.threads += POOL;
        cpu.capacity.nodes += scenario.spare[cpu.cpu.index()];
        let moved = cpu.capacity.entity_of(0) - schedulers;
        for slot in cpu
            .slots
            .iter_mut()
            .filter(|slot| slot.entity >= schedulers)
        {
            slot.entity += moved;
        }
        cpu.capacity.pending += 4 * POOL + 64;
        cpu.capacity.background_turn =
            Span::from_ticks(frequency.ticks_up(scenario.turn_us * 1_000));
    }
    tables
}

fn run(scenario: &Scenario, cli: &Cli, report: &mut Report) -> Result<Log, String> {
    let (seed, ms) = (cli.seed, cli.round_ms);
    let system = &scenario.system;
    system
        .validate()
        .map_err(|errors| format!("not a system: {errors:?}"))?;
    let tables = tables(scenario, ms);
    let end = Instant::from_ns(ms * 1_000_000);
    let cpus = system.cpus.len();
    // Threads that were left behind may look at it until the process ends.
    let round: &'static Round = Box::leak(Box::new(Round::new(cpus, end)));
    let options = RunOptions {
        duration_ns: Some(ms * 1_000_000 + LONGEST_END_NS),
        grace_ns: 0,
        patience_ns: 2_000_000_000,
        stack_bytes: 128 * 1024,
        pool: POOL,
        real_time: !cli.best_effort,
        early_ns: 20_000,
        ..RunOptions::default()
    };
    let inputs =
        (0..cpus).map(|cpu| cpu_input(scenario, &tables, cpu, seed, (round, &options.stop)));
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let outcome = punctual_linux::run(inputs, &options).map_err(|error| error.to_string())?;
    report.real_time = outcome.mode == Mode::RealTime;
    if round.settled.load(Ordering::SeqCst) == cpus as u64 {
        round.settle();
    } else {
        report
            .violations
            .push(format!("it did not settle: {:?}", outcome.ending));
    }
    report.operations = round.operations.load(Ordering::SeqCst);
    report.changes = round.changes[0].load(Ordering::SeqCst);
    report.refused = round.changes[1].load(Ordering::SeqCst);
    report.own = round.own.load(Ordering::SeqCst);
    report.caught = round.caught.load(Ordering::SeqCst);
    report.violations.extend(round.notes());
    // Some children are meant to.
    let meant = |panic: &&punctual_linux::Panic| {
        panic.name.starts_with(CHILD) && panic.message == crate::manner::LAST_WORDS
    };
    for panic in outcome.panics.iter().filter(|panic| !meant(panic)) {
        report
            .violations
            .push(format!("{} panicked: {}", panic.name, panic.message));
    }
    let header = Header {
        platform: "linux".to_owned(),
        tool: "soak".to_owned(),
        source: scenario.name.clone(),
        seed,
        stopped: Some("by its conductor".to_owned()),
        ..Header::default()
    };
    let mut log = Log::new(header, system, tables);
    for (cpu, outcome) in system.cpus.iter().zip(outcome.cpus) {
        count(&outcome, report);
        log.add_cpu(&cpu.name, cpu.host, outcome.sink);
    }
    log.header.duration = Span::from_ns(log.ns(log.header.end.ticks()));
    Ok(log)
}

pub(crate) fn count(outcome: &CpuOutcome<Recorder>, report: &mut Report) {
    let counters = outcome.counters;
    report.preemptions += counters.preemptions;
    report.entries += counters.decisions;
    report.switches += counters.switches;
    report.deferrals += counters.deferrals;
    report.deferred_max_ns = report.deferred_max_ns.max(counters.deferred_max_ns);
    report.missing_ns += counters.missing_ns;
    report.nested += counters.nested;
    for wait in &outcome.waits {
        let (what, detail) = (&wait.what, &wait.detail);
        report
            .violations
            .push(format!("a thread waited in the kernel: {what}: {detail}"));
    }
}

type LinuxInput = punctual_linux::CpuInput<AnyPolicy, Recorder>;

fn cpu_input(
    scenario: &Scenario,
    tables: &Tables,
    cpu: usize,
    seed: u64,
    (round, stop): (&'static Round, &Arc<AtomicBool>),
) -> Result<LinuxInput, String> {
    let system = &scenario.system;
    let of_cpu = &tables.cpus[cpu];
    // Where time is divided, only those with slots have any.
    let may_create = !matches!(of_cpu.policy, PolicyKind::Tdm { .. });
    let threads = of_cpu.threads.len();
    let field = Field::new(round, cpu, (&scenario.games[cpu], threads), may_create);
    let field: &'static Field = Box::leak(Box::new(field));
    let mut manager = Some(manager(scenario, of_cpu));
    let mut threads = Vec::new();
    for (index, (task, _)) in (0_u32..).zip(&of_cpu.threads) {
        let role = scenario.roles[task.index()];
        let one_body = !system.tasks[task.index()].class.runs_per_job();
        if one_body && role != Role::Conductor {
            field.inside.fetch_add(1, Ordering::SeqCst);
        }
        let dice = Random::at(seed, &[2, task.index() as u64]);
        threads.push(ThreadInput {
            id: ThreadId::new(index, 0),
            name: system.tasks[task.index()].name.clone(),
            body: match role {
                Role::Manager => managing(manager.take(), field, dice),
                _ => body((role, index), one_body, field, dice, Arc::clone(stop)),
            },
        });
    }
    Ok(LinuxInput {
        host: system.cpus[cpu].host.unwrap_or(0),
        name: system.cpus[cpu].name.clone(),
        shard: of_cpu
            .build(AnyPolicy::new)
            .map_err(|error| format!("no valid tables: {error:?}"))?,
        sink: Recorder::with_capacity(RECORDER_BYTES).map_err(|error| error.to_string())?,
        threads,
        children: children(scenario, of_cpu, seed),
        resources: Vec::new(),
        arrivals: arrivals(scenario, tables, of_cpu.cpu, round.end),
        plan: punctual_kern::Plan::default(),
    })
}

/// The manager of a CPU, with all that there is at the start but itself and the conductor.
fn manager(scenario: &Scenario, cpu: &CpuTables) -> Manager {
    let entry = |place: u16, parent: u16| Entry {
        id: NodeId::new(place, 0),
        parent: NodeId::new(parent, 0),
        receiver: None,
        quota: false,
        decides: false,
        falls: false,
        divides: false,
        stays: true,
    };
    let root = Entry {
        divides: matches!(cpu.policy, PolicyKind::Tdm { .. }),
        ..entry(0, 0)
    };
    let below = (1..).zip(&cpu.nodes).map(|(place, row)| Entry {
        decides: row.terms.trust == Trust::OwnTime,
        falls: cpu.fallbacks.iter().any(|row| row.node == place),
        ..entry(place, row.parent)
    });
    let threads = (0..).zip(cpu.threads.iter().zip(&cpu.homes));
    let threads = threads.filter(|(_, ((task, _), _))| {
        let role = scenario.roles[task.index()];
        !matches!(role, Role::Conductor | Role::Manager)
    });
    let kept = threads.map(|(index, (_, home))| Kept {
        id: ThreadId::new(index, 0),
        care: NodeId::new(*home, 0),
        on: None,
        held: None,
        perhaps: false,
    });
    Manager {
        book: Book {
            nodes: [root].into_iter().chain(below).collect(),
            threads: kept.collect(),
            room: usize::from(cpu.capacity.nodes) + 1,
        },
        entities: cpu.capacity.entities(),
    }
}

/// The body of a manager.
fn managing(manager: Option<Manager>, field: &'static Field, mut dice: Random) -> Body {
    let mut manager = manager;
    Box::new(move |_| {
        let _inside = Inside(field);
        if let Some(manager) = manager.take() {
            manager.work(field, &mut dice);
        }
    })
}

/// The schedulers that decide on their own supply, each in its manner.
fn children(scenario: &Scenario, cpu: &CpuTables, seed: u64) -> Vec<ChildInput> {
    let nodes = (1_u16..).zip(&cpu.nodes);
    let own_time = nodes.filter(|(_, node)| node.terms.trust == Trust::OwnTime);
    let code = |(place, node): (u16, &punctual_tables::NodeRow)| {
        let scheduler = node.scheduler.index();
        let dice = Random::at(seed, &[4, scheduler as u64]);
        let order = (node.policy, cpu.capacity.entities());
        let child = Child::new(order, scenario.manners[scheduler], dice);
        let id = NodeId::new(place, 0);
        ChildInput {
            name: format!("{CHILD}{place}"),
            code: ChildScheduler::new(id, cpu.capacity.threads, Box::new(child)),
        }
    };
    own_time.map(code).collect()
}

/// Arrivals of sporadic threads before the end of the round, in order.
fn arrivals(
    scenario: &Scenario,
    tables: &Tables,
    cpu: CpuId,
    end: Instant<Ns>,
) -> Vec<(Instant, ThreadId)> {
    let mut list = Vec::new();
    for (index, (task, _)) in (0_u32..).zip(&tables.cpus[cpu.index()].threads) {
        let task = &scenario.system.tasks[task.index()];
        if let Class::Sporadic { min_separation, .. } = task.class {
            let times = ArrivalTimes::new(&task.arrivals, task.phase, min_separation, 0);
            let times = times.take_while(|at| *at < end);
            list.extend(times.map(|at| (at.ticks_up(tables.frequency), ThreadId::new(index, 0))));
        }
    }
    list.sort_by_key(|(at, thread)| (*at, thread.index()));
    list
}

/// Somebody is on the field until this is dropped.
struct Inside(&'static Field);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Counts how often it was executed, on its stack and beside it: a frame that is resumed twice is
/// behind.
struct Executions {
    here: u64,
    there: &'static AtomicU64,
}

impl Executions {
    fn new(there: &'static AtomicU64) -> Executions {
        Executions { here: 0, there }
    }

    fn next(&mut self, field: &Field) {
        let there = self.there.fetch_add(1, Ordering::SeqCst);
        if there != self.here {
            field.note(format!("executed twice: step {} is {there}", self.here));
        }
        self.here += 1;
    }
}

fn body(
    (role, index): (Role, u32),
    one_body: bool,
    field: &'static Field,
    mut dice: Random,
    stop: Arc<AtomicBool>,
) -> Body {
    if role == Role::Conductor {
        return Box::new(move |_: &JobInfo| conduct(field, &stop));
    }
    let mut jobs = 0;
    let mut executions = Executions::new(&field.steps[index as usize]);
    Box::new(move |info: &JobInfo| {
        if !one_body {
            field.inside.fetch_add(1, Ordering::SeqCst);
            if info.index < jobs {
                field.note(format!("job {} after job {}", info.index, jobs - 1));
            }
            jobs = info.index + 1;
        }
        let _inside = Inside(field);
        let mut left = if one_body {
            u64::MAX
        } else {
            dice.within(1, 4)
        };
        match role {
            Role::Side { game, side } => field.pairs[game].play(side, field, &mut dice),
            Role::Ringer => ring(field, &mut dice),
            _ => {
                while left > 0 && !field.is_over() {
                    left -= 1;
                    executions.next(field);
                    match role {
                        Role::Member => field.meet(&mut dice),
                        Role::Burner => {
                            compute(20_000, field);
                            job::checkpoint();
                        }
                        _ => field.play(&mut dice),
                    }
                }
            }
        }
    })
}

/// Rings the bell of the next CPU and hears its own.
fn ring(field: &'static Field, dice: &mut Random) {
    let round = field.round;
    let Ok(mine) = Notify::new() else {
        return field.note("no bell".to_owned());
    };
    let put = |cpu: usize| {
        round.bells[cpu]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    };
    *put(field.cpu) = Some(mine.clone());
    let other = (field.cpu + 1) % round.bells.len();
    let hear = |within: u64| {
        if let Ok(rings) = mine.wait_within(Span::from_us(within)) {
            round.heard[field.cpu].fetch_add(rings, Ordering::SeqCst);
        }
    };
    while !field.is_over() {
        field.step();
        let theirs = put(other).clone();
        for _ in 0..dice.below(4) {
            if let Some(notify) = &theirs {
                round.rung[other].fetch_add(1, Ordering::SeqCst);
                if let Err(error) = notify.notify() {
                    field.note(format!("notify: {error}"));
                }
            }
        }
        hear(dice.below(500));
    }
    round.ringers.fetch_sub(1, Ordering::SeqCst);
    while round.ringers.load(Ordering::SeqCst) > 0 && !field.is_given_up() {
        thread::sleep(Span::from_us(200));
    }
    // The last rings may still be on their way.
    for _ in 0..5 {
        hear(2_000);
    }
}

/// Waits for the end, then until the field is empty, and balances the books.
fn conduct(field: &'static Field, stop: &AtomicBool) {
    thread::sleep_until(field.round.end);
    let mut sleeps = 0;
    while field.inside.load(Ordering::SeqCst) > 0 && sleeps < MOST_SLEEPS {
        thread::sleep(SLEEP);
        sleeps += 1;
    }
    let inside = field.inside.load(Ordering::SeqCst);
    if inside > 0 {
        field.give_up();
        field.note(format!("{inside} threads did not leave: {:?}", field.pairs));
    } else {
        field.settle();
    }
    let settled = field.round.settled.fetch_add(1, Ordering::SeqCst) + 1;
    if settled == field.round.bells.len() as u64 {
        stop.store(true, Ordering::Relaxed);
    }
}
