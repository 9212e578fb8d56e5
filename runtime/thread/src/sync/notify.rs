//! From CPU to CPU: something has happened.

use punctual_model::{Instant, Ns, Span};

use super::{WaitError, after, instant};

/// A counting event: any CPU of a run notifies it, and one thread at a time of the CPU that made it
/// waits for it.
///
/// Notifications are counted: none is lost, and n of them wake once. One costs the system a call
/// only when the home CPU sleeps or executes something else and no kick is on its way.
#[derive(Clone, Debug)]
pub struct Notify(punctual_linux::Notify);

impl Notify {
    /// One for the calling thread's CPU. Allocates.
    ///
    /// # Errors
    /// [`WaitError::NoRun`].
    pub fn new() -> Result<Notify, WaitError> {
        punctual_linux::Notify::new()
            .map(Notify)
            .ok_or(WaitError::NoRun)
    }

    /// Notifies it, from any CPU of the run.
    ///
    /// # Errors
    /// [`WaitError::NoRun`] outside of it.
    pub fn notify(&self) -> Result<(), WaitError> {
        Ok(self.0.notify()?)
    }

    /// Takes the notifications so far, at least one: waits for it if need be.
    ///
    /// # Errors
    /// [`WaitError::OtherCpu`] on any other; [`WaitError::Taken`] when somebody waits already.
    pub fn wait(&self) -> Result<u64, WaitError> {
        Ok(self.0.wait(None)?)
    }

    /// As [`Notify::wait`], until an instant of the run (nanoseconds) at most.
    ///
    /// # Errors
    /// As [`Notify::wait`], and [`WaitError::TimedOut`].
    pub fn wait_until(&self, at: Instant<Ns>) -> Result<u64, WaitError> {
        Ok(self.0.wait(instant(at))?)
    }

    /// As [`Notify::wait`], for `span` at most.
    ///
    /// # Errors
    /// As [`Notify::wait_until`].
    pub fn wait_within(&self, span: Span<Ns>) -> Result<u64, WaitError> {
        Ok(self.0.wait(after(span))?)
    }
}
