//! Counting what there is enough of.

use punctual_linux::{Monitor, Step};
use punctual_model::{Instant, Ns, Span};

use super::{WaitError, after, instant};

/// A number of permits that threads take and give.
///
/// A permit that is given goes straight to the most urgent waiter. Anybody may give one, so nobody
/// inherits priority; where a holder matters, use a [`super::Mutex`].
#[derive(Debug)]
pub struct Semaphore {
    permits: Monitor<u64, 1>,
}

impl Semaphore {
    /// With so many permits.
    pub const fn new(permits: u64) -> Semaphore {
        Semaphore {
            permits: Monitor::new(permits),
        }
    }

    /// As [`Semaphore::new`], for threads of every CPU of a run; served in the order of coming.
    pub const fn cross_cpu(permits: u64) -> Semaphore {
        Semaphore {
            permits: Monitor::cross_cpu(permits),
        }
    }

    /// Takes a permit; waits for one if need be.
    ///
    /// # Errors
    /// [`WaitError::NoRun`], [`WaitError::OtherCpu`], [`WaitError::Over`].
    pub fn acquire(&self) -> Result<(), WaitError> {
        self.acquire_by(None)
    }

    /// Takes a permit until an instant of the run (nanoseconds) at most.
    ///
    /// # Errors
    /// As [`Semaphore::acquire`], and [`WaitError::TimedOut`].
    pub fn acquire_until(&self, at: Instant<Ns>) -> Result<(), WaitError> {
        self.acquire_by(instant(at))
    }

    /// Takes a permit within `span`.
    ///
    /// # Errors
    /// As [`Semaphore::acquire_until`].
    pub fn acquire_within(&self, span: Span<Ns>) -> Result<(), WaitError> {
        self.acquire_by(after(span))
    }

    /// Takes a permit if there is one.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] when there is none.
    pub fn try_acquire(&self) -> Result<(), WaitError> {
        self.acquire_by(Some(Instant::ZERO))
    }

    fn acquire_by(&self, until: Option<Instant>) -> Result<(), WaitError> {
        self.permits.critical_section(until, |permits, _| {
            if *permits == 0 {
                return Step::wait(0, 0);
            }
            *permits -= 1;
            Step::Done(())
        })?;
        Ok(())
    }

    /// Gives a permit.
    ///
    /// # Errors
    /// As [`Semaphore::acquire`].
    pub fn release(&self) -> Result<(), WaitError> {
        self.permits.critical_section(None, |permits, waiters| {
            if waiters.answer_if(0, |_| Some(0)).is_none() {
                *permits = permits.saturating_add(1);
            }
            Step::Done(())
        })?;
        Ok(())
    }

    /// Permits that nobody has taken; `None` where that cannot be seen.
    pub fn permits(&self) -> Option<u64> {
        self.permits.look(|permits| *permits).ok()
    }
}
