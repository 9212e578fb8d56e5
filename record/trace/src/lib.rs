//! Proof of what happened: log, text form, replay, behavior, summary, exports.
//!
//! ```text
//!   kern --Sink--> Recorder --+
//!                             v
//!   tables, bounds, counters -> Log <--> text        (doc/trace-format.md)
//!                             |
//!        +-----------+--------+------+------------+
//!        v           v               v            v
//!  replay, diff   Behavior       RunReport     CSV, Perfetto, HTML
//! ```
//!
//! What this crate decides: how a run is written down, when it was on time, why a job was late.
//! What it does not know: how the run was made. A log from virtual time and one from a live machine
//! go through the same functions; what a live machine does late is read from the log itself.
#![forbid(unsafe_code)]

mod atomic;
mod behavior;
mod boundary;
mod diff;
mod encode;
pub mod export;
mod form;
mod gangs;
mod graphs;
mod groups;
pub mod html;
mod log;
mod quantiles;
mod record;
mod recorder;
mod replay;
mod ring;
mod short;
mod slots;
mod summary;
pub mod text;
mod value;

pub use behavior::{
    Behavior, BudgetLeft, Deciding, Hold, JobRecord, Missing, NodeRecord, Segment, Starved,
    ThreadCounts, WaitReason, Waiting,
};
pub use boundary::Boundaries;
pub use diff::{Choice, CpuDiff, Diff, Growth, OtherChoice, TaskDiff, TaskRun, diff};
pub use gangs::GangInfo;
pub use graphs::{Call, GraphBound, GraphInfo, Moved, State};
pub use groups::{Fate, GroupInfo, RequestInfo};
pub use log::{
    Bound, ChangeInfo, Counters, CpuLog, Header, Log, Mode, Oracle, TakingThread, TaskInfo,
};
pub use quantiles::Quantiles;
pub use record::{Iter, Record, RecordedEntry, Records};
pub use recorder::{Drain, Recorder};
pub use replay::{Difference, Divergence, ReplayStats, replay};
pub use summary::{
    ActorReport, Cause, ChangeReport, Counter, Counterfactual, CpuReport, FORMAT, Fact, FellBack,
    GangReport, GraphReport, GroupReport, LongFiring, MAX_LISTED_MISSES, Miss, OracleReport,
    ProgramTime, RequirementReport, ResourceReport, RunReport, RunVerdict, SchedulerReport,
    StartReport, TakenBy, TaskReport, ThreadShare,
};
