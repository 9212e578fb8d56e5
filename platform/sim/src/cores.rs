//! A simulation on several cores of the host.
//!
//! CPUs that exchange nothing do not depend on each other ([`crate::groups`]), so their groups are
//! simulated side by side. No group sees the order in which the others are, so the outcome is the
//! same to the byte.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use punctual_child::ChildScheduler;
use punctual_kern::{Plan, Policy, Sink};
use punctual_model::{Clock, Instant, System};
use punctual_tables::{CpuTables, Tables};

use crate::cpu::{Cpu, Threads};
use crate::groups::groups;
use crate::parts::{Counters, CpuInput, CpuOutcome, Observer, Options, Outcome};
use crate::run::{SimError, checked, span_of};
use crate::together::Group;

/// Between two questions whether to go on while the caller's thread waits for the others.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// [`crate::run_with`] on as many cores of the host as there are groups of CPUs that exchange
/// messages, and at most `cores`. Bodies are the declared ones, nobody is told of completions, and
/// no groups of tasks are planned. `goes_on` is asked from time to time with an instant of any of
/// the CPUs; `false` ends the simulation early.
///
/// Cost: as [`crate::run`], divided among the cores.
///
/// # Errors
/// As [`crate::run`].
pub fn run_on_cores<P: Policy + Send, S: Sink + Send>(
    system: &System,
    tables: &Tables,
    inputs: Vec<CpuInput<P, S>>,
    children: Vec<Vec<ChildScheduler>>,
    (options, cores): (&Options, usize),
    goes_on: &mut dyn FnMut(Instant) -> bool,
) -> Result<Outcome<S>, SimError> {
    checked(system, tables, inputs.len())?;
    let mut plans = options.plans.iter().cloned();
    let mut children = children.into_iter();
    let mut parts: Vec<Option<Part<P, S>>> = inputs
        .into_iter()
        .map(|input| {
            let codes = children.next().unwrap_or_default();
            Some((input, codes, plans.next().unwrap_or_default()))
        })
        .collect();
    let mut pile: Vec<Share<P, S>> = groups(&tables.cpus, &[])
        .into_iter()
        .map(|group| {
            let part = |cpu: usize| Some((cpu, parts.get_mut(cpu)?.take()?));
            group.into_iter().filter_map(part).collect()
        })
        .collect();
    let workers = cores.clamp(1, pile.len().max(1));
    pile.reverse();
    let work = Work {
        system,
        tables,
        options,
        clocks: clocks(tables, options),
        pile: Mutex::new(pile),
        done: Mutex::new(Vec::new()),
        now: AtomicU64::new(0),
        is_stopped: AtomicBool::new(false),
        is_cut: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let (over, is_over) = mpsc::channel();
        let work = &work;
        let help = |over: Sender<()>| {
            scope.spawn(move || {
                let _is_at_work = over;
                work.help(&mut Watch(work));
            })
        };
        let helpers: Vec<_> = (1..workers).map(|_| help(over.clone())).collect();
        drop(over);
        let mut asks = Asks(Watch(work), goes_on);
        work.help(&mut asks);
        // Up to the end of the last helper, also by a panic.
        while is_over.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            let now = Instant::from_ticks(work.now.load(Ordering::Relaxed));
            let _ = asks.goes_on(now);
        }
        for helper in helpers {
            if let Err(panic) = helper.join() {
                resume_unwind(panic);
            }
        }
    });
    Ok(work.outcome())
}

/// The input of one CPU.
type Part<P, S> = (CpuInput<P, S>, Vec<ChildScheduler>, Plan);

/// The CPUs of a group.
type Share<P, S> = Vec<(usize, Part<P, S>)>;

/// A CPU by number, with its outcome and the last instant of its group.
type Done<S> = (usize, S, Counters, Instant);

/// Shared by the cores.
struct Work<'a, P, S> {
    system: &'a System,
    tables: &'a Tables,
    options: &'a Options,
    clocks: Vec<Clock>,
    /// The groups that are still to be simulated, the next one last.
    pile: Mutex<Vec<Share<P, S>>>,
    done: Mutex<Vec<Done<S>>>,
    /// Of the group that said so last.
    now: AtomicU64,
    /// No group goes on beyond its next question.
    is_stopped: AtomicBool,
    /// A group has ended before its time.
    is_cut: AtomicBool,
}

impl<P: Policy + Send, S: Sink + Send> Work<'_, P, S> {
    /// Simulates one group after the other, until none is left.
    fn help(&self, observer: &mut impl Observer) {
        loop {
            let share = self
                .pile
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop();
            let Some(share) = share else { return };
            let done = self.simulate(share, observer);
            let mut all = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(done);
        }
    }

    fn simulate(&self, share: Share<P, S>, observer: &mut impl Observer) -> Vec<Done<S>> {
        let given = (&self.options.faults, self.options.seed);
        let (horizon, limit) = span_of(self.system, self.options);
        let build = |(at, (input, codes, plan)): (usize, Part<P, S>)| {
            let tables: &CpuTables = &self.tables.cpus[at];
            let own = &mut Vec::new();
            let threads = Threads::declared(self.system, tables, given, (plan, horizon), own);
            (at, Cpu::new(threads, tables, input, codes, given))
        };
        let mut members: Vec<(usize, Cpu<'_, P, S>)> = share.into_iter().map(build).collect();
        let mut now = Instant::ZERO;
        let mut is_whole = false;
        if !self.is_stopped.load(Ordering::Relaxed) {
            let mut group = Group::new(&mut members, (horizon, limit), &self.clocks);
            is_whole = group.run(observer);
            now = group.now;
        }
        if !is_whole {
            self.is_cut.store(true, Ordering::Relaxed);
        }
        let of = |(at, cpu): (usize, Cpu<'_, P, S>)| (at, cpu.sink, cpu.counters, now);
        members.into_iter().map(of).collect()
    }

    fn outcome(self) -> Outcome<S> {
        let mut done = self
            .done
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|one| one.0);
        let end = done.iter().map(|one| one.3).max();
        let cpus = done.into_iter().map(|(at, sink, counters, _)| CpuOutcome {
            cpu: self.tables.cpus[at].cpu,
            sink,
            counters,
        });
        Outcome {
            cpus: cpus.collect(),
            end: end.unwrap_or(Instant::ZERO),
            stopped: self.is_cut.into_inner(),
            groups: Vec::new(),
        }
    }
}

/// The clock of each CPU.
fn clocks(tables: &Tables, options: &Options) -> Vec<Clock> {
    let clock = |cpu: &CpuTables| options.faults.clock(cpu.cpu, options.seed);
    tables.cpus.iter().map(clock).collect()
}

/// Says how far a group is, and ends it when the others end.
struct Watch<'a, 'b, P, S>(&'a Work<'b, P, S>);

impl<P, S> Observer for Watch<'_, '_, P, S> {
    fn goes_on(&mut self, now: Instant) -> bool {
        self.0.now.store(now.ticks(), Ordering::Relaxed);
        !self.0.is_stopped.load(Ordering::Relaxed)
    }
}

/// Asks the caller, too, whether to go on.
struct Asks<'a, 'b, 'c, P, S>(Watch<'a, 'b, P, S>, &'c mut dyn FnMut(Instant) -> bool);

impl<P, S> Observer for Asks<'_, '_, '_, P, S> {
    fn goes_on(&mut self, now: Instant) -> bool {
        let Asks(Watch(work), goes_on) = self;
        if !goes_on(now) {
            work.is_stopped.store(true, Ordering::Relaxed);
        }
        self.0.goes_on(now)
    }
}
