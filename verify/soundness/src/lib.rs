//! The analysis against the schedules: what is admitted, is it ever late?
//!
//! ```text
//!   seed, index -> generate -> System -> analysis -> Claim: admitted, bounds, witnesses
//!                                 |                    |
//!                                 v                    v
//!                        situations -> kern in sim -> Seen: misses, longest responses
//! ```
//!
//! For every system drawn, [`Judge`] asks the analysis and then tries to prove it wrong: it
//! simulates the system from the critical situation of each task, from a common release, from
//! random phases, with worst-case and with shorter execution; small systems from every combination
//! of phases. A deadline missed or a bound exceeded is a [`Violation`]; so is an exact refusal
//! whose witness misses nothing.
//!
//! Graphs are judged by themselves ([`judge_graphs`]): executed on their tiles, is any iteration
//! over later than its bound?
//!
//! So are gangs ([`judge_gangs`]): with clocks that differ, does any member start outside of the
//! skew of its verdict, or a superstep before one that should be over?
//!
//! And planned groups ([`judge_groups`]): does a group that is granted miss, does anything start
//! later than planned or beside what it excludes, and does a refusal change anything?
//!
//! Some systems change while they run ([`History`]): there it is the judgement of each transition
//! that runs may contradict.
//!
//! What it shares with what it judges: the words of the model, and nothing else. The schedules are
//! those that `kern` really makes, read from the log of a run. That a wrong analysis would be found
//! is shown by [`mutants`], which are wrong on purpose.
#![forbid(unsafe_code)]

mod changes;
mod claim;
mod coverage;
mod describe;
mod exhaustive;
mod gang_report;
mod gangs;
mod graph_report;
mod graphs;
mod group_report;
mod groups;
mod history;
mod judge;
pub mod mutants;
mod observe;
mod parallel;
mod phases;
mod report;
mod situation;
mod tally;
mod tightness;
mod witness;
pub mod wrong_changes;
pub mod wrong_gangs;
pub mod wrong_graphs;
pub mod wrong_groups;

pub use claim::{Analysis, Claim, Fund, analysis};
pub use coverage::{COMPLETE_FROM, missing};
pub use describe::describe;
pub use gang_report::judge_gangs;
pub use gangs::{GangAnalysis, GangJudge, gang_analysis};
pub use graph_report::judge_graphs;
pub use graphs::{GraphAnalysis, GraphJudge, graph_analysis};
pub use group_report::judge_groups;
pub use groups::{
    Broken, Contradiction, Disturbed, GroupJudge, GroupRun, Misplan, Played, Promise, rightly,
};
pub use history::{History, Transitions, transitions};
pub use judge::Judge;
pub use parallel::over_all_cores;
pub use report::report;
pub use tally::{Tally, Violation};
pub use tightness::loose;
