//! Scheduling policies: which ready thread runs next, one safe file each.
//!
//! A policy orders ready threads and nothing else: states, jobs and budgets are `kern`'s, admission
//! is `analysis`'. Each is at most 150 code lines (held by `cargo xtask tidy`), names its source
//! and its trade-off. All break ties by the earlier release, then by the order in the file, so that
//! equal runs give equal decisions. Under fixed priority and EDF a thread that yields goes behind
//! its equals that are ready.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod any;
mod assign;
mod edf;
mod every_queue;
mod fifo;
mod fixed_priority;
mod latest;
mod round_robin;
mod tdm;
mod two_choices;

pub use any::AnyPolicy;
pub use assign::{deadline_monotonic, rate_monotonic};
pub use edf::EarliestDeadlineFirst;
pub use every_queue::every_queue_once;
pub use fifo::Fifo;
pub use fixed_priority::FixedPriority;
pub use round_robin::RoundRobin;
pub use tdm::Tdm;
pub use two_choices::two_random_choices;
