//! The order of one CPU: which of its ready threads runs next.
//!
//! ```text
//!   Tree<P>                        pick: from the root down, in each node whom its policy chooses
//!    |-- thread                    charge: from the node of a thread up, to every server
//!    `-- node [server: 2 in 10]
//!         |-- thread
//!         `-- node
//! ```
//!
//! A [`Tree`] has a [`Policy`] per node, and a [`Server`] where the parent of a node grants it a
//! budget. It knows which threads are ready and how urgent they are. Jobs, releases and locks are
//! the core's, which owns the tree.
//!
//! A tree of the root alone is the common case and costs one branch.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod background;
mod capacity;
mod choice;
mod heap;
mod node;
mod policy;
mod ready;
mod refusal;
mod server;
mod servers;
mod tree;

pub use capacity::Capacity;
pub use choice::{Band, ChildPick, Choice, Next};
pub use heap::IndexedHeap;
pub use node::NodeId;
pub use policy::{Attributes, Pick, Policy};
pub use ready::ReadyQueue;
pub use refusal::Refusal;
pub use server::Server;
pub use servers::{AnyServer, ConstantBandwidth, Deferrable, PeriodicResource, Polling, Sporadic};
pub use tree::{FallbackCause, Grant, Member, NodeTerms, SlotTerms, Tree};
