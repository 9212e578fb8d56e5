//! The outcome of an entry on the fast path, and the counters of a shard.

use punctual_model::{Instant, ThreadId};
use punctual_order::Next;

use crate::event::Decision;
use crate::thread::JobStamp;

/// The decision of an entry on the fast path, which refuses nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastOutcome {
    /// The thread or scheduler that runs from now on.
    pub next: Next,
    /// When to enter again, at the latest.
    pub arm: Option<Instant>,
    /// [`crate::Shard::job_stamp`] of the thread that runs from now on.
    pub stamp: JobStamp,
}

impl FastOutcome {
    /// The decision.
    #[inline]
    pub fn decision(self) -> Decision {
        Decision {
            next: self.next,
            arm: self.arm,
            refused: None,
        }
    }
}

/// Another thread runs from now on. No other CPU is to hear of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// Which.
    pub next: ThreadId,
    /// When to enter again, at the latest.
    pub arm: Instant,
    /// [`crate::Shard::job_stamp`] of that thread.
    pub stamp: JobStamp,
}

impl Turn {
    /// The same as what any entry on the fast path comes to.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn outcome(self) -> FastOutcome {
        FastOutcome {
            next: Next::Thread(self.next),
            arm: Some(self.arm),
            stamp: self.stamp,
        }
    }
}

/// What a try of the shortest way came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Front {
    /// Another thread runs.
    Turn(Turn),
    /// The entry is over, and this is when to enter again: a job came or ended, or the queue
    /// changed and then more had to be looked at. [`crate::Shard::chosen`] says the rest.
    Chosen(Option<Instant>),
    /// It takes more than that, and nothing has happened.
    Closed,
}

/// What a shard has done so far.
///
/// Most entries count a decision and a switch. Side by side the two would be added to as one
/// vector, which takes longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Decisions, also those that only repeat the last one.
    pub decisions: u64,
    /// Switches that took the processor from a thread that had not yielded it.
    pub preemptions: u64,
    /// Decisions by which another thread, or none, runs than before.
    pub switches: u64,
}
