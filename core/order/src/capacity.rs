//! What a shard and its tree reserve at construction.

use punctual_model::{Span, Work};

/// What a shard reserves at construction; nothing grows later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Threads at any one time, at most [`Capacity::MOST_THREADS`].
    pub threads: usize,
    /// Jobs that wait behind unfinished ones, over all threads; releases beyond it are lost (and
    /// counted).
    pub pending: usize,
    /// Longest turn of a background thread among equals, in ticks.
    pub background_turn: Span,
    /// Schedulers below the CPU's own policy at any one time.
    pub nodes: u16,
    /// The last part of the budget of every job. A thread owes the part of it that a job uses to
    /// its next allotment.
    pub grace: Work,
    /// The cost of stopping a job whose budget is used up: its thread owes that, too.
    pub stop_cost: Work,
    /// The cost of an entry for releases. The running thread is charged with it, and gets it back.
    pub entry: Work,
    /// The cost of a preemption in cold caches, which the preempted thread executes. Each allotment
    /// of a job holds it, and the first preemption by the job moves it to the other's budget.
    pub cache_delay: Work,
}

impl Capacity {
    /// Most threads of one CPU: with them and all nodes, places of queues and timers are numbers of
    /// 32 bits.
    pub const MOST_THREADS: usize = 1 << 30;

    /// Most of [`Capacity::entities`].
    pub(crate) const MOST_ENTITIES: usize = Capacity::MOST_THREADS + u16::MAX as usize + 1;

    /// Room for `threads` threads with a few waiting jobs each, and turns of ten million ticks.
    pub const fn for_threads(threads: usize) -> Capacity {
        Capacity {
            threads,
            pending: threads * 4 + 64,
            background_turn: Span::from_ticks(10_000_000),
            nodes: 0,
            grace: Work::ZERO,
            stop_cost: Work::ZERO,
            entry: Work::ZERO,
            cache_delay: Work::ZERO,
        }
    }

    /// Entities that a policy of this CPU may have to order: its threads, then the nodes of its
    /// tree, the root (which no policy orders) included.
    pub const fn entities(&self) -> usize {
        self.threads + self.nodes as usize + 1
    }

    /// The index, among the entities, of the node at place `node` of the tree.
    #[inline]
    pub fn entity_of(&self, node: u16) -> u32 {
        u32::try_from(self.threads)
            .unwrap_or(u32::MAX)
            .saturating_add(u32::from(node))
    }
}
