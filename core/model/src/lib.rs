//! The words of real-time scheduling, as types.
//!
//! A [`System`] is CPUs, each with a policy, [`Scheduler`]s in trees below them, and [`Task`]s
//! placed on either. A task makes *jobs*:
//!
//! ```text
//!            jitter                response time
//!          |<----->|      |<------------------------------>|   (measured from the arrival)
//!   arrival      release          start   preempted  ...  completion
//!   ---+-----------+----------------+=======+-----+=======+------------+--->
//!      |<-------------- relative deadline --------------------------->| absolute deadline
//! ```
//!
//! This crate decides the name and the unit of each quantity, and which combinations are
//! meaningless ([`System::validate`]). It does not know how long anything takes on a real machine,
//! which policy runs next, or whether a system is feasible.
//!
//! Three physical quantities have three types: [`Instant`] (a point of a timeline), [`Span`] (the
//! length of an interval) and [`Work`] (processor service). Each has its unit in its type: [`Ns`]
//! in files and analyses, [`Ticks`] of a platform in `kern` (design notes 0002 and 0025).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod arrival;
mod barriers;
mod change;
mod clock;
mod constraint;
mod copies;
mod gang;
mod graph;
mod group;
mod id;
mod instants;
mod lowered;
mod machine;
mod planned;
mod priority;
mod readable;
mod resource;
mod scheduler;
mod stage;
mod system;
mod task;
mod time;
mod validate;

pub use arrival::{ArrivalTimes, Arrivals};
pub use change::{Change, Mistake, Step, Subject, Terms};
pub use clock::Clock;
pub use constraint::Constraint;
pub use gang::{Barrier, Gang, Superstep};
pub use graph::{Actor, Copies, Fifo, Graph, Order, OrderRule, Place, Preempted, Tile, When};
pub use group::{
    Group, GroupSegment, GroupThread, Heuristic, Locality, Overload, Planning, Request, SegmentUse,
    Spawn,
};
pub use id::{ActorId, CpuId, GraphId, GroupId, ResourceId, SchedulerId, TaskId, ThreadId};
pub use lowered::GraphThread;
pub use machine::{Funding, Limits, Machine, Reserve, Share};
pub use planned::{PlannedNode, PlannedThread};
pub use priority::{Importance, Priority};
pub use readable::{Readable, readable};
pub use resource::{AtBudgetEnd, Mode, Protocol, Resource, Use};
pub use scheduler::{
    Fallback, MAX_DEPTH, PolicyCode, PolicyKind, Receiver, Scheduler, Server, ServerKind, Slot,
    Supply, Trust,
};
pub use stage::Stage;
pub use system::{Cpu, Fault, ModelError, Requirement, RunOptions, System};
pub use task::{Class, IdleTime, Late, OnOverrun, Task, WorkSource};
pub use time::{Frequency, Instant, Ns, Span, Ticks, Unit, Work};
