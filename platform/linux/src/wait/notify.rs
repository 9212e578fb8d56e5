//! Events that threads of any CPU count and one thread of the home CPU waits for.
//!
//! A notification adds one to a count. Unless the event is on the pending-wake list of its home CPU
//! already, the notifier puts it there, and kicks that CPU if it does not look by itself. The home
//! CPU takes the list at its next entry and wakes the waiter. So no notification is lost, none
//! allocates, and n of them cost one kick at most.

use core::fmt;
use core::sync::atomic::Ordering;
use std::sync::Arc;

use punctual_kern::Event;
use punctual_model::Instant;

use crate::entry::request::{enter, open_gate};
use crate::record::local::current_light;
use crate::record::notify::NotifyState;
use crate::record::per_cpu::{PerCpu, Shared};
use crate::wait::monitor::{MonitorError, rest_closed};

/// A counting event: any CPU of a run notifies it, one thread at a time of its home CPU waits.
#[derive(Clone)]
pub struct Notify {
    state: Arc<NotifyState>,
    shared: Arc<Shared>,
    index: usize,
    home: u64,
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.state.count.load(Ordering::Relaxed);
        f.debug_struct("Notify").field("rings", &count).finish()
    }
}

impl Notify {
    /// One whose home is the calling thread's CPU; `None` outside of a run. Allocates.
    pub fn new() -> Option<Notify> {
        let light = current_light()?;
        // SAFETY: the host outlives its threads.
        Some(Notify::made_on(unsafe { &*light.host() }))
    }

    /// One whose home is this CPU.
    pub(crate) fn made_on(host: &PerCpu) -> Notify {
        Notify {
            state: Arc::new(NotifyState::new()),
            shared: Arc::clone(&host.shared),
            index: host.index,
            home: host.pool.home.get(),
        }
    }

    /// Counts a notification, and makes sure that the home CPU sees it. The gate of `per_cpu`, the
    /// notifying CPU, is closed: others may wait for what is listed already.
    pub(crate) fn notify_from(&self, host: &PerCpu) {
        self.state.count.fetch_add(1, Ordering::Release);
        if self.state.link.announce() {
            let state = Arc::into_raw(Arc::clone(&self.state));
            // SAFETY: the reference just made keeps it alive until it is taken off.
            unsafe { host.shared.post.notify(self.index, state) };
            if self.index != host.index {
                host.shared.post.kick(self.index);
            }
        }
    }

    /// Notifies it, from any CPU of the run. Calls the system when the home CPU sleeps or executes
    /// a thread and no kick is on its way.
    ///
    /// # Errors
    /// [`MonitorError::NoRun`] outside of the run.
    pub fn notify(&self) -> Result<(), MonitorError> {
        let light = current_light().ok_or(MonitorError::NoRun)?;
        // SAFETY: the host outlives its threads.
        let host = unsafe { &*light.host() };
        if !Arc::ptr_eq(&host.shared, &self.shared) || host.gate.is_closed() {
            return Err(MonitorError::NoRun);
        }
        host.gate.close();
        self.notify_from(host);
        if self.index == host.index {
            let _ = enter(light, Event::Tick);
        }
        if !light.quit.get() {
            open_gate(host);
        }
        Ok(())
    }

    /// Takes the notifications so far; waits for one if there is none, until `until` at most.
    ///
    /// # Errors
    /// [`MonitorError::OtherCpu`]; [`MonitorError::TimedOut`]; [`MonitorError::Taken`] when another
    /// thread waits for it already.
    pub fn wait(&self, until: Option<Instant>) -> Result<u64, MonitorError> {
        /// Nobody waits any more, however the wait ends.
        struct Leave<'a>(&'a NotifyState);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                // The waiter itself: nobody else runs on its CPU, and one store is not interrupted.
                self.0.waiter.set(None);
            }
        }
        let light = current_light().ok_or(MonitorError::NoRun)?;
        // SAFETY: the host outlives its threads.
        let host = unsafe { &*light.host() };
        if host.pool.home.get() != self.home {
            return Err(MonitorError::OtherCpu);
        }
        if host.gate.is_closed() {
            return Err(MonitorError::NoRun);
        }
        host.gate.close();
        if self.state.waiter.get().is_some() {
            open_gate(host);
            return Err(MonitorError::Taken);
        }
        self.state.waiter.set(Some(light.id()));
        let leave = Leave(&self.state);
        loop {
            let count = self.state.count.swap(0, Ordering::Acquire);
            let late = until.is_some_and(|until| until <= host.clock().now());
            if count > 0 || late {
                drop(leave);
                open_gate(host);
                return match count {
                    0 => Err(MonitorError::TimedOut),
                    count => Ok(count),
                };
            }
            rest_closed(light, Event::Block { until })?;
        }
    }
}
