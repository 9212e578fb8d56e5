//! Runs on this machine, for real.

#[path = "../common/mod.rs"]
mod common;

mod backed;
mod flight;
mod holes;
mod locks;
mod own_time;
mod programs;
mod robust;
mod storm;
mod takers;
mod threads;
mod two_cpus;
