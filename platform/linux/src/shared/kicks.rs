//! How often a CPU lets others interrupt it.
//!
//! A kick by signal costs whoever runs some microseconds, and others decide when. So a CPU answers
//! so many per window at once; then it leaves the flag up that says that a kick is on its way,
//! which keeps others from sending more, and looks by itself when the window ends. PendingList
//! waits for its next entry then, and no longer than a window.

use punctual_model::{Instant, Span};

/// Kicks answered at once, per window.
const PER_WINDOW: u32 = 16;
/// The length of a window.
pub(crate) const WINDOW_NS: u64 = 1_000_000;

/// The kicks of one CPU. Gate closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Kicks {
    /// When the present window ends.
    end: Instant,
    /// Those answered in it.
    answered: u32,
    /// No more are let in before it ends.
    held: bool,
}

impl Kicks {
    /// There is a kick, or there has been since the last entry: whether the next one is let in.
    pub(crate) fn hear(&mut self, now: Instant, window: Span) -> bool {
        if now >= self.end {
            self.end = now.saturating_add(window);
            self.answered = 0;
        }
        self.held = self.answered == PER_WINDOW;
        self.answered += u32::from(!self.held);
        !self.held
    }

    /// When the CPU has to look by itself; `None`: others kick it.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.held.then_some(self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_kicks_are_let_in_than_a_window_has_and_the_rest_is_heard_at_its_end() {
        let window = Span::from_ticks(1_000);
        let mut kicks = Kicks::default();
        let heard = (0..100).filter(|&n| kicks.hear(Instant::from_ticks(n), window));
        assert_eq!(heard.count(), PER_WINDOW as usize);
        assert_eq!(kicks.due(), Some(Instant::from_ticks(1_000)));
        assert!(kicks.hear(Instant::from_ticks(1_000), window));
        assert_eq!(kicks.due(), None);
    }

    #[test]
    fn rare_kicks_are_all_let_in() {
        let window = Span::from_ticks(1_000);
        let mut kicks = Kicks::default();
        assert!((1..1_000).all(|n| kicks.hear(Instant::from_ticks(100 * n), window)));
    }
}
