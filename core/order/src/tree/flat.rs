//! Steps of a policy that alone orders its CPU, in a tree without room for a second node.
//!
//! Each stands for a charge, a change and a pick. Nothing has happened where the answer is `None`
//! or `false`: then the core makes the three calls.

use punctual_model::ThreadId;

use super::{Tree, node};
use crate::choice::Band;
use crate::policy::{Attributes, Policy};

impl<P: Policy> Tree<P> {
    /// [`Tree::attach`] in the care of the policy that alone orders the CPU. `false`: others do
    /// too, or it takes no more threads, and nothing has happened.
    #[inline]
    pub fn attach_flat(&mut self, thread: ThreadId) -> bool {
        if !self.is_flat {
            return false;
        }
        let root = &mut self.nodes[usize::from(node::ROOT)];
        let has_room = root.threads < root.quota && !root.policy.orders_background();
        if !has_room || thread.index() >= self.capacity.threads {
            return false;
        }
        root.threads += 1;
        root.policy.attach(thread);
        true
    }

    /// [`Tree::detach`] of a thread in the care of the policy that alone orders the CPU.
    #[inline]
    pub fn detach_flat(&mut self, thread: ThreadId) {
        debug_assert!(self.is_flat && self.parked.is_empty() && self.overruns.is_empty());
        let root = &mut self.nodes[usize::from(node::ROOT)];
        root.policy.detach(thread);
        root.threads = root.threads.saturating_sub(1);
    }

    /// The policy, where it alone orders the CPU and nobody keeps others away.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn alone(&mut self) -> Option<&mut P> {
        if !self.is_flat {
            return None;
        }
        let root = &mut self.nodes[usize::from(node::ROOT)];
        root.held.is_none().then_some(&mut root.policy)
    }

    /// [`Policy::yield_to_next`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn yield_to_next(&mut self, thread: ThreadId, band: Band) -> Option<ThreadId> {
        if band != Band::RealTime {
            return None;
        }
        self.alone()?.yield_to_next(thread)
    }

    /// [`Policy::wake_to_run`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn wake_to_run(&mut self, thread: ThreadId, attributes: &Attributes) -> bool {
        self.alone()
            .is_some_and(|policy| policy.wake_to_run(thread, attributes))
    }

    /// [`Policy::block_to_next`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn block_to_next(&mut self, thread: ThreadId, band: Band) -> Option<ThreadId> {
        if band != Band::RealTime {
            return None;
        }
        self.alone()?.block_to_next(thread)
    }

    /// [`Policy::let_inherit`].
    #[inline]
    pub fn let_inherit(&mut self, thread: ThreadId, attributes: &Attributes, to: ThreadId) -> bool {
        self.alone()
            .is_some_and(|policy| policy.let_inherit(thread, attributes, to))
    }

    /// [`Policy::hand_to`].
    #[inline]
    pub fn hand_to(&mut self, from: (ThreadId, &Attributes), to: (ThreadId, &Attributes)) -> bool {
        self.alone().is_some_and(|policy| policy.hand_to(from, to))
    }
}
