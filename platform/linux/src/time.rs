//! Time: the clock, how far clocks are apart, time that nobody of ours executed, deferrals.

pub(crate) mod clock;
pub(crate) mod deferral;
pub(crate) mod offset;
