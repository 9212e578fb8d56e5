//! A lock of a runtime for which one thread waits, as nearly always.

use punctual_model::{Instant, Mode, Work};

use super::{
    AFTER, BEFORE, CONTENDED, DECLARED, END, Hold, Locks, WAITS_FOR, number, place, small,
};
use crate::effective::WaitOrder;

impl Locks {
    /// Whether nobody waits for anything that a thread holds under a key of its runtime, and it
    /// waits for no lock itself.
    #[inline]
    pub(crate) fn is_apart(&self, thread: usize) -> bool {
        let links = &self.threads[thread];
        links[CONTENDED] == END && links[WAITS_FOR] == END
    }

    /// [`Locks::forget`] of such a thread.
    #[inline]
    pub(crate) fn forget_declared(&mut self, thread: usize) {
        debug_assert!(self.is_apart(thread));
        self.threads[thread][DECLARED] = END;
    }

    /// Whether somebody waits for something that a thread holds under a key of its runtime.
    #[inline]
    pub(crate) fn holds_contended(&self, thread: usize) -> bool {
        self.threads[thread][CONTENDED] != END
    }

    /// `waiter` waits for what `holder` holds under `key`. Neither of them has to do with a lock of
    /// a runtime yet, and `waiter` waits for none. As [`Locks::contend`] and [`Locks::wait`]; what
    /// those say of a lock that is not here any more is still true, but for the order.
    #[inline]
    pub(crate) fn wait_alone(
        &mut self,
        waiter: usize,
        (holder, key): (usize, u32),
        order: WaitOrder,
    ) {
        let of = self.free;
        let Some(user) = self.uses.get_mut(place(of)) else {
            let lock = self.contend(holder, key, order);
            return self.wait(waiter, lock);
        };
        self.free = core::mem::replace(&mut user.next_of_thread, END);
        user.thread = small(holder);
        user.hold = Some(Hold {
            mode: Mode::Exclusive,
            since: Instant::ZERO,
            used: Work::ZERO,
            lapsed: false,
        });
        let at = user.terms.resource;
        let lock = &mut self.locks[at as usize];
        debug_assert!(lock.first_holder == END && lock.waiters == (END, END));
        lock.terms.wait_order = order;
        lock.runtime = Some((key, of));
        lock.first_holder = of;
        lock.waiters = (number(waiter), number(waiter));
        self.threads[holder][CONTENDED] = of;
        let links = &mut self.threads[waiter];
        links[WAITS_FOR] = at + 1;
        (links[BEFORE], links[AFTER]) = (END, END);
    }

    /// The lock that `holder` holds under `key`, if `waiter` alone waits for that, and nobody for
    /// anything else of the holder's.
    #[inline]
    pub(crate) fn sole(&self, holder: usize, waiter: usize, key: u32) -> Option<u32> {
        let of = self.threads[holder][CONTENDED];
        let user = self.uses.get(place(of))?;
        let lock = self.locks.get(user.terms.resource as usize)?;
        let waiters = (number(waiter), number(waiter));
        let is_it = lock.runtime == Some((key, of)) && lock.waiters == waiters;
        (is_it && user.next_of_thread == END).then_some(of)
    }

    /// The only waiter of such a lock waits no more, so that the lock is not here any more. As
    /// [`Locks::leave`], but its holder is not to be looked at.
    #[inline]
    pub(crate) fn leave_sole(&mut self, holder: usize, waiter: usize, of: u32) {
        self.threads[waiter][WAITS_FOR] = END;
        self.threads[holder][CONTENDED] = END;
        let user = &mut self.uses[place(of)];
        user.hold = None;
        user.next_of_thread = core::mem::replace(&mut self.free, of);
        let lock = &mut self.locks[user.terms.resource as usize];
        lock.first_holder = END;
        lock.waiters = (END, END);
    }
}
