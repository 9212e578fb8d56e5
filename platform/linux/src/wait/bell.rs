//! What a thread of one CPU tells a thread of another: that something has happened, and how often.
//!
//! Whoever rings adds one to a count and, unless the bell is on its way already, puts it on the
//! list of its home CPU and kicks that CPU if it does not look by itself. The home CPU takes the
//! list at its next entry and wakes who waits. So rings are never lost, never allocate, and n of
//! them cost one kick at most.

use core::fmt;
use core::sync::atomic::Ordering;
use std::sync::Arc;

use punctual_kern::Event;
use punctual_model::Instant;

use crate::entry::request::open_gate;
use crate::record::bell::Count;
use crate::record::host::{Host, Shared};
use crate::record::local::current_light;
use crate::wait::monitor::{VisitError, rest_closed};

/// Rings from any CPU of a run for one thread at a time of the CPU that made it.
#[derive(Clone)]
pub struct Bell {
    count: Arc<Count>,
    shared: Arc<Shared>,
    index: usize,
    home: u64,
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rings = self.count.rings.load(Ordering::Relaxed);
        f.debug_struct("Bell").field("rings", &rings).finish()
    }
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
        Bell {
            count: Arc::new(Count::new()),
            shared: Arc::clone(&host.shared),
            index: host.index,
            home: host.pool.home.get(),
        }
    }

    /// Counts a ring and sees to it that the home CPU hears of it. Gate of `host` closed, which is
    /// the CPU that rings: others may wait for what is listed already.
    pub(crate) fn ring_from(&self, host: &Host) {
        self.count.rings.fetch_add(1, Ordering::Release);
        if self.count.link.announce() {
            let bell = Arc::into_raw(Arc::clone(&self.count));
            // SAFETY: the reference just made keeps it alive until it is taken off.
            unsafe { host.shared.post.rung(self.index).put(bell) };
            if self.index != host.index {
                host.shared.post.kick(self.index);
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
        if !Arc::ptr_eq(&host.shared, &self.shared) || host.gate.is_closed() {
            return Err(VisitError::NoRun);
        }
        host.gate.close();
        self.ring_from(host);
        if self.index == host.index {
            let _ = crate::entry::request::enter(light, Event::Tick);
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
        struct Leave<'a>(&'a Count);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                // The waiter itself: nobody else runs on its CPU, and one store is not interrupted.
                self.0.waiter.set(None);
            }
        }
        let light = current_light().ok_or(VisitError::NoRun)?;
        // SAFETY: the host outlives its threads.
        let host = unsafe { &*light.host() };
        if host.pool.home.get() != self.home {
            return Err(VisitError::OtherCpu);
        }
        if host.gate.is_closed() {
            return Err(VisitError::NoRun);
        }
        host.gate.close();
        if self.count.waiter.get().is_some() {
            open_gate(host);
            return Err(VisitError::Taken);
        }
        self.count.waiter.set(Some(light.id()));
        let leave = Leave(&self.count);
        loop {
            let rings = self.count.rings.swap(0, Ordering::Acquire);
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
