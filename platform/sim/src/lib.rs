//! Virtual time: the same core, no hardware, any number of CPUs, faults from a seed.
//!
//! Every CPU of a system has its [`punctual_kern::Shard`]; this platform plays clock, processor and
//! timer for it, in nanoseconds. Jobs execute their declared work, or their worst case. With equal
//! inputs (system, options, seed) every event, decision and instant is equal: a failure is a seed
//! and a commit.
//!
//! What it does not model: the time that scheduling itself takes (zero here; the analysis has terms
//! for it), and caches, both unless a fault asks for them.
#![forbid(unsafe_code)]

mod agendas;
mod body;
mod child;
mod cores;
mod cpu;
mod declared;
mod doing;
mod faults;
mod graph;
mod graph_bodies;
mod graph_plain;
mod grouped;
mod groups;
mod locks;
mod parts;
mod random;
mod recorded;
mod requests;
mod run;
mod together;

use punctual_model::Instant;

pub use body::{Act, Body, Nudges, Step};
pub use cores::run_on_cores;
pub use declared::script;
pub use faults::{Crash, Faults, LongFirings, Misconduct, MissingTime, Overrun};
pub use graph::{Moves, TileFault};
pub use graph_bodies::graph_bodies;
pub use grouped::{GroupTerms, Placed};
pub use parts::{
    Completion, Counters, CpuInput, CpuOutcome, Observer, Options, Outcome, STEPS_PER_QUESTION,
};
pub use punctual_planner::{Refusal, Why};
pub use recorded::{Gap, RecordedThread, Recording};
pub use requests::{
    Execution, GroupKind, GroupOutcome, Groups, Misplanning, OffLine, PlannedFamily, SegmentKind,
};
pub use run::{Guests, SimError, prepare, run, run_recorded, run_with, shared_across_cpus};

/// Virtual time counts nanoseconds.
const RATE: punctual_model::Frequency = punctual_model::Frequency::NANOSECONDS;

/// Most CPUs that one simulation has.
pub const MAX_CPUS: usize = 256;

/// The instant at which nothing happens any more.
const NEVER: Instant = Instant::MAX;
