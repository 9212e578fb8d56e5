//! The invariants of a tree, for debug builds and tests.

use super::Tree;
use super::node::{NONE, Supply};
use super::places::Place;
use super::section::Parked;
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
        if !self.has_come && self.parked.iter().any(|parked| self.waits_in_vain(parked)) {
            return Err("T5: the only budget that a section waits for comes");
        }
        self.check_time()
    }

    /// Whether the only server above a parked thread has too little and waits for nothing.
    fn waits_in_vain(&self, parked: &Parked) -> bool {
        let supplies = self.path(self.home_of(parked.thread));
        let mut servers = supplies.filter_map(|at| match &self.nodes[usize::from(at)].supply {
            Supply::Server(server) => Some(server),
            Supply::Shared | Supply::Slots => None,
        });
        let only = servers.next().filter(|_| servers.next().is_none());
        only.is_some_and(|server| {
            server.budget() < parked.length.min(server.capacity()) && server.next().is_none()
        })
    }
}
