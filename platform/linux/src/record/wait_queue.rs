//! Where a light thread waits: queues of threads, linked through their records.
//!
//! A thread waits in at most one queue at a time, so its record has room for the links and nothing
//! is allocated. Queues are looked at and changed with the gate closed only, those between CPUs in
//! a turn (`cross_cpu`). INV-S1: a thread whose `queue` is set stands in that queue and is blocked,
//! or about to be within the same closed gate; the queue outlives its stay, because the call that
//! waits borrows it.

use core::cell::Cell;

use punctual_kern::Ceiling;

use crate::record::light::Light;
use crate::shared::pending::Link;

/// The places of one thread in a queue, and what it asked and was answered. Gate closed; the queue,
/// the ask and the answer of who waits in a monitor between CPUs, with its lock held (INV-M2).
#[repr(C)]
#[derive(Debug)]
pub(crate) struct WaitNode {
    // What every entry looks at.
    /// Somebody wants it to end.
    pub(crate) cancelled: Cell<bool>,
    /// A wake-up for its next wait, of those that no queue has to do with.
    pub(crate) token: Cell<bool>,
    /// How urgent it wants to be at least, and what the core has been told of that.
    ceiling: Cell<Option<Ceiling>>,
    told: Cell<Option<Ceiling>>,

    queue: Cell<*const WaitQueue>,
    before: Cell<*const Light>,
    after: Cell<*const Light>,
    /// What it waits for, in the words of whoever made the queue.
    pub(crate) ask: Cell<u64>,
    /// What it was given; it waits no more then.
    pub(crate) answer: Cell<Option<u64>>,
    /// The next of those that are woken together with it.
    pub(crate) also: Cell<*const Light>,

    // Any CPU.
    /// Its place on its CPU's pending-wake list.
    pub(crate) link: Link<Light>,
}

impl WaitNode {
    pub(crate) fn new() -> WaitNode {
        WaitNode {
            queue: Cell::new(core::ptr::null()),
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
        debug_assert!(self.queue.get().is_null(), "INV-S1: the dead wait nowhere");
        self.answer.set(None);
        self.token.set(false);
        self.cancelled.set(false);
        self.ceiling.set(None);
        self.told.set(None);
        self.also.set(core::ptr::null());
    }

    /// How urgent it wants to be at least; `None`: as urgent as by itself.
    #[inline]
    pub(crate) fn ceiling(&self) -> Option<Ceiling> {
        self.ceiling.get()
    }

    /// It wants that from now on. Returns the wish that the core knows.
    #[inline]
    pub(crate) fn set_ceiling(&self, ceiling: Option<Ceiling>) -> Option<Ceiling> {
        self.ceiling.set(ceiling);
        self.told.get()
    }

    /// The core is told what it wants.
    pub(crate) fn tell_ceiling(&self) -> Option<Ceiling> {
        let ceiling = self.ceiling.get();
        self.told.set(ceiling);
        ceiling
    }

    /// Whether it waits in this queue.
    pub(crate) fn stands_in(&self, queue: &WaitQueue) -> bool {
        core::ptr::eq(self.queue.get(), queue)
    }

    /// Leaves the queue that it stands in, if any. O(1).
    #[inline]
    pub(crate) fn leave(&self) {
        // SAFETY: a queue outlives the stay of those in it (INV-S1).
        let Some(queue) = (unsafe { self.queue.replace(core::ptr::null()).as_ref() }) else {
            return;
        };
        let before = self.before.replace(core::ptr::null());
        let after = self.after.replace(core::ptr::null());
        // SAFETY: neighbours are waiting threads, whose records outlive the run (INV-L1).
        match unsafe { before.as_ref() } {
            Some(light) => light.wait_node.after.set(after),
            None => queue.first.set(after),
        }
        // SAFETY: as above.
        match unsafe { after.as_ref() } {
            Some(light) => light.wait_node.before.set(before),
            None => queue.last.set(before),
        }
    }
}

/// Threads that wait for the same thing, in the order of their coming.
#[derive(Debug)]
pub(crate) struct WaitQueue {
    first: Cell<*const Light>,
    last: Cell<*const Light>,
}

impl WaitQueue {
    pub(crate) const fn new() -> WaitQueue {
        WaitQueue {
            first: Cell::new(core::ptr::null()),
            last: Cell::new(core::ptr::null()),
        }
    }

    /// Puts a thread, which waits nowhere, behind the others.
    #[inline]
    pub(crate) fn join(&self, light: &Light, ask: u64) {
        let node = &light.wait_node;
        debug_assert!(node.queue.get().is_null(), "INV-S1: one queue at a time");
        node.queue.set(self);
        node.ask.set(ask);
        node.answer.set(None);
        let last = self.last.replace(light);
        node.before.set(last);
        node.after.set(core::ptr::null());
        // SAFETY: a waiting thread, whose record outlives the run (INV-L1).
        match unsafe { last.as_ref() } {
            Some(last) => last.wait_node.after.set(light),
            None => self.first.set(light),
        }
    }

    /// Whether nobody is in it.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.get().is_null()
    }

    /// The one that came first, and whether it is the only one.
    #[inline]
    pub(crate) fn first(&self) -> Option<(&'static Light, bool)> {
        let (first, last) = (self.first.get(), self.last.get());
        // SAFETY: those in a queue are waiting threads, whose records outlive the run (INV-L1).
        let light = unsafe { first.as_ref() }?;
        Some((light, first == last))
    }

    /// Everybody in it, first come first.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Light> {
        // SAFETY: those in a queue are waiting threads, whose records outlive the run (INV-L1).
        let first = unsafe { self.first.get().as_ref() };
        // SAFETY: as above.
        core::iter::successors(first, |light| unsafe {
            light.wait_node.after.get().as_ref()
        })
    }
}
