//! A scheduler inside a light thread, whose threads switch among themselves in a few nanoseconds.
//!
//! A light thread makes a [`Scheduler`], gives it threads, and runs it. To the core all of them are
//! that one light thread: its constraint admits them, its budget pays for them. Among themselves
//! they yield, block and wake by the dispatch of `punctual_switch`, without a word to the core, and
//! they are preempted at any instruction, this scheduler included: the signal recovers who ran from
//! the records (design note 0010), charges it, posts an event, and makes decisions stale.
//!
//! ```text
//!   core ── light thread ──┬─ run(): the scheduler's own thread, which takes over after a
//!                          │         preemption and sleeps (in the core) when nobody is ready
//!                          ├─ direct thread 1 ─┐
//!                          └─ direct thread 2 ─┴─ dispatch to each other
//! ```
//!
//! The order is round robin: a preempted thread goes to the end, with a turn that ends whenever the
//! light thread is preempted. A [`Choice`] in its place keeps a preempted thread going, or lets one
//! that decides come first from an instant on.
//!
//! One word (`busy`) guards the scheduler's own data. A preemption that finds it set lets the
//! holder go on, which gives way as soon as it is out (Slite's and Composite's helping, for one
//! CPU). What its threads share besides is guarded by a
//! [`HelpingLock`] each.

mod choice;
mod group;
mod helping;
mod platform;
mod recovery;
mod scheduler;
mod word;

use core::cell::Cell;

use punctual_model::Instant;

pub use choice::Choice;
pub use helping::{HelpingError, HelpingGuard, HelpingLock};
pub use scheduler::{DirectReport, Scheduler};

use group::{Group, MAIN, State};

/// A thread of a [`Scheduler`], by its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DirectId(pub(crate) usize);

/// Why a direct scheduler could not be made.
#[derive(Debug)]
pub enum DirectError {
    /// The caller is not on a light thread of a run, or is on a direct thread already.
    NoRun,
    /// More threads than it was made for.
    Full,
    /// This processor or kernel does not let user code set the thread pointer.
    NoThreadPointer,
    /// No memory for a stack or for thread-local storage.
    Memory(std::io::Error),
}

impl core::fmt::Display for DirectError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            DirectError::NoRun => write!(f, "direct threads live in a light thread of a run"),
            DirectError::Full => write!(f, "the scheduler was made for fewer threads"),
            DirectError::NoThreadPointer => {
                write!(
                    f,
                    "direct threads need WRFSBASE, which this machine does not allow"
                )
            }
            DirectError::Memory(error) => write!(f, "no memory for a direct thread: {error}"),
        }
    }
}

impl std::error::Error for DirectError {}

thread_local! {
    /// The group that the thread belongs to; null: none. A plain cell, so reading it is one load.
    static GROUP: Cell<*const Group> = const { Cell::new(core::ptr::null()) };
}

/// The group that the caller belongs to, if it is on one of its threads.
#[inline]
fn group() -> Option<&'static Group> {
    let group = GROUP.get();
    // SAFETY: the word is set while the group runs and lives, by those who run on it.
    unsafe { group.as_ref() }
}

/// Lets the other threads of the caller's scheduler go first. O(1). Does nothing elsewhere.
pub fn yield_now() {
    if let Some(group) = group() {
        group.yield_now();
    }
}

/// Gives the processor to this thread at once, if it is ready; the caller stays ready, and is next
/// after it. O(threads). `false`: it is not ready, and nothing was done. From the instant of a
/// [`Choice`] on, the next thread of that goes first instead.
pub fn yield_to(thread: DirectId) -> bool {
    group().is_some_and(|group| group.yield_to(thread.0))
}

/// Waits until somebody wakes the caller. A wake-up that came before is not lost.
pub fn block() {
    if let Some(group) = group() {
        group.block(None);
    }
}

/// As [`block`], for at most this many nanoseconds; `false`: nobody came.
pub fn block_within(ns: u64) -> bool {
    group().is_some_and(|group| {
        let now = group.now();
        let ticks = group.ticks(ns);
        group.block(Some(Instant::from_ticks(now.ticks().saturating_add(ticks))))
    })
}

/// Wakes a thread of the caller's scheduler; if it does not wait, its next wait ends at once. O(1).
pub fn wake(thread: DirectId) {
    if let Some(group) = group() {
        group.wake(thread.0);
    }
}

/// The caller, if it is a direct thread.
pub fn current() -> Option<DirectId> {
    group()
        .map(|group| DirectId(group.running.get()))
        .filter(|id| id.0 != MAIN)
}

/// What a thread does, for reports.
fn is_over(state: State) -> bool {
    state == State::Ended
}
