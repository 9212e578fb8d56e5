//! Stock Linux: pinned kernel threads carry light threads, preempted by signal.
//!
//! [`run`] takes one scheduler ([`punctual_kern::Shard`]) per CPU with a body per thread and
//! executes them for real. One kernel thread per CPU, the *carrier*, is pinned there; the threads
//! of the plan are *light*: a stack, thread-local storage of their own, and a few saved words.
//!
//! ```text
//!   light thread:  body ... yield/sleep/complete --+            timer signal interrupts the body
//!                                                  v                      |
//!   entry:   close gate, read clock, charge, Shard::handle -> Decision    v (same entry, inside
//!                                                  |                        the signal handler)
//!   edge:    arm timer, switch stack and TLS  <----+
//! ```
//!
//! Map: [`run()`] and its parts (`setup`, `carrier`, `cpu`, `host`, `watchdog`, `mode`); light
//! threads (`light`, `name`, `stack`, `tls`, `local`), those created while it runs (`pool`,
//! `spawn`, `period`, `attend`, `fresh`), what they share ([`Monitor`], `desk`, `seat`; between
//! CPUs `between`, `turn`), schedulers of their own time (`child`) and outside the core
//! ([`direct`]); kernel threads in place of light ones (`crew`, `program`, [`Backed`]); preemption
//! (`signal`, `interpose`, `wait`, `text`, `deferral`); calls that would block (`calls`, `attempt`,
//! `transfer`, `io`, `uring`); what bodies may call ([`job`]); time ([`clock_rate`], `missing`,
//! `offset`); other CPUs (`post`, `kicks`, [`Bell`]); what the machine can do ([`probe()`],
//! [`measure_terms`]); for tests, whether the records are coherent (`coherence`), and runs that
//! must fail (`forgo`).
//! Every libc call stands in `sys`.
//!
//! What it does not do: decide (that is `kern` and the policies), record (the sink does).
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

mod attempt;
pub mod bench;
mod calls;
pub mod direct;
mod entry;
mod futex;
mod interpose;
mod io;
mod measure;
mod record;
mod run;
mod shared;
mod storage;
mod sys;
mod text;
mod time;
mod transfer;
mod uring;
mod wait;
#[path = "wait/layer.rs"] // Until `wait.rs` is elsewhere.
mod waiting;

use entry::{attend, child, cpu, interrupted, signal};
use measure::{gaps, overhead, probe};
use record::{coherence, crew, forgo, host, light, local, name, outcome, post, seat};
use run::{
    backed, carrier, contain, dropped, fault, foreign, mode, pool, program, setup, spawn, watchdog,
};
use shared::{atomic, kicks, mailbox, news, ring, turn};
use storage::{fresh, stack, tls};
use sys::{action, remark};
use time::{clock, deferral, missing, offset};
pub use waiting::job;
use waiting::{bell, between, desk, lock, monitor, period};

pub use backed::{Backed, Crewman, Enlisted, NotBacked};
pub use bell::Bell;
pub use clock::{ClockRate, ClockSource, clock_rate};
pub use coherence::broken_invariant;
pub use contain::{Left, contained};
pub use desk::Desk;
pub use foreign::{ForeignError, foreign_body};
#[doc(hidden)] // For the test that such runs fail.
pub use forgo::forgo_deferral;
pub use gaps::{Gaps, scan_gaps};
pub use host::sample_in_force;
pub use interpose::undisturbed;
pub use job::{Body, JobInfo};
pub use light::{end_run, held_alive};
pub use monitor::{Monitor, Step, Visit, VisitError, Who};
pub use offset::ClockOffset;
pub use outcome::{CpuCounters, CpuOutcome, Ending, Loss, MissingMethod, Mode, Outcome, Panic};
pub use overhead::{Overheads, Term, Terms, measure_overheads, measure_terms};
pub use period::{NoNextJob, at_ns, next_job, stack_used, this_cpu, this_job, this_name};
pub use pool::{OnFault, SpawnError};
pub use probe::{Probe, Status, probe};
pub use program::{Program, ProgramError, start_program};
pub use run::{ChildPlan, CpuPlan, RunError, RunOptions, ThreadPlan, run};
pub use spawn::{Child, JoinError, block, spawn, spawn_with};
