//! One at a time: a lock whose holder inherits the priority of its waiters.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use punctual_linux::{Monitor, Owner, SectionEnd, Step, Waiters};
use punctual_model::{Instant, Ns, Priority, Span};

use super::{WaitError, after, instant};

/// How urgent the holder of a mutex is at least, from the first instruction on (immediate ceiling;
/// Baker 1991): as urgent as the most urgent thread that ever locks it. So on one CPU nobody finds
/// it locked whose holder does not wait for something else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ceiling {
    /// The highest priority among its users, some of which have deadlines or budgets.
    Priority(u32),
    /// The highest priority among its users, all of which are background work.
    Background(u32),
    /// The shortest relative deadline among its users, where deadlines decide.
    Deadline(Span<Ns>),
}

impl Ceiling {
    fn now(self, waiters: &Waiters<'_>) -> punctual_kern::Ceiling {
        let (priority, absolute_deadline) = match self {
            Ceiling::Priority(priority) => (priority, Instant::ZERO),
            Ceiling::Background(priority) => (priority, Instant::MAX),
            Ceiling::Deadline(span) => (0, waiters.after(span)),
        };
        punctual_kern::Ceiling {
            priority: Priority::new(priority),
            absolute_deadline,
        }
    }
}

/// Under which ceiling its holder locked a mutex that has one.
type Before = Option<punctual_kern::Ceiling>;

/// A value that one thread of a CPU uses at a time.
///
/// The holder is at least as urgent as the most urgent thread that waits (priority inheritance,
/// along chains; Sha, Rajkumar and Lehoczky 1990). An unlocked mutex goes to the most urgent waiter
/// at once, so nobody starves; a lower thread holds up a higher one for one section at most.
///
/// A holder that panics or is cancelled unlocks while it unwinds. One that ends with a guard it
/// forgot holds on: nobody gets the mutex any more. Once 65,536 further threads have come and gone
/// in its place, the one that is there then is taken for the holder.
pub struct Mutex<T> {
    owner: Owner,
    ceiling: Option<Ceiling>,
    /// In which the others wait.
    others: Monitor<Before, 1>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, of which there is one at a time.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex {
            // SAFETY: asked in sections of `others` alone; a guard, one at a time, gives back.
            owner: unsafe { Owner::new() },
            ceiling: None,
            others: Monitor::new(None),
            value: UnsafeCell::new(value),
        }
    }

    /// An unlocked mutex with a ceiling. The core hears of the urgency only if it is entered before
    /// the mutex is unlocked. Several such mutexes are unlocked in the reverse order of locking.
    pub const fn with_ceiling(value: T, ceiling: Ceiling) -> Mutex<T> {
        Mutex {
            // SAFETY: as above.
            owner: unsafe { Owner::asked() },
            ceiling: Some(ceiling),
            others: Monitor::new(None),
            value: UnsafeCell::new(value),
        }
    }

    /// Locks it; waits for as long as it takes.
    ///
    /// # Errors
    /// [`WaitError::AlreadyHeld`], [`WaitError::Deadlock`], or nothing that a thread of its CPU
    /// meets.
    #[inline]
    pub fn lock(&self) -> Result<Guard<'_, T>, WaitError> {
        self.lock_by(None)
    }

    /// Locks it if that is possible before an instant of the run (nanoseconds).
    ///
    /// # Errors
    /// As [`Mutex::lock`], and [`WaitError::TimedOut`].
    pub fn lock_until(&self, at: Instant<Ns>) -> Result<Guard<'_, T>, WaitError> {
        self.lock_by(instant(at))
    }

    /// Locks it if that is possible within `span`.
    ///
    /// # Errors
    /// As [`Mutex::lock`], and [`WaitError::TimedOut`].
    pub fn lock_within(&self, span: Span<Ns>) -> Result<Guard<'_, T>, WaitError> {
        self.lock_by(after(span))
    }

    /// Locks it if nobody holds it.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] when somebody does.
    pub fn try_lock(&self) -> Result<Guard<'_, T>, WaitError> {
        self.lock_by(Some(Instant::ZERO))
    }

    #[inline]
    fn lock_by(&self, until: Option<Instant>) -> Result<Guard<'_, T>, WaitError> {
        if !self.owner.take(&self.others) {
            self.lock_slowly(until)?;
        }
        Ok(Guard {
            mutex: self,
            here: PhantomData,
        })
    }

    #[inline(never)]
    fn lock_slowly(&self, until: Option<Instant>) -> Result<(), WaitError> {
        let section = self.others.critical_section(until, |before, waiters| {
            let me = waiters.me();
            match self.owner.get(waiters) {
                None => {
                    self.owner.set(Some(me), self.ceiling.is_some());
                    self.rise(before, waiters);
                    Step::Done(Ok(()))
                }
                Some(holder) if holder == me => Step::Done(Err(WaitError::AlreadyHeld)),
                holder => {
                    self.owner.ask();
                    Step::Wait {
                        queue: 0,
                        ask: 0,
                        holder,
                    }
                }
            }
        });
        match section? {
            SectionEnd::Done(result) => result?,
            // The answer came with the lock.
            SectionEnd::Answered(_) if self.ceiling.is_none() => {}
            SectionEnd::Answered(_) => self.arrive(),
        }
        Ok(())
    }

    /// An answer came with the lock; the ceiling is up to the one that has it.
    fn arrive(&self) {
        // It can fail only when the run is over.
        let _ = self.others.critical_section(None, |before, waiters| {
            self.rise(before, waiters);
            Step::Done(())
        });
    }

    /// The caller has it, and is as urgent as its ceiling.
    fn rise(&self, before: &mut Before, waiters: &mut Waiters<'_>) {
        let Some(ceiling) = self.ceiling else { return };
        *before = waiters.ceiling();
        let ceiling = ceiling.now(waiters);
        // The more urgent of the two: inner sections do not lower outer ones.
        let most = before.map_or(ceiling, |before| punctual_kern::Ceiling {
            priority: match before.priority.is_higher_than(ceiling.priority) {
                true => before.priority,
                false => ceiling.priority,
            },
            absolute_deadline: before.absolute_deadline.min(ceiling.absolute_deadline),
        });
        waiters.set_ceiling(Some(most));
    }

    #[inline]
    fn unlock(&self) {
        if !self.owner.give_back() {
            self.unlock_slowly();
        }
    }

    #[inline(never)]
    fn unlock_slowly(&self) {
        // It can fail only when the run is over, and then nobody waits.
        let _ = self.others.critical_section(None, |before, waiters| {
            if self.ceiling.is_some() {
                waiters.set_ceiling(*before);
            }
            let next = waiters.hand_on(0, 0);
            let asked = self.ceiling.is_some() || !waiters.is_empty(0);
            self.owner.set(next, asked);
            Step::Done(())
        });
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

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

/// The value of a locked mutex; unlocks it when dropped. It stays on its thread.
#[must_use = "what is dropped at once is unlocked at once"]
pub struct Guard<'a, T> {
    mutex: &'a Mutex<T>,
    here: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives shared access to the value only.
unsafe impl<T: Sync> Sync for Guard<'_, T> {}

impl<'a, T> Guard<'a, T> {
    /// Which mutex it is of.
    pub(super) fn mutex(&self) -> &'a Mutex<T> {
        self.mutex
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one, and lends the value for no longer than itself.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

impl<T: fmt::Debug> fmt::Debug for Guard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
