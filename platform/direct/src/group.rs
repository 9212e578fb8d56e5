//! What a direct scheduler knows: its threads, who is ready, who should run.

use core::any::Any;
use core::cell::{Cell, RefCell, UnsafeCell};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence};
use std::collections::VecDeque;
use std::sync::Arc;

use punctual_model::Instant;
use punctual_switch::{Dispatched, RecordCell, SchedulerRecord, dispatch};

use crate::choice::Choice;
use crate::platform::{Clock, LightThread, Stack, Storage};
use crate::word::{NOBODY, Word};

/// The place of the scheduler's own thread.
pub(crate) const MAIN: usize = NOBODY;

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Ready,
    /// It executes, or is about to.
    Running,
    Blocked,
    Ended,
}

/// Why the first of the ready threads goes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    /// By the order alone.
    Nobody,
    /// It was given the turn, until the instant of a choice.
    Turn,
    /// For a lock, whatever the time: else a contender that the choice prefers would never get it.
    Lock,
}

pub(crate) type DirectBody = Box<dyn FnOnce()>;

/// One thread, as far as it is not in its record.
pub(crate) struct DirectThread {
    pub(crate) state: Cell<State>,
    pub(crate) until: Cell<Option<Instant>>,
    /// Somebody woke it.
    pub(crate) woken: Cell<bool>,
    /// The lock that it waits for, or null.
    pub(crate) wants: Cell<*const Word>,
    /// Ticks that it has executed, as far as it has been charged.
    pub(crate) executed: Cell<u64>,
    /// Ticks charged by the signal that no event in the ring tells of. Written by the signal.
    pub(crate) unposted: AtomicU64,
    pub(crate) panic: Cell<Option<String>>,
    pub(crate) body: UnsafeCell<Option<DirectBody>>,
    /// None for the scheduler's own thread, which runs on that of its light thread.
    pub(crate) stack: Option<Stack>,
    pub(crate) storage: Option<Storage>,
}

/// One scheduler. Reached by address by its threads and by the signal.
///
/// Fields of the second part are changed with `busy` set, by whoever of its threads executes; the
/// signal only reads them.
pub(crate) struct Group {
    /// Which of all direct schedulers it is; never 0.
    pub(crate) number: u64,
    pub(crate) record: SchedulerRecord,
    pub(crate) records: Box<[RecordCell]>,
    pub(crate) threads: Vec<DirectThread>,
    pub(crate) light: LightThread,
    pub(crate) clock: Clock,
    /// The order where the running thread names nobody; `None`: turns.
    pub(crate) choice: Option<Arc<Choice>>,
    /// Since when `current` executes; also set by the signal.
    pub(crate) since: AtomicU64,
    /// Preemptions of its threads; by the signal.
    pub(crate) preemptions: Cell<u64>,
    /// Records that said something impossible; by the signal.
    pub(crate) refused: Cell<u64>,
    /// A preemption found `busy` set. Set by the signal.
    pub(crate) wanted: AtomicBool,
    pub(crate) busy: AtomicBool,

    /// Who should run, by the last decision.
    pub(crate) running: Cell<usize>,
    pub(crate) ready: RefCell<VecDeque<usize>>,
    /// Whether the first of `ready` has been named by the thread that ran.
    pub(crate) named: Cell<Named>,
    pub(crate) blocked_until: Cell<Option<Instant>>,
    pub(crate) dispatches: Cell<u64>,
    pub(crate) stale: Cell<u64>,
    pub(crate) helped: Cell<u64>,
    /// What unwound a thread that was told to end its job: everything ends with it.
    pub(crate) stopping: Cell<Option<Box<dyn Any + Send>>>,
}

impl Group {
    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(crate) fn ticks(&self, ns: u64) -> u64 {
        self.clock.ticks(ns)
    }

    /// Runs `change` with the word set that keeps the signal from handing the processor to the
    /// scheduler's thread meanwhile.
    pub(super) fn locked<R>(&self, change: impl FnOnce(&mut VecDeque<usize>) -> R) -> R {
        self.busy.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let result = change(&mut self.ready.borrow_mut());
        compiler_fence(Ordering::SeqCst);
        self.busy.store(false, Ordering::Relaxed);
        result
    }

    /// A preemption that found the lock taken is made up for.
    pub(super) fn give_way(&self) {
        if self.wanted.load(Ordering::Relaxed) {
            self.yield_now();
        }
    }

    pub(crate) fn yield_now(&self) {
        let me = self.running.get();
        self.locked(|ready| {
            self.threads[me].state.set(State::Ready);
            ready.push_back(me);
        });
        self.reschedule(me);
    }

    pub(crate) fn yield_to(&self, to: usize) -> bool {
        let me = self.running.get();
        let found = self.locked(|ready| {
            let place = ready.iter().position(|&thread| thread == to);
            let Some(place) = place.filter(|_| to != MAIN) else {
                return false;
            };
            ready.remove(place);
            self.hand_over(me, to, ready);
            self.named.set(Named::Turn);
            true
        });
        if found {
            self.reschedule(me);
        } else {
            self.give_way();
        }
        found
    }

    /// The caller stays ready, behind a thread that goes on at once and is in no queue.
    pub(super) fn hand_over(&self, me: usize, to: usize, ready: &mut VecDeque<usize>) {
        self.threads[me].state.set(State::Ready);
        ready.push_front(me);
        ready.push_front(to);
        self.named.set(Named::Lock);
    }

    /// `false`: the time was over before somebody came.
    pub(crate) fn block(&self, until: Option<Instant>) -> bool {
        let me = self.running.get();
        let thread = &self.threads[me];
        // The test and the blocking are one step: a wake-up comes before or after both.
        let blocks = self.locked(|_| {
            let blocks = !thread.woken.get();
            if blocks {
                thread.state.set(State::Blocked);
                thread.until.set(until);
                self.note_until(until);
            }
            blocks
        });
        if blocks {
            self.reschedule(me);
        }
        let woken = thread.woken.replace(false);
        if !blocks {
            self.give_way();
        }
        woken
    }

    pub(crate) fn wake(&self, who: usize) {
        let Some(thread) = self.threads.get(who).filter(|_| who != MAIN) else {
            return;
        };
        self.locked(|ready| {
            thread.woken.set(true);
            if thread.state.get() == State::Blocked {
                thread.state.set(State::Ready);
                ready.push_back(who);
            }
        });
        self.give_way();
    }

    /// The running thread ends; nobody ever dispatches to it again.
    pub(crate) fn end(&self) -> ! {
        let me = self.running.get();
        self.locked(|ready| self.ended(me, ready));
        loop {
            self.reschedule(me);
        }
    }

    fn ended(&self, thread: usize, ready: &mut VecDeque<usize>) {
        self.threads[thread].state.set(State::Ended);
        self.release_contenders(thread, ready);
    }

    pub(super) fn note_until(&self, until: Option<Instant>) {
        let earliest = self.blocked_until.get();
        self.blocked_until.set(match (earliest, until) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        });
    }

    /// Takes decisions and dispatches until the decision is the caller. On `main`: until nobody is
    /// ready.
    pub(crate) fn reschedule(&self, me: usize) {
        loop {
            let (next, epoch) = self.locked(|ready| {
                // Read first: a preemption from here on makes the decision stale.
                let epoch = self.record.epoch();
                self.wanted.store(false, Ordering::Relaxed);
                let preempted = self.take_events();
                self.reinstate(me, preempted, ready);
                self.expire(ready);
                let next = match self.running.get() {
                    // It has been chosen already, and was dispatched to.
                    chosen if chosen == me && self.is_running(me) => me,
                    _ => self.choose(ready).unwrap_or(MAIN),
                };
                self.threads[next].state.set(State::Running);
                self.running.set(next);
                self.charge(me);
                (next, epoch)
            });
            if next == me {
                return;
            }
            let (from, to) = (self.records[me].get(), self.records[next].get());
            // SAFETY: (1) both are records of this group, and `from` is the executing thread's;
            // (2) the signal recovers this group while it runs; (3) everything shared is in cells,
            // and no borrow is alive; (4) WRFSBASE was tried before the group was made.
            let outcome = unsafe { dispatch(&raw const self.record, from, to, epoch) };
            match outcome {
                Dispatched::Away => {}
                Dispatched::Stale => self.stale.set(self.stale.get() + 1),
                // Somebody damaged the record of the other thread: it is lost, not we.
                Dispatched::Unavailable => {
                    self.refused.set(self.refused.get() + 1);
                    self.locked(|ready| self.ended(next, ready));
                }
            }
        }
    }

    /// Takes the next out of the queue: a thread that has been named, else by the choice. From the
    /// instant of the choice on a turn counts no more: the caller was preempted between its look at
    /// the clock and here. A preemption behind this makes the decision stale. O(threads).
    fn choose(&self, ready: &mut VecDeque<usize>) -> Option<usize> {
        let named = self.named.replace(Named::Nobody);
        let choice = self.choice.as_ref().filter(|choice| match named {
            Named::Nobody => true,
            Named::Turn => choice.is_due(self.now()),
            Named::Lock => false,
        });
        let chosen = choice.and_then(|choice| choice.place_in(ready));
        ready.remove(chosen.unwrap_or(0))
    }

    fn is_running(&self, thread: usize) -> bool {
        self.threads[thread].state.get() == State::Running
    }

    /// Who was to run, if it is not the caller, is ready again: a dispatch to it did not happen (it
    /// is first), or it was preempted in favour of the scheduler's thread (it is last).
    fn reinstate(&self, me: usize, preempted: Option<usize>, ready: &mut VecDeque<usize>) {
        let chosen = self.running.get();
        if chosen == me || chosen == MAIN || !self.is_running(chosen) {
            return;
        }
        self.threads[chosen].state.set(State::Ready);
        if preempted == Some(chosen) {
            ready.push_back(chosen);
        } else {
            ready.push_front(chosen);
            self.named.set(Named::Turn);
        }
    }

    /// Charges what the signal has measured; returns who was preempted last.
    fn take_events(&self) -> Option<usize> {
        let mut last = None;
        while let Some(event) = self.record.events.take() {
            // Tags are places in the list.
            let place = usize::try_from(event.tag).unwrap_or(usize::MAX);
            if let Some(thread) = self.threads.get(place) {
                thread.executed.set(thread.executed.get() + event.executed);
                last = Some(place);
            }
        }
        if self.record.events.take_overflow() > 0 {
            for thread in &self.threads {
                let more = thread.unposted.swap(0, Ordering::Relaxed);
                thread.executed.set(thread.executed.get() + more);
            }
        }
        last
    }

    /// Charges the caller for what it has executed since it was resumed.
    fn charge(&self, me: usize) {
        let since = self.since.load(Ordering::Relaxed);
        let now = self.now().ticks();
        // The signal has charged it if it came in between, and set a new beginning.
        let (set, order) = (now, Ordering::Relaxed);
        if self
            .since
            .compare_exchange(since, set, order, order)
            .is_ok()
        {
            let thread = &self.threads[me];
            let executed = thread.executed.get() + now.saturating_sub(since);
            thread.executed.set(executed);
        }
        self.dispatches.set(self.dispatches.get() + 1);
    }

    /// Whose time is over becomes ready. O(threads) when the earliest is due, else O(1).
    fn expire(&self, ready: &mut VecDeque<usize>) {
        let due = self.blocked_until.get();
        if due.is_none_or(|due| due > self.now()) {
            return;
        }
        let now = self.now();
        self.blocked_until.set(None);
        for (place, thread) in self.threads.iter().enumerate() {
            let until = thread.until.get();
            if thread.state.get() != State::Blocked || until.is_none() {
                continue;
            }
            if until.is_some_and(|until| until <= now) {
                thread.state.set(State::Ready);
                ready.push_back(place);
            } else {
                self.note_until(until);
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for thread in &mut self.threads {
            if thread.state.get() != State::Ended {
                // Others may hold references into the stack of a thread that has not ended.
                core::mem::forget(thread.stack.take());
                core::mem::forget(thread.storage.take());
            }
        }
    }
}
