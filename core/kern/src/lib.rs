//! The scheduler core: a deterministic state machine for one CPU.
//!
//! ```text
//!            now, Event                     Decision { next, arm }
//!  platform ------------>  Shard<Policy>     ------------------->  platform
//!  (clock, timer, switch)      |     ^                             (switches, arms its timer)
//!                    attach,   v     |  pick
//!                    wake ...  Tree<Policy>
//! ```
//!
//! Principles:
//! 1. **Decide, do not act.** [`Shard::handle`] takes an event with its instant and returns a
//!    `#[must_use]` [`Decision`]; the platform switches after every borrow has ended.
//! 2. **No clock.** `now` is a parameter. Equal events give equal decisions on every platform; a
//!    recorded run can be fed through the core again.
//! 3. **Nothing is allocated and nothing loops without a bound** on a scheduling path. Capacities
//!    are fixed at construction ([`Capacity`]); an event costs O(log n), and k releases that fall
//!    together cost k·log n, at most [`MAX_RELEASES_PER_ENTRY`] in one entry.
//! 4. **Time is charged before anything is decided**, in ticks between entries, so nothing runs
//!    uncharged; missing time is charged to nobody.
//! 5. **Simple algorithms.** Indexed heaps and counters; no unsafe code.
//!
//! Map: [`Event`] and [`Decision`] (the seam to platforms), [`Policy`] (the seam to policies),
//! [`Constraint`] (what a thread asks for), [`Sink`] and [`TraceEvent`] (what happened), [`Shard`]
//! (the machine itself, in parts: releases, budgets, blocking, precedence, resources).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod agenda;
mod effective;
mod event;
mod free;
mod lock;
mod manage;
mod pending;
mod plan;
mod precedence;
mod rare;
mod shard;
mod thread;
mod timeline;
mod trace;
mod traits;

pub use agenda::{AgendaStep, AgendaView, PlannedSegment};
pub use effective::WaitOrder;
pub use event::{Decision, Entry, Event, Message, MissingCause, Taker, Uncharged};
pub use lock::{Ceiling, MAX_NESTING, ResourceTerms, UseTerms};
pub use manage::Request;
pub use plan::{Plan, Planned};
pub use precedence::{Edge, Source};
pub use punctual_model::Constraint;
pub use punctual_order::{
    Attributes, Capacity, ChildPick, FallbackCause, Grant, Next, NodeId, NodeTerms, Pick, Policy,
    ReadyQueue, Refusal, Server, SlotTerms, Tree,
};
pub use shard::{
    ConfigError, Counters, FastOutcome, Front, MAX_LOOKED_AT, MAX_PLACES_PER_ENTRY,
    MAX_RELEASES_PER_ENTRY, Shard, Turn,
};
pub use thread::{JobStamp, JobView, State};
pub use trace::{NoSink, Outcome, Run, Sink, TraceEvent, WakeCause};
