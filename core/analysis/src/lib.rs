//! Pure functions from a model to a verdict: admitted with bounds, or refused with a witness
//!
//! [`admit`] takes a `punctual_model::System` and answers with a [`Verdict`]. How to read it:
//!
//! * [`Verdict::admitted`]: every deadline, every required response and every limit holds, as long
//!   as the model's promises do (wcets, separations, jitters, reserves).
//! * [`TaskVerdict::response_bound`]: no job takes longer from arrival to completion, with the
//!   test's name, its terms in words, and what it takes for granted.
//! * [`Exactness`]: whether a *no* is certain. [`Exactness::Exact`] means that what is refused can
//!   miss; [`Exactness::Sufficient`] says in the assumptions why it might not.
//! * [`Slack`]: how far one wcet may grow. [`Refusal`]: a [`Witness`] that a simulation confirms,
//!   and a [`Fix`], one parameter with the value from which on the system is admitted.
//!
//! Map: `demand` (request bounds of jobs), `entity` and `node` (one node), `build` and `overhead`
//! (a node with all its costs), `tree` (from node to node), `solve` (all nodes together). All use
//! `lookup` (tasks and schedulers by node) and `units` (spans and work in nanoseconds).
//!
//! Tests: `busy_window` (the fixed point behind every response), then those of the policies:
//! `fixed_priority` (and FIFO; `levels`, `walk`, `largest`: many tasks at once), `edf` (QPA),
//! `spuri` (EDF responses), `round_robin`. Then
//! `precedence` (waiting, across CPUs), `chain` (from end to end), `exactness`,
//! `explain`, `refuse`, `slack`, `fix`, `quick`; `synthesis` (parameters that work), `hyperperiod`
//! (a cross-check: every job, simulated), `transition` (changes of a running system).
//!
//! Streaming applications: `graph`, by `punctual-dataflow`. Planned groups: `plan`, by
//! `punctual-planner`.
//!
//! Everything is integer arithmetic in nanoseconds. An overflow, or a search that does not end
//! within its steps, is an [`AnalysisError`], never a guess. Design note 0005 says why verdicts
//! mean this.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod admit;
mod background;
mod blocking;
mod bounds;
mod build;
mod busiest;
mod busy_window;
mod chain;
mod component;
mod decide;
mod demand;
mod edf;
mod entity;
mod error;
mod exactness;
mod explain;
mod fix;
mod fixed_point;
mod fixed_priority;
mod gang;
mod grade;
mod graph;
mod handover;
mod hyperperiod;
mod largest;
mod levels;
mod lookup;
mod node;
mod overhead;
mod plan;
mod precedence;
mod quick;
mod refuse;
mod round_robin;
mod schedulers;
mod slack;
mod solve;
mod spuri;
mod supply;
mod synthesis;
mod together;
mod transition;
mod tree;
mod trials;
mod units;
mod upper_bound;
mod utilization;
mod verdict;
mod walk;

pub use admit::{
    MAX_TASKS_WITH_SLACK, admit, admit_without_slack, bounds_only, explained, is_admitted,
};
pub use busiest::busiest;
pub use error::AnalysisError;
pub use gang::without_needless_barriers;
pub use graph::graph_schedule;
pub use hyperperiod::{MAX_SIMULATED_JOBS, SimulatedJob, Simulation, simulate_hyperperiod};
pub use plan::answer::{
    GroupVerdict, Plan, PlanVerdict, PlannedLength, PlannedSegment, SegmentSlack,
};
pub use plan::request::{RequestVerdict, admit_request};
pub use plan::running::{GroupRequest, RunningPlan};
pub use punctual_dataflow::Fraction;
pub use synthesis::{Aim, NoSuggestion, Setting, Suggestion, suggest};
pub use together::funding;
pub use transition::{
    Judge, Transition, When, admit_changes, admit_changes_by, admit_transition,
    admit_transition_bounds, bandwidth_decides,
};
pub use verdict::{
    ActorVerdict, BarrierVerdict, BetweenSlots, ChainVerdict, CpuVerdict, Exactness, Fix,
    FixTarget, GangVerdict, GraphFix, GraphSchedule, GraphVerdict, Handover, How, JitterVerdict,
    Quick, QuickAnswer, Refusal, SchedulerVerdict, SkewVerdict, Slack, SliceVerdict, Subject,
    TaskVerdict, Term, Test, Verdict, Witness, WorstCircle,
};
