//! How often a thread tries a call without waiting: less and less, while that is in vain.

use core::cell::Cell;

/// A try is made in one of so many calls at least.
const RAREST: u8 = 64;

/// Whether the calls of a light thread in one direction are worth a try.
#[derive(Debug)]
pub struct Backoff {
    /// So many calls are not tried.
    skip: Cell<u8>,
    /// So many after the next try in vain.
    next: Cell<u8>,
}

impl Backoff {
    /// The next call is tried.
    pub const fn new() -> Backoff {
        Backoff {
            skip: Cell::new(0),
            next: Cell::new(1),
        }
    }

    pub(crate) fn is_worth_it(&self) -> bool {
        let skip = self.skip.get();
        self.skip.set(skip.saturating_sub(1));
        skip == 0
    }

    pub(crate) fn learn(&self, in_vain: bool) {
        let next = self.next.get();
        self.skip.set(if in_vain { next } else { 0 });
        self.next
            .set(if in_vain { (next * 2).min(RAREST) } else { 1 });
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_in_vain_become_rare_and_one_that_is_not_makes_them_usual_again() {
        let backoff = Backoff::new();
        let mut tried = 0;
        for _ in 0..1_000 {
            if backoff.is_worth_it() {
                tried += 1;
                backoff.learn(true);
            }
        }
        // After 1, 2, 4, ... 64 calls without one, then one in 65.
        assert_eq!(tried, 7 + (1_000 - 7 - 127) / 65 + 1);
        while !backoff.is_worth_it() {}
        backoff.learn(false);
        assert!((0..100).all(|_| {
            let tries = backoff.is_worth_it();
            backoff.learn(false);
            tries
        }));
    }
}
