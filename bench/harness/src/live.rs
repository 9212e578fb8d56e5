//! Light threads for figures: a run on one CPU or two that lasts until a body ends it.
//!
//! As in any run: under SCHED_FIFO where that is permitted, with slices given back to the kernel's
//! fair server, and with everything recorded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use punctual_kern::{Constraint, Plan};
use punctual_linux::{
    Body, CpuCounters, CpuInput, GiveBack, Mode, Outcome, RunOptions, SlotFrame, Spread,
    ThreadInput, clock_rate, measure_overheads, run,
};
use punctual_model::{
    Class, Cpu, CpuId, Instant, Ns, PolicyKind, Priority, Scheduler, SchedulerId, Server,
    ServerKind, Span, Supply, System, Task, ThreadId, Trust,
};
use punctual_policy::AnyPolicy;
use punctual_rivals::Place;
use punctual_tables::{CpuTables, Tables};
use punctual_trace::Recorder;
use rustix::thread::{CpuSet, sched_getaffinity};

use super::counting;
use super::figure::Measured;

/// Stack of a light thread: some figures have a thousand of them.
const STACK: usize = 64 * 1024;

/// Beyond any run.
const LONG: Span<Ns> = Span::from_ns(3_600_000_000_000);

/// The CPUs that this process may use. The last is the quietest, as a rule: the first ones have
/// more of everybody's work.
pub(crate) fn allowed() -> Result<Vec<u32>, String> {
    let allowed = sched_getaffinity(None).map_err(|error| error.to_string())?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    Ok(cpus.filter_map(|cpu| u32::try_from(cpu).ok()).collect())
}

/// Where rivals run: where the light threads do, in the same class.
pub(super) fn place() -> Result<Place, String> {
    let mut cpus = allowed()?;
    let cpu = cpus.pop().ok_or("no CPU may be used")? as usize;
    Ok(Place {
        cpu,
        other: cpus.pop().map(|other| other as usize),
        real_time: !counting::is_on(),
    })
}

/// A run to be.
pub(super) struct Live {
    pub(super) policy: PolicyKind<Ns>,
    /// Tasks with their bodies; those of CPU 1 need a second one.
    pub(super) tasks: Vec<(Task, Body)>,
    /// Schedulers between the CPU's own and the tasks.
    pub(super) levels: u16,
    /// When jobs of the first task arrive, if nothing else releases them.
    pub(super) arrivals: Vec<Span<Ns>>,
    /// Threads that bodies create.
    pub(super) pool: usize,
    /// Room for the records of a CPU.
    pub(super) record_bytes: usize,
    /// Give slices back to the kernel's fair server, as any longer run does.
    pub(super) give_back: GiveBack,
}

impl Live {
    /// These tasks under that policy, with 16 MiB of records.
    pub(super) fn of(policy: PolicyKind<Ns>, tasks: Vec<(Task, Body)>) -> Live {
        Live {
            policy,
            tasks,
            levels: 0,
            arrivals: Vec::new(),
            pool: 0,
            record_bytes: 16 << 20,
            give_back: RunOptions::default().give_back,
        }
    }

    /// One thread that measures, under fixed priority.
    pub(super) fn measuring(priority: u32, body: Body) -> Live {
        let tasks = vec![(endless("measuring", priority, 1), body)];
        Live::of(PolicyKind::FixedPriority { preemptive: true }, tasks)
    }
}

/// What a body measures, and how it ends the run.
#[derive(Clone, Default)]
pub(super) struct Notebook {
    samples: Arc<Mutex<Vec<f64>>>,
    failure: Arc<Mutex<Option<String>>>,
    stop: Arc<AtomicBool>,
}

impl Notebook {
    /// Keeps a sample.
    pub(super) fn push(&self, ns: f64) {
        let samples = self.samples.lock();
        samples.unwrap_or_else(PoisonError::into_inner).push(ns);
    }

    /// Keeps so many samples, after a first one that touches everything for the first time. At the
    /// first failure it ends the run; returns whether there was none.
    pub(super) fn take(
        &self,
        samples: usize,
        mut sample: impl FnMut() -> Result<f64, String>,
    ) -> bool {
        for number in 0..=samples {
            match sample() {
                Ok(ns) if number > 0 => self.push(ns),
                Ok(_) => {}
                Err(why) => {
                    self.fail(why);
                    return false;
                }
            }
        }
        true
    }

    /// The same for a body that is the whole run.
    pub(super) fn take_all(&self, samples: usize, sample: impl FnMut() -> Result<f64, String>) {
        if self.take(samples, sample) {
            self.end();
        }
    }

    /// How many samples there are.
    pub(super) fn len(&self) -> usize {
        let samples = self.samples.lock();
        samples.unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Keeps why there can be no figure, and ends the run.
    pub(super) fn fail(&self, why: impl Into<String>) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = failure.get_or_insert(why.into());
        self.end();
    }

    /// Ends the run.
    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the run is to end.
    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A task with one job whose budget no measurement exhausts.
pub(super) fn endless(name: &str, priority: u32, urgency: u64) -> Task {
    let deadline = Span::from_ns(LONG.as_ns() / (urgency + 1));
    periodic(name, LONG, deadline, priority)
}

/// A task of that period whose budget is all of it.
pub(super) fn periodic(
    name: &str,
    period: Span<Ns>,
    relative_deadline: Span<Ns>,
    priority: u32,
) -> Task {
    let class = Class::Periodic {
        period,
        wcet: period.as_work(),
        relative_deadline,
    };
    let mut task = Task::new(name, CpuId(0), class);
    task.priority = Priority::new(priority);
    task
}

/// The constraint of a thread that a body creates.
pub(super) fn constraint(task: &Task) -> Constraint<Ns> {
    Constraint::of_task(task, 1_000_000)
}

/// The system of these tasks under one policy, and its tables for releases of so long.
pub(super) fn tables_of(policy: PolicyKind<Ns>, tasks: Vec<Task>, for_ns: u64) -> (System, Tables) {
    tables_below(0, policy, tasks, for_ns)
}

/// The same, where the tasks are so many schedulers below the CPU's own, one below the other, each
/// with that policy and on a server.
fn tables_below(
    levels: u16,
    policy: PolicyKind<Ns>,
    mut tasks: Vec<Task>,
    for_ns: u64,
) -> (System, Tables) {
    let count = 1 + tasks.iter().map(|task| task.cpu.0).max().unwrap_or(0);
    let cpu = |index: u16| Cpu {
        name: format!("bench{index}"),
        host: None,
        policy,
    };
    let scheduler = |level: u16| Scheduler {
        name: format!("level{level}"),
        cpu: CpuId(0),
        parent: level.checked_sub(1).map(SchedulerId),
        policy,
        priority: Priority::new(1),
        supply: Supply::Server(Server {
            kind: ServerKind::Deferrable,
            budget: LONG.as_work(),
            period: LONG,
        }),
        trust: Trust::Inline,
        quota: None,
        fallback: None,
        code: None,
        receiver: None,
    };
    for task in &mut tasks {
        task.scheduler = levels.checked_sub(1).map(SchedulerId);
    }
    let system = System {
        cpus: (0..count).map(cpu).collect(),
        schedulers: (0..levels).map(scheduler).collect(),
        tasks,
        ..System::default()
    };
    let mut tables = Tables::new(&system, clock_rate().frequency);
    tables.set_duration(&system, Span::from_ns(for_ns));
    (system, tables)
}

impl Live {
    /// Runs until a body ends it, and gives what was kept in `notebook`.
    pub(super) fn run(self, notebook: &Notebook) -> Result<Measured, String> {
        let (_, outcome) = self.fly(notebook, MOST_NS)?;
        notebook.measured(&outcome)
    }

    /// Runs until a body ends it, or releases of so long are over.
    pub(super) fn fly(self, notebook: &Notebook, for_ns: u64) -> Result<(Tables, Flown), String> {
        counting::goes_on();
        let (tasks, bodies): (Vec<Task>, Vec<Body>) = self.tasks.into_iter().unzip();
        let (system, mut tables) = tables_below(self.levels, self.policy, tasks, for_ns);
        let mut hosts = allowed()?;
        let mut bodies: Vec<Option<Body>> = bodies.into_iter().map(Some).collect();
        let mut cpus = Vec::new();
        let clock = clock_rate().frequency;
        let frame = |cpu: &CpuTables| SlotFrame::of(cpu.policy, &cpu.slots);
        let arrival = |at: Span<Ns>| {
            let at = Instant::ZERO.saturating_add(at.ticks_up(clock));
            (at, ThreadId::new(0, 0))
        };
        for (cpu, name) in tables.cpus.iter_mut().zip(&system.cpus) {
            cpu.capacity.threads += self.pool;
            cpu.capacity.pending += self.pool;
            let threads = (0_u32..).zip(&cpu.threads).filter_map(|(index, (id, _))| {
                Some(ThreadInput {
                    id: ThreadId::new(index, 0),
                    name: system.tasks[id.index()].name.clone(),
                    body: bodies.get_mut(id.index())?.take()?,
                })
            });
            cpus.push(CpuInput {
                host: hosts
                    .pop()
                    .ok_or("this process may not use that many CPUs")?,
                name: name.name.clone(),
                threads: threads.collect(),
                shard: cpu
                    .build(AnyPolicy::new)
                    .map_err(|error| error.to_string())?,
                sink: Recorder::with_capacity(self.record_bytes).map_err(|e| e.to_string())?,
                children: Vec::new(),
                resources: Vec::new(),
                arrivals: self.arrivals.iter().map(|&at| arrival(at)).collect(),
                plan: Plan::default(),
            });
        }
        let options = RunOptions {
            // As an ordinary user: the same instructions for everybody.
            real_time: !counting::is_on(),
            stop: Arc::clone(&notebook.stop),
            stack_bytes: STACK,
            pool: self.pool,
            duration_ns: Some(for_ns),
            give_back: self.give_back,
            early_ns: early()?,
            frames: tables.cpus.iter().map(frame).collect(),
            ..RunOptions::default()
        };
        let outcome = run(cpus, &options).map_err(|error| error.to_string())?;
        Ok((tables, outcome))
    }
}

/// How much earlier timers of releases are set: by what a preemption takes here, as in any run.
fn early() -> Result<u64, String> {
    static EARLY: OnceLock<u64> = OnceLock::new();
    if counting::is_on() {
        return Ok(0);
    }
    if let Some(&early) = EARLY.get() {
        return Ok(early);
    }
    let cpu = *allowed()?.last().ok_or("no CPU may be used")?;
    let measured = measure_overheads(cpu, &RunOptions::default());
    let overheads = measured.map_err(|error| error.to_string())?;
    Ok(*EARLY.get_or_init(|| overheads.early_ns))
}

/// What a run leaves behind.
pub(super) type Flown = Outcome<Recorder>;

/// What the machine refused.
pub(super) fn losses(outcome: &Flown) -> Vec<String> {
    match outcome.mode {
        Mode::RealTime => Vec::new(),
        Mode::BestEffort => {
            let lost = outcome.lost.iter();
            lost.map(|l| format!("{}: {}", l.what, l.detail)).collect()
        }
    }
}

/// The boundaries of slots as the run counted them, without those at which time was missing.
fn of_slots(counters: &CpuCounters) -> Option<String> {
    let seen = &counters.boundaries;
    let cycles = |ns: u64| ns * (clock_rate().frequency.hertz() / 1_000_000) / 1_000;
    let of = |name: &str, spread: &Spread| {
        let [p50, p99, max] = [spread.p50_ns, spread.p99_ns, spread.max_ns].map(cycles);
        format!("{name} p50 {p50}, p99 {p99}, max {max} cycles")
    };
    (seen.work.count > 0).then(|| {
        let late = match seen.late_programs.count {
            0 => of("owners go on after", &seen.late),
            _ => of("programs are raised after", &seen.late_programs),
        };
        let (count, disturbed) = (seen.work.count, seen.disturbed);
        let work = of("work of the core", &seen.work);
        format!("{count} boundaries, time missing at {disturbed}; {work}; the others: {late}")
    })
}

/// No figure takes longer.
pub(super) const MOST_NS: u64 = 20_000_000_000;

impl Notebook {
    pub(super) fn measured(&self, outcome: &Flown) -> Result<Measured, String> {
        let failure = self.failure.lock();
        if let Some(why) = failure.unwrap_or_else(PoisonError::into_inner).take() {
            return Err(why);
        }
        if let Some(panic) = outcome.panics.first() {
            return Err(format!("{} panicked: {}", panic.name, panic.message));
        }
        let mut notes = losses(outcome);
        if outcome
            .cpus
            .iter()
            .any(|cpu| cpu.sink.lost_from().is_some())
        {
            notes.push("the recorder was full before the end".into());
        }
        notes.extend(
            outcome
                .cpus
                .iter()
                .filter_map(|cpu| of_slots(&cpu.counters)),
        );
        let missing = outcome.cpus.iter().map(|cpu| cpu.counters.missing_ns);
        let samples = self.samples.lock();
        Ok(Measured {
            samples: std::mem::take(&mut samples.unwrap_or_else(PoisonError::into_inner)),
            missing_ns: Some(missing.sum()),
            notes,
            observations: None,
            parts: Vec::new(),
        })
    }
}
