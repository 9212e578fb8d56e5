//! What a run leaves behind: the sinks, counters, and what it could not have.

use punctual_kern::{MissingCause, NoSink};
use punctual_model::{Frequency, Instant, ThreadId};

use crate::time::clock::ClockSource;
use crate::time::offset::ClockOffset;

/// Counters of one CPU. Durations in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuCounters {
    /// Decisions of the core.
    pub decisions: u64,
    /// Changes of the running thread, idle included.
    pub switches: u64,
    /// Changes in which the one who ran was still ready, and did not yield.
    pub preemptions: u64,
    /// Preemptions that had to wait because they hit the C library.
    pub deferrals: u64,
    /// The median of such waits, at most a sixteenth too large.
    pub deferred_p50_ns: u64,
    /// The 99th percentile of such waits, at most a sixteenth too large.
    pub deferred_p99_ns: u64,
    /// The longest such wait.
    pub deferred_max_ns: u64,
    /// Time that was nobody's, as far as it was seen, without what was given back.
    pub missing_ns: u64,
    /// The longest piece of it.
    pub missing_max_ns: u64,
    /// Slices given back to the rest of the system.
    pub given_back: u64,
    /// Time given back, wake-up lateness included.
    pub given_back_ns: u64,
    /// The longest slice given back.
    pub given_back_max_ns: u64,
    /// How often the kernel's timer was set.
    pub timer_settings: u64,
    /// Timers that were set early and came before their release, which the handler waited for.
    pub early_timers: u64,
    /// Signals that hit the way out of another signal.
    pub nested: u64,
    /// Signals of other CPUs that had news, noticed.
    pub kicks: u64,
    /// How often others were kept from sending more of them for a while.
    pub kicks_held: u64,
    /// Sleeps of the idle CPU.
    pub sleeps: u64,
    /// The latest wake-up from such a sleep, after the instant at which the sleep was to end. It is
    /// to end a margin before something is due, and the margin follows the wake-ups.
    pub wake_late_max_ns: u64,
    /// The boundaries of slots, where [`crate::RunOptions::frames`] has a frame.
    pub boundaries: BoundaryCounters,
}

/// The boundaries between the slots of one CPU. Durations in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BoundaryCounters {
    /// The scheduling time that the frame declares between two slots; 0: none.
    pub declared_ns: u64,
    /// Work of the core at each: from the entry's reading of the clock to the switch, at the
    /// end of a slot and at the start of the next, with the raising of a program.
    pub work: Spread,
    /// From the start of a slot of a light thread or a scheduler to the switch to its owner, less
    /// the boundaries at which time was missing.
    pub late: Spread,
    /// The same up to the instant at which a program or a kernel thread is raised.
    pub late_programs: Spread,
    /// Boundaries at which time was missing.
    pub disturbed: u64,
    /// Boundaries that took longer than declared, by the work of the core alone.
    pub over_own: u64,
    /// The same, which would not have had their timers come in time.
    pub over_timer: u64,
    /// The same, which would not have without the missing time.
    pub over_missing: u64,
}

/// Durations that were seen, in nanoseconds; quantiles are at most a sixteenth too large.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// The median.
    pub p50_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// How the run was executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Under SCHED_FIFO on every CPU: nothing ordinary runs in between.
    RealTime,
    /// At the mercy of the kernel's ordinary scheduler: figures are observations, not guarantees.
    BestEffort,
}

impl Mode {
    /// The word for it in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::RealTime => "real-time",
            Mode::BestEffort => "best-effort",
        }
    }
}

/// Something that a run wanted from the system and did not get.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// What.
    pub what: &'static str,
    /// What it costs, and why it was refused.
    pub detail: String,
}

/// Why the run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Every release of the duration was covered, or its grace had passed.
    Complete,
    /// The caller's stop flag.
    Stopped,
    /// The watchdog: the bound of the run had passed.
    Watchdog,
}

/// A body that ended by a panic. The panic ended this thread only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Panic {
    /// The CPU, by its place in the input.
    pub cpu: usize,
    /// Whose.
    pub thread: ThreadId,
    /// The thread's name.
    pub name: String,
    /// What it said.
    pub message: String,
}

/// One CPU after the run.
#[derive(Debug)]
pub struct CpuOutcome<S> {
    /// The recorder, as it was given.
    pub sink: S,
    /// What was counted.
    pub counters: CpuCounters,
    /// Threads that were in the middle of a job at the end. They are not resumed; their stacks
    /// stay allocated.
    pub abandoned: usize,
    /// Threads that were created while it ran, with their names, as far as there was room
    /// ([`crate::RunOptions::spawned`]).
    pub spawned: Vec<(ThreadId, String)>,
    /// Threads that stopped the CPU by waiting inside the kernel.
    pub waits: Vec<Loss>,
    /// Threads of the machine that took time from it, in order, as far as the kernel tells this
    /// user and there was room.
    pub takers: Vec<TakingThread>,
    /// Slots of its frame that began late for a reason outside of the core, in order, as far as
    /// there was room.
    pub held_up: Vec<HeldUp>,
}

/// A slot that something outside of the core held up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldUp {
    /// Its start, in nanoseconds of the run.
    pub start_ns: u64,
    /// The cause.
    pub by: HeldUpBy,
}

/// The cause of a slot that was held up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeldUpBy {
    /// Time was missing between its start and its owner's turn.
    MissingTime,
    /// The entry of its start came behind the start: its timer, or the CPU's wake-up, was late.
    LateTimer,
}

/// Time that a thread of the machine took from a CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TakingThread {
    /// The instant of the entry that found it.
    pub at: Instant,
    /// How long it ran, in nanoseconds. Others may have run beside it.
    pub ns: u64,
    /// Its name and that of its program, or its number if it had ended.
    pub name: String,
}

/// The clocks of a run, as they were seen while it went on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClocksSeen {
    /// How often one was compared with that of the first CPU.
    pub compared: u64,
    /// The first instant (nanoseconds) at which two surely differed by more than allowed.
    pub apart_ns: Option<u64>,
}

/// Everything that a run leaves behind.
#[derive(Debug)]
pub struct Outcome<S> {
    /// One per CPU, in the order of the input.
    pub cpus: Vec<CpuOutcome<S>>,
    /// Real time or best effort.
    pub mode: Mode,
    /// What was wanted and refused.
    pub lost: Vec<Loss>,
    /// The rate of the clock.
    pub frequency: Frequency,
    /// What a tick was.
    pub source: ClockSource,
    /// Why it ended.
    pub ending: Ending,
    /// How far the counter of each CPU is ahead of that of the first, which has been taken off
    /// its clock; `None`: it was not measured.
    pub offsets: Vec<Option<ClockOffset>>,
    /// The clocks, as they were seen while it went on ([`crate::RunOptions::watch_clocks`],
    /// [`crate::watch_clocks`]).
    pub clocks: ClocksSeen,
    /// Bodies that panicked.
    pub panics: Vec<Panic>,
    /// How missing time was measured, and with which error.
    pub missing: MissingMethod,
}

impl<S> Outcome<S> {
    /// The same without its recorders.
    pub fn without_sinks(self) -> Outcome<NoSink> {
        let without = |cpu: CpuOutcome<S>| CpuOutcome {
            sink: NoSink,
            counters: cpu.counters,
            abandoned: cpu.abandoned,
            spawned: cpu.spawned,
            waits: cpu.waits,
            takers: cpu.takers,
            held_up: cpu.held_up,
        };
        Outcome {
            cpus: self.cpus.into_iter().map(without).collect(),
            mode: self.mode,
            lost: self.lost,
            frequency: self.frequency,
            source: self.source,
            ending: self.ending,
            offsets: self.offsets,
            clocks: self.clocks,
            panics: self.panics,
            missing: self.missing,
        }
    }
}

/// How missing time is told from executed time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MissingMethod {
    /// In words.
    pub method: &'static str,
    /// Pieces shorter than this are not seen.
    pub error_ns: u64,
}

impl CpuCounters {
    pub(crate) fn add_missing(&mut self, ns: u64, cause: MissingCause) {
        match cause {
            MissingCause::GivenBack => {
                self.given_back += 1;
                self.given_back_ns += ns;
                self.given_back_max_ns = self.given_back_max_ns.max(ns);
            }
            MissingCause::Stolen => {
                self.missing_ns += ns;
                self.missing_max_ns = self.missing_max_ns.max(ns);
            }
        }
    }
}
