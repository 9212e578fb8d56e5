//! Earliest deadline first, eager: work runs as soon as it can.
//!
//! Source: Liu and Layland 1973; Dertouzos 1974 (optimal on one processor). Eager rather than at
//! the latest possible moment, as Nautilus does, so that missing time finds the work done (Nautilus
//! paper §3.6). Trade-off: in overload the deadlines decide which thread suffers, and nobody
//! chooses it; budgets in `kern` keep an overrun with its owner.

use punctual_model::{Instant, ThreadId};
use punctual_order::{Attributes, Pick, Policy, ReadyQueue};

use crate::latest::Latest;

/// Ready threads by absolute deadline, then release, then order in the file. A thread that yields
/// counts as released after all others, until it becomes ready again, has another urgency or a new
/// budget.
#[derive(Debug)]
pub struct EarliestDeadlineFirst {
    ready: ReadyQueue<(Instant, Instant, u32)>,
    latest: Latest,
}

impl EarliestDeadlineFirst {
    /// For threads with an index below `capacity`.
    pub fn new(capacity: usize) -> Self {
        EarliestDeadlineFirst {
            ready: ReadyQueue::new(capacity),
            latest: Latest::default(),
        }
    }
}

#[inline]
fn key_of(a: &Attributes) -> (Instant, Instant, u32) {
    (a.absolute_deadline, a.release, a.order)
}

impl Policy for EarliestDeadlineFirst {
    #[inline]
    fn wake(&mut self, thread: ThreadId, a: &Attributes) {
        self.latest.see(a.release);
        self.ready.insert(thread, key_of(a));
    }

    #[inline]
    fn block(&mut self, thread: ThreadId) {
        self.ready.remove(thread);
    }

    #[inline]
    fn yield_now(&mut self, thread: ThreadId) {
        let EarliestDeadlineFirst { ready, latest } = self;
        ready.defer(thread, |(deadline, _, order)| {
            (deadline, latest.next(), order)
        });
    }

    // A call leaves it, and those below, the registers, of which the way into it needs as many.
    #[inline(never)]
    fn yield_to_next(&mut self, thread: ThreadId) -> Option<ThreadId> {
        let latest = self.latest.following();
        // Behind its equals it goes behind all others if the last is one of them: nobody's release
        // is later than the latest.
        let key = |(deadline, _, order), (last, release, _)| {
            (last == deadline && release < latest).then_some((deadline, latest, order))
        };
        let next = self.ready.rotate(thread, key)?;
        self.latest.see(latest);
        Some(next)
    }

    #[inline(never)]
    fn wake_to_run(&mut self, thread: ThreadId, a: &Attributes) -> bool {
        let runs = self.ready.insert_first(thread, key_of(a));
        if runs {
            self.latest.see(a.release);
        }
        runs
    }

    #[inline(never)]
    fn block_to_next(&mut self, thread: ThreadId) -> Option<ThreadId> {
        self.ready.remove_first(thread)
    }

    #[inline]
    fn let_inherit(&mut self, thread: ThreadId, a: &Attributes, to: ThreadId) -> bool {
        self.ready.inherit_first(thread, key_of(a), to)
    }

    #[inline]
    fn hand_to(&mut self, from: (ThreadId, &Attributes), to: (ThreadId, &Attributes)) -> bool {
        let ((thread, behind), (to, a)) = (from, to);
        let (behind, key) = (key_of(behind), key_of(a));
        let runs = self.ready.hand_first(thread, behind, to, key);
        if runs {
            self.latest.see(behind.1.max(key.1));
        }
        runs
    }

    fn urgency(&self, attributes: &Attributes) -> u64 {
        u64::MAX - attributes.absolute_deadline.ticks()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick(&mut self, _now: Instant) -> Pick {
        Pick {
            entity: self.ready.first().map(|(thread, _)| thread),
            until: None,
        }
    }
}
