//! The words that members, carriers and thieves share.
//!
//! The files that are about such words take them from here, so that the crate `interleave` can
//! compile the same files with the words of a model checker.

pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
