//! The fast path of a lock of a runtime that one thread wants of another.
//!
//! The running thread waits for a holder that is ready, which nobody waited for: the holder takes
//! its place in the queue, with its urgency. Later the holder hands the lock on, and they change
//! places again. What each inherits is known without a look at who else waits; one call of the
//! policy changes the queue and says who runs ([`super::front`]). All else takes the way of all
//! others ([`super::lock`], [`super::inherit`]).

use punctual_model::{Instant, ThreadId};
use punctual_order::{Attributes, Band, Policy};

use super::{Front, Shard};
use crate::effective::{Effective, Inherited};
use crate::event::Event;
use crate::thread::{JobStamp, Key, Slot, State, Thread};
use crate::timeline::Timer;
use crate::trace::{Sink, TraceEvent, WakeCause};

impl<P: Policy> Shard<P> {
    /// [`Event::BlockOn`] without a time-out on the shortest way, as [`Shard::yield_front`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn wait_front<S: Sink>(
        &mut self,
        now: Instant,
        to: (ThreadId, u32),
        sink: &mut S,
    ) -> Front {
        match self.runs_until(now) {
            Some(id) => self.checked(|shard| shard.inherit_turn(now, id, to, sink)),
            None => Front::Closed,
        }
    }

    /// [`Event::HandOver`] by the running thread on the shortest way, as [`Shard::yield_front`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn hand_front<S: Sink>(
        &mut self,
        now: Instant,
        (key, from, to): (u32, ThreadId, ThreadId),
        sink: &mut S,
    ) -> Front {
        match self.runs_until(now).filter(|&id| id == from) {
            Some(id) => self.checked(|shard| shard.hand_turn(now, (id, to), key, sink)),
            None => Front::Closed,
        }
    }

    /// The running thread waits for what `holder` holds under `key`, as it may. The
    /// holder inherits its urgency.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn inherit_turn<S: Sink>(
        &mut self,
        now: Instant,
        id: ThreadId,
        (holder, key): (ThreadId, u32),
        sink: &mut S,
    ) -> Front {
        let (at, of) = (id.index(), holder.index());
        let (Some(t), Some(h)) = (self.threads.get(at), self.threads.get(of)) else {
            return Front::Closed;
        };
        let waits = !t.wake_pending && t.job.is_some() && !t.gave_way && t.is_plain();
        let runs = h.is_ready_as(holder) && h.may_run_fast() && h.is_plain();
        let is_simple = at != of
            && h.has_place()
            && self.locks.is_apart(of)
            && self.locks.is_apart(at)
            && self.costs.cache_delay.is_zero();
        let attributes = t.own_attributes();
        let effective = Effective {
            band: Band::RealTime,
            attributes,
        };
        let by = self.wait_order;
        let inherited = Inherited { by, effective };
        let own = Effective {
            band: Band::RealTime,
            attributes: h.own_attributes(),
        };
        if !(waits && runs && is_simple && inherited.goes_before(own)) {
            return Front::Closed;
        }
        if !self.tree.let_inherit(id, &attributes, holder) {
            return Front::Closed;
        }
        let executed = self.passed(now);
        let t = &mut self.threads[at];
        t.book_fast(executed);
        t.state = State::Blocked;
        t.waits_plainly = false;
        t.queued = false;
        if let Some(job) = &mut t.job {
            job.gave_up = true;
        }
        let waits = TraceEvent::Blocked {
            thread: id,
            job: t.job_index(),
            for_predecessors: false,
        };
        self.locks.wait_alone(at, (of, key), by);
        let h = &mut self.threads[of];
        let inherits = self.rares.inherit_in_place(h, &inherited);
        debug_assert!(inherits, "it has a place");
        h.key = Key::Differs;
        h.gave_way = false;
        h.state = State::Running;
        let (budget, stamp) = (h.budget, JobStamp::of(h));
        let ordered = ordered(holder, &attributes);
        let turn = self.begin_turn(now, holder, (budget, stamp), false);
        let (holder, until) = (holder, None);
        let event = Event::BlockOn { holder, key, until };
        let run = (id, holder, Some(turn.arm));
        sink.entry_of_changes(now, &event, (waits, ordered), run);
        Front::Turn(turn)
    }

    /// The running thread hands what it holds under `key` to the one that waits for it, from
    /// which it inherits.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn hand_turn<S: Sink>(
        &mut self,
        now: Instant,
        (id, to): (ThreadId, ThreadId),
        key: u32,
        sink: &mut S,
    ) -> Front {
        let (at, of) = (id.index(), to.index());
        let (Some(t), Some(w)) = (self.threads.get(at), self.threads.get(of)) else {
            return Front::Closed;
        };
        let Some(use_of) = self.locks.sole(at, of, key) else {
            return Front::Closed;
        };
        let own = Effective {
            band: Band::RealTime,
            attributes: t.own_attributes(),
        };
        let most = self.rares.inherited(t);
        let inherits = most.is_some_and(|most| most.goes_before(own));
        let returns = t.is_budgeted() && t.place == Band::RealTime && !t.has_ceiling;
        let is_simple = w.generation == to.generation()
            && w.awaits_wake()
            && w.is_itself()
            && w.may_run_fast()
            && !self.locks.holds_contended(of)
            && !self.timeline.is_set(of, Timer::Timeout)
            && self.costs.cache_delay.is_zero();
        let attributes = w.own_attributes();
        if !(inherits && returns && is_simple) {
            return Front::Closed;
        }
        let from = (id, &own.attributes);
        if !self.tree.hand_to(from, (to, &attributes)) {
            return Front::Closed;
        }
        self.locks.leave_sole(at, of, use_of);
        let executed = self.passed(now);
        let t = &mut self.threads[at];
        t.book_fast(executed);
        t.state = State::Ready;
        self.rares.set_inherited(t, None);
        t.key = Key::Own;
        t.gave_way = false;
        let w = &mut self.threads[of];
        w.state = State::Running;
        w.queued = true;
        w.gave_way = false;
        w.place = Band::RealTime;
        let (budget, stamp) = (w.budget, JobStamp::of(w));
        let turn = self.begin_turn(now, to, (budget, stamp), true);
        let (thread, cause) = (to, WakeCause::Wake);
        let changes = (
            TraceEvent::Woken { thread, cause },
            ordered(id, &own.attributes),
        );
        let event = Event::HandOver { key, from: id, to };
        sink.entry_of_changes(now, &event, changes, (id, to, Some(turn.arm)));
        Front::Turn(turn)
    }
}

impl Thread {
    /// Whether it has inherited before, so that there is a place for what it inherits.
    #[inline]
    fn has_place(&self) -> bool {
        self.rare != Slot::NONE
    }

    /// Whether it is ready, as urgent as by itself, on a budget of its own.
    #[inline]
    fn is_plain(&self) -> bool {
        !self.inherits && !self.has_ceiling && self.is_budgeted() && self.place == Band::RealTime
    }
}

/// A ready thread among real-time work has another key.
#[inline]
fn ordered(thread: ThreadId, by: &Attributes) -> TraceEvent {
    TraceEvent::Ordered {
        thread,
        background: false,
        priority: by.priority,
        deadline: by.absolute_deadline,
        release: by.release,
        yielded: false,
    }
}
