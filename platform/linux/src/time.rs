//! Time: the clock, how far clocks are apart, deferrals of the preemption signal, distributions.

pub(crate) mod clock;
pub(crate) mod clock_watch;
pub(crate) mod deferral;
pub(crate) mod distribution;
pub(crate) mod offset;
