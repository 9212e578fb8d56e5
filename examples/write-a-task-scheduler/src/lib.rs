//! A stream of three actors, and the order in which its author lets them fire.
//!
//! `doc/guide/write-a-task-scheduler.md` explains this program, and is compared with it by a test.

mod application;
mod scheduler;

pub use application::{FILE, stream};
pub use scheduler::{Downstream, Endless, Moody, Stubborn};
