//! From CPU to CPU: something has happened.

use punctual_model::{Instant, Ns, Span};

use super::{WaitError, after, instant};

/// Rings from any CPU of a run, heard by one thread at a time of the CPU that made it.
///
/// A ring is a count: none is lost, and n of them wake once. It costs the system a call only when
/// the home CPU sleeps or executes something else and no kick is on its way.
#[derive(Clone, Debug)]
pub struct Bell(punctual_linux::Bell);

impl Bell {
    /// A bell of the calling thread's CPU. Allocates.
    ///
    /// # Errors
    /// [`WaitError::NoRun`].
    pub fn new() -> Result<Bell, WaitError> {
        punctual_linux::Bell::new()
            .map(Bell)
            .ok_or(WaitError::NoRun)
    }

    /// Rings, from any CPU of the run.
    ///
    /// # Errors
    /// [`WaitError::NoRun`] outside of it.
    pub fn ring(&self) -> Result<(), WaitError> {
        Ok(self.0.ring()?)
    }

    /// Takes the rings so far, at least one: waits for it if need be.
    ///
    /// # Errors
    /// [`WaitError::OtherCpu`] on any other; [`WaitError::Taken`] when somebody waits already.
    pub fn wait(&self) -> Result<u64, WaitError> {
        Ok(self.0.wait(None)?)
    }

    /// As [`Bell::wait`], until an instant of the run (nanoseconds) at most.
    ///
    /// # Errors
    /// As [`Bell::wait`], and [`WaitError::TimedOut`].
    pub fn wait_until(&self, at: Instant<Ns>) -> Result<u64, WaitError> {
        Ok(self.0.wait(instant(at))?)
    }

    /// As [`Bell::wait`], for `span` at most.
    ///
    /// # Errors
    /// As [`Bell::wait_until`].
    pub fn wait_within(&self, span: Span<Ns>) -> Result<u64, WaitError> {
        Ok(self.0.wait(after(span))?)
    }
}
