//! Instructions per operation, counted by single steps.
//!
//! `cargo xtask count` holds those of its scenarios against ceilings. Each scenario is a child
//! process that repeats operations between marks and steps through itself. A count does not depend
//! on the speed of the machine nor on other programs there, so a test can hold it
//! (`doc/counting.md`). `punctual bench` counts its own measurements in the same way ([`windows`]).
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

pub mod crews;
pub mod groups;
pub mod jobs;
pub mod many;
pub mod windows;

mod cache;
mod ceilings;
mod child;
mod count;
mod decisions;
mod gangs;
mod interrupt;
mod live;
mod many_threads;
mod operands;
mod planning;
mod scenario;
mod slots;
mod stepper;
mod switching;
mod virtual_time;

pub use ceilings::{Ceilings, FILE, Judgement};
pub use count::{Count, count, execute_if_child};
