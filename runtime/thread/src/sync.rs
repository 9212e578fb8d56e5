//! Objects that threads wait for: locks, conditions, queues, of one CPU and between CPUs.
//!
//! Each belongs to the CPU of its first use (a [`Notify`] to that of its making); threads of other
//! CPUs get [`WaitError::OtherCpu`]. An object that is made with `cross_cpu`, and a
//! [`SpinMutex`], is for those of every CPU of a run. With nobody waiting no call enters the
//! scheduler or the system: one kernel thread carries the CPU, so a few plain instructions with
//! preemption put off are enough. Waiters are served by urgency, the first come among equals, and
//! between CPUs in the order of arrival. Every wait has a form that ends at an instant (`_until`)
//! or after a while (`_within`; `Span::MAX` sets no limit), and ends when its thread is cancelled.

mod barrier;
mod condvar;
mod flags;
mod mutex;
mod notify;
mod queue;
mod rwlock;
mod semaphore;
mod spin;
mod users;

use core::fmt;

use punctual_linux::{MonitorError, at_ns, job};
use punctual_model::{Instant, Ns, Span};

pub use barrier::Barrier;
pub use condvar::Condvar;
pub use flags::{Flags, Want};
pub use mutex::{Ceiling, Guard, Mutex};
pub use notify::Notify;
pub use queue::{Queue, SendError};
pub use rwlock::{ReadGuard, RwLock, WriteGuard};
pub use semaphore::Semaphore;
pub use spin::SpinMutex;
pub use users::MOST_READERS;

/// Why a call did not do what it was asked for. Nothing has changed then, but that a
/// [`Condvar`] may have unlocked the mutex: see there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WaitError {
    /// The caller is on no thread of a run.
    NoRun,
    /// The thing belongs to another CPU, or to a run that is over.
    OtherCpu,
    /// It did not happen in time.
    TimedOut,
    /// Its holder waits for the caller, along a chain of holders.
    Deadlock,
    /// The caller holds it already.
    AlreadyHeld,
    /// The caller does not hold it.
    NotHeld,
    /// Somebody else waits for it, and only one may.
    Taken,
    /// The run is over.
    Over,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitError::NoRun => "the caller is on no thread of a run",
            WaitError::OtherCpu => "it belongs to another CPU, or to a run that is over",
            WaitError::TimedOut => "it did not happen in time",
            WaitError::Deadlock => "its holder waits for the caller",
            WaitError::AlreadyHeld => "the caller holds it already",
            WaitError::NotHeld => "the caller does not hold it",
            WaitError::Taken => "somebody else waits for it already",
            WaitError::Over => "the run is over",
        })
    }
}

impl std::error::Error for WaitError {}

impl From<MonitorError> for WaitError {
    fn from(error: MonitorError) -> WaitError {
        match error {
            MonitorError::OtherCpu => WaitError::OtherCpu,
            MonitorError::TimedOut => WaitError::TimedOut,
            MonitorError::Deadlock => WaitError::Deadlock,
            MonitorError::Taken => WaitError::Taken,
            MonitorError::Over => WaitError::Over,
            _ => WaitError::NoRun,
        }
    }
}

/// An instant in nanoseconds since the start of the run, as the platform counts. Outside of a run
/// nothing waits, so any will do.
pub(crate) fn instant(at: Instant<Ns>) -> Option<Instant> {
    Some(at_ns(at.as_ns()).unwrap_or(Instant::ZERO))
}

/// The instant `span` from now; `None` for the longest one, which sets no limit. None of it is an
/// instant that has passed: a call that only tries does not wait, not even for the grain of the
/// clock.
pub(crate) fn after(span: Span<Ns>) -> Option<Instant> {
    if span == Span::MAX {
        return None;
    }
    if span.is_zero() {
        return Some(Instant::ZERO);
    }
    let now = job::now_ns().unwrap_or(0);
    instant(Instant::from_ns(now.saturating_add(span.as_ns())))
}
