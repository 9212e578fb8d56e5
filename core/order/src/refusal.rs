//! Why something that was asked for is refused, by the tree or by the core that owns it.

use core::fmt;

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
    /// This is a slice of time: it has no threads and schedulers of its own, and its terms stay
    /// until it is taken back (caller).
    NotAScheduler(NodeId),
    /// Something below this scheduler is ready, or waits for a budget (caller).
    NotIdle(NodeId),
    /// This scheduler has not that much budget to lend, or supply to delegate (caller).
    TooLittleBudget(NodeId),
    /// This scheduler is not the root, which alone creates threads (caller).
    OnlyRootCreates(NodeId),
    /// A more trusted scheduler than who asks has blocked the thread for itself (caller).
    BlockedByTrusted(ThreadId),
    /// This scheduler has no such supply to give: its time is divided by a constant table or shared
    /// with others, it would delegate to itself, or the terms mean nothing (caller).
    NotGrantable(NodeId),
    /// The policy of this scheduler stays: it divides time or the new one does, a program's own
    /// would decide inside the core, or its threads share resources in an order that would be
    /// another (caller).
    NotReplaceable(NodeId),
    /// No new policy was put beside this scheduler (caller).
    NothingShelved(NodeId),
    /// A part of a plan that does not follow from those before, or for which there is no room
    /// (caller).
    NotPlannable,
    /// The policy of this scheduler is being replaced already (caller).
    BeingReplaced(NodeId),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl Refusal {
    /// The reason in words, and the way out where there is one.
    pub const fn words(&self) -> &'static str {
        match self {
            Refusal::StaleThread(_) => "the thread has ended, or never was",
            Refusal::NobodyRuns => "no thread runs that could ask for it",
            Refusal::NoThreadLeft => "the table of threads is full: make it larger at the start",
            Refusal::NotSporadic(_) => "the thread is released by the clock, not by arrivals",
            Refusal::NoSuchSlot(_) => "no thread of this CPU waits for that predecessor",
            Refusal::InvalidConstraint => "the constraint means nothing, such as a period of 0",
            Refusal::NotDeclared(_) => "the thread has not declared that it uses this resource so",
            Refusal::AlreadyHeld(_) => "the thread holds this resource already",
            Refusal::NotHeld(_) => "the thread does not hold this resource",
            Refusal::NestedTooDeep(_) => "the thread holds as many resources as one thread may",
            Refusal::Deadlock(_) => "the holder of this resource waits for the thread that asks",
            Refusal::UsesResources(_) => {
                "the thread shares resources with others of its scheduler, so it stays there"
            }
            Refusal::NoSuchNode(_) => "the scheduler was demoted, or never was",
            Refusal::NoNodeLeft => {
                "the table of schedulers is full: choose room for more at the start"
            }
            Refusal::TooDeep(_) => "a child of this scheduler would be deeper than a tree may be",
            Refusal::NotAParent(_) => {
                "the scheduler decides on its own supply, so it has threads and no children"
            }
            Refusal::QuotaExhausted(_) => {
                "the scheduler or one above it has as many threads as its quota allows"
            }
            Refusal::NotDeciding(_) => "the scheduler was not let run to decide",
            Refusal::StalePick(_) => "the scheduler's ready threads have changed since it looked",
            Refusal::NotItsOwn(_) => "the thread is not in the care of the scheduler that asks",
            Refusal::NotReady(_) => "the thread has nothing to run, so it cannot be blocked",
            Refusal::NotItsChild(_) => {
                "the scheduler is neither a child of the one that asks nor below it"
            }
            Refusal::NotASibling(_) => "the scheduler is not a sibling of the one that asks",
            Refusal::NotAScheduler(_) => {
                "that is a slice of time: it has no threads and schedulers of its own, and its terms \
                 stay until it is taken back"
            }
            Refusal::NotIdle(_) => "something below the scheduler is ready, or waits for a budget",
            Refusal::TooLittleBudget(_) => {
                "the scheduler has not that much left to lend or to delegate"
            }
            Refusal::OnlyRootCreates(_) => "only the root of a tree creates threads",
            Refusal::BlockedByTrusted(_) => {
                "a more trusted scheduler has blocked the thread for itself"
            }
            Refusal::NotGrantable(_) => {
                "the scheduler has no such supply to give: a table divides its time, it shares that of \
                 others, it would delegate to itself, or the terms mean nothing"
            }
            Refusal::NotReplaceable(_) => {
                "the scheduler keeps its policy: a table divides its time or would, a program's own \
                 would decide where the scheduler has no supply of its own to decide on, or what \
                 its threads share would be handed on in another order"
            }
            Refusal::NothingShelved(_) => "no new policy was put beside the scheduler",
            Refusal::NotPlannable => "this part of a plan does not follow, or has no room",
            Refusal::BeingReplaced(_) => "the policy of the scheduler is being replaced already",
        }
    }
}
