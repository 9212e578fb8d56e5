//! Before the first event: capacities, threads, precedence.

use alloc::vec::Vec;
use core::fmt;

use punctual_model::{Constraint, CpuId, Instant, Span, ThreadId};
use punctual_order::{Capacity, NodeId, Policy, Refusal, Tree};

use super::{Counters, Shard};
use crate::effective::WaitOrder;
use crate::free::Free;
use crate::lock::{Locks, ResourceTerms, UseTerms};
use crate::pending::Pool;
use crate::precedence::{Edge, Precedences, Source};
use crate::rare::Rares;
use crate::thread::{Costs, Thread};
use crate::timeline::Timeline;
use crate::trace::NoSink;
use crate::traits::Traits;

/// Why a setup step was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// As for the event that would do the same.
    Refused(Refusal),
    /// A thread or a slot that this shard does not have.
    UnknownPredecessor,
    /// A resource that this shard does not have.
    UnknownResource,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Refused(refusal) => write!(f, "the scheduler refused: {refusal:?}"),
            ConfigError::UnknownPredecessor => write!(f, "the predecessor is not on this shard"),
            ConfigError::UnknownResource => write!(f, "the resource is not on this shard"),
        }
    }
}

impl core::error::Error for ConfigError {}

impl From<Refusal> for ConfigError {
    fn from(refusal: Refusal) -> Self {
        ConfigError::Refused(refusal)
    }
}

impl<P: Policy> Shard<P> {
    /// A shard without threads, at instant 0, in the order of this tree.
    pub fn new(tree: Tree<P>) -> Self {
        let capacity = tree.capacity();
        let n = capacity.threads.min(Capacity::MOST_THREADS);
        Shard {
            threads: (0..n).map(|_| Thread::default()).collect(),
            rekeyed: Vec::with_capacity(n),
            free: Free::new(n),
            rares: Rares::new(n),
            pool: Pool::new(capacity.pending),
            timeline: Timeline::new(n),
            precedences: Precedences::new(n),
            agenda: None,
            locks: Locks::new(n),
            tree,
            wait_order: WaitOrder::Priority,
            running: None,
            now: Instant::ZERO,
            since: Instant::ZERO,
            horizon: Instant::MAX,
            unsettled: 0,
            fast_until: Instant::ZERO,
            tree_until: Instant::ZERO,
            yields: false,
            counters: Counters::default(),
            more: false,
            last_promoted: None,
            deciding: None,
            last_created: None,
            spared: Instant::ZERO,
            awaiting: (0, Instant::ZERO),
            costs: Costs {
                grace: capacity.grace,
                stop: capacity.stop_cost,
                entry: capacity.entry,
                window: 0,
                cache_delay: capacity.cache_delay,
            },
        }
    }

    /// Adds a thread before the run starts. Its phase counts from instant 0; threads get the
    /// indices 0, 1, 2, ... in the order of attachment.
    ///
    /// # Errors
    /// When the table is full or the constraint is meaningless.
    pub fn attach(&mut self, constraint: Constraint) -> Result<ThreadId, ConfigError> {
        self.attach_to(NodeId::ROOT, constraint)
    }

    /// As [`Shard::attach`], into the care of a scheduler of the tree.
    ///
    /// # Errors
    /// As for `attach`; also when there is no such scheduler, or a quota above it is exhausted.
    pub fn attach_to(
        &mut self,
        home: NodeId,
        constraint: Constraint,
    ) -> Result<ThreadId, ConfigError> {
        (self.fast_until, self.tree_until) = (Instant::ZERO, Instant::ZERO);
        Ok(self.create(home, constraint, &mut NoSink)?)
    }

    /// Declares a predecessor that lives on another CPU and arrives at `first_arrival`, then every
    /// `period` (`None`: once). Returns its slot.
    pub fn add_remote(&mut self, first_arrival: Instant, period: Option<Span>) -> u32 {
        self.precedences.add_remote(first_arrival, period)
    }

    /// A thread has this, or has it no more.
    pub(super) fn set_trait(&mut self, thread: usize, one: Traits, is: bool) {
        let t = &mut self.threads[thread];
        t.traits = t.traits.with(one, is);
    }

    /// Adds a precedence to `successor`.
    ///
    /// # Errors
    /// When either end is not on this shard.
    pub fn add_precedence(&mut self, successor: ThreadId, edge: Edge) -> Result<(), ConfigError> {
        self.thread(successor)?;
        if let Source::Local(thread) = edge.from {
            self.thread(thread)?;
        }
        if !self.precedences.add_edge(successor.index(), edge) {
            return Err(ConfigError::UnknownPredecessor);
        }
        self.set_trait(successor.index(), Traits::HAS_PREDECESSORS, true);
        if let Source::Local(thread) = edge.from {
            self.set_trait(thread.index(), Traits::IS_FOLLOWED, true);
        }
        Ok(())
    }

    /// Adds a resource. They get the numbers 0, 1, 2, ... in the order of addition.
    pub fn add_resource(&mut self, terms: ResourceTerms) -> u32 {
        self.locks.add(terms)
    }

    /// Declares that `thread` locks a resource. Only declared locks are granted.
    ///
    /// # Errors
    /// When either is not on this shard.
    pub fn declare_use(&mut self, thread: ThreadId, terms: UseTerms) -> Result<(), ConfigError> {
        self.thread(thread)?;
        let known = self.locks.declare(thread.index(), terms);
        known.then_some(()).ok_or(ConfigError::UnknownResource)
    }

    /// Has the shard of CPU `to` told, as `slot` there, whenever jobs of `thread` are done.
    ///
    /// # Errors
    /// When the thread is not on this shard.
    pub fn add_notification(
        &mut self,
        thread: ThreadId,
        to: CpuId,
        slot: u32,
    ) -> Result<(), ConfigError> {
        self.thread(thread)?;
        self.precedences.add_notification(thread.index(), to, slot);
        self.set_trait(thread.index(), Traits::IS_FOLLOWED, true);
        Ok(())
    }
}
