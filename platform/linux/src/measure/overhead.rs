//! What this machine takes for switching, timers and preemption, measured just before a run.
//!
//! Short runs of this very platform on the CPU in question, with threads that do nothing but look
//! at the clock. The samples are cut into rounds, in the order of time; each figure is the 90th
//! percentile of the quietest round, rounded up to nanoseconds. What lies above comes and goes with
//! the neighbours: it is missing time, which a run measures and reports apart, and which enters
//! admission only where it is declared (otherwise a busy minute would refuse a sound system).

mod entry;
mod terms;

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use entry::measure_entry;
use terms::measure_anew;
pub use terms::{Term, Terms, measure_terms};

use punctual_kern::{
    Attributes, Capacity, Constraint, Decision, Entry, Event, NoSink, Pick, Plan, Policy, Shard,
    Sink, Tree,
};
use punctual_model::{
    Class, CpuId, Frequency, Instant, Late, Machine, Priority, Reserve, Span, Task, ThreadId, Work,
};

use crate::entry::give_back::SLICE_NS;
use crate::record::body::{Body, JobInfo};
use crate::record::early::early_ns;
use crate::record::input::{CpuInput, GiveBack, RunError, RunOptions, ThreadInput};
use crate::record::limits::LOOK_NS;
use crate::record::outcome::Mode;
use crate::run::life::end_run;
use crate::run::run;
use crate::sys::{self, HostClass};
use crate::time::clock::{Clock, clock_rate};
use crate::wait::job;

/// Each of the short runs lasts this long.
const RUN_NS: u64 = 40_000_000;
/// The last body that returns ends its run, so that no thread is in the middle of a job then: it
/// would stay with its stack for good. On a busy machine that takes so long at most.
const MOST_NS: u64 = 25 * RUN_NS;
/// A turn of the spinning threads.
const TURN_NS: u64 = 150_000;
/// Switches per sample, which hides the steps of the clock.
const BATCH: u64 = 20;
const SAMPLES: usize = 4_096;
/// A busy machine may not let a short run execute at all: it is repeated until there are so many
/// samples, and so many times at most.
const LEAST_SAMPLES: usize = 8;
const TRIES: usize = 20;
/// Parts of the samples, of which the quietest counts.
const ROUNDS: usize = 4;

/// Measured terms of one CPU, in nanoseconds, rounded up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overheads {
    /// From one thread to another by a scheduling point: decision, accounting, switch.
    pub switch_ns: u64,
    /// A timer signal that changes nothing: what it takes from the thread it interrupts.
    pub timer_ns: u64,
    /// From the instant at which a preemption was due to the first instruction of the successor:
    /// the lateness of the timer, the signal, the decision and the switch.
    pub preemption_ns: u64,
    /// A timer that is set anew before it fires, as when a job is done: the call, and the interrupt
    /// that comes all the same. Where that did not happen, a whole timer entry.
    pub anew_ns: u64,
    /// The timer of a release may be set so much earlier ([`RunOptions::early_ns`]): the parts
    /// before the release and behind it are together no longer than `preemption_ns`.
    pub early_ns: u64,
    /// Samples behind switches, timers, preemptions and timers set anew.
    pub samples: [usize; 4],
    /// Under which class this was measured.
    pub mode: Mode,
}

impl Overheads {
    /// The terms as an analysis wants them. The timer for a budget is set anew when a job is done.
    /// Where it fires, a job pays a whole entry by other rules (design note 0032).
    pub fn machine(&self) -> Machine {
        let mut machine = Machine {
            switch: Work::from_ns(self.switch_ns),
            timer: Work::from_ns(self.timer_ns),
            budget_timer: Work::from_ns(self.anew_ns),
            preemption: Work::from_ns(self.preemption_ns),
            ..Machine::default()
        };
        // A thread that runs on is interrupted now and then to look at the stop flag.
        // Without a single sample it is not known, and a reserve of nothing is none.
        if self.timer_ns > 0 {
            machine.reserves.push(Reserve {
                name: "stop-flag-looks".to_owned(),
                budget: Work::from_ns(self.timer_ns.min(LOOK_NS)),
                period: Span::from_ns(LOOK_NS),
            });
        }
        machine
    }
}

/// Measures on one host CPU, in less than 400 ms on a machine that lets it, under the class that a
/// run would have.
///
/// # Errors
/// As for [`run()`].
pub fn measure_overheads(host: u32, options: &RunOptions) -> Result<Overheads, RunError> {
    let (switches, mode) = persist(|| measure_switch(host, options))?;
    let preemptions = persist(|| measure_preemption(host, options))?;
    let early = RunOptions {
        early_ns: preemptions.early_ns(),
        ..options.clone()
    };
    let timers = persist(|| measure_timer(host, &early))?;
    // Where it cannot be measured, a whole entry counts.
    let anew = persist(|| measure_anew(host, options)).unwrap_or_default();
    let measured = [&switches, &timers, &preemptions.first, &anew];
    Ok(Overheads::of(measured, early.early_ns, mode))
}

/// The figure that admission counts.
fn proposed(measured: &Measured) -> u64 {
    let rate = clock_rate().frequency;
    rate.ns_up(quiet_percentile_90(&mut measured.ticks.clone()))
}

impl Overheads {
    /// From what was measured of switches, timers, preemptions and timers set anew.
    fn of(measured: [&Measured; 4], early_ns: u64, mode: Mode) -> Overheads {
        let [switches, timers, preemptions, anew] = measured;
        Overheads {
            switch_ns: proposed(switches),
            timer_ns: proposed(timers),
            preemption_ns: proposed(preemptions),
            early_ns,
            anew_ns: match anew.ticks.is_empty() {
                true => proposed(timers),
                false => proposed(anew),
            },
            samples: measured.map(|m| m.ticks.len()),
            mode,
        }
    }
}

/// Samples in the order of time, and what the machine took meanwhile.
#[derive(Default)]
struct Measured {
    ticks: Vec<u64>,
    missing_ns: u64,
}

impl Measured {
    fn new(samples: Samples, missing_ns: u64) -> Measured {
        let ticks = samples.into_vec();
        Measured { ticks, missing_ns }
    }
}

/// Something with samples.
trait Sampled {
    fn samples(&self) -> usize;
}

impl Sampled for (Measured, Mode) {
    fn samples(&self) -> usize {
        self.0.samples()
    }
}

impl Sampled for Measured {
    fn samples(&self) -> usize {
        self.ticks.len()
    }
}

/// Measures again until there are enough samples; with fewer, the last attempt counts.
fn persist<T: Sampled>(mut measure: impl FnMut() -> Result<T, RunError>) -> Result<T, RunError> {
    let mut measured = measure()?;
    for _ in 1..TRIES {
        if measured.samples() >= LEAST_SAMPLES {
            break;
        }
        measured = measure()?;
    }
    Ok(measured)
}

/// The 90th percentile of the quietest of [`ROUNDS`] rounds; 0 without samples.
fn quiet_percentile_90(samples: &mut [u64]) -> u64 {
    let round = samples.len().div_ceil(ROUNDS).max(1);
    let percentiles = samples.chunks_mut(round).map(|round| {
        round.sort_unstable();
        let rank = (round.len() * 9).div_ceil(10).saturating_sub(1);
        round.get(rank).copied().unwrap_or(0)
    });
    percentiles.min().unwrap_or(0)
}

/// The only thread here that has a deadline, or nobody: then the core orders the others itself.
struct Last {
    thread: Option<ThreadId>,
    picks: bool,
}

impl Policy for Last {
    fn wake(&mut self, thread: ThreadId, _attributes: &Attributes) {
        self.thread = Some(thread);
    }
    fn block(&mut self, _thread: ThreadId) {
        self.thread = None;
    }
    fn pick(&mut self, _now: Instant) -> Pick {
        match self.thread.filter(|_| self.picks) {
            Some(thread) => Pick::run(thread),
            None => Pick::NOBODY,
        }
    }
}

/// What one CPU of a short run executes.
pub(crate) struct Short {
    pub(crate) host: u32,
    /// Background bodies.
    pub(crate) bodies: Vec<Body>,
    /// A later one is more urgent; else they take turns.
    pub(crate) ranked: bool,
    pub(crate) turn_ns: u64,
    /// How many times a thread of a deadline arrives.
    pub(crate) arrivals: u64,
    /// What it does then; `None`: it is never picked, so its arrivals are timers that change
    /// nothing.
    pub(crate) urgent: Option<Body>,
}

/// What a short run leaves behind.
pub(crate) struct Flown {
    mode: Mode,
    missing_ns: u64,
}

/// A run of about [`RUN_NS`] on one CPU or several.
pub(crate) fn short_run<S: Sink + Send + 'static>(
    cpus: Vec<(Short, S)>,
    options: &RunOptions,
) -> Result<Flown, RunError> {
    let inputs = cpus.into_iter().map(|(short, sink)| short.input(sink));
    let options = RunOptions {
        duration_ns: Some(MOST_NS),
        grace_ns: 0,
        give_back: GiveBack::Nothing,
        // Nobody is created here.
        pool: 0,
        spawned: 0,
        stop: Arc::new(AtomicBool::new(false)),
        ..options.clone()
    };
    let outcome = run(inputs.collect(), &options)?;
    let missing = outcome.cpus.iter().map(|cpu| cpu.counters.missing_ns);
    Ok(Flown {
        missing_ns: missing.sum(),
        mode: outcome.mode,
    })
}

impl Short {
    /// Bodies that compute for [`RUN_NS`], alone or in turns of this length.
    fn of(host: u32, bodies: Vec<Body>, turn_ns: u64) -> Short {
        let left = Arc::new(AtomicUsize::new(bodies.len()));
        let ends = |mut body: Body| -> Body {
            let left = Arc::clone(&left);
            Box::new(move |job: &JobInfo| {
                body(job);
                if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    end_run();
                }
            })
        };
        Short {
            host,
            bodies: bodies.into_iter().map(ends).collect(),
            ranked: false,
            turn_ns,
            arrivals: 0,
            urgent: None,
        }
    }

    fn input<S>(self, sink: S) -> CpuInput<Last, S> {
        let rate = clock_rate().frequency;
        let capacity = Capacity {
            threads: self.bodies.len() + 1,
            pending: 4,
            background_turn: Span::from_ticks(rate.ticks_up(self.turn_ns)),
            nodes: 0,
            grace: Work::ZERO,
            stop_cost: Work::ZERO,
            entry: Work::ZERO,
            cache_delay: Work::ZERO,
        };
        let policy = Last {
            thread: None,
            picks: self.urgent.is_some(),
        };
        let mut shard = Shard::new(Tree::new(capacity, policy));
        let mut task = Task::new("measure", CpuId(0), Class::Aperiodic);
        let mut threads = Vec::new();
        for (body, urgency) in self.bodies.into_iter().zip(0..) {
            task.priority = Priority::new(if self.ranked { urgency } else { 0 });
            // The shard was made for exactly these threads.
            let Ok(id) = shard.attach(Constraint::of_task(&task, 0).in_ticks(rate)) else {
                continue;
            };
            let name = task.name.clone();
            threads.push(ThreadInput { id, name, body });
        }
        let turn = Span::from_ns(TURN_NS);
        let class = Class::Sporadic {
            min_separation: turn,
            wcet: turn.as_work(),
            relative_deadline: turn,
        };
        let mut urgent = Task::new("arrive", CpuId(0), class);
        urgent.late = Late::Skip;
        let mut arrivals = Vec::new();
        if let Ok(id) = shard.attach(Constraint::of_task(&urgent, 1).in_ticks(rate)) {
            let turn = turn.ticks_up(rate);
            let at = |n: u64| Instant::from_ticks(turn.ticks() * n);
            arrivals.extend((1..=self.arrivals).map(|n| (at(n), id)));
            let name = urgent.name;
            let body = self.urgent.into_iter();
            threads.extend(body.map(|body| ThreadInput {
                id,
                name: name.clone(),
                body,
            }));
        }
        CpuInput {
            host: self.host,
            name: "measure".to_owned(),
            shard,
            sink,
            threads,
            children: Vec::new(),
            resources: Vec::new(),
            arrivals,
            plan: Plan::default(),
        }
    }
}

/// Samples that threads of one CPU share, without a lock and without allocation.
#[derive(Clone)]
struct Samples {
    next: Arc<AtomicU64>,
    values: Arc<[AtomicU64]>,
}

impl Samples {
    fn new() -> Samples {
        Samples {
            next: Arc::new(AtomicU64::new(0)),
            values: (0..SAMPLES).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn push(&self, value: u64) {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(place) = usize::try_from(index).ok().and_then(|i| self.values.get(i)) {
            place.store(value, Ordering::Relaxed);
        }
    }

    fn into_vec(self) -> Vec<u64> {
        let taken = usize::try_from(self.next.load(Ordering::Relaxed)).unwrap_or(SAMPLES);
        self.values
            .iter()
            .take(taken)
            .map(|v| v.load(Ordering::Relaxed))
            .collect()
    }
}

fn measure_switch(host: u32, options: &RunOptions) -> Result<(Measured, Mode), RunError> {
    let (samples, clock) = (Samples::new(), clock());
    let timed = samples.clone();
    let first: Body = Box::new(move |_| {
        let end = body_ticks();
        while job::now_ticks() < end {
            let start = clock.now();
            for _ in 0..BATCH / 2 {
                job::yield_now();
            }
            timed.push(clock.now().since(start).ticks().div_ceil(BATCH));
        }
    });
    let second: Body = Box::new(|_| {
        let end = body_ticks();
        while job::now_ticks() < end {
            // As rarely as the other one looks.
            for _ in 0..BATCH / 2 {
                job::yield_now();
            }
        }
    });
    let short = Short::of(host, vec![first, second], RUN_NS);
    let flown = short_run(vec![(short, NoSink)], options)?;
    Ok((Measured::new(samples, flown.missing_ns), flown.mode))
}

/// The instant of a run at which its bodies return, in ticks.
fn body_ticks() -> u64 {
    clock().ticks(RUN_NS)
}

/// A gap between two readings of the clock that holds an entry of the scheduler is the price of it.
fn measure_timer(host: u32, options: &RunOptions) -> Result<Measured, RunError> {
    let (samples, clock) = (Samples::new(), clock());
    let timed = samples.clone();
    let body: Body = Box::new(move |_| {
        let (mut entries, mut last) = (job::entries(), clock.now());
        let end = last.saturating_add(Span::from_ticks(clock.ticks(RUN_NS)));
        while last < end {
            // The counter first: an entry between the two is then in the time but not in the count,
            // and is seen in the next round.
            let entered = job::entries();
            let now = clock.now();
            if entered != entries {
                timed.push(now.since(last).ticks());
                entries = entered;
            } else if job::entries() != entered {
                continue;
            }
            last = now;
        }
    });
    let short = Short {
        arrivals: RUN_NS / TURN_NS,
        ..Short::of(host, vec![body], RUN_NS)
    };
    let flown = short_run(vec![(short, NoSink)], options)?;
    Ok(Measured::new(samples, flown.missing_ns))
}

/// Tells the threads when the tick that came last had been due, and when it came.
struct Due {
    next: Option<Instant>,
    came: Arc<(AtomicU64, AtomicU64)>,
    /// How late the ticks were.
    late: Samples,
}

impl Sink for Due {
    fn begin(&mut self, entry: &Entry<'_>) {
        let now = entry.now;
        if let (Event::Tick, Some(due)) = (entry.event, self.next)
            && now >= due
        {
            self.came.0.store(due.ticks(), Ordering::Relaxed);
            self.came.1.store(now.ticks(), Ordering::Relaxed);
            self.late.push(now.since(due).ticks());
        }
    }

    fn decision(&mut self, _now: Instant, decision: &Decision) {
        self.next = decision.arm;
    }
}

/// A preemption and its parts.
struct Preemptions {
    /// From the instant at which it was due to the first instruction of the successor.
    first: Measured,
    /// From there to the entry.
    timer: Measured,
    /// From the entry to the first instruction.
    dispatch: Measured,
}

impl Preemptions {
    /// How much earlier the timer of a release may be set.
    fn early_ns(&self) -> u64 {
        early_ns(proposed(&self.first), proposed(&self.dispatch))
    }
}

impl Sampled for Preemptions {
    fn samples(&self) -> usize {
        self.first.samples()
    }
}

fn measure_preemption(host: u32, options: &RunOptions) -> Result<Preemptions, RunError> {
    let (first, dispatch, late) = (Samples::new(), Samples::new(), Samples::new());
    let came = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let body = || -> Body {
        let (came, first, dispatch) = (Arc::clone(&came), first.clone(), dispatch.clone());
        Box::new(move |_| {
            let (mut entries, mut now) = (job::entries(), 0);
            let end = body_ticks();
            while now < end {
                let entered = job::entries();
                now = job::now_ticks();
                // An entry that was due less than a turn ago brought this thread here.
                if entered != entries && job::entries() == entered {
                    first.push(now.saturating_sub(came.0.load(Ordering::Relaxed)));
                    dispatch.push(now.saturating_sub(came.1.load(Ordering::Relaxed)));
                }
                entries = entered;
            }
        })
    };
    let sink = Due {
        next: None,
        came: Arc::clone(&came),
        late: late.clone(),
    };
    let short = Short::of(host, vec![body(), body()], TURN_NS);
    let missing_ns = short_run(vec![(short, sink)], options)?.missing_ns;
    let measured = |samples| Measured::new(samples, missing_ns);
    Ok(Preemptions {
        first: measured(first),
        timer: measured(late),
        dispatch: measured(dispatch),
    })
}

fn clock() -> Clock {
    Clock::starting_in(clock_rate(), 0)
}

fn measure_wake(host: u32, options: &RunOptions, mode: Mode) -> Result<Measured, RunError> {
    const SLEEPS: usize = 30;
    let priority = options.priority;
    let sleeper = move || {
        // Measured where and as it will be; a refusal shows in the figure.
        let _ = sys::pin(None, &[host]);
        sys::sharpen_sleep();
        if mode == Mode::RealTime {
            let _ = sys::set_host_class(None, HostClass::fifo(priority));
        }
        let (clock, nobody) = (clock(), core::sync::atomic::AtomicU32::new(0));
        let frequency: Frequency = clock.frequency();
        let one = |_| {
            let start = clock.now();
            sys::futex_wait(&nobody, 0, SLICE_NS);
            let slept = clock.now().since(start).ticks();
            slept.saturating_sub(frequency.ticks_up(SLICE_NS))
        };
        (0..SLEEPS).map(one).collect::<Vec<u64>>()
    };
    let thread = std::thread::Builder::new()
        .name("punctual/wake".to_owned())
        .spawn(sleeper)
        .map_err(|error| RunError::System {
            what: "start a helper thread",
            error,
        })?;
    Ok(Measured {
        ticks: thread.join().unwrap_or_default(),
        missing_ns: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_round_does_not_count_and_a_lasting_cost_does() {
        let quiet: Vec<u64> = (0..400).map(|i| 100 + i % 10).collect();
        let mut busy = quiet.clone();
        for sample in &mut busy[..250] {
            *sample += 1_000_000;
        }
        assert_eq!(quiet_percentile_90(&mut quiet.clone()), 108);
        assert_eq!(quiet_percentile_90(&mut busy), 108);
        let mut dear: Vec<u64> = quiet.iter().map(|s| s + 5_000).collect();
        assert_eq!(quiet_percentile_90(&mut dear), 5_108);
        assert_eq!(quiet_percentile_90(&mut []), 0);
    }
}
