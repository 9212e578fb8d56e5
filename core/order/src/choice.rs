//! The answers of a tree: who runs, and until when.

use punctual_model::{Instant, ThreadId};

use crate::node::NodeId;

/// Which ready set a thread belongs to. Real-time work always goes before background work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Band {
    /// Ordered by the policy.
    #[default]
    RealTime,
    /// Runs when no real-time thread of the same node wants to.
    Background,
}

/// Who runs next.
// A whole word says which: read back together with its value, a shorter one would stall.
#[repr(u64)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// This thread.
    Thread(ThreadId),
    /// This scheduler, which decides on its own supply which of its threads runs.
    RunChild(NodeId),
    /// Nobody wants to run.
    Idle,
}

/// Who runs, and until when that stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "the processor goes to the one that the tree chose"]
pub struct Choice {
    /// Who runs.
    pub next: Next,
    /// Ask again at this instant at the latest; `None`: until something happens.
    pub until: Option<Instant>,
}

impl Choice {
    /// Of two instants of which either may not be, the earlier.
    #[inline]
    pub fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, None) | (None, one) => one,
        }
    }
}

/// The choice of a scheduler that decides on its own supply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChildPick {
    /// Whose choice.
    pub child: NodeId,
    /// The state of its ready threads that it decided on ([`crate::Tree::epoch`]).
    pub epoch: u32,
    /// Who runs; `None`: nobody, until its ready threads change or until `until`.
    pub thread: Option<ThreadId>,
    /// It wants to decide again at this instant at the latest.
    pub until: Option<Instant>,
}
