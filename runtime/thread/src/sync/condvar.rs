//! Waiting for something to become true under a mutex.

use punctual_linux::{Monitor, Step};
use punctual_model::{Instant, Ns, Span};

use super::{Guard, WaitError, after, instant};

/// Threads that wait, outside of a mutex, until a thread that changes its value notifies them.
///
/// The most urgent waiter is told first. A thread may be told without reason (another was in
/// between): look again under the mutex.
#[derive(Debug, Default)]
pub struct Condvar {
    /// The number of notifications: one between unlocking and waiting is not missed.
    told: Monitor<u64, 1>,
}

impl Condvar {
    /// Nobody waits.
    pub const fn new() -> Condvar {
        Condvar {
            told: Monitor::new(0),
        }
    }

    /// Unlocks the mutex, waits to be told, and locks it again.
    ///
    /// # Errors
    /// As [`super::Mutex::lock`]; the mutex is not locked then.
    pub fn wait<'a, T>(&self, guard: Guard<'a, T>) -> Result<Guard<'a, T>, WaitError> {
        self.wait_by(guard, None).map(|(guard, _)| guard)
    }

    /// As [`Condvar::wait`], until an instant of the run (nanoseconds) at most; whether it was
    /// told. The mutex is locked again in either case, however long that takes.
    ///
    /// # Errors
    /// As [`Condvar::wait`].
    pub fn wait_until<'a, T>(
        &self,
        guard: Guard<'a, T>,
        at: Instant<Ns>,
    ) -> Result<(Guard<'a, T>, bool), WaitError> {
        self.wait_by(guard, instant(at))
    }

    /// As [`Condvar::wait_until`], for `span` at most.
    ///
    /// # Errors
    /// As [`Condvar::wait`].
    pub fn wait_within<'a, T>(
        &self,
        guard: Guard<'a, T>,
        span: Span<Ns>,
    ) -> Result<(Guard<'a, T>, bool), WaitError> {
        self.wait_by(guard, after(span))
    }

    /// The refusal of a wait before it began, so that the guard can be kept then.
    ///
    /// # Errors
    /// [`WaitError::OtherCpu`], [`WaitError::NoRun`].
    pub fn may_wait(&self) -> Result<(), WaitError> {
        Ok(self.told.look(|_| ())?)
    }

    fn wait_by<'a, T>(
        &self,
        guard: Guard<'a, T>,
        until: Option<Instant>,
    ) -> Result<(Guard<'a, T>, bool), WaitError> {
        let seen = self.told.look(|told| *told)?;
        let mutex = guard.mutex();
        drop(guard);
        let waited = self
            .told
            .critical_section(until, |told, _| match *told == seen {
                true => Step::wait(0, 0),
                false => Step::Done(()),
            });
        let told = match waited.map_err(WaitError::from) {
            Ok(_) => true,
            Err(WaitError::TimedOut) => false,
            Err(error) => return Err(error),
        };
        Ok((mutex.lock()?, told))
    }

    /// Tells the most urgent waiter, if there is one.
    ///
    /// # Errors
    /// [`WaitError::OtherCpu`], [`WaitError::NoRun`].
    pub fn notify_one(&self) -> Result<(), WaitError> {
        self.tell(1)
    }

    /// Tells all waiters.
    ///
    /// # Errors
    /// As [`Condvar::notify_one`].
    pub fn notify_all(&self) -> Result<(), WaitError> {
        self.tell(usize::MAX)
    }

    fn tell(&self, most: usize) -> Result<(), WaitError> {
        self.told.critical_section(None, |told, waiters| {
            *told = told.wrapping_add(1);
            let mut left = most;
            while left > 0 && waiters.answer_if(0, |_| Some(0)).is_some() {
                left -= 1;
            }
            Step::Done(())
        })?;
        Ok(())
    }
}
