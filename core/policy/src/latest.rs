//! The latest release that a policy has seen: a thread that yields to its equals goes behind it.

use punctual_model::{Instant, Span};

/// Grows only. A policy has no clock, so this is how it knows what comes after everything there is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latest(Instant);

impl Latest {
    /// Something was released then.
    #[inline]
    pub(crate) fn see(&mut self, release: Instant) {
        self.0 = self.0.max(release);
    }

    /// The answer that [`Latest::next`] would give; where there is nothing later than all that was
    /// seen, an instant before which there is none.
    #[inline]
    pub(crate) fn following(&self) -> Instant {
        Instant::from_ticks(self.0.ticks().wrapping_add(1))
    }

    /// After all that was seen, and after what this said before.
    #[inline]
    pub(crate) fn next(&mut self) -> Instant {
        self.0 = self.0.saturating_add(Span::from_ticks(1));
        self.0
    }
}
