//! The invariants of a tree, for debug builds and tests.

use super::Tree;
use super::node::{NONE, Supply};
use super::places::Place;
use crate::policy::Policy;
use crate::server::Server;

fn index_of(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(NONE)
}

impl<P: Policy> Tree<P> {
    /// Checks the invariants, O(threads + nodes · children); the error names the broken one.
    ///
    /// # Errors
    /// The name of the broken invariant.
    pub fn check(&self) -> Result<(), &'static str> {
        for (index, node) in self.nodes.iter().enumerate().filter(|(_, n)| n.alive) {
            let in_queue = |at: u16| usize::from(at) == index;
            let threads = self.places.iter().filter(|place| in_queue(place.at));
            let children = self.nodes.iter();
            let children = children.filter(|n| n.alive && n.queued && in_queue(n.parent));
            if threads.count() + children.count() != node.ready as usize {
                return Err("T1: a node counts what stands in its queues");
            }
            if node.parent != NONE && node.queued != self.is_eligible(index_of(index)) {
                return Err("T2: a node is queued exactly when it is eligible");
            }
            if let Supply::Server(server) = &node.supply {
                server.check()?;
            }
            let ready = |place: Place| in_queue(place.at);
            let held = node.held.map(|thread| self.places.get(thread.index()));
            if !self.has_one_node() && held.is_some_and(|place| !place.is_some_and(ready)) {
                return Err("T4: whoever keeps its siblings away is ready");
            }
        }
        self.check_time()
    }
}
