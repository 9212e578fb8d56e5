//! Stacks of light threads: mapped memory with a guard below it.
//!
//! ```text
//!   low                                                    high
//!   | guard: no access | usable, touched before the run ... | top | offset |
//! ```
//!
//! The tops of stacks that are mapped alike lie at one offset within their pages, and what a switch
//! touches of each would compete for the same few places of every cache. So each stack begins some
//! cache lines further down than the one before.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::io;

use punctual_linux_io::StackBounds;

use crate::sys;

const PAGE: usize = 4_096;
/// Large enough that a frame without stack probes (C code) does not step over it easily.
const GUARD: usize = 4 * PAGE;
/// From the top of one stack to that of the next, within a page: an odd number of cache lines, so
/// that all places are taken in turn, and far enough for the frames of a switch.
const STEP: usize = 13 * 64;

/// Bytes that are in memory of every stack that has so many, from its top.
const FIRST_BYTES: usize = 64 * 1024;

/// How many stacks have been made.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A stack of its own; unmapped when dropped.
#[derive(Debug)]
pub struct Stack {
    area: *mut u8,
    bytes: usize,
    /// From the top to the end of the area.
    offset: usize,
}

impl Stack {
    /// Maps a stack of at least `usable` bytes and touches every page of it.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn try_new(usable: usize) -> io::Result<Stack> {
        Stack::with_first(usable, usize::MAX)
    }

    /// Maps a stack of at least `usable` bytes and touches the first so many of it, from its top.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn with_first(usable: usize, first: usize) -> io::Result<Stack> {
        let bytes = Stack::area_bytes(usable);
        let usable = bytes - GUARD;
        let stack = Stack {
            area: sys::reserve(bytes)?,
            bytes,
            offset: MADE.fetch_add(1, Ordering::Relaxed).wrapping_mul(STEP) % PAGE,
        };
        if first < usable {
            sys::lock_on_touch(stack.area, bytes);
        }
        let base = stack.area.wrapping_add(GUARD);
        // SAFETY: page-aligned, inside the area.
        unsafe { sys::open_memory(base, usable)? };
        for page in (usable.saturating_sub(first)..usable).step_by(PAGE) {
            // SAFETY: inside the part that has just been opened; nobody else knows it yet.
            unsafe { base.add(page).write_volatile(0) };
        }
        Ok(stack)
    }

    /// Bytes of address space that a stack with so many usable ones takes.
    pub(crate) fn area_bytes(usable: usize) -> usize {
        let least = 4 * PAGE + 4 * sys::signal_frame_bytes();
        usable.max(least).next_multiple_of(PAGE) + PAGE + GUARD
    }

    /// How many of its bytes, from its top, are in memory from the beginning, if not all are: as
    /// many as were asked for, up to a limit. The rest of a small one is for frames of signals.
    pub(crate) fn first_bytes(usable: usize) -> usize {
        FIRST_BYTES.min(usable.next_multiple_of(PAGE) + PAGE)
    }

    /// The address just above the stack.
    pub fn top(&self) -> *mut u8 {
        self.area.wrapping_add(self.bytes - self.offset)
    }

    /// Whether a stack pointer lies in the usable part (its end included: an empty stack).
    pub fn contains(&self, pointer: u64) -> bool {
        let begin = self.area.addr() as u64 + GUARD as u64;
        (begin..=self.top().addr() as u64).contains(&pointer)
    }

    /// The usable part, if the caller stands on it.
    pub(crate) fn bounds_here(&self) -> Option<StackBounds> {
        let here = 0_u8;
        let stands_here = self.contains((&raw const here).addr() as u64);
        stands_here.then(|| StackBounds {
            lowest: self.area.wrapping_add(GUARD),
            bytes: self.bytes(),
            guard: GUARD,
        })
    }

    /// Usable bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes - GUARD - self.offset
    }

    /// How many of them have ever been written to, as far as can be told: a stack is zero at first.
    /// O(what has not been used).
    pub(crate) fn high_water(&self) -> usize {
        let base = self.area.wrapping_add(GUARD).cast::<u64>();
        let words = self.bytes() / size_of::<u64>();
        // SAFETY: inside the open part; volatile, because its thread may be writing above.
        let is_clean = |&at: &usize| unsafe { base.add(at).read_volatile() } == 0;
        let clean = (0..words).take_while(is_clean).count();
        self.bytes() - clean * size_of::<u64>()
    }

    /// Whether `address` lies in the guard below the stack.
    pub(crate) fn guards(&self, address: u64) -> bool {
        let begin = self.area.addr() as u64;
        (begin..begin + GUARD as u64).contains(&address)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the area is ours; the owner of a thread that might still use its stack forgets
        // the stack instead of dropping it.
        unsafe { sys::release(self.area, self.bytes) };
    }
}

/// Where fault handlers of a carrier run: a fault may mean that the thread's own stack is full.
#[derive(Debug)]
pub(crate) struct AlternateStack {
    before: sys::AlternateArea,
    _stack: Stack,
}

impl AlternateStack {
    /// Gives the calling kernel thread an alternate stack until dropped; `None` without memory (a
    /// stack overflow then ends the process without a word).
    pub(crate) fn install() -> Option<AlternateStack> {
        let stack = Stack::try_new(64 * 1024).ok()?;
        let base = stack.area.wrapping_add(GUARD);
        let before = sys::set_alternate_stack(base, stack.bytes - GUARD);
        Some(AlternateStack {
            before,
            _stack: stack,
        })
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        sys::restore_alternate_stack(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_lies_just_below_the_usable_part() {
        let stack = Stack::try_new(64 * 1024).expect("memory for a stack");
        let base = stack.area.addr() as u64 + GUARD as u64;
        assert!(stack.guards(base - 1));
        assert!(!stack.guards(base));
        assert!(stack.top().addr() as u64 - base >= 64 * 1024);
    }

    #[test]
    fn a_large_stack_has_its_first_pages_and_gets_the_others_when_they_are_used() {
        let stack = Stack::with_first(1 << 30, FIRST_BYTES).expect("address space for a stack");
        assert!(stack.bytes() >= 1 << 30);
        for deep in [8, FIRST_BYTES, 1 << 20, 1 << 30] {
            let place = stack.top().wrapping_sub(deep);
            // SAFETY: inside the open part, which nobody else knows.
            unsafe { place.write(1) };
        }
        let deepest = stack.top().wrapping_sub(1 << 30).addr() as u64;
        assert!(stack.contains(deepest) && !stack.guards(deepest));
    }

    #[test]
    fn the_high_water_mark_is_the_deepest_byte_that_was_written() {
        let stack = Stack::try_new(64 * 1024).expect("memory for a stack");
        assert_eq!(stack.high_water(), 0);
        let deep = stack.top().wrapping_sub(4_096);
        // SAFETY: inside the open part, which nobody else knows.
        unsafe { deep.write(1) };
        assert_eq!(stack.high_water(), 4_096);
        assert!(stack.bytes() >= 64 * 1024);
    }
}
