//! Nobody goes on before all have come.

use punctual_linux::{Monitor, SectionEnd, Step};
use punctual_model::{Instant, Ns, Span};

use super::{WaitError, after, instant};

/// A meeting point of a fixed number of threads, again and again.
#[derive(Debug)]
pub struct Barrier {
    size: usize,
    /// Threads that have come stand in its queue: a thread that leaves early does not count.
    meeting: Monitor<(), 1>,
}

impl Barrier {
    /// For `size` threads; 0 counts as 1.
    pub const fn new(size: usize) -> Barrier {
        Barrier {
            size,
            meeting: Monitor::new(()),
        }
    }

    /// As [`Barrier::new`], for threads of every CPU of a run. Each CPU's go on in one entry of its
    /// own.
    pub const fn cross_cpu(size: usize) -> Barrier {
        Barrier {
            size,
            meeting: Monitor::cross_cpu(()),
        }
    }

    /// Waits for the others; `true` for the one that came last. All go on in one entry of the
    /// scheduler, O(size · log n).
    ///
    /// # Errors
    /// [`WaitError::NoRun`], [`WaitError::OtherCpu`], [`WaitError::Over`].
    pub fn wait(&self) -> Result<bool, WaitError> {
        self.wait_by(None)
    }

    /// As [`Barrier::wait`], until an instant of the run (nanoseconds) at most.
    ///
    /// # Errors
    /// As [`Barrier::wait`], and [`WaitError::TimedOut`]: this thread has not come then.
    pub fn wait_until(&self, at: Instant<Ns>) -> Result<bool, WaitError> {
        self.wait_by(instant(at))
    }

    /// As [`Barrier::wait`], for `span` at most.
    ///
    /// # Errors
    /// As [`Barrier::wait_until`].
    pub fn wait_within(&self, span: Span<Ns>) -> Result<bool, WaitError> {
        self.wait_by(after(span))
    }

    fn wait_by(&self, until: Option<Instant>) -> Result<bool, WaitError> {
        let visit = self.meeting.critical_section(until, |(), waiters| {
            if waiters.count(0) + 1 < self.size {
                return Step::wait(0, 0);
            }
            while waiters.answer_if(0, |_| Some(0)).is_some() {}
            Step::Done(())
        })?;
        Ok(matches!(visit, SectionEnd::Done(())))
    }
}
