//! A run: CPUs with their threads, for a while, for real.

pub(crate) mod backed;
pub(crate) mod carrier;
pub(crate) mod contain;
pub(crate) mod dropped;
pub(crate) mod fault;
pub(crate) mod foreign;
pub(crate) mod hook;
pub(crate) mod mode;
pub(crate) mod pool;
pub(crate) mod program;
pub(crate) mod setup;
pub(crate) mod spawn;
pub(crate) mod watchdog;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use punctual_kern::{ChildScheduler, Hierarchy, Shard, Sink};
use punctual_model::{Instant, ThreadId};

use crate::clock::{Clock, ClockSource, clock_rate};
use crate::cpu::LOOK_NS;
use crate::fresh;
use crate::host::Shared;
use crate::job::Body;
use crate::missing;
use crate::mode::{MemoryLock, claim_signal};
use crate::offset::{self, ClockOffset};
use crate::outcome::{CpuOutcome, Ending, Loss, Mode, Outcome, Panic};
use crate::post::Post;
use crate::setup::{CarrierPlan, Ready, Start, carrier};
use crate::tls::Library;
use crate::watchdog::Watchdog;

/// A thread of a plan.
pub struct ThreadPlan {
    /// Its id on the shard.
    pub id: ThreadId,
    /// Its name, for messages.
    pub name: String,
    /// What it executes.
    pub body: Body,
}

/// A scheduler of a plan that decides on its own supply.
#[derive(Debug)]
pub struct ChildPlan {
    /// Its name, for messages.
    pub name: String,
    /// What it executes.
    pub code: ChildScheduler,
}

/// One CPU of a plan. All instants count ticks of [`clock_rate`].
pub struct CpuPlan<H, S> {
    /// The host CPU that it is pinned to.
    pub host: u32,
    /// Its name in the system; its kernel thread is called `punctual/NAME`.
    pub name: String,
    /// The scheduler, with its threads attached.
    pub shard: Shard<H>,
    /// The recorder. Called inside the scheduler: it must not allocate, lock or block.
    pub sink: S,
    /// One per thread of the shard.
    pub threads: Vec<ThreadPlan>,
    /// The schedulers that decide on their own supply. One without code here never decides.
    pub children: Vec<ChildPlan>,
    /// The names of the shard's resources, by number.
    pub resources: Vec<String>,
    /// Arrivals of its sporadic threads, in order of time.
    pub arrivals: Vec<(Instant, ThreadId)>,
}

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Releases before this are covered; `None`: until stopped. Nanoseconds.
    pub duration_ns: Option<u64>,
    /// How long after that unfinished jobs may go on. Nanoseconds.
    pub grace_ns: u64,
    /// Try for real time (SCHED_FIFO, locked memory); what is refused is listed in the outcome.
    pub real_time: bool,
    /// SCHED_FIFO priority of the carriers, 1 to 98; the watchdog has one more.
    pub priority: i32,
    /// Usable bytes of each light thread's stack.
    pub stack_bytes: usize,
    /// Under SCHED_FIFO: give slices back to the rest of the system (600 us in every 10 ms in which
    /// a CPU did not sleep anyway), so that the kernel does not take 50 ms at once.
    pub give_back: bool,
    /// Ends the run when it becomes true (Ctrl-C).
    pub stop: Arc<AtomicBool>,
    /// Threads of each CPU that are prepared to be created while it runs ([`crate::spawn`]). The
    /// shards need room for them.
    pub pool: usize,
    /// Threads of each CPU that are created while it runs and kept by name for the outcome, at
    /// most; 72 bytes each, taken before the run.
    pub births: usize,
    /// How long the run may last beyond its duration and grace before the watchdog ends it.
    pub patience_ns: u64,
    /// A thread that runs on is interrupted after so long at the latest (nanoseconds). What the
    /// machine takes in its midst is seen where such a timer comes late, so shorter samples see
    /// more, for a timer entry each; the stop flag is looked at then, too.
    pub sample_ns: u64,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            duration_ns: None,
            grace_ns: 1_000_000_000,
            real_time: true,
            priority: 50,
            stack_bytes: 256 * 1024,
            give_back: true,
            stop: Arc::new(AtomicBool::new(false)),
            pool: 0,
            births: 0,
            patience_ns: 2_000_000_000,
            sample_ns: LOOK_NS,
        }
    }
}

/// Why a run could not be.
#[derive(Debug)]
pub enum RunError {
    /// A run is going on in this process already.
    Busy,
    /// Two CPUs of the plan are the same host CPU, or one does not exist or is not allowed.
    NoSuchCpu {
        /// The host CPU.
        host: u32,
        /// What can be used.
        allowed: Vec<u32>,
    },
    /// The C library lacks something that light threads need (they need glibc).
    Library {
        /// What is missing.
        symbol: &'static str,
    },
    /// The system refused something without which nothing runs.
    System {
        /// What was asked.
        what: &'static str,
        /// The refusal.
        error: io::Error,
    },
    /// A CPU did not come back when its run was over: a thread does not let itself be interrupted
    /// (a system call without end, or signals blocked). It was put back to the ordinary class and
    /// left behind.
    Stuck {
        /// The CPU's place in the plan.
        cpu: usize,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Busy => write!(f, "a run is going on in this process already"),
            RunError::NoSuchCpu { host, allowed } => {
                write!(
                    f,
                    "host CPU {host} cannot be used here (allowed, each once: {allowed:?})"
                )
            }
            RunError::Library { symbol } => {
                write!(
                    f,
                    "light threads need glibc, and this C library has no {symbol}"
                )
            }
            RunError::System { what, error } => write!(f, "cannot {what}: {error}"),
            RunError::Stuck { cpu } => write!(
                f,
                "CPU {cpu} of the plan did not come back after the run: a thread there cannot be \
                 interrupted (an endless system call, or blocked signals)"
            ),
        }
    }
}

impl std::error::Error for RunError {}

impl<H: fmt::Debug, S: fmt::Debug> fmt::Debug for CpuPlan<H, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.threads.iter().map(|t| t.name.as_str()).collect();
        f.debug_struct("CpuPlan")
            .field("host", &self.host)
            .field("name", &self.name)
            .field("threads", &names)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ThreadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ThreadPlan { id, name, .. } = self;
        f.debug_struct("ThreadPlan")
            .field("id", id)
            .field("name", name)
            .finish_non_exhaustive()
    }
}

static RUNNING: Mutex<()> = Mutex::new(());
static RUNS: AtomicU64 = AtomicU64::new(1);

/// Runs the plan and returns what it left behind. One run at a time per process. Everything that
/// it changes (signal handlers, memory locks, scheduling classes, timers) is as before afterwards.
///
/// # Errors
/// See [`RunError`]; a body that panics is not an error of the run.
pub fn run<H, S>(plan: Vec<CpuPlan<H, S>>, options: &RunOptions) -> Result<Outcome<S>, RunError>
where
    H: Hierarchy + Send + 'static,
    S: Sink + Send + 'static,
{
    let _one = match RUNNING.try_lock() {
        Ok(guard) => guard,
        Err(std::sync::TryLockError::Poisoned(guard)) => PoisonError::into_inner(guard),
        Err(std::sync::TryLockError::WouldBlock) => return Err(RunError::Busy),
    };
    check_cpus(&plan)?;
    let library = Library::find().map_err(|symbol| RunError::Library { symbol })?;
    fresh::find();
    hook::install();
    let rate = clock_rate();
    let mut lost = Vec::new();
    let _memory = options.real_time.then(|| MemoryLock::take(&mut lost));
    let signal = claim_signal()?;
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let _on = On::begin(number);
    let post = Post::new(plan.len(), signal.number());
    let shared = Arc::new(Shared::new(post, number, Arc::clone(&options.stop)));
    let hosts: Vec<u32> = plan.iter().map(|cpu| cpu.host).collect();
    let (results, outcomes) = channel();
    let mut crew = Vec::new();
    for (index, cpu) in plan.into_iter().enumerate() {
        let plan = CarrierPlan {
            index,
            cpu,
            options: options.clone(),
            signal: signal.number(),
            library,
            shared: Arc::clone(&shared),
        };
        crew.push(Member::start(plan, results.clone())?);
    }
    drop(results);
    let (mode, watched) = muster(&crew, &mut lost)?;
    let watchdog = Watchdog::start(&shared, options, mode, &hosts, &mut lost)?;
    let offsets = compare_clocks(&hosts, rate.source);
    start_all(&crew, &offsets, Clock::starting_in(rate, 2_000_000), mode);
    let collected = collect(&outcomes, crew.len(), watchdog.bound());
    let barked = watchdog.finish();
    if collected.is_err() {
        // A carrier that does not come back still needs its signal handler.
        signal.keep();
    }
    let (cpus, mut panics) = collected?;
    let of_pools = shared.panics.lock();
    panics.append(&mut of_pools.unwrap_or_else(PoisonError::into_inner));
    for member in crew {
        // It has sent its outcome, so it is about to end.
        let _ = member.handle.join();
    }
    shared.post.forget_bells();
    lost.extend(loss_of_crews(&shared));
    let stopped = options.stop.load(Ordering::Relaxed);
    let ending = match (barked, stopped) {
        (true, _) => Ending::Watchdog,
        (_, true) => Ending::Stopped,
        _ => Ending::Complete,
    };
    Ok(Outcome {
        cpus,
        mode,
        lost,
        frequency: rate.frequency,
        source: rate.source,
        ending,
        offsets,
        panics,
        missing: missing::method(watched),
    })
}

/// What it costs that crews stay ordinary threads between their turns.
fn loss_of_crews(shared: &Shared) -> Option<Loss> {
    shared.crews_stay.load(Ordering::Relaxed).then(|| Loss {
        what: "SCHED_IDLE",
        detail:
            "kernel-backed threads compete for their CPU between their turns, too (no way back \
                 for an ordinary user whose RLIMIT_NICE is less than 20)"
                .to_owned(),
    })
}

/// A run is on while this lives.
struct On;

impl On {
    fn begin(run: u64) -> On {
        dropped::begin(run);
        On
    }
}

impl Drop for On {
    fn drop(&mut self) {
        dropped::begin(0);
    }
}

/// Gives every CPU its clock, and the word to start.
fn start_all(crew: &[Member], offsets: &[Option<ClockOffset>], clock: Clock, mode: Mode) {
    for (member, offset) in crew.iter().zip(offsets) {
        let clock = clock.ahead_by(offset.map_or(0, ClockOffset::correction));
        // A carrier that has died is noticed when its outcome does not come.
        let _ = member.start.send(Start { clock, mode });
    }
}

/// How far the counter of each CPU is ahead of that of the first.
fn compare_clocks(hosts: &[u32], source: ClockSource) -> Vec<Option<ClockOffset>> {
    let same = ClockOffset { ticks: 0, error: 0 };
    let offset = |&host: &u32| {
        if host == hosts[0] || source == ClockSource::KernelClock {
            return Some(same);
        }
        offset::measure(hosts[0], host)
    };
    hosts.iter().map(offset).collect()
}

fn check_cpus<H, S>(plan: &[CpuPlan<H, S>]) -> Result<(), RunError> {
    let allowed = crate::sys::allowed_cpus().map_err(|error| RunError::System {
        what: "ask which CPUs are allowed",
        error,
    })?;
    let mut seen = Vec::new();
    for cpu in plan {
        if !allowed.contains(&cpu.host) || seen.contains(&cpu.host) {
            return Err(RunError::NoSuchCpu {
                host: cpu.host,
                allowed,
            });
        }
        seen.push(cpu.host);
    }
    Ok(())
}

/// A carrier as the caller of the run sees it.
struct Member {
    handle: std::thread::JoinHandle<()>,
    ready: Receiver<Result<Ready, RunError>>,
    start: Sender<Start>,
}

type Report<S> = (usize, CpuOutcome<S>, Vec<Panic>);

impl Member {
    fn start<H, S>(plan: CarrierPlan<H, S>, results: Sender<Report<S>>) -> Result<Member, RunError>
    where
        H: Hierarchy + Send + 'static,
        S: Sink + Send + 'static,
    {
        let (ready_out, ready) = channel();
        let (start, start_in) = channel();
        // The kernel keeps 15 bytes of a name.
        let name = format!("punctual/{}", plan.cpu.name);
        let handle = std::thread::Builder::new()
            .name(name)
            .spawn(move || {
                let index = plan.index;
                if let Some((outcome, panics)) = carrier(plan, &ready_out, &start_in) {
                    // Nobody listens any more when the run has been given up.
                    let _ = results.send((index, outcome, panics));
                }
            })
            .map_err(|error| RunError::System {
                what: "start a kernel thread",
                error,
            })?;
        Ok(Member {
            handle,
            ready,
            start,
        })
    }
}

/// Waits until every carrier is ready: real time needs all of them. Whether the kernel tells all of
/// them when it takes their CPU away.
fn muster(crew: &[Member], lost: &mut Vec<Loss>) -> Result<(Mode, bool), RunError> {
    let (mut mode, mut watched) = (Mode::RealTime, true);
    for member in crew {
        let died = || RunError::System {
            what: "prepare a CPU",
            error: io::Error::other("its kernel thread died"),
        };
        let ready = member.ready.recv().map_err(|_| died())??;
        if !ready.real_time {
            mode = Mode::BestEffort;
        }
        watched &= ready.watched;
        for loss in ready.lost {
            if !lost.contains(&loss) {
                lost.push(loss);
            }
        }
    }
    Ok((mode, watched))
}

type Collected<S> = (Vec<CpuOutcome<S>>, Vec<Panic>);

fn collect<S>(
    outcomes: &Receiver<Report<S>>,
    count: usize,
    bound: Option<Duration>,
) -> Result<Collected<S>, RunError> {
    let mut found: Vec<Option<CpuOutcome<S>>> = (0..count).map(|_| None).collect();
    let mut panics = Vec::new();
    let started = std::time::Instant::now();
    for _ in 0..count {
        let received = match bound {
            Some(bound) => outcomes.recv_timeout(bound.saturating_sub(started.elapsed())),
            None => outcomes.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let Ok((index, outcome, mut said)) = received else {
            let cpu = found.iter().position(Option::is_none).unwrap_or(0);
            return Err(RunError::Stuck { cpu });
        };
        found[index] = Some(outcome);
        panics.append(&mut said);
    }
    Ok((found.into_iter().flatten().collect(), panics))
}
