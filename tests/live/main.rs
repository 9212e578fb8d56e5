//! Whole systems for real.

mod backed;
#[path = "../common/mod.rs"]
mod common;
mod examples;
mod excuses;
mod files;
mod graphs;
mod inline;
mod own_time;
mod plain;
mod slots;
mod threads_log;
mod tree_log;
mod what_if;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A process has one run at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
