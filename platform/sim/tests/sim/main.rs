//! The core, the policies and virtual time together.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bodies;
mod common;
mod cores;
mod locks;
mod own_time;
mod precedence;
mod scenarios;
mod trees;
