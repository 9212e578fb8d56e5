//! The second layer: an entry into a CPU's scheduler, from a call or from the preemption signal.

pub(crate) mod attend;
pub(crate) mod child;
pub(crate) mod code;
pub(crate) mod cpu;
pub mod direct;
pub(crate) mod end;
pub(crate) mod give_back;
pub(crate) mod interrupted;
pub(crate) mod missing;
pub(crate) mod request;
pub(crate) mod signal;
pub(crate) mod switch;
pub(crate) mod wakes;
