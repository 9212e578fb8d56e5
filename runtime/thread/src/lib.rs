//! Threads with constraints for programs: spawn, run, report.

mod workload;

pub use workload::{JobContext, Oracle, Step, Workload};
