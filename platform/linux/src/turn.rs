//! Turns between CPUs: first come, first served.
//!
//! Whoever takes a turn has its own CPU to itself (gate closed) and so has everybody else who
//! waits: a turn is as long as a visit, and who waits for one waits for one visit of each other CPU
//! at most (MSRP: Gai, Lipari and Di Natale 2001, §4).

use core::sync::atomic::{AtomicU32, Ordering};

use punctual_switch::instructions::pause;

/// A ticket lock.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The next number that is given out.
    next: AtomicU32,
    /// The number whose turn it is.
    now: AtomicU32,
}

impl Turn {
    pub(crate) const fn new() -> Turn {
        Turn {
            next: AtomicU32::new(0),
            now: AtomicU32::new(0),
        }
    }

    /// Waits for the caller's turn, which lasts until [`Turn::pass`].
    pub(crate) fn take(&self) {
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        // What was done in earlier turns is seen in this one.
        while self.now.load(Ordering::Acquire) != mine {
            pause();
        }
    }

    /// The caller's turn is over.
    pub(crate) fn pass(&self) {
        // Nobody else writes here during a turn.
        let mine = self.now.load(Ordering::Relaxed);
        self.now.store(mine.wrapping_add(1), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_a_turn_during_another_s() {
        struct Count(core::cell::UnsafeCell<u64>);
        // SAFETY: touched in turns only.
        unsafe impl Sync for Count {}
        let (turn, count) = (Turn::new(), Count(core::cell::UnsafeCell::new(0)));
        let (turn, count) = (&turn, &count);
        let rounds = 200;
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(move || {
                    for _ in 0..rounds {
                        turn.take();
                        // SAFETY: it is this thread's turn.
                        unsafe { *count.0.get() += 1 };
                        turn.pass();
                        std::thread::yield_now();
                    }
                });
            }
        });
        // SAFETY: the others have ended.
        assert_eq!(unsafe { *count.0.get() }, 2 * rounds);
    }

    #[test]
    fn numbers_that_wrap_are_as_good_as_others() {
        let turn = Turn {
            next: AtomicU32::new(u32::MAX),
            now: AtomicU32::new(u32::MAX),
        };
        turn.take();
        turn.pass();
        turn.take();
        turn.pass();
        assert_eq!(turn.now.into_inner(), 1);
    }
}
