//! The words of a gang, which tell who looks at them: the counterpart of `core/gang`'s `atomic.rs`.
//!
//! One thread takes the steps of all members, so a word needs no order; what counts is which cache
//! line a step has touched, and whether it wrote there.

use std::cell::RefCell;
use std::sync::atomic::AtomicU64 as Word;

pub(crate) use std::sync::atomic::Ordering;

/// A word was touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Access {
    /// Its cache line.
    pub(crate) line: usize,
    /// It was written, or tried to be.
    pub(crate) is_write: bool,
}

/// Bytes of a cache line.
const LINE: usize = 64;

thread_local! {
    static ACCESSES: RefCell<Vec<Access>> = const { RefCell::new(Vec::new()) };
}

/// The words that this thread has touched while it did something.
pub(crate) fn traced<T>(act: impl FnOnce() -> T) -> (T, Vec<Access>) {
    ACCESSES.with_borrow_mut(Vec::clear);
    let result = act();
    (result, ACCESSES.with_borrow(Clone::clone))
}

#[derive(Debug)]
pub(crate) struct AtomicU64(Word);

impl AtomicU64 {
    pub(crate) const fn new(value: u64) -> AtomicU64 {
        AtomicU64(Word::new(value))
    }

    fn tell(&self, is_write: bool) {
        let line = (&raw const self.0).addr() / LINE;
        ACCESSES.with_borrow_mut(|all| all.push(Access { line, is_write }));
    }

    pub(crate) fn load(&self, order: Ordering) -> u64 {
        self.tell(false);
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: u64, order: Ordering) {
        self.tell(true);
        self.0.store(value, order);
    }

    pub(crate) fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.tell(true);
        self.0.fetch_add(value, order)
    }

    pub(crate) fn compare_exchange(
        &self,
        from: u64,
        to: u64,
        done: Ordering,
        failed: Ordering,
    ) -> Result<u64, u64> {
        self.tell(true);
        self.0.compare_exchange(from, to, done, failed)
    }
}
