//! Why something that was asked for is refused, by the tree or by the core that owns it.

use punctual_model::ThreadId;

use crate::node::NodeId;

/// Why an event was refused, and thereby who is to blame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The thread has ended, or never was (caller).
    StaleThread(ThreadId),
    /// A request of the running thread while none runs (platform).
    NobodyRuns,
    /// The table of threads is full (capacity given at construction).
    NoThreadLeft,
    /// An arrival for a thread that is released by the clock (caller).
    NotSporadic(ThreadId),
    /// A message for a predecessor that this shard does not have (platform).
    NoSuchSlot(u32),
    /// The constraint is meaningless, e.g. a period of zero (caller).
    InvalidConstraint,
    /// A lock that the thread has not declared, or not in this mode (caller).
    NotDeclared(u32),
    /// A lock of what the thread holds already (caller).
    AlreadyHeld(u32),
    /// An unlock of what the thread does not hold (caller).
    NotHeld(u32),
    /// A lock beyond the most that one thread may hold, `punctual_kern::MAX_NESTING` (caller).
    NestedTooDeep(u32),
    /// A lock that would wait for somebody who waits for this thread (caller).
    Deadlock(u32),
    /// A thread that shares resources with others of its scheduler cannot go elsewhere (caller).
    UsesResources(ThreadId),
    /// The scheduler was demoted, or never was (caller).
    NoSuchNode(NodeId),
    /// The table of schedulers is full (capacity given at construction).
    NoNodeLeft,
    /// A child of this scheduler would be deeper than the tree may be (caller).
    TooDeep(NodeId),
    /// This scheduler decides on its own supply and has threads only (caller).
    NotAParent(NodeId),
    /// The subtree of this scheduler has all the threads that it may have (caller).
    QuotaExhausted(NodeId),
    /// This scheduler was not let run to decide (caller).
    NotDeciding(NodeId),
    /// This scheduler decided on ready threads that have changed since (caller, excusably).
    StalePick(NodeId),
    /// The thread is not in the care of who asks (caller).
    NotItsOwn(ThreadId),
    /// The thread has nothing to run (caller).
    NotReady(ThreadId),
    /// The scheduler is not a child of who asks, or not below it (caller).
    NotItsChild(NodeId),
    /// The scheduler is not a sibling of who asks (caller).
    NotASibling(NodeId),
    /// This scheduler has not that much budget to lend (caller).
    TooLittleBudget(NodeId),
    /// This scheduler is not the root, which alone creates threads (caller).
    OnlyRootCreates(NodeId),
    /// A more trusted scheduler than who asks has blocked the thread for itself (caller).
    BlockedByTrusted(ThreadId),
    /// This scheduler has no such supply to give: its time is divided by a constant table, or the
    /// terms mean nothing (caller).
    NotGrantable(NodeId),
}
