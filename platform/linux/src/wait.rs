//! The third layer: what a running thread asks for, and how threads wait for each other.

pub(crate) mod bell;
pub(crate) mod between;
pub(crate) mod calls;
pub(crate) mod desk;
pub(crate) mod futex;
pub mod job;
pub(crate) mod lock;
pub(crate) mod monitor;
pub(crate) mod period;
pub(crate) mod who;
