//! A ring of words: a recorder fills it, and a drain takes whole entries out while the run goes on.
//!
//! ```text
//!        taken        whole     at
//!   -------|############|=======|--------      # whole entries, to be taken
//!     free                        free         = the entry that is being recorded
//! ```
//!
//! The recorder writes `whole`, the drain `taken`. Words from `taken` to `whole` are the drain's,
//! all others the recorder's; one of them stays free, so that a full ring is not an empty one.
//! Neither ever waits for the other. Checked in every order of its accesses by `interleave`.

use std::collections::TryReserveError;
use std::sync::Arc;

use super::atomic::{AtomicUsize, Ordering, Word};

struct Shared {
    words: Vec<Word>,
    whole: AtomicUsize,
    taken: AtomicUsize,
}

impl Shared {
    /// All words before this place make whole entries. By the recorder.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn commit(&self, at: usize) {
        self.whole.store(at, Ordering::Release);
    }
}

/// The recorder's end of a ring.
pub(crate) struct Ring {
    shared: Arc<Shared>,
    /// Where the next word goes. In 32 bits: so many words behind it is no number that wraps.
    at: u32,
    /// Up to here there is room without a look at what was taken.
    limit: usize,
    /// Nothing goes in any more.
    closed: bool,
    drained: bool,
}

/// The other end.
pub(crate) struct Outlet {
    shared: Arc<Shared>,
    at: usize,
}

/// A place of a ring, which has no more than a word of 32 bits numbers.
#[inline]
fn index(at: usize) -> u32 {
    #[allow(clippy::cast_possible_truncation)]
    let index = at as u32;
    index
}

impl Ring {
    /// A ring with room for so many words, up to 2^32 - 2.
    pub(crate) fn with_capacity(capacity: usize) -> Result<Ring, TryReserveError> {
        let mut words = Vec::new();
        let capacity = capacity.min(u32::MAX as usize - 1);
        let size = capacity + 1;
        words.try_reserve_exact(size)?;
        // Written once, so that the pages exist before the run.
        words.resize_with(size, || Word::new(1));
        Ok(Ring {
            shared: Arc::new(Shared {
                words,
                whole: AtomicUsize::new(0),
                taken: AtomicUsize::new(0),
            }),
            at: 0,
            limit: capacity,
            closed: false,
            drained: false,
        })
    }

    /// The other end. There is one: two would take the same words.
    pub(crate) fn outlet(&mut self) -> Outlet {
        self.drained = true;
        Outlet {
            shared: Arc::clone(&self.shared),
            at: 0,
        }
    }

    /// Puts words of an entry; `false`: there is no room, and there will be none.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn put(&mut self, words: &[u64]) -> bool {
        let at = self.at as usize;
        let end = at.wrapping_add(words.len());
        let places = self.shared.words.get(at..end);
        match places.filter(|_| end <= self.limit) {
            Some(places) => {
                for (place, word) in places.iter().zip(words) {
                    place.put(*word);
                }
                self.at = index(end);
                true
            }
            None => self.put_around(words),
        }
    }

    /// All words so far make whole entries, and these are another. They are not in memory yet, and
    /// go there once. `false`: as for [`Ring::put`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn put_whole<const N: usize>(&mut self, words: [u64; N]) -> bool {
        let (shared, at) = (&*self.shared, self.at as usize);
        shared.commit(at);
        let end = at + N;
        let places = shared.words.get(at..end);
        match places.filter(|_| end <= self.limit) {
            Some(places) => {
                for (place, word) in places.iter().zip(words) {
                    place.put(word);
                }
                self.at = index(end);
                true
            }
            None => self.put_around(&words.map(|word| word)),
        }
    }

    /// Looks at what was taken, and goes on at the beginning after the end.
    #[cold]
    fn put_around(&mut self, words: &[u64]) -> bool {
        let size = self.shared.words.len();
        let taken = self.shared.taken.load(Ordering::Acquire);
        let mut at = self.at as usize;
        let free = (taken + size - at - 1) % size;
        if self.closed || words.len() > free {
            self.close();
            return false;
        }
        for word in words {
            self.shared.words[at].put(*word);
            at = (at + 1) % size;
        }
        self.at = index(at);
        self.limit = if taken > at { taken } else { size } - 1;
        true
    }

    /// All words so far make whole entries.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn commit(&mut self) {
        self.shared.commit(self.at as usize);
    }

    /// Takes back what is no whole entry, for ever.
    fn close(&mut self) {
        self.closed = true;
        self.limit = self.shared.whole.load(Ordering::Relaxed);
        self.at = index(self.limit);
    }

    /// All whole entries, if nobody took any; else nothing: the drain has them.
    pub(crate) fn into_words(mut self) -> Vec<u64> {
        self.commit();
        if self.drained {
            return Vec::new();
        }
        let Ok(shared) = Arc::try_unwrap(self.shared) else {
            return Vec::new();
        };
        let words = shared.words.into_iter().take(self.at as usize);
        words.map(Word::into_inner).collect()
    }
}

impl Outlet {
    /// Moves all whole entries that are there behind `words`.
    pub(crate) fn take(&mut self, words: &mut Vec<u64>) {
        let whole = self.shared.whole.load(Ordering::Acquire);
        while self.at != whole {
            words.push(self.shared.words[self.at].get());
            self.at = (self.at + 1) % self.shared.words.len();
        }
        self.shared.taken.store(self.at, Ordering::Release);
    }
}
