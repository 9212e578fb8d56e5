//! One at a time: a lock that lends its holder the urgency of whoever waits.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use punctual_linux::{Monitor, Step, Visit, Who};
use punctual_model::{Instant, Span};

use super::{WaitError, after, instant};

/// A value that one thread of a CPU uses at a time.
///
/// The holder is at least as urgent as the most urgent thread that waits (priority inheritance,
/// along chains; Sha, Rajkumar and Lehoczky 1990). What is unlocked goes to the most urgent waiter
/// at once, so nobody starves; a lower thread holds up a higher one for one section at most.
///
/// A holder that panics or is cancelled unlocks while it unwinds.
pub struct Mutex<T> {
    holder: Monitor<Option<Who>, 1>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, of which there is one at a time.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex {
            holder: Monitor::new(None),
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
    pub fn lock_until(&self, at: Instant) -> Result<Guard<'_, T>, WaitError> {
        self.lock_by(instant(at))
    }

    /// Locks it if that is possible within `span`.
    ///
    /// # Errors
    /// As [`Mutex::lock`], and [`WaitError::TimedOut`].
    pub fn lock_within(&self, span: Span) -> Result<Guard<'_, T>, WaitError> {
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
        let visit = self.holder.visit(until, |holder, desk| match *holder {
            None => {
                *holder = Some(desk.me());
                Step::Done(Ok(()))
            }
            Some(me) if me == desk.me() => Step::Done(Err(WaitError::AlreadyHeld)),
            Some(_) => Step::Wait {
                line: 0,
                ask: 0,
                holder: *holder,
            },
        });
        match visit? {
            // An answer comes with the lock.
            Visit::Done(Ok(())) | Visit::Answered(_) => Ok(Guard {
                mutex: self,
                here: PhantomData,
            }),
            Visit::Done(Err(error)) => Err(error),
        }
    }

    #[inline]
    fn unlock(&self) {
        // It can fail only when the run is over, and then nobody waits.
        let _ = self.holder.visit(None, |holder, desk| {
            let next = desk.most_urgent(0).map(|(who, _)| who);
            *holder = next;
            if let Some(who) = next {
                desk.hand_over(who, 0);
            }
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
