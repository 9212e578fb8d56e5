//! Scheduling policies: which ready thread runs next, one safe file each.
//!
//! A policy orders ready threads and nothing else: states, jobs and budgets are `kern`'s, admission
//! is `analysis`'. Each is at most 150 code lines (held by `cargo xtask tidy`), names its source
//! and says what it gives up. All break ties by the earlier release, then by the order in the file,
//! so that equal runs give equal decisions.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod any;
mod any_hierarchy;
mod edf;
mod fifo;
mod fixed_priority;
mod round_robin;

pub use any::AnyPolicy;
pub use any_hierarchy::AnyHierarchy;
pub use edf::EarliestDeadlineFirst;
pub use fifo::Fifo;
pub use fixed_priority::FixedPriority;
pub use round_robin::RoundRobin;
