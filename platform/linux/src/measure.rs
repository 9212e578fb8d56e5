//! Above the layers: what this machine can promise and what it takes, by measurement.

pub mod bench;
pub(crate) mod gaps;
pub(crate) mod overhead;
pub(crate) mod probe;
pub(crate) mod share;
pub(crate) mod taken;
