//! What schedulers of a tree ask of each other: the operations on the tree itself.
//!
//! A scheduler has power over the threads and schedulers of its own subtree and nothing else.
//! Source: Composite paper §2, Table 1. Each request is refused whole or done whole.

use punctual_model::{Constraint, Instant, PolicyKind, ThreadId, Work};
use punctual_order::{Grant, NodeId, NodeTerms};

/// A request of one scheduler. The platform says whose it is ([`crate::Event::Manage`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// A new thread, in the care of `home`. Only the root creates threads, so it can hold every
    /// subtree to its quota.
    Create {
        /// Which scheduler orders it.
        home: NodeId,
        /// What it asks for.
        constraint: Constraint,
    },
    /// A thread of its own goes into the care of a child; or executes from now on on a slice of
    /// time that the one who asks holds, and stays in its care.
    Grant {
        /// Which thread.
        thread: ThreadId,
        /// A child of the one who asks, or a slice in its hands.
        to: NodeId,
    },
    /// A thread that some scheduler below has comes back, however deep it is; or one of its own
    /// that executes on a slice of time.
    Revoke {
        /// Which thread.
        thread: ThreadId,
    },
    /// A new scheduler below the one who asks; [`crate::Shard::last_promoted`] tells its id. It
    /// orders by fixed priority, or decides on its own supply. With a receiver, a delegation: a
    /// slice of the supply of the one who asks, which may be a slice itself: its holder asks in its
    /// name.
    Promote(NodeTerms),
    /// A scheduler below is none any more, nor are those below it; their threads fall back to its
    /// parent. Or a slice of time is taken back, with all that was delegated from it: threads on
    /// them fall back to their schedulers' own supply. So end slices that a scheduler below
    /// holds, too.
    Demote(NodeId),
    /// A scheduler below gets another server, full and as if it had slept. Nothing below it may be
    /// ready or wait for a budget then.
    Supply {
        /// Which, with a server of its own.
        node: NodeId,
        /// The server from now on.
        supply: Grant,
    },
    /// Budget of the one who asks, a scheduler or a slice, goes to a sibling, until the end of the
    /// lender's period. Their parent sees it ([`crate::Tree::lent_below`]).
    Lend {
        /// A sibling with a server.
        to: NodeId,
        /// How much.
        work: Work,
    },
    /// A thread of the subtree waits.
    Block {
        /// Which thread.
        thread: ThreadId,
        /// Only the one who asks and those above it may wake the thread; a timeout that it had set
        /// itself does not.
        exclusive: bool,
        /// The timeout.
        until: Option<Instant>,
    },
    /// A thread of the subtree goes on.
    Wake(ThreadId),
    /// Another policy orders what a scheduler orders: the one that was put beside it
    /// ([`crate::Shard::shelve`]), else one in stock ([`crate::Shard::stock`]). It is told of what
    /// there is in bounded steps, and decides as soon as it knows everything.
    Replace {
        /// The one who asks, or a scheduler below.
        node: NodeId,
        /// The built-in policy that the new one is, or whose order it keeps.
        policy: PolicyKind,
    },
}
