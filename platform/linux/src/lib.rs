//! Stock Linux: pinned kernel threads carry light threads, preempted by signal.
//!
//! [`run`] takes one scheduler ([`punctual_kern::Shard`]) per CPU with a body per thread and
//! executes them for real. One kernel thread per CPU, the *carrier*, is pinned there; the threads
//! of a run are *light*: a stack, thread-local storage of their own, and a few saved words.
//!
//! ```text
//!   light thread:  body ... yield/sleep/complete --+            timer signal interrupts the body
//!                                                  v                      |
//!   entry:   close gate, read clock, charge, Shard::handle -> Decision    v (same entry, inside
//!                                                  |                        the signal handler)
//!   edge:    arm timer, switch stack and TLS  <----+
//! ```
//!
//! Map, by folder; each of the first four uses only those before it:
//! * `record`: the records of a run: `light` threads, `per_cpu` state (which sets the timer), what
//!   CPUs send each other (`post`), thread groups, inputs and outcomes.
//! * `entry`: an entry into the scheduler: `cpu`, `signal` (preemption), `request` (calls),
//!   `switch`, `missing` time, schedulers of their own time (`child`), [`direct`], the `end` of a
//!   run.
//! * `wait`: how threads wait: [`job`], [`Monitor`], locks, [`Notify`], between CPUs `cross_cpu`.
//! * `run`: [`run()`], its carriers and set-up, threads created meanwhile, programs, [`Backed`].
//! * `storage`: stacks and thread-local storage; `time`: the clock ([`clock_rate`]); `measure`:
//!   what the machine can do ([`probe()`], [`measure_terms`]); `shared`: words shared between CPUs
//!   or with a signal; `sys`: every call of the C library.
//!
//! Blocking calls of the C library are the crate `punctual-linux-io`.
//!
//! What it does not do: decide (that is `kern` and the policies), record (the sink does).
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

mod entry;
mod measure;
mod record;
mod run;
mod shared;
mod storage;
mod sys;
mod time;
mod wait;

pub use entry::code::OwnCode;
pub use entry::direct;
pub use measure::bench;
pub use wait::job;

pub use measure::gaps::{Gaps, scan_gaps};
pub use measure::overhead::{
    Overheads, Term, Terms, measure_entry, measure_overheads, measure_terms,
};
pub use measure::probe::{Mend, Probe, Status, probe};
pub use measure::share::{SLICE, share_of_others};
pub use measure::taken::try_kernel;
pub use punctual_linux_io::undisturbed;
pub use record::body::{Body, JobInfo};
pub use record::boundary::SlotFrame;
pub use record::coherence::broken_invariant;
#[doc(hidden)] // For the test that such runs fail.
pub use record::forgo::forgo_deferral;
pub use record::input::{
    ChildInput, CpuInput, GiveBack, RunError, RunOptions, SHARE_OF_OTHERS, ThreadInput,
};
pub use record::limits::sample_in_force;
pub use record::outcome::{
    BoundaryCounters, ClocksSeen, CpuCounters, CpuOutcome, Ending, HeldUp, HeldUpBy, Loss,
    MissingMethod, Mode, Outcome, Panic, Spread, TakingThread,
};
pub use record::pool::OnFault;
pub use run::backed::{Backed, Joined, Member, NotBacked};
pub use run::catching::catching_call;
pub use run::contain::{Left, contained};
pub use run::contained_call::contained_call;
pub use run::foreign::{ForeignError, foreign_body, foreign_symbol};
pub use run::foreign_policy::{
    ForeignMaker, ForeignPolicy, PolicyAttributes, PolicyMaker, PolicyPick, PolicyTable,
    foreign_policy,
};
pub use run::life::{end_run, held_alive};
pub use run::manage::{ManageError, home, manage, replace, replace_own};
pub use run::own::{
    change_own, own_lag_until, own_priority, run_clock_error, run_clocks_apart, watch_clocks,
};
pub use run::pool::SpawnError;
pub use run::program::{Program, ProgramError, start_program};
pub use run::room::{MOST_STACK_BYTES, MOST_THREADS, check_room};
pub use run::run;
pub use run::spawn::{Child, JoinError, block, spawn, spawn_with};
pub use run::tls_reset::libraries_with_locals;
pub use run::watchdog::stand_aside;
pub use sys::allowed_cpus;
pub use time::clock::{ClockRate, ClockSource, clock_rate};
pub use time::offset::{ClockOffset, clock_error, measure as measure_clock_offset};
pub use wait::forked::is_forked;
pub use wait::monitor::{Monitor, MonitorError, SectionEnd, Step};
pub use wait::notify::Notify;
pub use wait::owner::Owner;
pub use wait::period::{NoNextJob, at_ns, next_job, stack_used, this_cpu, this_job, this_name};
pub use wait::waiters::Waiters;
pub use wait::who::Who;
