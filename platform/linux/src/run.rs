//! A run: CPUs with their threads, for a while, for real.

pub(crate) mod backed;
pub(crate) mod beside;
pub(crate) mod carrier;
pub(crate) mod catching;
pub(crate) mod contain;
pub(crate) mod contained_call;
pub(crate) mod dropped;
pub(crate) mod fault;
pub(crate) mod foreign;
pub(crate) mod foreign_policy;
pub(crate) mod hook;
pub(crate) mod life;
pub(crate) mod manage;
pub(crate) mod mode;
pub(crate) mod onlooker;
pub(crate) mod own;
pub(crate) mod pool;
pub(crate) mod program;
pub(crate) mod recovery;
pub(crate) mod room;
pub(crate) mod setup;
pub(crate) mod spawn;
pub(crate) mod stand_in;
pub(crate) mod tls_reset;
pub(crate) mod watchdog;

use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use punctual_kern::{Policy, Sink};
use punctual_linux_io::Origin;

use crate::entry::missing;
use crate::record::input::{CpuInput, RunError, RunOptions};
use crate::record::outcome::{ClocksSeen, CpuOutcome, Ending, Loss, Mode, Outcome, Panic};
use crate::record::per_cpu::Shared;
use crate::record::post::Post;
use crate::record::takers::MOST_TAKERS;
use crate::run::beside::check_libraries;
use crate::run::mode::{MemoryLock, claim_signal};
use crate::run::onlooker::{Onlooker, Seen};
use crate::run::room::check_room;
use crate::run::setup::{CarrierInput, Ready, Start, carrier};
use crate::run::watchdog::Watchdog;
use crate::storage::tls::Library;
use crate::time::clock::{Clock, ClockRate, clock_rate};
use crate::time::clock_watch::ClockWatch;
use crate::time::offset::{self, ClockOffset};
use crate::wait::calls;

static RUNNING: Mutex<()> = Mutex::new(());
static RUNS: AtomicU64 = AtomicU64::new(1);

/// How a run ended whose threads have all ended.
fn ending(barked: bool, options: &RunOptions) -> Ending {
    match (barked, options.stop.load(Ordering::Relaxed)) {
        (true, _) => Ending::Watchdog,
        (_, true) => Ending::Stopped,
        _ => Ending::Complete,
    }
}

/// Runs the CPUs and returns what they left behind. One run at a time per process. Everything that
/// it changes (signal handlers, memory locks, scheduling classes, timers) is as before afterwards.
///
/// # Errors
/// See [`RunError`]; a body that panics is not an error of the run.
pub fn run<P, S>(input: Vec<CpuInput<P, S>>, options: &RunOptions) -> Result<Outcome<S>, RunError>
where
    P: Policy + Send + 'static,
    S: Sink + Send + 'static,
{
    let _one = alone()?;
    check_libraries()?;
    check_cpus(&input)?;
    check_threads(&input, options)?;
    let library = Library::find().map_err(|symbol| RunError::Library { symbol })?;
    tls_reset::find();
    hook::install();
    calls::install();
    let rate = clock_rate();
    let mut lost = Vec::new();
    let _memory = options.real_time.then(|| MemoryLock::take(&mut lost));
    let signal = claim_signal()?;
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let _on = On::begin(number);
    let post = Post::new(input.len(), signal.number());
    let hosts: Vec<u32> = input.iter().map(|cpu| cpu.host).collect();
    let origin = Origin::of_caller(&hosts);
    let clocks = watch_of(hosts.len(), rate, options);
    let shared = Shared::new(post, number, Arc::clone(&options.stop), (origin, clocks));
    let shared = Arc::new(shared);
    let (results, outcomes) = channel();
    let mut carriers = Vec::new();
    for (index, cpu) in input.into_iter().enumerate() {
        let input = CarrierInput {
            index,
            cpu,
            options: options.clone(),
            signal: signal.number(),
            library,
            shared: Arc::clone(&shared),
        };
        carriers.push(CarrierHandle::start(input, results.clone())?);
    }
    drop(results);
    let (mode, (watched, told)) = await_ready(&carriers, &mut lost)?;
    let watchdog = Watchdog::start(&shared, options, mode, &hosts, &mut lost)?;
    let offsets = compare_clocks(&hosts, rate, &shared);
    let clock = Clock::starting_in(rate, 2_000_000);
    let onlooker = Onlooker::start(&shared, &hosts, clock, (mode, told)).ok();
    start_all(&carriers, &offsets, clock, mode);
    let collected = collect(&outcomes, carriers.len(), watchdog.bound());
    let barked = watchdog.finish();
    if collected.is_err() {
        // A carrier that does not come back still needs its signal handler.
        signal.keep();
    }
    let seen = onlooker.map(Onlooker::finish).unwrap_or_default();
    let (mut cpus, mut panics) = collected?;
    lost.extend(name_takers(&mut cpus, &shared, seen));
    let of_pools = shared.panics.lock();
    panics.append(&mut of_pools.unwrap_or_else(PoisonError::into_inner));
    // Each has sent its outcome, so it is about to end.
    carriers
        .into_iter()
        .for_each(|carrier| drop(carrier.handle.join()));
    shared.post.forget_notified();
    lost.extend(loss_of_groups(&shared));
    lost.extend(tls_reset::loss().filter(|_| options.pool > 0));
    Ok(Outcome {
        cpus,
        mode,
        lost,
        frequency: rate.frequency,
        source: rate.source,
        ending: ending(barked, options),
        offsets,
        clocks: found_by(&shared, rate),
        panics,
        missing: missing::method(watched),
    })
}

/// Gives those who took time from each CPU their names. They may be more than a run notes.
fn name_takers<S>(cpus: &mut [CpuOutcome<S>], shared: &Shared, mut seen: Seen) -> Option<Loss> {
    let mut all = shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
    let mut is_full = false;
    for (cpu, takers) in all.drain(..) {
        is_full |= takers.len() >= MOST_TAKERS;
        if let Some(outcome) = cpus.get_mut(cpu) {
            outcome.takers = seen.named(cpu, &takers);
        }
    }
    is_full.then(|| Loss {
        what: "names of threads that took time",
        detail: format!(
            "a run notes {MOST_TAKERS} of them per CPU; what was taken later has no name"
        ),
    })
}

/// What it costs that thread groups stay ordinary threads between their turns.
fn loss_of_groups(shared: &Shared) -> Option<Loss> {
    shared.groups_stay.load(Ordering::Relaxed).then(|| Loss {
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

/// One run at a time.
fn alone() -> Result<MutexGuard<'static, ()>, RunError> {
    match RUNNING.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(guard)) => Ok(guard.into_inner()),
        Err(TryLockError::WouldBlock) => Err(RunError::Busy),
    }
}

/// The watch over the clocks of so many CPUs, where there is more than one.
fn watch_of(cpus: usize, rate: ClockRate, options: &RunOptions) -> Option<ClockWatch> {
    let ticks = |ns| rate.frequency.ticks_up(ns);
    let watch = (cpus > 1).then(|| ClockWatch::new(cpus, ticks))?;
    if let Some(counted) = options.watch_clocks {
        watch.allow(ticks(counted));
    }
    Some(watch)
}

/// How far the clock of each CPU is ahead of that of the first, and for the threads of the run by
/// how much they may differ.
fn compare_clocks(hosts: &[u32], rate: ClockRate, shared: &Shared) -> Vec<Option<ClockOffset>> {
    let offsets = offset::compare(hosts, rate.source);
    let error = offset::error_of(&offsets, rate.frequency);
    let error = error.unwrap_or(u64::MAX);
    shared.clock_error.store(error, Ordering::Relaxed);
    offsets
}

/// The findings of the watch over the clocks, in nanoseconds.
fn found_by(shared: &Shared, rate: ClockRate) -> ClocksSeen {
    let (compared, apart) = shared.clocks.as_ref().map_or((0, None), ClockWatch::found);
    ClocksSeen {
        compared,
        apart_ns: apart.map(|at| rate.frequency.ns_up(at)),
    }
}

/// Gives every CPU its clock, and the word to start.
fn start_all(
    carriers: &[CarrierHandle],
    offsets: &[Option<ClockOffset>],
    clock: Clock,
    mode: Mode,
) {
    for (carrier_handle, offset) in carriers.iter().zip(offsets) {
        let clock = clock.ahead_by(offset.map_or(0, ClockOffset::correction));
        // A carrier that has died is noticed when its outcome does not come.
        let _ = carrier_handle.start.send(Start { clock, mode });
    }
}

fn check_threads<P, S>(input: &[CpuInput<P, S>], options: &RunOptions) -> Result<(), RunError> {
    let own = |cpu: &CpuInput<P, S>| cpu.threads.len() + cpu.children.len();
    let own = input.iter().map(own).max().unwrap_or(0);
    check_room(input.len(), own.saturating_add(options.pool), options)
}

fn check_cpus<P, S>(input: &[CpuInput<P, S>]) -> Result<(), RunError> {
    let allowed = crate::sys::allowed_cpus().map_err(|error| RunError::System {
        what: "ask which CPUs are allowed",
        error,
    })?;
    let mut seen = Vec::new();
    for cpu in input {
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
struct CarrierHandle {
    handle: std::thread::JoinHandle<()>,
    ready: Receiver<Result<Ready, RunError>>,
    start: Sender<Start>,
}

type Report<S> = (usize, CpuOutcome<S>, Vec<Panic>);

impl CarrierHandle {
    fn start<P, S>(
        input: CarrierInput<P, S>,
        results: Sender<Report<S>>,
    ) -> Result<CarrierHandle, RunError>
    where
        P: Policy + Send + 'static,
        S: Sink + Send + 'static,
    {
        let (ready_out, ready) = channel();
        let (start, start_in) = channel();
        // The kernel keeps 15 bytes of a name.
        let name = format!("punctual/{}", input.cpu.name);
        let handle = std::thread::Builder::new()
            .name(name)
            .spawn(move || {
                let index = input.index;
                if let Some((outcome, panics)) = carrier(input, &ready_out, &start_in) {
                    // Nobody listens any more when the run has been given up.
                    let _ = results.send((index, outcome, panics));
                }
            })
            .map_err(|error| RunError::System {
                what: "start a kernel thread",
                error,
            })?;
        Ok(CarrierHandle {
            handle,
            ready,
            start,
        })
    }
}

/// Whether the kernel tells all carriers when it takes their CPU away, and whether it tells who
/// has it then.
type Told = (bool, bool);

/// Waits until every carrier is ready: real time needs all of them.
fn await_ready(carriers: &[CarrierHandle], lost: &mut Vec<Loss>) -> Result<(Mode, Told), RunError> {
    let (mut mode, mut watched, mut told) = (Mode::RealTime, true, true);
    for carrier_handle in carriers {
        let died = || RunError::System {
            what: "prepare a CPU",
            error: io::Error::other("its kernel thread died"),
        };
        let ready = carrier_handle.ready.recv().map_err(|_| died())??;
        if !ready.real_time {
            mode = Mode::BestEffort;
        }
        watched &= ready.watched;
        told &= ready.told;
        for loss in ready.lost {
            if !lost.contains(&loss) {
                lost.push(loss);
            }
        }
    }
    Ok((mode, (watched, told)))
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
