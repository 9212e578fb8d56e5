//! The planner of groups: when and where each segment starts, before any of them does
//!
//! A *group* is work that nobody foresaw: segments with precedence between them and one deadline.
//! It is guaranteed whole before its first instruction, or refused. Nobody blocks on a resource,
//! because the plan says who uses it when.
//!
//! ```text
//!  Segments ── Planner::plan(segments, available, search) ──> Placement of each | Refusal
//!     a request at t ── Book::request ──> what starts before t + bound is frozen,
//!                                         the rest and the request are planned together
//!     Order ── what each segment of a plan needs done before it starts, early or late
//!     Kills ── the groups that are to end early, which dispatchers and the next request read
//! ```
//!
//! [`Planner`] extends a plan one segment after the other. Among the first `window` eligible
//! segments in order of their effective deadlines, it takes the one that a [`Heuristic`] likes
//! best. Before that it looks whether each of them could still be in time, and goes back if not.
//! [`Book`] is the plan in force. A request either changes all of it behind the cutoff line, or
//! nothing.
//!
//! # Assumptions
//! 1. A segment executes on any one CPU, without preemption, for at most its wcet.
//! 2. All its resources are its own from its start to its end. A thread's place (its stack) is one
//!    more resource, which each segment of that thread uses alone.
//! 3. All time of the CPUs is theirs from the instants in [`Available`] on.
//! 4. CPUs are alike, but for segments with a [`Location`].
//!
//! # Invariants
//!
//! * **An accepted plan is its own proof**: CPUs, resources, precedence and deadlines hold, however
//!   the search was bounded. A bound changes acceptance only.
//! * **A refusal changes nothing** in the plan in force. A group is removed from it only for one
//!   of higher importance that then fits, and never once it has begun.
//! * **Nobody starts later than planned**, when each segment starts once its [`Order`] allows it,
//!   and at its planned start at the latest: as long as none executes for longer than its wcet.
//! * **Bounded**: after construction nothing is allocated. A plan of n segments with a window of k
//!   takes at most the evaluations of its [`Search`], and one sort.
//!
//! Sources: Humphrey and Stankovic, "Predictable Threads for Dynamic, Hard Real-Time Environments"
//! (Spring), §2.2; Ramamritham, Stankovic and Shiah, TPDS 1(2), 1990 (window, strong feasibility).
//!
//! # Examples
//!
//! ```
//! use punctual_model::{Instant, Mode, Work};
//! use punctual_planner::{Available, Capacities, Planner, Search, Segment, Segments, Use};
//!
//! // A table is moved by one process at a time: compute, move it, correct (Spring, Fig. 2).
//! let capacities = Capacities::new(3, 2, 1);
//! let mut segments = Segments::new(capacities);
//! let by = |deadline| Segment {
//!     group: 0,
//!     release: Instant::ZERO,
//!     wcet: Work::from_ticks(10),
//!     absolute_deadline: Instant::from_ticks(deadline),
//! };
//! let table = Use { resource: 0, mode: Mode::Exclusive };
//! let compute = segments.push(by(40), &[])?;
//! let moves = segments.push(by(40), &[table])?;
//! let correct = segments.push(by(40), &[])?;
//! segments.precede(compute, moves)?;
//! segments.precede(moves, correct)?;
//!
//! let mut planner = Planner::new(capacities);
//! let available = Available::from(Instant::ZERO, capacities);
//! let plan = planner.plan(&segments, &available, &Search::default())?;
//! let starts: Vec<u64> = plan.iter().map(|place| place.start.ticks()).collect();
//! assert_eq!(starts, [0, 10, 20]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod available;
mod book;
mod kills;
mod order;
mod pace;
mod planner;
mod search;
mod segments;

pub use available::Available;
pub use book::{Accepted, Ask, Book};
pub use kills::{GroupKey, Kills, Unknown};
pub use order::Order;
pub use pace::Pace;
pub use planner::{Placement, Planner};
pub use punctual_model::{Heuristic, Locality, Overload};
pub use search::{Late, Refusal, Search, Why, evaluations};
pub use segments::{Capacities, Location, Mistake, Segment, Segments, Use};
