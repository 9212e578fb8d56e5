//! The words of `switch`, before each access of which a signal may come.
//!
//! The counterpart of its `words.rs`.
//! One kernel thread, so an access is always seen by the next; only where signals come is open.

use core::cell::Cell;
use core::panic::Location;

pub(crate) use core::sync::atomic::{Ordering, compiler_fence};

use crate::signals;
use crate::weaken::{Mistake, is_made};

/// A word of one kernel thread.
macro_rules! word {
    ($name:ident, $of:ty) => {
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub(crate) struct $name(Cell<$of>);

        impl $name {
            pub(crate) const fn new(value: $of) -> $name {
                $name(Cell::new(value))
            }

            pub(crate) fn load(&self, _: Ordering) -> $of {
                signals::may_come();
                self.0.get()
            }

            #[track_caller]
            pub(crate) fn store(&self, value: $of, _: Ordering) {
                signals::may_come();
                if !is_made(Location::caller(), Mistake::LeftOut) {
                    self.0.set(value);
                }
            }
        }
    };
}

word!(AtomicU32, u32);
word!(AtomicU64, u64);

impl AtomicU64 {
    pub(crate) fn fetch_add(&self, value: u64, _: Ordering) -> u64 {
        signals::may_come();
        self.0.replace(self.0.get().wrapping_add(value))
    }

    pub(crate) fn swap(&self, value: u64, _: Ordering) -> u64 {
        signals::may_come();
        self.0.replace(value)
    }
}

/// A place whose content belongs to one side at a time. Copying it takes time: a signal may come in
/// the middle, so whoever is there beside the other is found.
#[derive(Debug)]
pub(crate) struct Place<T: Copy> {
    content: Cell<T>,
    readers: Cell<u32>,
    written: Cell<bool>,
}

impl<T: Copy> Place<T> {
    pub(crate) const fn new(value: T) -> Place<T> {
        Place {
            content: Cell::new(value),
            readers: Cell::new(0),
            written: Cell::new(false),
        }
    }

    /// # Safety
    /// The other side is not at this place now (else: a panic).
    pub(crate) unsafe fn put(&self, value: T) {
        let is_alone = self.readers.get() == 0 && !self.written.replace(true);
        assert!(is_alone, "somebody is at this place");
        signals::may_come();
        self.content.set(value);
        self.written.set(false);
    }

    /// # Safety
    /// The other side puts nothing here now (else: a panic).
    pub(crate) unsafe fn get(&self) -> T {
        assert!(!self.written.get(), "somebody writes at this place");
        self.readers.set(self.readers.get() + 1);
        signals::may_come();
        self.readers.set(self.readers.get() - 1);
        self.content.get()
    }
}
