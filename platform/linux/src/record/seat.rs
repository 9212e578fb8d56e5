//! Where a light thread waits: lines of threads, linked through their records.
//!
//! A thread waits in at most one line at a time, so its record has room for the links and nothing
//! is allocated. Lines are looked at and changed with the gate closed only, those between CPUs in a
//! turn (`between`). INV-S1: a thread whose
//! `line` is set stands in that line and is blocked, or about to be within the same closed gate;
//! the line outlives its stay, because the call that waits borrows it.

use core::cell::Cell;

use punctual_kern::Ceiling;

use crate::record::light::Light;
use crate::shared::news::Link;

/// The places of one thread in a line, and what it asked and was answered. Gate closed; the line,
/// the ask and the answer of who waits in a monitor between CPUs, in a turn of that (INV-M2).
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Seat {
    // What every entry looks at.
    /// Somebody wants it to end.
    pub(crate) cancelled: Cell<bool>,
    /// A wake-up for its next wait, of those that no line has to do with.
    pub(crate) token: Cell<bool>,
    /// How urgent it wants to be at least, and what the core has been told of that.
    pub(crate) ceiling: Cell<Option<Ceiling>>,
    pub(crate) told: Cell<Option<Ceiling>>,

    line: Cell<*const Line>,
    before: Cell<*const Light>,
    after: Cell<*const Light>,
    /// What it waits for, in the words of whoever made the line.
    pub(crate) ask: Cell<u64>,
    /// What it was given; it waits no more then.
    pub(crate) answer: Cell<Option<u64>>,
    /// The next of those that are woken together with it.
    pub(crate) also: Cell<*const Light>,

    // Any CPU.
    /// Its place on its CPU's list of those who are called.
    pub(crate) link: Link<Light>,
}

impl Seat {
    pub(crate) fn new() -> Seat {
        Seat {
            line: Cell::new(core::ptr::null()),
            before: Cell::new(core::ptr::null()),
            after: Cell::new(core::ptr::null()),
            ask: Cell::new(0),
            answer: Cell::new(None),
            token: Cell::new(false),
            cancelled: Cell::new(false),
            ceiling: Cell::new(None),
            told: Cell::new(None),
            also: Cell::new(core::ptr::null()),
            link: Link::new(),
        }
    }

    /// As for a thread that has just been born.
    pub(crate) fn clear(&self) {
        debug_assert!(self.line.get().is_null(), "INV-S1: the dead wait nowhere");
        self.answer.set(None);
        self.token.set(false);
        self.cancelled.set(false);
        self.ceiling.set(None);
        self.told.set(None);
        self.also.set(core::ptr::null());
    }

    /// Whether it wants another urgency than the core knows of.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.ceiling.get() != self.told.get()
    }

    /// Whether it waits in this line.
    pub(crate) fn stands_in(&self, line: &Line) -> bool {
        core::ptr::eq(self.line.get(), line)
    }

    /// Leaves the line that it stands in, if any. O(1).
    pub(crate) fn leave(&self) {
        // SAFETY: a line outlives the stay of those in it (INV-S1).
        let Some(line) = (unsafe { self.line.replace(core::ptr::null()).as_ref() }) else {
            return;
        };
        let before = self.before.replace(core::ptr::null());
        let after = self.after.replace(core::ptr::null());
        // SAFETY: neighbours are waiting threads, whose records outlive the run (INV-L1).
        match unsafe { before.as_ref() } {
            Some(light) => light.seat.after.set(after),
            None => line.first.set(after),
        }
        // SAFETY: as above.
        match unsafe { after.as_ref() } {
            Some(light) => light.seat.before.set(before),
            None => line.last.set(before),
        }
    }
}

/// Threads that wait for the same thing, in the order of their coming.
#[derive(Debug)]
pub(crate) struct Line {
    first: Cell<*const Light>,
    last: Cell<*const Light>,
}

impl Line {
    pub(crate) const fn new() -> Line {
        Line {
            first: Cell::new(core::ptr::null()),
            last: Cell::new(core::ptr::null()),
        }
    }

    /// Puts a thread, which waits nowhere, behind the others.
    pub(crate) fn join(&self, light: &Light, ask: u64) {
        let seat = &light.seat;
        debug_assert!(seat.line.get().is_null(), "INV-S1: one line at a time");
        seat.line.set(self);
        seat.ask.set(ask);
        seat.answer.set(None);
        let last = self.last.replace(light);
        seat.before.set(last);
        seat.after.set(core::ptr::null());
        // SAFETY: a waiting thread, whose record outlives the run (INV-L1).
        match unsafe { last.as_ref() } {
            Some(last) => last.seat.after.set(light),
            None => self.first.set(light),
        }
    }

    /// Everybody in it, first come first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Light> {
        // SAFETY: those in a line are waiting threads, whose records outlive the run (INV-L1).
        let first = unsafe { self.first.get().as_ref() };
        // SAFETY: as above.
        core::iter::successors(first, |light| unsafe { light.seat.after.get().as_ref() })
    }
}
