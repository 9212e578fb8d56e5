//! Work without guarantees: runs when no real-time thread wants to.
//!
//! Higher priorities first; equals take turns.

use core::cmp::Reverse;

use punctual_model::{Instant, Priority, Span, ThreadId, Work};

use crate::policy::Pick;
use crate::ready::ReadyQueue;

/// Ready background threads by priority, then by turn.
#[derive(Debug)]
pub(crate) struct Background {
    ready: ReadyQueue<(Reverse<u32>, u64)>,
    turn: Span,
    /// What the first thread has left of its turn.
    left: Span,
    /// Number of the next turn: a thread that joins or had its turn goes behind its equals.
    next: u64,
}

impl Background {
    pub(crate) fn new(capacity: usize, turn: Span) -> Self {
        Background {
            ready: ReadyQueue::new(capacity),
            turn,
            left: turn,
            next: 0,
        }
    }

    #[inline]
    pub(crate) fn wake(&mut self, thread: ThreadId, priority: Priority) {
        self.ready
            .insert(thread, (Reverse(priority.number()), self.next));
        self.next += 1;
    }

    /// A thread keeps its turn under a new priority only if that is the old one.
    pub(crate) fn update(&mut self, thread: ThreadId, priority: Priority) {
        self.block(thread);
        self.wake(thread, priority);
    }

    #[inline]
    pub(crate) fn block(&mut self, thread: ThreadId) {
        if self.ready.first().is_some_and(|(first, _)| first == thread) {
            self.left = self.turn;
        }
        self.ready.remove(thread);
    }

    #[inline]
    pub(crate) fn rotate(&mut self, thread: ThreadId) {
        if let Some((first, (priority, _))) = self.ready.first()
            && first == thread
        {
            self.ready.defer_first((priority, self.next));
            self.next += 1;
            self.left = self.turn;
        }
    }

    #[inline(never)]
    pub(crate) fn charge(&mut self, thread: ThreadId, work: Work) {
        // As round robin: a turn begins when somebody else is there to wait for its end.
        if self.ready.len() == 1 {
            self.left = self.turn;
            return;
        }
        self.left = self.left.saturating_sub(work.as_span());
        if self.left.is_zero() {
            self.rotate(thread);
            self.left = self.turn;
        }
    }

    #[inline]
    pub(crate) fn pick(&self, now: Instant) -> Pick {
        let Some((thread, _)) = self.ready.first() else {
            return Pick::NOBODY;
        };
        let until = (self.ready.len() > 1).then(|| now.saturating_add(self.left));
        Pick {
            entity: Some(thread),
            until,
        }
    }
}
