//! Sets of periodic threads of the kernel, written as a program without Punctual would write them.
//!
//! Each thread sleeps to absolute instants, does its job, and keeps what it saw: when the job
//! began and ended, what it executed, and the gaps in it. Memory is locked and taken beforehand.
//!
//! Nothing here can freeze a machine. Every job ends at the end of the run, whatever it was to do.
//! The kernel ends the process if a thread computes for longer than a run in one go. A sleep is
//! short enough to see a wish to stop.

mod pthread;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};

use crate::call::{check, now, read};
use worker::Worker;

/// Under which class of the kernel the threads run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// SCHED_FIFO by the priorities of the tasks, pinned.
    Fifo,
    /// SCHED_DEADLINE by their runtimes, deadlines and periods. The kernel refuses pinned threads.
    Deadline,
}

/// A periodic thread. All times are nanoseconds.
#[derive(Debug)]
pub struct Task {
    /// The CPU, under SCHED_FIFO.
    pub cpu: usize,
    /// The priority under SCHED_FIFO: 1 to 99, larger ones are more urgent.
    pub priority: i32,
    /// Between two releases.
    pub period: u64,
    /// Of the first release.
    pub phase: u64,
    /// From a release to the deadline, for SCHED_DEADLINE.
    pub relative_deadline: u64,
    /// The runtime for SCHED_DEADLINE.
    pub runtime: u64,
    /// Whether a release that finds the job before unfinished is left out; else it waits.
    pub skips: bool,
    /// The work of a job.
    pub work: Work,
}

/// A function that gets the number of its job and its release.
pub type Call = Box<dyn FnMut(u64, u64) + Send>;

/// The work of a job.
pub enum Work {
    /// It executes for so long. Gaps do not count: the machine or more urgent threads had it then.
    Burn(u64),
    /// It calls a function, whose gaps nobody sees.
    Call(Call),
    /// It burns so long up to this job, which never ends.
    RunAway(u64, u64),
}

/// How to run a set.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The class of its threads.
    pub class: Class,
    /// Releases in [0, this) are covered.
    pub duration: u64,
    /// Jobs that are not over so long after it are not waited for.
    pub grace: u64,
    /// Ends the run early when it becomes true.
    pub stop: &'a AtomicBool,
}

/// A job as its thread saw it, in nanoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// When it was due.
    pub release: u64,
    /// Its first reading of the clock.
    pub start: u64,
    /// Its last one; `None`: the end of the run cut it off.
    pub end: Option<u64>,
}

/// A stretch between two readings of the clock that the thread did not execute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// From here, in nanoseconds since the start of the run.
    pub at: u64,
    /// So long.
    pub length: u64,
}

/// The observations of a thread.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Its jobs, in order.
    pub jobs: Vec<Job>,
    /// Gaps in jobs that burn, in order.
    pub gaps: Vec<Gap>,
    /// Gaps that there was no room for.
    pub gaps_lost: u64,
    /// The body panicked, and the thread ended.
    pub panicked: bool,
}

/// A run of a set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// By task.
    pub tasks: Vec<Seen>,
    /// Processor time of this process during the run.
    pub processor_ns: u64,
    /// Why memory is not locked; `None`: it is.
    pub unlocked: Option<String>,
}

/// Gaps of more than this between two readings of the clock were not executed: the rule by which a
/// light thread burns.
pub const GAP_NS: u64 = 4_000;

/// From the end of the preparation to the start of the run.
const LEAD_NS: i64 = 20_000_000;

/// Runs a set of periodic threads, all from one instant on.
///
/// # Errors
/// When the kernel refuses a thread or its class, with the reason.
pub fn run(tasks: Vec<Task>, options: &Options<'_>) -> Result<Outcome, String> {
    let unlocked = lock_memory().err();
    let limit = options.duration.saturating_add(options.grace);
    let _limited = pthread::LongestBurst::limit(limit + 1_000_000_000)?;
    let start = Arc::new(OnceLock::new());
    let over = Arc::new(AtomicBool::new(false));
    let before = processor_time();
    let count = tasks.len();
    let (ready, is_ready) = channel();
    let mut threads = Vec::with_capacity(count);
    let mut refused = None;
    for task in tasks {
        let worker = Worker::new(task, options, Arc::clone(&start), Arc::clone(&over));
        match pthread::start(options.class, worker, ready.clone()) {
            Ok(thread) => threads.push(thread),
            Err(why) => refused = refused.or(Some(why)),
        }
        if refused.is_some() {
            break;
        }
    }
    drop(ready);
    for _ in 0..threads.len() {
        let answer: Result<(), String> = is_ready.recv().unwrap_or_else(|e| Err(e.to_string()));
        refused = refused.or(answer.err());
    }
    over.store(refused.is_some(), Ordering::Relaxed);
    // Also a thread that is to end waits for it.
    let _only_once = start.set(now()? + LEAD_NS);
    for thread in &threads {
        thread.wake();
    }
    watch(&threads, options.stop, &over);
    let seen = threads.into_iter().map(pthread::Pthread::join).collect();
    let processor_ns = processor_time().saturating_sub(before);
    match refused {
        Some(why) => Err(why),
        None => Ok(Outcome {
            tasks: seen,
            processor_ns,
            unlocked,
        }),
    }
}

/// Waits for the threads, and passes on a wish to stop.
fn watch(threads: &[pthread::Pthread], stop: &AtomicBool, over: &AtomicBool) {
    while !threads.iter().all(pthread::Pthread::is_over) {
        if stop.load(Ordering::Relaxed) {
            over.store(true, Ordering::Relaxed);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn lock_memory() -> Result<(), String> {
    // SAFETY: it changes where pages are, and not what is in them.
    let locked = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };
    check("mlockall", locked).map(drop)
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Work::Burn(ns) => write!(f, "Burn({ns})"),
            Work::Call(_) => write!(f, "Call"),
            Work::RunAway(ns, from) => write!(f, "RunAway({ns}, {from})"),
        }
    }
}

/// Processor time of this process so far, in nanoseconds; 0 where the kernel does not tell.
pub fn processor_time() -> u64 {
    let read = read(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0);
    u64::try_from(read).unwrap_or(0)
}
