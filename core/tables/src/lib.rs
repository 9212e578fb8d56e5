//! The tables that the shards of a system are built from.
//!
//! ```text
//!   model::System, in nanoseconds           Tables, in ticks
//!   a task                                  a thread with its constraint, and its home
//!   a scheduler, a slot                     a row per node, the slots of a frame
//!   a precedence                            an edge here; a remote there, and a notification
//!   a resource, its users        ------->   its ceiling, floor and order; a declared use each
//!                                                   |
//!                                                   | CpuTables::build
//!                                                   v
//!                                              kern::Shard
//! ```
//!
//! [`Tables::new`] is the door from a model to the core. A log carries the tables of its run, so a
//! replay builds the same shards.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod tables;

pub use tables::{AgendaTables, Carry, CpuTables, FallbackRow, MAX_SEGMENTS, NodeRow, Tables};
