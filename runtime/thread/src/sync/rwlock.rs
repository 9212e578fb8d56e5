//! One writer or several readers at a time.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use punctual_linux::{Monitor, SectionEnd, Step};
use punctual_model::{Instant, Ns, Span};

use super::users::{READ, Users, WRITE, arrive, give_up, is_in, leave, pass_on};
use super::{WaitError, after, instant};

/// A value that several threads of a CPU read at a time, at most [`super::MOST_READERS`], or one
/// writes.
///
/// A reader waits behind a writer that waits and is as urgent as itself or more; so writers do not
/// starve. The writer inherits the priority of the waiters (as the holder of a [`super::Mutex`]),
/// or one reader after the other does, in the order of their arrival. On one CPU they execute one
/// after the other anyway. So a waiter waits for the rest of the section of each reader, and for
/// nobody less urgent. A reader that waits for something itself in its section, and not for a lock
/// whose holder inherits in turn, holds up that chain for as long.
pub struct RwLock<T> {
    users: Monitor<Users, 1>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through guards only: one that writes, or several that read.
unsafe impl<T: Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    /// A value that nobody uses.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock {
            users: Monitor::new(Users::nobody()),
            value: UnsafeCell::new(value),
        }
    }

    /// Shares the value with other readers; waits for it if need be.
    ///
    /// # Errors
    /// [`WaitError::AlreadyHeld`] (also by a thread that reads already), [`WaitError::Deadlock`],
    /// [`WaitError::NoRun`], [`WaitError::OtherCpu`], [`WaitError::Over`].
    pub fn read(&self) -> Result<ReadGuard<'_, T>, WaitError> {
        self.read_by(None)
    }

    /// As [`RwLock::read`], until an instant of the run (nanoseconds) at most.
    ///
    /// # Errors
    /// As [`RwLock::read`], and [`WaitError::TimedOut`].
    pub fn read_until(&self, at: Instant<Ns>) -> Result<ReadGuard<'_, T>, WaitError> {
        self.read_by(instant(at))
    }

    /// As [`RwLock::read`], for `span` at most.
    ///
    /// # Errors
    /// As [`RwLock::read_until`].
    pub fn read_within(&self, span: Span<Ns>) -> Result<ReadGuard<'_, T>, WaitError> {
        self.read_by(after(span))
    }

    fn read_by(&self, until: Option<Instant>) -> Result<ReadGuard<'_, T>, WaitError> {
        self.enter(READ, until)?;
        Ok(ReadGuard {
            lock: self,
            here: PhantomData,
        })
    }

    /// Has the value alone; waits for it if need be.
    ///
    /// # Errors
    /// As [`RwLock::read`].
    pub fn write(&self) -> Result<WriteGuard<'_, T>, WaitError> {
        self.write_by(None)
    }

    /// As [`RwLock::write`], until an instant of the run (nanoseconds) at most.
    ///
    /// # Errors
    /// As [`RwLock::write`], and [`WaitError::TimedOut`].
    pub fn write_until(&self, at: Instant<Ns>) -> Result<WriteGuard<'_, T>, WaitError> {
        self.write_by(instant(at))
    }

    /// As [`RwLock::write`], for `span` at most.
    ///
    /// # Errors
    /// As [`RwLock::write_until`].
    pub fn write_within(&self, span: Span<Ns>) -> Result<WriteGuard<'_, T>, WaitError> {
        self.write_by(after(span))
    }

    fn write_by(&self, until: Option<Instant>) -> Result<WriteGuard<'_, T>, WaitError> {
        self.enter(WRITE, until)?;
        Ok(WriteGuard {
            lock: self,
            here: PhantomData,
        })
    }

    /// Comes in as a reader or a writer.
    fn enter(&self, ask: u64, until: Option<Instant>) -> Result<(), WaitError> {
        // A writer that waits keeps readers out. If it leaves without the lock, also by unwinding,
        // they must be let in.
        let mut leaves = LetIn {
            users: &self.users,
            was_first_in_line: false,
        };
        loop {
            let was_first_in_line = leaves.was_first_in_line;
            let visit = self.users.critical_section(until, |users, waiters| {
                if users.has(waiters.me()) {
                    return Step::Done(Err(WaitError::AlreadyHeld));
                }
                let writer = waiters.most_urgent_if(0, |ask| ask == WRITE);
                let behind = ask == READ && writer.is_some_and(|other| !waiters.goes_before(other));
                if !behind && users.let_in(waiters.me(), ask) {
                    if was_first_in_line {
                        pass_on(users, waiters);
                    }
                    return Step::Done(Ok(()));
                }
                Step::Wait {
                    queue: 0,
                    ask,
                    holder: users.first(),
                }
            });
            match visit? {
                SectionEnd::Done(result) => {
                    result?;
                    break;
                }
                SectionEnd::Answered(answer) if is_in(answer) => {
                    if was_first_in_line {
                        arrive(&self.users);
                    }
                    break;
                }
                // Another one is first among the users now, and inherits.
                SectionEnd::Answered(_) => leaves.was_first_in_line = true,
            }
        }
        core::mem::forget(leaves);
        Ok(())
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

/// Looks again at who may be let in.
struct LetIn<'a> {
    users: &'a Monitor<Users, 1>,
    was_first_in_line: bool,
}

impl Drop for LetIn<'_> {
    fn drop(&mut self) {
        give_up(self.users, self.was_first_in_line);
    }
}

impl<T> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock").finish_non_exhaustive()
    }
}

/// The value, shared with other readers until this is dropped. It stays on its thread.
#[must_use = "what is dropped at once is given back at once"]
#[derive(Debug)]
pub struct ReadGuard<'a, T> {
    lock: &'a RwLock<T>,
    here: PhantomData<*const ()>,
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: while there are readers nobody writes.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> Drop for ReadGuard<'_, T> {
    fn drop(&mut self) {
        leave(&self.lock.users);
    }
}

/// The value, for this thread alone until this is dropped. It stays on its thread.
#[must_use = "what is dropped at once is given back at once"]
#[derive(Debug)]
pub struct WriteGuard<'a, T> {
    lock: &'a RwLock<T>,
    here: PhantomData<*const ()>,
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the only guard of this lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for WriteGuard<'_, T> {
    fn drop(&mut self) {
        leave(&self.lock.users);
    }
}
