//! The engine of a dataflow application on one tile: states, firing rules, task schedulers
//!
//! An [`Engine`] knows the actors of one graph on one tile. It says which [`Activity`] comes next,
//! again and again; a platform carries it out and asks again. It has neither clock nor storage:
//! tokens and space are numbers behind [`Fifos`], and every transition of an actor's [`State`] is
//! told to an [`Observer`], who knows what time it is.
//!
//! ```text
//!  Idle -> Claim -> Compute -> Release -> Reset -> Idle     each may be preempted (Fig. 5)
//! ```
//!
//! [`When`] says when an application decides: after each firing (own time), or once per slot at its
//! start, by a policy that is trusted (between slots). Or the core does, and each actor has an
//! engine to itself on a thread of its own (inline). [`Plain`] is the engine of an application
//! that is not real-time (Fig. 6): tasks run to completion, and it decides when a FIFO blocks one.
//!
//! # Invariants
//!
//! * **A firing never waits** (CompOSe §4.2.2): it begins when its firing rule holds, that is when
//!   all its tokens are there and all space for its output. Only it takes these tokens and this
//!   space, so the rule holds until it ends.
//! * **Tokens are conserved**: a release consumes and produces what the rule said at the claim.
//! * **A task scheduler is not believed**: the engine checks each answer. One that is no actor or
//!   has no tokens is refused, and nobody fires.
//!
//! Source: Nelson et al., "A composable RTOS with decoupled scheduling" (CompOSe), §4.2-4.3.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod engine;
mod fifos;
mod plain;
mod rule;
mod scheduler;
mod state;

pub use engine::{Activity, Engine};
pub use fifos::{Fifos, Held};
pub use plain::Plain;
pub use punctual_model::{Preempted, When};
pub use rule::{Port, Rule};
pub use scheduler::{Declared, RoundRobin, StaticOrder, TaskScheduler, Tasks, Tdm};
pub use state::{Call, Moved, Observer, State};
