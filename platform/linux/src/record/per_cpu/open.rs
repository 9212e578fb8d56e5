//! Whether an entry may take the fast path, as far as the platform knows.
//!
//! What this CPU itself does (its timer, a wait that is noted, a call on its way) is in one word,
//! which is set where such a thing begins and where the slow path ends. What others raise is looked
//! at by each entry.

use core::sync::atomic::Ordering;

use punctual_linux_io::Ring;
use punctual_model::Instant;

use super::PerCpu;
use crate::record::light::Light;

impl PerCpu {
    /// Whether nothing has come up that an entry would have to look into, as far as flags tell it:
    /// what others raise, and what this CPU does. Gate closed.
    #[inline]
    pub(crate) fn is_undisturbed(&self) -> bool {
        self.is_left_alone() && self.is_at_rest.load(Ordering::Relaxed)
    }

    /// Whether nothing has come up that others raise: a signal that found the gate closed, somebody
    /// else on this CPU, messages, pending wakes. Gate closed. The slow path takes note of the
    /// signal; an entry that did not would be followed by the next, again and again.
    #[inline]
    fn is_left_alone(&self) -> bool {
        !self.gate.has_pending() && !self.watch.has_news() && self.mail.is_quiet()
    }

    /// Whether this CPU itself has nothing to look into: time that was nobody's, a deferral,
    /// threads to be woken in company, calls that are on their way. Where one of these begins,
    /// [`PerCpu::disturb`] is called. Gate closed.
    fn has_nothing_open(&self) -> bool {
        // SAFETY: gate closed; the borrow ends here.
        let ring = unsafe { &*self.ring.get() };
        self.known_missing.load(Ordering::Relaxed) == 0
            && !self.deferral.is_open()
            && self.pool.waking.get().is_null()
            && !ring.as_ref().is_some_and(Ring::is_busy)
    }

    /// Whether an entry may take the fast path, as far as the platform knows. Gate closed.
    #[inline]
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        // A signal may disturb this CPU between the two, so the word is read behind the rest.
        debug_assert!(self.has_nothing_open() || self.open_until.load(Ordering::Relaxed) == 0);
        now.ticks() < self.open_until.load(Ordering::Relaxed) && self.is_left_alone()
    }

    /// Before rings and lists are read: others may kick again, unless they have done so too often.
    /// Gate closed.
    pub(crate) fn hear_news(&self, now: Instant) {
        if self.mail.is_quiet() {
            return;
        }
        self.mail.hear_listed();
        if !self.shared.post.is_signalled(self.index) {
            return;
        }
        let before = self.kicks.get();
        let mut kicks = before;
        if kicks.hear(now, self.limits.kick_window) {
            self.shared.post.acknowledge(self.index);
            self.count(|c| c.kicks += 1);
        } else if before.due().is_none() {
            self.count(|c| c.kicks_held += 1);
        }
        self.kicks.set(kicks);
    }

    /// Something has begun that the next entry is to look into. Any time.
    #[inline]
    pub(crate) fn disturb(&self) {
        self.is_at_rest.store(false, Ordering::Relaxed);
        self.open_until.store(0, Ordering::Relaxed);
    }

    /// Threads are to be woken by the next entry, beside its event: this and its company. Gate
    /// closed.
    #[inline]
    pub(crate) fn wake_also(&self, first: *const Light) {
        if !first.is_null() {
            self.pool.waking.set(first);
            self.disturb();
        }
    }

    /// Before this instant the platform has nothing of its own to do.
    #[inline]
    pub(crate) fn fast_until(&self) -> Instant {
        self.fast_until.get()
    }

    /// Says that from now on. Gate closed.
    pub(crate) fn set_fast_until(&self, until: Instant) {
        self.fast_until.set(until);
        let is_at_rest = self.has_nothing_open();
        self.is_at_rest.store(is_at_rest, Ordering::Relaxed);
        self.reopen();
    }

    /// The timer has fired, or may have: no entry takes the fast path before it is set again.
    #[inline]
    pub(super) fn take_armed(&self) -> Option<Instant> {
        self.open_until.store(0, Ordering::Relaxed);
        self.stays_after.store(u64::MAX, Ordering::Relaxed);
        self.armed.take()
    }

    #[inline]
    pub(super) fn set_armed(&self, armed: Option<Instant>) {
        self.armed.set(armed);
        self.reopen();
    }

    /// Whether the timer stays where the core is to be entered at `due`, and the platform when it
    /// says: it comes before both. Gate closed.
    #[inline]
    pub(crate) fn timer_stays(&self, due: Instant) -> bool {
        due.ticks() > self.stays_after.load(Ordering::Relaxed)
    }

    /// An entry without a timer behind it does not take the fast path.
    #[inline]
    fn reopen(&self) {
        let (armed, own) = (self.armed.get(), self.fast_until.get());
        let until = match armed {
            Some(armed) if self.is_at_rest.load(Ordering::Relaxed) => own.min(armed),
            _ => Instant::ZERO,
        };
        let stays_after = match armed {
            Some(armed) if armed <= own => armed.ticks().saturating_sub(1),
            _ => u64::MAX,
        };
        self.open_until.store(until.ticks(), Ordering::Relaxed);
        self.stays_after.store(stays_after, Ordering::Relaxed);
    }
}
