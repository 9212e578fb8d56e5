//! What a thread of one CPU tells a thread of another: that something has happened, and how often.
//!
//! Whoever rings adds one to a count and, unless the bell is on its way already, puts it on the
//! list of its home CPU and kicks that CPU if it does not look by itself. The home CPU takes the
//! list at its next entry and wakes who waits. So rings are never lost, never allocate, and n of
//! them cost one kick at most.

use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use punctual_kern::Event;
use punctual_model::{Instant, ThreadId};

use crate::host::{Host, Shared};
use crate::light::{Light, open_gate};
use crate::local::current_light;
use crate::monitor::{VisitError, rest_closed};
use crate::news::{Link, Linked, News};

/// Rings from any CPU of a run for one thread at a time of the CPU that made it.
pub struct Bell(Arc<Inner>);

pub(crate) struct Inner {
    shared: Arc<Shared>,
    index: usize,
    home: u64,
    rings: AtomicU64,
    /// Its place on the list of its home.
    link: Link<Inner>,
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

impl Linked for Inner {
    fn link(&self) -> &Link<Inner> {
        &self.link
    }
}

/// Takes the next bell off, with the reference that its ring made.
fn take(rung: &News<Inner>) -> Option<Arc<Inner>> {
    let bell = rung.take()?;
    // SAFETY: the reference that `ring_from` made when it put the bell there, taken once.
    Some(unsafe { Arc::from_raw(bell) })
}

/// Forgets all that have been rung. The home CPU, or anybody when its run is over.
pub(crate) fn forget(rung: &News<Inner>) {
    while take(rung).is_some() {}
}

/// The next thread that a bell wakes. An entry of the home CPU, gate closed. O(1).
pub(crate) fn next_rung(host: &Host) -> Option<ThreadId> {
    while let Some(bell) = take(host.shared.post.rung(host.index)) {
        // From now on a ring lists it again; what was rung before is seen by who wakes up.
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
            link: Link::new(),
            waiter: Cell::new(core::ptr::null()),
        }))
    }

    /// Counts a ring and sees to it that the home CPU hears of it. Gate of `host` closed, which is
    /// the CPU that rings: others may wait for what is listed already.
    pub(crate) fn ring_from(&self, host: &Host) {
        self.0.rings.fetch_add(1, Ordering::Release);
        if self.0.link.announce() {
            let bell = Arc::into_raw(Arc::clone(&self.0));
            // SAFETY: the reference just made keeps it alive until it is taken off.
            unsafe { host.shared.post.rung(self.0.index).put(bell) };
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
            let rings = self.0.rings.swap(0, Ordering::Acquire);
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
