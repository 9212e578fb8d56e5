//! The places of the table of threads that nobody has.
//!
//! A place that nobody ever had takes no memory here.

use alloc::vec::Vec;

/// Places of the table of threads that nobody has.
#[derive(Debug)]
pub(crate) struct Free {
    /// Those that somebody had; the last is taken first.
    left: Vec<u32>,
    /// From this one on nobody ever had one.
    fresh: u32,
    end: u32,
}

impl Free {
    pub(crate) fn new(threads: usize) -> Free {
        Free {
            left: Vec::with_capacity(threads),
            fresh: 0,
            end: u32::try_from(threads).unwrap_or(u32::MAX),
        }
    }

    /// The place that is taken next.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        let fresh = (self.fresh < self.end).then_some(self.fresh);
        self.left.last().copied().or(fresh)
    }

    /// The first one is taken.
    #[inline]
    pub(crate) fn take(&mut self, first: u32) {
        debug_assert_eq!(self.first(), Some(first));
        if self.left.pop().is_none() {
            self.fresh += 1;
        }
    }

    #[inline]
    pub(crate) fn give_back(&mut self, thread: usize) {
        self.left.push(u32::try_from(thread).unwrap_or(u32::MAX));
    }
}
