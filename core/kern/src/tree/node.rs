//! One scheduler of a tree: its policy, its supply, and what of its subtree is ready.

use punctual_model::{Instant, Priority, ThreadId, Trust, Work};

use super::lend::Borrowed;
use super::own_time::Answer;
use crate::background::Background;
use crate::node::NodeId;
use crate::policy::Attributes;
use crate::server::Server;

/// No node.
pub(super) const NONE: u16 = u16::MAX;
/// Place of the root.
pub(super) const ROOT: u16 = 0;

/// What a parent grants a child, with the state of it.
#[derive(Debug)]
pub(super) enum Supply<V> {
    /// The processor whenever the child is chosen.
    Shared,
    /// A budget.
    Server(V),
    /// Slots, in the table of the parent's policy.
    Slots,
}

/// One place of the table of nodes.
#[derive(Debug)]
pub(super) struct Node<P, V> {
    pub(super) generation: u16,
    pub(super) alive: bool,
    pub(super) parent: u16,
    pub(super) depth: u8,
    pub(super) trust: Trust,
    /// Most threads in the subtree.
    pub(super) quota: u32,
    /// Threads in the subtree.
    pub(super) threads: u32,

    pub(super) policy: P,
    pub(super) background: Background,
    /// The node whose background level takes work without guarantees: this one if its supply is
    /// bounded, else the nearest above that is.
    pub(super) background_at: u16,
    /// Who keeps its siblings away.
    pub(super) held: Option<ThreadId>,
    /// Threads and eligible children in its queues.
    pub(super) ready: u32,

    /// Budget from a sibling.
    pub(super) borrowed: Borrowed,
    /// What its children have lent each other.
    pub(super) lent_below: Work,
    /// Threads of the subtree that are not ready but wait for budgets.
    pub(super) parked: u32,

    pub(super) supply: Supply<V>,
    pub(super) priority: Priority,
    /// At least as urgent as this while somebody in it holds a resource of several schedulers.
    pub(super) raised: Option<Priority>,
    pub(super) order: u32,
    /// It stands in its parent's queue: it is eligible.
    pub(super) queued: bool,
    /// Its attributes there.
    pub(super) release: Instant,
    pub(super) deadline: Instant,
    /// Its policy idles on purpose until this instant, so others may run.
    pub(super) resting: Option<Instant>,
    /// It had nothing ready from this instant on, which its server has not been told.
    pub(super) fell: Option<Instant>,
    /// How often what is ready in it has changed, for a node that decides on its own supply.
    pub(super) epoch: u32,
    pub(super) answer: Option<Answer>,
    /// It is in [`super::Tree::fallen`], in [`super::Tree::news`].
    pub(super) is_fallen: bool,
    pub(super) has_news: bool,
    /// Its server believes that it has something to run.
    pub(super) awake: bool,
    /// Budget that has been reported.
    pub(super) reported: Work,
}

impl<P, V: Server> Node<P, V> {
    /// What its server still gives, and what it has borrowed; `None`: its supply has no budget.
    #[inline]
    pub(super) fn budget(&self) -> Option<Work> {
        match &self.supply {
            Supply::Server(server) => Some(server.budget().saturating_add(self.borrowed.left)),
            Supply::Shared | Supply::Slots => None,
        }
    }

    #[inline]
    pub(super) fn is_funded(&self) -> bool {
        self.budget().is_none_or(|budget| !budget.is_zero())
    }

    pub(super) fn is_own_time(&self) -> bool {
        self.trust == Trust::OwnTime
    }

    /// How its parent's policy sees it.
    #[inline]
    pub(super) fn attributes(&self) -> Attributes {
        let mut attributes = Attributes {
            priority: self.priority,
            absolute_deadline: self.deadline,
            release: self.release,
            order: self.order,
        };
        if let Some(raised) = self
            .raised
            .filter(|raised| !self.priority.is_higher_than(*raised))
        {
            attributes.priority = raised;
            attributes.release = Instant::ZERO;
        }
        attributes
    }

    pub(super) fn id(&self, index: u16) -> NodeId {
        NodeId::new(index, self.generation)
    }
}
