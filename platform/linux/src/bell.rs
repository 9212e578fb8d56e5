//! What a thread of one CPU tells a thread of another: that something has happened, and how often.
//!
//! Whoever rings adds one to a count and, unless the bell is on its way already, puts it on the
//! list of its home CPU and kicks that CPU if it does not look by itself. The home CPU takes the
//! list at its next entry and wakes who waits. So rings are never lost, never allocate, and n of
//! them cost one kick at most.

use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::Arc;

use punctual_kern::Event;
use punctual_model::{Instant, ThreadId};

use crate::host::{Host, Shared};
use crate::light::{Light, open_gate};
use crate::local::current_light;
use crate::monitor::{VisitError, rest_closed};

/// Rings from any CPU of a run for one thread at a time of the CPU that made it.
pub struct Bell(Arc<Inner>);

pub(crate) struct Inner {
    shared: Arc<Shared>,
    index: usize,
    home: u64,
    rings: AtomicU64,
    /// It is on the list of its home.
    listed: AtomicBool,
    /// The next on that list; whoever puts it there writes it before.
    next: AtomicPtr<Inner>,
    /// Who waits. Home CPU, gate closed.
    waiter: Cell<*const Light>,
}

// SAFETY: the words that others touch are atomic; the waiter is touched on the home CPU only, with
// its gate closed.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rings = self.0.rings.load(Ordering::Relaxed);
        f.debug_struct("Bell").field("rings", &rings).finish()
    }
}

impl Clone for Bell {
    fn clone(&self) -> Bell {
        Bell(Arc::clone(&self.0))
    }
}

/// Bells that have been rung and not been heard yet, of one CPU.
#[derive(Debug)]
pub(crate) struct Rung(AtomicPtr<Inner>);

impl Rung {
    pub(crate) const fn new() -> Rung {
        Rung(AtomicPtr::new(core::ptr::null_mut()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::SeqCst).is_null()
    }

    /// Any thread.
    fn put(&self, bell: &Arc<Inner>) {
        let node = Arc::into_raw(Arc::clone(bell)).cast_mut();
        let mut first = self.0.load(Ordering::Relaxed);
        loop {
            bell.next.store(first, Ordering::Relaxed);
            let order = (Ordering::SeqCst, Ordering::Relaxed);
            match self.0.compare_exchange(first, node, order.0, order.1) {
                Ok(_) => return,
                Err(other) => first = other,
            }
        }
    }

    /// Takes one off. The home CPU only, so that nobody else takes the second meanwhile.
    fn take(&self) -> Option<Arc<Inner>> {
        let mut first = self.0.load(Ordering::SeqCst);
        while !first.is_null() {
            // SAFETY: on the list, so its count was raised by `put`; only this CPU takes it off.
            let next = unsafe { (*first).next.load(Ordering::Relaxed) };
            let order = (Ordering::SeqCst, Ordering::SeqCst);
            match self.0.compare_exchange(first, next, order.0, order.1) {
                // SAFETY: the reference that `put` made, taken once.
                Ok(_) => return Some(unsafe { Arc::from_raw(first) }),
                Err(other) => first = other,
            }
        }
        None
    }
}

impl Rung {
    /// Forgets them all. The home CPU, or anybody when its run is over.
    pub(crate) fn clear(&self) {
        while self.take().is_some() {}
    }
}

/// The next thread that a bell wakes. An entry of the home CPU, gate closed. O(1).
pub(crate) fn next_rung(host: &Host) -> Option<ThreadId> {
    while let Some(bell) = host.shared.post.rung(host.index).take() {
        // From now on a ring lists it again; what was rung before is seen by who wakes up.
        bell.listed.store(false, Ordering::SeqCst);
        // SAFETY: records outlive the run (INV-L1 of `light`).
        if let Some(light) = unsafe { bell.waiter.get().as_ref() } {
            return Some(light.id());
        }
    }
    None
}

impl Bell {
    /// A bell of the calling thread's CPU; `None` outside of a run. Allocates.
    pub fn new() -> Option<Bell> {
        let light = current_light()?;
        // SAFETY: the host outlives its threads.
        Some(Bell::made_on(unsafe { &*light.host() }))
    }

    /// A bell of this CPU.
    pub(crate) fn made_on(host: &Host) -> Bell {
        Bell(Arc::new(Inner {
            shared: Arc::clone(&host.shared),
            index: host.index,
            home: host.pool.home.get(),
            rings: AtomicU64::new(0),
            listed: AtomicBool::new(false),
            next: AtomicPtr::new(core::ptr::null_mut()),
            waiter: Cell::new(core::ptr::null()),
        }))
    }

    /// Counts a ring and sees to it that the home CPU hears of it. Gate of `host` closed, which is
    /// the CPU that rings: others may wait for what is listed already.
    pub(crate) fn ring_from(&self, host: &Host) {
        self.0.rings.fetch_add(1, Ordering::SeqCst);
        let listed = self.0.listed.swap(true, Ordering::SeqCst);
        if !listed {
            host.shared.post.rung(self.0.index).put(&self.0);
            if self.0.index != host.index {
                host.shared.post.kick(self.0.index);
            }
        }
    }

    /// Rings, from any CPU of the run. Calls the system when the home CPU sleeps or executes a
    /// thread and no kick is on its way.
    ///
    /// # Errors
    /// [`VisitError::NoRun`] outside of the run.
    pub fn ring(&self) -> Result<(), VisitError> {
        let light = current_light().ok_or(VisitError::NoRun)?;
        // SAFETY: the host outlives its threads.
        let host = unsafe { &*light.host() };
        if !Arc::ptr_eq(&host.shared, &self.0.shared) || host.gate.is_closed() {
            return Err(VisitError::NoRun);
        }
        host.gate.close();
        self.ring_from(host);
        if self.0.index == host.index {
            let _ = crate::monitor::enter(light, Event::Tick);
        }
        if !light.quit.get() {
            open_gate(host);
        }
        Ok(())
    }

    /// Takes the rings so far; waits for one if there is none, until `until` at most.
    ///
    /// # Errors
    /// [`VisitError::OtherCpu`]; [`VisitError::TimedOut`]; [`VisitError::Taken`] when another
    /// thread waits for it already.
    pub fn wait(&self, until: Option<Instant>) -> Result<u64, VisitError> {
        /// Nobody waits any more, however the wait ends.
        struct Leave<'a>(&'a Inner);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                // The waiter itself: nobody else runs on its CPU, and one store is not interrupted.
                self.0.waiter.set(core::ptr::null());
            }
        }
        let light = current_light().ok_or(VisitError::NoRun)?;
        // SAFETY: the host outlives its threads.
        let host = unsafe { &*light.host() };
        if host.pool.home.get() != self.0.home {
            return Err(VisitError::OtherCpu);
        }
        if host.gate.is_closed() {
            return Err(VisitError::NoRun);
        }
        host.gate.close();
        if !self.0.waiter.get().is_null() {
            open_gate(host);
            return Err(VisitError::Taken);
        }
        self.0.waiter.set(light);
        let leave = Leave(&self.0);
        loop {
            let rings = self.0.rings.swap(0, Ordering::SeqCst);
            let late = until.is_some_and(|until| until <= host.clock().now());
            if rings > 0 || late {
                drop(leave);
                open_gate(host);
                return match rings {
                    0 => Err(VisitError::TimedOut),
                    rings => Ok(rings),
                };
            }
            rest_closed(light, Event::Block { until })?;
        }
    }
}
