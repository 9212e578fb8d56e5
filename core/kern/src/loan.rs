//! Who lends urgency to whom, beside the resources of the plan: lists through the threads.
//!
//! A runtime has locks of its own, which the core never hears of while nobody waits for them. Who
//! does wait says for which thread and under which key of the runtime's, and lends that thread its
//! urgency meanwhile. The lists are links by index inside the threads: nothing is allocated.

use punctual_model::{Instant, Priority};

/// No thread.
pub(crate) const NOBODY: u32 = u32::MAX;

/// How urgent a thread is at least, whatever it is by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ceiling {
    /// Where priorities decide.
    pub priority: Priority,
    /// Where deadlines decide; [`Instant::MAX`]: among background work only.
    pub absolute_deadline: Instant,
}

/// The places of one thread in these lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Loans {
    /// To whom it lends while it waits, and for which key.
    pub(crate) to: u32,
    pub(crate) key: u32,
    /// The neighbours among those that lend to the same thread.
    pub(crate) before: u32,
    pub(crate) after: u32,
    /// The first of those that lend to this thread.
    pub(crate) first: u32,
}

impl Loans {
    pub(crate) const NONE: Loans = Loans {
        to: NOBODY,
        key: 0,
        before: NOBODY,
        after: NOBODY,
        first: NOBODY,
    };

    /// The thread that it lends to.
    pub(crate) fn holder(&self) -> Option<usize> {
        (self.to != NOBODY).then_some(self.to as usize)
    }
}
