//! Threads of a runtime, for real.

#[path = "../common/mod.rs"]
mod common;

mod cross_cpu;
mod kill;
mod locals;
mod mutex;
mod policies;
mod rwlock;
mod spread;
mod storm;

mod sync;
mod threads;
mod tree;
mod tree_refusals;
mod two_cpus;
