//! Systems that the tests for real and those in virtual time have in common.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

pub(crate) mod examples;
pub(crate) mod own_time;
