//! The third layer: what a running thread asks for, and how threads wait for each other.

pub(crate) mod calls;
pub(crate) mod cross_cpu;
pub(crate) mod forked;
pub(crate) mod futex;
pub mod job;
pub(crate) mod lock;
pub(crate) mod monitor;
pub(crate) mod notify;
pub(crate) mod owner;
pub(crate) mod period;
pub(crate) mod waiters;
pub(crate) mod who;
