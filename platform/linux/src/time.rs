//! Time: the clock, how far clocks are apart, deferrals of the preemption signal.

pub(crate) mod clock;
pub(crate) mod deferral;
pub(crate) mod offset;
