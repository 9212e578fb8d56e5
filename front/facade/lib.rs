//! User-level hard-real-time scheduling: admitted before it runs, proved afterwards.
//!
//! This crate is where the parts meet: a [`System`] (written by hand or read from a file) is
//! admitted ([`admit`]), run in virtual time ([`simulate`]) or for real, and what happened comes
//! back as a [`Log`], from which a report with the promised bound beside every observation is made.
//! A program that writes its tasks in Rust starts at [`Program`]; one that creates threads while it
//! runs, at [`Runtime`].

#![forbid(unsafe_code)]

mod assemble;
mod bodies;
mod children;
mod error;
mod live;
mod program;
mod record;
mod replay;
mod simulate;
mod what_if;

pub use children::ChildPolicies;
pub use error::Error;
pub use live::{Admitted, GivenTerms, LiveOptions, admit_here, run, sample_in_force};
pub use program::{Periodic, Program};
pub use punctual_analysis::{Exactness, Verdict};
pub use punctual_linux::{Backed, Crewman, Enlisted, NotBacked, job};
pub use punctual_model::{
    Class, Cpu, CpuId, Ns, PolicyKind, Priority, Requirement, Span, System, Task, TaskId, Work,
    WorkSource,
};
pub use punctual_sim::{Crash, Faults, Misconduct, MissingTime, Overrun};
pub use punctual_thread::{
    Constraint, Finished, JobContext, NotAdmitted, OnFault, Oracle, Runtime, StartError, Step,
    Thread, Timer, Workload, Workloads, spread, sync, thread,
};
pub use punctual_trace as trace;
pub use punctual_trace::{Difference, Divergence, Log, ReplayStats, RunReport};
pub use record::{Recorded, record};
pub use replay::replay;
pub use simulate::{SimOptions, simulate, simulate_unjudged};
pub use what_if::{PolicyChange, WhatIf, WhatIfError, what_if};

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Time of the run that has passed.
    pub passed: Span<Ns>,
    /// How long it will be.
    pub total: Span<Ns>,
}

/// Asks whether a system will be on time, and why: the same call that every run makes.
///
/// # Errors
/// [`Error::Model`] for a meaningless system, [`Error::Analysis`] when a number leaves its range.
pub fn admit(system: &System) -> Result<Verdict, Error> {
    system.validate().map_err(Error::Model)?;
    Ok(punctual_analysis::admit(system)?)
}
