//! One at a time between CPUs, by spinning for a moment.

use core::fmt;

use punctual_linux::Monitor;

use super::WaitError;

/// A value that threads of every CPU of a run use one at a time, each for a moment.
///
/// A user is not preempted, and a thread that finds it in use spins, unpreempted too, in the order
/// of arrival (MSRP: Gai, Lipari and Di Natale 2001). So nobody waits for longer than one use on
/// each other CPU. It can hold up every thread of a CPU for that and a use of its own: uses are to
/// be short. They are functions so that they end: nothing in one can wait, and whatever would is
/// refused with [`WaitError::NoRun`], another use included. They should not print, either, since
/// who holds the lock of the output may be preempted.
///
/// Spinning is charged to the spinning thread. Without real-time priority a use takes as long as
/// the kernel likes to keep its CPU away.
pub struct SpinMutex<T> {
    inside: Monitor<T, 0>,
}

impl<T> SpinMutex<T> {
    /// A value that nobody uses, of the run of its first user.
    pub const fn new(value: T) -> SpinMutex<T> {
        SpinMutex {
            inside: Monitor::cross_cpu(value),
        }
    }

    /// Uses the value.
    ///
    /// # Errors
    /// [`WaitError::NoRun`] outside of a run and inside another use, [`WaitError::OtherCpu`] in a
    /// later run.
    pub fn with<R>(&self, once: impl FnOnce(&mut T) -> R) -> Result<R, WaitError> {
        Ok(self.inside.look(once)?)
    }

    /// The value, of which nobody else knows.
    pub fn get_mut(&mut self) -> &mut T {
        self.inside.get_mut()
    }

    /// The value, taken out.
    pub fn into_inner(self) -> T {
        self.inside.into_inner()
    }
}

impl<T> fmt::Debug for SpinMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpinMutex").finish_non_exhaustive()
    }
}
