//! The threads of the machine that took time from a CPU of a run: as entries find them.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use punctual_model::Instant;

use crate::sys::Account;

/// A run notes so many of them per CPU.
pub(crate) const MOST_TAKERS: usize = 4_096;

/// A thread that an entry found to have had the CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) at: Instant,
    pub(crate) ns: u64,
    /// The kernel's number of the thread; `None`: it does not tell this user.
    pub(crate) thread: Option<u32>,
}

/// The questions of one CPU to the onlooker.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    /// Threads whose names are wanted; 0: none. A later question may stand in place of an earlier.
    numbers: [AtomicU32; 16],
    /// The place of the next.
    next: AtomicU32,
    /// How often somebody took time and the kernel did not tell who.
    pub(crate) untold: AtomicU32,
    /// How long the carrier had waited for its CPU when somebody looked last, in nanoseconds.
    pub(crate) waited_ns: AtomicU64,
}

impl Questions {
    /// Wants the name of a thread. O(16).
    pub(crate) fn ask(&self, thread: u32) {
        let mut asked = self.numbers.iter();
        if asked.any(|place| place.load(Ordering::Relaxed) == thread) {
            return;
        }
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let place = next as usize % self.numbers.len();
        self.numbers[place].store(thread, Ordering::Relaxed);
    }

    /// The carrier has waited so long for its CPU.
    pub(crate) fn note_account(&self, account: Option<Account>) {
        if let Some(account) = account {
            self.waited_ns.store(account.waited_ns, Ordering::Relaxed);
        }
    }

    /// The threads whose names are wanted, each once.
    pub(crate) fn take(&self) -> impl Iterator<Item = u32> {
        let all = self.numbers.iter().map(|n| n.swap(0, Ordering::Relaxed));
        all.filter(|&thread| thread != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_asked_for_once_until_it_is_answered() {
        let questions = Questions::default();
        [7, 8, 7].into_iter().for_each(|n| questions.ask(n));
        assert_eq!(questions.take().collect::<Vec<_>>(), [7, 8]);
        assert_eq!(questions.take().count(), 0);
        (1..=20).for_each(|n| questions.ask(n));
        assert_eq!(questions.take().count(), 16);
    }
}
