//! The core under events, one by one and at random.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod chains;
mod child;
mod contended;
mod corners;
mod driver;
mod events;
mod fast_path;
mod fast_trees;
mod histories;
mod lend;
mod lock_histories;
mod lock_trees;
mod locks;
mod manage;
mod own_time;
mod plans;
mod replace;
mod same_as_one_policy;
mod slices;
mod tree_histories;
mod tree_sections;
mod trees;
mod wrong_policy;
mod yields;
