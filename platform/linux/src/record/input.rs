//! What a run is made of and how it is to go, as its caller says it; why there is none.

use core::fmt;
use core::sync::atomic::AtomicBool;
use std::io;
use std::sync::Arc;

use punctual_child::ChildScheduler;
use punctual_kern::{Plan, Shard};
use punctual_model::{Instant, Machine, ThreadId};

use super::body::Body;
use super::boundary::SlotFrame;
use super::limits::LOOK_NS;

/// A thread that a run starts with.
pub struct ThreadInput {
    /// Its id on the shard.
    pub id: ThreadId,
    /// Its name, for messages.
    pub name: String,
    /// What it executes.
    pub body: Body,
}

/// A scheduler of a run that decides on its own supply.
#[derive(Debug)]
pub struct ChildInput {
    /// Its name, for messages.
    pub name: String,
    /// What it executes.
    pub code: ChildScheduler,
}

/// One CPU of a run. All instants count ticks of [`clock_rate`](crate::clock_rate).
pub struct CpuInput<P, S> {
    /// The host CPU that it is pinned to.
    pub host: u32,
    /// Its name in the system; its kernel thread is called `punctual/NAME`.
    pub name: String,
    /// The scheduler, with its threads attached.
    pub shard: Shard<P>,
    /// The recorder. Called inside the scheduler: it must not allocate, lock or block.
    pub sink: S,
    /// One per thread of the shard.
    pub threads: Vec<ThreadInput>,
    /// The schedulers that decide on their own supply. One without code here never decides.
    pub children: Vec<ChildInput>,
    /// The names of the shard's resources, by number.
    pub resources: Vec<String>,
    /// Arrivals of its sporadic threads, in order of time.
    pub arrivals: Vec<(Instant, ThreadId)>,
    /// What changes while it runs.
    pub plan: Plan,
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
    /// All of a stack is in memory before the run; else only its first 64 KiB are, or what it was
    /// declared with, and the first use of each further page takes a page fault.
    pub lock_stacks: bool,
    /// Under SCHED_FIFO: what is left to the rest of the system, so that the kernel does not take
    /// 50 ms at once.
    pub give_back: GiveBack,
    /// Ends the run when it becomes true (Ctrl-C).
    pub stop: Arc<AtomicBool>,
    /// Threads of each CPU that are prepared to be created while it runs ([`crate::spawn`]). The
    /// shards need room for them.
    pub pool: usize,
    /// Threads of each CPU that are created while it runs and kept by name for the outcome, at
    /// most; 72 bytes each, taken before the run.
    pub spawned: usize,
    /// How long the run may last beyond its duration and grace before the watchdog ends it.
    pub patience_ns: u64,
    /// A thread that runs on is interrupted after so long at the latest (nanoseconds). What the
    /// machine takes in its midst is seen where such a timer comes late, so shorter samples see
    /// more, for a timer entry each; the stop flag is looked at then, too.
    pub sample_ns: u64,
    /// The timer of a release may be set so much earlier (nanoseconds), as timers turn out to be
    /// late; 0: never. Admission must count it: see [`crate::Overheads::early_ns`].
    pub early_ns: u64,
    /// An idle CPU with jobs that wait for predecessors alone looks for these until their deadlines
    /// instead of sleeping. The jobs begin sooner, and nobody else gets that time; a CPU that owes
    /// sleep to the rest of the system sleeps. Else it looks as any idle CPU does: for some tens of
    /// microseconds, where that has paid.
    pub look_for_predecessors: bool,
    /// The clocks of all CPUs are compared again and again, while these have nothing to do: may
    /// they differ by so many nanoseconds? `None`: nobody looks until [`crate::watch_clocks`].
    pub watch_clocks: Option<u64>,
    /// The frames of the CPUs that divide time, by CPU in the order of the input: the boundaries
    /// of their slots are measured ([`crate::CpuCounters::boundaries`]).
    pub frames: Vec<Option<SlotFrame>>,
}

impl GiveBack {
    /// As a machine with these terms was admitted: in slices where they reserve them, else in
    /// holes.
    pub fn of(machine: &Machine) -> GiveBack {
        let mut reserves = machine.reserves.iter();
        match reserves.find(|reserve| reserve.name == SHARE_OF_OTHERS) {
            None => GiveBack::Holes,
            Some(reserve) => GiveBack::Slices {
                every_ns: reserve.period.as_ns(),
            },
        }
    }
}

/// The name of the reserve of these slices.
pub const SHARE_OF_OTHERS: &str = "fair-server-slices";

/// From one slice out of the time of guaranteed work to the next, at least: so often they make up
/// for all of the share.
pub(crate) const SHORTEST_DISTANCE_NS: u64 = 8_620_690;

/// How a run sees to it that a CPU sleeps a sixteenth of each second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GiveBack {
    /// It does not: the kernel may take 50 ms at once.
    Nothing,
    /// In slices of 600 us at most, out of the time of work without a guarantee.
    Holes,
    /// If that is not enough, also out of the time of others.
    Slices {
        /// From the start of one such slice to that of the next, at least; nanoseconds.
        every_ns: u64,
    },
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            duration_ns: None,
            grace_ns: 1_000_000_000,
            real_time: true,
            priority: 50,
            stack_bytes: 256 * 1024,
            lock_stacks: true,
            give_back: GiveBack::Slices {
                every_ns: SHORTEST_DISTANCE_NS,
            },
            stop: Arc::new(AtomicBool::new(false)),
            watch_clocks: None,
            frames: Vec::new(),
            pool: 0,
            spawned: 0,
            patience_ns: 2_000_000_000,
            sample_ns: LOOK_NS,
            early_ns: 0,
            look_for_predecessors: false,
        }
    }
}

/// Why a run could not be.
#[derive(Debug)]
pub enum RunError {
    /// A run is going on in this process already.
    Busy,
    /// Two CPUs of the input are the same host CPU, or one does not exist or is not allowed.
    NoSuchCpu {
        /// The host CPU.
        host: u32,
        /// What can be used.
        allowed: Vec<u32>,
    },
    /// It asks for more than there may be, or than there is; nothing has been made.
    TooLarge {
        /// Of what.
        what: &'static str,
        /// How much.
        asked: u64,
        /// How much it may be.
        most: u64,
    },
    /// A library of the process is one that light threads cannot be beside; nothing has been made.
    Beside {
        /// Its kind.
        what: &'static str,
        /// Its file.
        file: String,
        /// The reason, and the mending.
        advice: &'static str,
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
        /// The CPU's place in the input.
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
            RunError::TooLarge { what, asked, most } => {
                write!(
                    f,
                    "{what}: {asked} are asked for, and {most} is the most here"
                )
            }
            RunError::Beside { what, file, advice } => {
                write!(f, "no run beside {what} ({file}): {advice}")
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
                "CPU {cpu} of the input did not come back after the run: a thread there cannot be \
                 interrupted (an endless system call, or blocked signals)"
            ),
        }
    }
}

impl std::error::Error for RunError {}

impl<P: fmt::Debug, S: fmt::Debug> fmt::Debug for CpuInput<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.threads.iter().map(|t| t.name.as_str()).collect();
        f.debug_struct("CpuInput")
            .field("host", &self.host)
            .field("name", &self.name)
            .field("threads", &names)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ThreadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ThreadInput { id, name, .. } = self;
        f.debug_struct("ThreadInput")
            .field("id", id)
            .field("name", name)
            .finish_non_exhaustive()
    }
}
