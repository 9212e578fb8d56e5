//! The keys by which threads and schedulers are queued, as the log states them.
//!
//! A reader of the log derives the key of a job from its constraint and its release. The core
//! reports a key only where the thread inherits another, or did.

use punctual_order::{Band, Policy};

use super::Shard;
use crate::thread::Key;
use crate::trace::{Sink, TraceEvent};

impl<P: Policy> Shard<P> {
    /// A thread is queued by another key than its own, or was before.
    pub(super) fn key_changed(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        if t.key != Key::Pending {
            t.key = Key::Pending;
            self.rekeyed.push(u32::try_from(thread).unwrap_or(u32::MAX));
        }
    }

    /// Reports the keys that have changed, before the decision that they led to.
    #[inline]
    pub(super) fn report_keys<S: Sink>(&mut self, sink: &mut S) {
        if !self.rekeyed.is_empty() {
            self.report_each_key(sink);
        }
        if self.tree.has_moved() {
            self.report_schedulers(sink);
        }
    }

    #[cold]
    fn report_schedulers<S: Sink>(&mut self, sink: &mut S) {
        self.tree.report_budgets(&mut |node, budget| {
            sink.trace(self.now, TraceEvent::budget(node, budget));
        });
        self.tree.report_keys(|node, key, budget| {
            let change = match key {
                None => TraceEvent::Unqueued { node, budget },
                Some(key) => TraceEvent::Queued {
                    node,
                    priority: key.priority,
                    deadline: key.absolute_deadline,
                    release: key.release,
                    budget,
                },
            };
            sink.trace(self.now, change);
        });
    }

    #[cold]
    pub(super) fn report_each_key<S: Sink>(&mut self, sink: &mut S) {
        for index in 0..self.rekeyed.len() {
            let thread = self.rekeyed[index] as usize;
            let t = &mut self.threads[thread];
            t.key = match t.queued && !t.inherits {
                true => Key::Own,
                false => Key::Differs,
            };
            if !t.queued {
                continue;
            }
            let effective = t.effective(&self.rares);
            let a = effective.attributes;
            let ordered = TraceEvent::Ordered {
                thread: t.id(thread),
                background: effective.band == Band::Background,
                priority: a.priority,
                deadline: a.absolute_deadline,
                release: a.release,
                yielded: t.gave_way,
            };
            sink.trace(self.now, ordered);
        }
        self.rekeyed.clear();
    }
}
