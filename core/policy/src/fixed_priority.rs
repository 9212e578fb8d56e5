//! Fixed priority: the highest priority first, preemptive or not.
//!
//! Source: Liu and Layland 1973 (preemptive); George, Rivierre and Spuri 1996 (non-preemptive).
//! Gives up: processor utilization, where priorities do not follow deadlines; without preemption
//! also the response times of urgent work, which waits for the job that runs.

use core::cmp::Reverse;

use punctual_model::{Instant, ThreadId, Work};
use punctual_order::{Attributes, Pick, Policy, ReadyQueue};

use crate::latest::Latest;

/// Ready threads by priority, then release, then order in the file. A thread that yields counts as
/// released after all others, until it becomes ready again, has another urgency or a new budget.
#[derive(Debug)]
pub struct FixedPriority {
    ready: ReadyQueue<(Reverse<u32>, Instant, u32)>,
    latest: Latest,
    preemptive: bool,
    /// Without preemption: the thread that has begun to execute, and runs until it blocks or
    /// completes.
    holder: Option<ThreadId>,
}

impl FixedPriority {
    /// Preemptive, for threads with an index below `capacity`.
    pub fn new(capacity: usize) -> Self {
        FixedPriority {
            ready: ReadyQueue::new(capacity),
            latest: Latest::default(),
            preemptive: true,
            holder: None,
        }
    }

    /// As [`FixedPriority::new`], but a job that runs is never preempted by another.
    pub fn non_preemptive(capacity: usize) -> Self {
        FixedPriority {
            preemptive: false,
            ..FixedPriority::new(capacity)
        }
    }
}

#[inline]
fn key_of(a: &Attributes) -> (Reverse<u32>, Instant, u32) {
    (Reverse(a.priority.number()), a.release, a.order)
}

impl Policy for FixedPriority {
    #[inline]
    fn wake(&mut self, thread: ThreadId, a: &Attributes) {
        self.latest.see(a.release);
        self.ready.insert(thread, key_of(a));
    }

    #[inline]
    fn block(&mut self, thread: ThreadId) {
        self.ready.remove(thread);
        if self.holder == Some(thread) {
            self.holder = None;
        }
    }

    /// A thread that has begun goes on, however urgent it or others are now.
    fn update(&mut self, thread: ThreadId, a: &Attributes) {
        self.wake(thread, a);
    }

    #[inline]
    fn yield_now(&mut self, thread: ThreadId) {
        if self.holder == Some(thread) {
            self.holder = None;
        }
        let FixedPriority { ready, latest, .. } = self;
        ready.defer(thread, |(priority, _, order)| {
            (priority, latest.next(), order)
        });
    }

    #[inline]
    fn charge(&mut self, thread: ThreadId, _: Work) {
        if !self.preemptive {
            self.holder = Some(thread);
        }
    }

    // A call leaves it, and those below, the registers, of which the way into it needs as many.
    #[inline(never)]
    fn yield_to_next(&mut self, thread: ThreadId) -> Option<ThreadId> {
        if !self.preemptive {
            return None;
        }
        let latest = self.latest.following();
        // Behind its equals it goes behind all others if the last is one of them: nobody's release
        // is later than the latest.
        let key = |(priority, _, order), (last, release, _)| {
            (last == priority && release < latest).then_some((priority, latest, order))
        };
        let next = self.ready.rotate(thread, key)?;
        self.latest.see(latest);
        Some(next)
    }

    #[inline(never)]
    fn wake_to_run(&mut self, thread: ThreadId, a: &Attributes) -> bool {
        let runs = self.preemptive && self.ready.insert_first(thread, key_of(a));
        if runs {
            self.latest.see(a.release);
        }
        runs
    }

    #[inline(never)]
    fn block_to_next(&mut self, thread: ThreadId) -> Option<ThreadId> {
        match self.preemptive {
            true => self.ready.remove_first(thread),
            false => None,
        }
    }

    #[inline]
    fn let_inherit(&mut self, thread: ThreadId, a: &Attributes, to: ThreadId) -> bool {
        self.preemptive && self.ready.inherit_first(thread, key_of(a), to)
    }

    #[inline]
    fn hand_to(&mut self, from: (ThreadId, &Attributes), to: (ThreadId, &Attributes)) -> bool {
        let ((thread, behind), (to, a)) = (from, to);
        let (behind, key) = (key_of(behind), key_of(a));
        let runs = self.preemptive && self.ready.hand_first(thread, behind, to, key);
        if runs {
            self.latest.see(behind.1.max(key.1));
        }
        runs
    }

    fn urgency(&self, attributes: &Attributes) -> u64 {
        match self.preemptive {
            true => u64::from(attributes.priority.number()),
            false => 0,
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick(&mut self, _now: Instant) -> Pick {
        let entity = match self.holder {
            None => self.ready.first().map(|(thread, _)| thread),
            held => held,
        };
        Pick {
            entity,
            until: None,
        }
    }
}
