//! User-level hard-real-time scheduling: admitted before it runs, proved afterwards.
//!
//! This crate is where the parts meet. A program admits a [`System`] ([`admit`]), and runs it in
//! virtual time ([`simulate`]) or for real ([`run`]). The run comes back as a [`Log`], and the log
//! gives a report with the promised bound beside every observation.
//!
//! # Where to start
//!
//! | a program that | starts at |
//! |---|---|
//! | describes all of its tasks before they run | [`Program`] |
//! | creates threads while it runs | [`Runtime`], then [`thread`] and [`sync`] |
//! | wants a verdict only | [`admit`] |
//! | judges, replays or compares recorded runs | [`judge()`], [`replay()`], [`what_if()`] |
//! | reads recorded runs | [`trace`] |
//! | runs blocking code in place of a light thread | [`Backed`] |
//!
//! # The crates behind it
//!
//! A program can name every type that it needs for an argument or an error from here. Crates that
//! have many of them are modules: [`model`], [`analysis`], [`kern`], [`trace`], [`rules`].
//!
//! | crate | for |
//! |---|---|
//! | [`punctual_model`] | the words: times, tasks, systems, and which combinations mean something |
//! | [`punctual_analysis`] | verdicts: bounds, witnesses, fixes |
//! | [`punctual_kern`] | authors of policies and platforms: the scheduler of one CPU |
//! | [`punctual_policy`] | the policies and servers that files can name |
//! | [`punctual_thread`] | threads, their locks and queues, workloads |
//! | [`punctual_trace`] | logs, their summaries, exports |
//!
//! `punctual_conform` judges policies, `punctual_certificate` checks certificates, and `punctual.h`
//! is the interface for C. CONTRIBUTING.md says what of all this is stable.

#![forbid(unsafe_code)]

mod assemble;
mod bodies;
mod changes;
mod children;
mod counted;
mod described;
mod error;
mod graph_moves;
mod groups;
mod judge;
mod live;
mod program;
mod record;
mod replay;
mod simulate;
mod stream;
mod what_if;

pub use changes::{admit_changes, at_start};
pub use children::ChildPolicies;
pub use error::Error;
pub use groups::group_terms;
pub use judge::{judge, judge_while};
pub use live::{Admitted, GivenTerms, LiveOptions, admit_here, run, sample_in_force, terms_on};
pub use program::Program;
use punctual_analysis::Judge;

pub use punctual_analysis as analysis;
pub use punctual_analysis::{Exactness, Verdict};
pub use punctual_graph as graph;
pub use punctual_kern as kern;
pub use punctual_linux::{
    Backed, ForeignError, Joined, Member, NotBacked, Overheads, ProgramError, RunError, job,
};
pub use punctual_model as model;
pub use punctual_model::{
    Class, Cpu, CpuId, Instant, Late, Machine, Ns, OnOverrun, PolicyKind, Priority, Requirement,
    Span, System, Task, TaskId, Work, WorkSource,
};
pub use punctual_rules as rules;
pub use punctual_sim::{Crash, Faults, LongFirings, Misconduct, MissingTime, Overrun, SimError};
pub use punctual_thread::{
    Constraint, Finished, JobContext, JobInfo, NoNextJob, NotAdmitted, OnFault, Oracle, Promise,
    Runtime, StartError, Step, Thread, Timer, UnknownFunction, Workload, Workloads, spread, sync,
    thread, tree,
};
pub use punctual_trace as trace;
pub use punctual_trace::{Difference, Divergence, Log, ReplayStats, RunReport};
pub use record::{Recorded, record};
pub use replay::replay;
pub use simulate::{SimOptions, simulate, simulate_unjudged};
pub use what_if::{PolicyChange, WhatIf, WhatIfError, what_if, without_missing_time};

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Time of the run that has passed.
    pub passed: Span<Ns>,
    /// How long it will be.
    pub total: Span<Ns>,
}

/// Asks whether a system will be on time, and why: the same call that every run makes. Of a system
/// that changes while it runs it judges [`at_start`], by whose numbers the verdict names tasks;
/// [`admit_changes`] judges the rest.
///
/// # Errors
/// [`Error::Model`] for a meaningless system, [`Error::Analysis`] when a number leaves its range.
pub fn admit(system: &System) -> Result<Verdict, Error> {
    admit_by(system, punctual_analysis::admit)
}

/// The same by another judge, as a rule one that tries no other parameters.
fn admit_by(system: &System, judge: Judge) -> Result<Verdict, Error> {
    system.validate().map_err(Error::Model)?;
    Ok(judge(&at_start(system))?)
}
