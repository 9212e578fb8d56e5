//! The words that members share.
//!
//! `gang` and `member` take them from here, so that the crate `interleave` can compile the same
//! files with words of a model checker.

pub(crate) use core::sync::atomic::{AtomicU64, Ordering};
