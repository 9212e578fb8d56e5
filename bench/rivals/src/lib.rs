//! What others offer for the same job, to be measured in the same run as Punctual.
//!
//! Each function measures one thing that a program could use instead of Punctual, and gives
//! nanoseconds per unit, one sample per batch. None of them takes much longer than a second. What
//! is not there (a library, a permission) is an error with words, so that a figure without this
//! rival says why. Nothing here is used by anything that runs: it is the measure, not the thing.
//!
//! Switches between contexts: [`contexts`]. Threads of the kernel: [`kernel`]. Their locks:
//! [`locks`], and those that somebody else wants: [`contended`]. Reading: [`reads`]. Signals:
//! [`signals`]. Timers: [`timers`]. Queues of streams: [`queues`]. Classes: [`flips`]. Control
//! groups: [`groups`]. Barriers: [`barriers`]. Cache lines: [`lines`]. A whole set of
//! periodic threads: [`periodic`]. Threads that the kernel holds to a slice of each period:
//! [`throttled`].
#![cfg(all(target_os = "linux", target_env = "gnu"))]

pub mod barriers;
pub mod contended;
pub mod contexts;
pub mod flips;
pub mod groups;
pub mod kernel;
pub mod lines;
pub mod locks;
pub mod periodic;
pub mod queues;
pub mod reads;
pub mod signals;
pub mod slots;
pub mod throttled;
pub mod timers;

mod alone;
mod batch;
mod call;
mod thread;

pub use thread::{Place, on};

/// Nanoseconds per unit, one sample per batch; or why it cannot be measured here.
pub type Samples = Result<Vec<f64>, String>;
