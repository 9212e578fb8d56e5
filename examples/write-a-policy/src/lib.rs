//! A policy, wrong twice and then right: the program of doc/guide/write-a-policy.md.
//!
//! The policy is fixed priority with turns among equals, which POSIX calls `SCHED_RR`.
#![forbid(unsafe_code)]

pub mod first;
pub mod second;
mod turns;

pub use turns::Turns;
