//! Helping locks: who finds one taken lets its holder finish, and is gone back to at once.
//!
//! ```text
//!   A: lock ... preempted                              unlock ─┐      (resumed later)
//!   B:                    lock: taken ── switches to A         └─> locked ... unlock
//! ```
//!
//! For what threads of one scheduler share: its own queues, before all
//! (Composite §2.4). Nobody blocks for a lock and nobody asks the core: the contender gives its
//! turn to the holder, and the holder gives it back when it unlocks. Locks may be nested; a
//! contender of a contender helps along the chain.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{Ordering, compiler_fence};
use std::collections::VecDeque;

use punctual_model::Instant;
use punctual_switch::exchange_if;

use crate::group::{Group, MAIN, State};
use crate::word::Word;
use crate::{group, is_over};

/// Why the caller does not hold what it asked for. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HelpingError {
    /// The caller is no direct thread.
    NoScheduler,
    /// It belongs to the threads of another scheduler: that of its first user.
    OtherScheduler,
    /// The caller holds it already.
    AlreadyHeld,
    /// Its holder wants, along a chain of holders, what the caller holds.
    Deadlock,
    /// It did not come free in time.
    TimedOut,
    /// Its holder has ended without unlocking it (by [`core::mem::forget`]): it stays locked.
    HolderEnded,
}

impl fmt::Display for HelpingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HelpingError::NoScheduler => "the caller is no direct thread",
            HelpingError::OtherScheduler => "it belongs to threads of another scheduler",
            HelpingError::AlreadyHeld => "the caller holds it already",
            HelpingError::Deadlock => "its holder waits for the caller",
            HelpingError::TimedOut => "it did not come free in time",
            HelpingError::HolderEnded => "its holder ended without unlocking it",
        })
    }
}

impl std::error::Error for HelpingError {}

/// A value that one direct thread of a scheduler uses at a time.
///
/// Free, it is taken and given back without a word to anybody. Taken, the contender switches to the
/// holder, which switches back as soon as it unlocks: the last to come is taken to be the most
/// urgent, and is next. So nobody is held up by a preempted holder for longer than its section. A
/// holder that waits in its section ([`crate::block`]) cannot be helped: then contenders wait, too.
///
/// A holder that panics unlocks while it unwinds.
pub struct HelpingLock<T> {
    word: Word,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, of which there is one at a time.
unsafe impl<T: Send> Sync for HelpingLock<T> {}

impl<T> HelpingLock<T> {
    /// An unlocked lock, of the scheduler of its first user.
    pub const fn new(value: T) -> HelpingLock<T> {
        HelpingLock {
            word: Word::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Locks it, however long that takes. O(1) when it is free, else O(threads).
    ///
    /// # Errors
    /// See [`HelpingError`]; all but [`HelpingError::TimedOut`].
    #[inline]
    pub fn lock(&self) -> Result<HelpingGuard<'_, T>, HelpingError> {
        self.lock_by(None)
    }

    /// Locks it if that is possible within `ns` nanoseconds. The time is looked at whenever the
    /// caller has the processor: while it helps, it has not.
    ///
    /// # Errors
    /// See [`HelpingError`].
    pub fn lock_within(&self, ns: u64) -> Result<HelpingGuard<'_, T>, HelpingError> {
        let group = group().ok_or(HelpingError::NoScheduler)?;
        let until = group.now().ticks().saturating_add(group.ticks(ns));
        self.lock_by(Some(Instant::from_ticks(until)))
    }

    /// Locks it if it is free.
    ///
    /// # Errors
    /// [`HelpingError::TimedOut`] when it is not; else as [`HelpingLock::lock`].
    pub fn try_lock(&self) -> Result<HelpingGuard<'_, T>, HelpingError> {
        self.lock_by(Some(Instant::ZERO))
    }

    #[inline]
    fn lock_by(&self, until: Option<Instant>) -> Result<HelpingGuard<'_, T>, HelpingError> {
        let group = group().ok_or(HelpingError::NoScheduler)?;
        if !self.word.take(group, group.running.get())? {
            self.word.contend(group, until)?;
        }
        Ok(HelpingGuard {
            lock: self,
            here: PhantomData,
        })
    }

    /// The value, of which nobody else knows.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The value, taken out.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T> fmt::Debug for HelpingLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HelpingLock").finish_non_exhaustive()
    }
}

/// The value of a locked [`HelpingLock`]; unlocks it when dropped. It stays on its thread.
#[must_use = "what is dropped at once is unlocked at once"]
pub struct HelpingGuard<'a, T> {
    lock: &'a HelpingLock<T>,
    here: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives shared access to the value only.
unsafe impl<T: Sync> Sync for HelpingGuard<'_, T> {}

impl<T> Deref for HelpingGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one, and lends the value for no longer than itself.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for HelpingGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for HelpingGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.word.give_back();
    }
}

impl<T: fmt::Debug> fmt::Debug for HelpingGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Word {
    /// Whether the thread `me` has it now: it was free.
    #[inline]
    fn take(&self, group: &Group, me: usize) -> Result<bool, HelpingError> {
        if self.home.load(Ordering::Relaxed) != group.number {
            self.settle(group)?;
        }
        // SAFETY: (1) the word is this lock's, and threads of its scheduler alone change it, which
        // are on one processor; (2) the signal that preempts them rolls it back.
        let taken = unsafe { exchange_if(self.holder.as_ptr(), MAIN, me) };
        compiler_fence(Ordering::SeqCst);
        Ok(taken)
    }

    /// Gives it to a scheduler, once.
    #[cold]
    fn settle(&self, group: &Group) -> Result<(), HelpingError> {
        let order = Ordering::Relaxed;
        match self.home.compare_exchange(0, group.number, order, order) {
            Ok(_) => Ok(()),
            // Another thread of the same scheduler came first.
            Err(home) if home == group.number => Ok(()),
            Err(_) => Err(HelpingError::OtherScheduler),
        }
    }

    /// Helps until the caller has it.
    #[cold]
    fn contend(&self, group: &Group, until: Option<Instant>) -> Result<(), HelpingError> {
        let me = group.running.get();
        let wants = &group.threads[me].wants;
        let result = loop {
            if until.is_some_and(|until| until <= group.now()) {
                break Err(HelpingError::TimedOut);
            }
            wants.set(self);
            let helped = group.help(self, me, until);
            match helped.and_then(|()| self.take(group, me)) {
                Ok(true) => break Ok(()),
                Ok(false) => {}
                Err(error) => break Err(error),
            }
        };
        wants.set(core::ptr::null());
        result
    }

    /// By its holder.
    #[inline]
    fn give_back(&self) {
        self.holder.store(MAIN, Ordering::Release);
        // A contender that comes after the store finds it free; one from before has said so.
        compiler_fence(Ordering::SeqCst);
        if self.contender.load(Ordering::Relaxed) != MAIN
            && let Some(group) = group()
        {
            group.repay(self);
        }
    }
}

impl Group {
    /// Gives the turn of the caller, which stays next, to the holder of a lock; or waits for a
    /// holder that waits. Returns when the caller runs again, and there may be another holder then.
    fn help(&self, word: &Word, me: usize, until: Option<Instant>) -> Result<(), HelpingError> {
        let goes = self.locked(|ready| {
            let goes = self.turn_over(word, me, until, ready);
            if goes.is_err() {
                // From now on nobody's wait for the caller closes a circle.
                self.threads[me].wants.set(core::ptr::null());
            }
            goes
        });
        if goes == Ok(true) {
            self.reschedule(me);
        } else {
            self.give_way();
        }
        goes.map(|_| ())
    }

    /// Whether the caller is to be rescheduled: it has given its turn away, or waits.
    fn turn_over(
        &self,
        word: &Word,
        me: usize,
        until: Option<Instant>,
        ready: &mut VecDeque<usize>,
    ) -> Result<bool, HelpingError> {
        let holder = word.holder();
        if holder == MAIN {
            return Ok(false);
        }
        if holder == me {
            return Err(HelpingError::AlreadyHeld);
        }
        if self.wants_of(holder, me) {
            return Err(HelpingError::Deadlock);
        }
        word.contender.store(me, Ordering::Relaxed);
        if is_over(self.threads[holder].state.get()) {
            return Err(HelpingError::HolderEnded);
        }
        if let Some(place) = ready.iter().position(|&thread| thread == holder) {
            ready.remove(place);
            self.hand_over(me, holder, ready);
            self.helped.set(self.helped.get() + 1);
        } else {
            self.threads[me].state.set(State::Blocked);
            self.threads[me].until.set(until);
            self.note_until(until);
        }
        Ok(true)
    }

    /// A thread has ended: those that wait for what it holds shall look again. O(threads).
    pub(super) fn release_contenders(&self, ended: usize, ready: &mut VecDeque<usize>) {
        for (place, thread) in self.threads.iter().enumerate() {
            if thread.state.get() != State::Blocked {
                continue;
            }
            // SAFETY: a thread wants a lock for as long as it is in a call that borrows it.
            let word = unsafe { thread.wants.get().as_ref() };
            if word.is_some_and(|word| word.holder() == ended) {
                thread.state.set(State::Ready);
                ready.push_back(place);
            }
        }
    }

    /// Whether `thread` wants, along a chain of holders, what `me` holds. O(threads).
    fn wants_of(&self, mut thread: usize, me: usize) -> bool {
        for _ in 0..self.threads.len() {
            // SAFETY: a thread wants a lock for as long as it is in a call that borrows it.
            let Some(word) = (unsafe { self.threads[thread].wants.get().as_ref() }) else {
                return false;
            };
            thread = word.holder();
            if thread == me {
                return true;
            }
        }
        false
    }

    /// Goes back to the last thread that helped the caller, which has just unlocked; lets those go
    /// on that had to wait. O(threads).
    #[cold]
    fn repay(&self, word: &Word) {
        let me = self.running.get();
        let goes = self.locked(|ready| {
            let last = word.contender.swap(MAIN, Ordering::Relaxed);
            for (place, thread) in self.threads.iter().enumerate() {
                let waits = thread.state.get() == State::Blocked;
                if waits && core::ptr::eq(thread.wants.get(), word) {
                    thread.state.set(State::Ready);
                    ready.push_back(place);
                }
            }
            let wants = self.threads.get(last).is_some_and(|thread| {
                // One that gave up in time does not want it any more.
                core::ptr::eq(thread.wants.get(), word)
            });
            let place = ready.iter().position(|&thread| thread == last);
            let Some(place) = place.filter(|_| wants) else {
                return false;
            };
            ready.remove(place);
            self.hand_over(me, last, ready);
            true
        });
        if goes {
            self.reschedule(me);
        } else {
            self.give_way();
        }
    }
}
