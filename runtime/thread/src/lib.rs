//! What tasks execute: workloads, their registry, and what a body may ask for.
//!
//! A [`Workload`] is a library of named steps that share state; [`Workloads`] finds the step that a
//! file names. Both are the same for the shipped workloads and for a user's own.

mod registry;
mod workload;

pub use registry::{UnknownFunction, Workloads};
pub use workload::{JobContext, Oracle, Step, Workload};
