//! One writer or several readers at a time.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use punctual_linux::{Desk, Monitor, Step, Visit};
use punctual_model::{Instant, Span};

use super::{WaitError, after, instant};

const READ: u64 = 0;
const WRITE: u64 = 1;

/// Who uses the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    Nobody,
    Readers(u32),
    Writer,
}

/// A value that several threads of a CPU read at a time, or one writes.
///
/// A reader waits behind a writer that waits and is as urgent as itself or more; so writers do not
/// starve, and a thread that reads already must not read again. Nobody is lent urgency: with
/// several readers, what a waiter lends is no bound for it. Where that matters, use a
/// [`super::Mutex`].
pub struct RwLock<T> {
    users: Monitor<Use, 1>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through guards only: one that writes, or several that read.
unsafe impl<T: Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    /// A value that nobody uses.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock {
            users: Monitor::new(Use::Nobody),
            value: UnsafeCell::new(value),
        }
    }

    /// Shares the value with other readers; waits for it if need be.
    ///
    /// # Errors
    /// [`WaitError::NoRun`], [`WaitError::OtherCpu`], [`WaitError::Over`].
    pub fn read(&self) -> Result<ReadGuard<'_, T>, WaitError> {
        self.read_by(None)
    }

    /// As [`RwLock::read`], until an instant of the run (nanoseconds) at most.
    ///
    /// # Errors
    /// As [`RwLock::read`], and [`WaitError::TimedOut`].
    pub fn read_until(&self, at: Instant) -> Result<ReadGuard<'_, T>, WaitError> {
        self.read_by(instant(at))
    }

    /// As [`RwLock::read`], for `span` at most.
    ///
    /// # Errors
    /// As [`RwLock::read_until`].
    pub fn read_within(&self, span: Span) -> Result<ReadGuard<'_, T>, WaitError> {
        self.read_by(after(span))
    }

    fn read_by(&self, until: Option<Instant>) -> Result<ReadGuard<'_, T>, WaitError> {
        let visit = self.users.visit(until, |users, desk| {
            let writer = desk.most_urgent_if(0, |ask| ask == WRITE);
            let readers = match *users {
                Use::Nobody => 0,
                Use::Readers(readers) => readers,
                Use::Writer => return Step::wait(0, READ),
            };
            if writer.is_some_and(|writer| !desk.goes_before(writer)) {
                return Step::wait(0, READ);
            }
            *users = Use::Readers(readers + 1);
            Step::Done(())
        });
        let _: Visit<()> = visit?;
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
    pub fn write_until(&self, at: Instant) -> Result<WriteGuard<'_, T>, WaitError> {
        self.write_by(instant(at))
    }

    /// As [`RwLock::write`], for `span` at most.
    ///
    /// # Errors
    /// As [`RwLock::write_until`].
    pub fn write_within(&self, span: Span) -> Result<WriteGuard<'_, T>, WaitError> {
        self.write_by(after(span))
    }

    fn write_by(&self, until: Option<Instant>) -> Result<WriteGuard<'_, T>, WaitError> {
        // A writer that waits keeps readers out. If it leaves without the lock, also by unwinding,
        // they must be let in.
        let leaves = LetIn(&self.users);
        let visit = self.users.visit(until, |users, _| match *users {
            Use::Nobody => {
                *users = Use::Writer;
                Step::Done(())
            }
            Use::Readers(_) | Use::Writer => Step::wait(0, WRITE),
        });
        let _: Visit<()> = visit?;
        core::mem::forget(leaves);
        Ok(WriteGuard {
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

/// Lets in whoever may: the most urgent, and as many readers as come before the first writer.
fn let_in(users: &mut Use, desk: &mut Desk<'_>) {
    while let Some((who, ask)) = desk.most_urgent(0) {
        *users = match (*users, ask) {
            (Use::Nobody, WRITE) => Use::Writer,
            (Use::Nobody, _) => Use::Readers(1),
            (Use::Readers(readers), READ) => Use::Readers(readers + 1),
            _ => return,
        };
        desk.answer(who, 0);
    }
}

/// Looks again at who may be let in.
struct LetIn<'a>(&'a Monitor<Use, 1>);

impl Drop for LetIn<'_> {
    fn drop(&mut self) {
        leave(self.0, |users| users);
    }
}

/// Somebody leaves, and others may come in.
fn leave(users: &Monitor<Use, 1>, left: impl FnOnce(Use) -> Use) {
    // It can fail only when the run is over, and then nobody waits.
    let _ = users.visit(None, |users, desk| {
        *users = left(*users);
        let_in(users, desk);
        Step::Done(())
    });
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
        leave(&self.lock.users, |users| match users {
            Use::Readers(readers) if readers > 1 => Use::Readers(readers - 1),
            _ => Use::Nobody,
        });
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
        leave(&self.lock.users, |_| Use::Nobody);
    }
}
