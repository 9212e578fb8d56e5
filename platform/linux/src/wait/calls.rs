//! What light threads are to the C library's calls that they make: the hook of `punctual-linux-io`.

use core::ffi::c_long;
use core::sync::atomic::Ordering;

use punctual_kern::Event;
use punctual_linux_io::{
    Backoff, Caller, Direction, FutexRequest, Origin, Ring, StackBounds, Waiter,
};
use punctual_model::Instant;

use crate::entry::request::{enter, open_gate, take_deferred_preemption};
use crate::record::light::Light;
use crate::record::local::current_light;
use crate::record::per_cpu::PerCpu;
use crate::wait::forked;
use crate::wait::futex::futex;
use crate::wait::monitor::is_to_end;

/// Tells the calls of the C library who the light threads are.
pub(crate) fn install() {
    punctual_linux_io::install(|| current_light().map(|light| -> &dyn Caller { light }));
}

/// The CPU of a light thread, which outlives it.
fn host(light: &Light) -> &PerCpu {
    // SAFETY: the host outlives its threads; only its cells and atomics are used through this.
    unsafe { &*light.host() }
}

impl Caller for Light {
    fn may_block(&self) -> bool {
        !self.has_gate_closed() && !self.quit.get()
    }

    fn has_run_ended(&self) -> bool {
        self.quit.get()
    }

    fn is_cancelled(&self) -> bool {
        is_to_end(self)
    }

    fn is_to_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn now(&self) -> Instant {
        Light::now(self)
    }

    fn in_ns(&self, ns: u64) -> Instant {
        let clock = host(self).clock();
        Instant::from_ticks(clock.now().ticks().saturating_add(clock.ticks(ns)))
    }

    fn backoff(&self, direction: Direction) -> &Backoff {
        &self.backoff[direction as usize]
    }

    fn waiter(&self) -> Waiter {
        Waiter(core::ptr::from_ref(self).cast())
    }

    fn close_gate(&self) {
        host(self).gate.close();
    }

    fn open_gate(&self) {
        open_gate(self.host());
    }

    fn with_ring(&self, look: &mut dyn FnMut(&mut Ring)) -> bool {
        let host = host(self);
        debug_assert!(
            host.gate.is_closed(),
            "the ring is looked at with the gate closed"
        );
        // SAFETY: gate closed, and `look` reaches the ring by no other way; the borrow ends here.
        let Some(ring) = (unsafe { &mut *host.ring.get() }).as_mut() else {
            return false;
        };
        look(ring);
        if ring.is_busy() {
            host.disturb();
        }
        true
    }

    fn block(&self, until: Option<Instant>) {
        self.wait_by(|| {
            // A refusal leaves the thread where it is: its caller looks again.
            let _ = enter(self, Event::Block { until });
        });
    }

    unsafe fn futex(&self, request: FutexRequest) -> Option<c_long> {
        // SAFETY: as the caller vouches.
        unsafe { futex(self, request) }
    }

    fn origin(&self) -> &Origin {
        &host(self).shared.origin
    }

    fn cpu(&self) -> usize {
        host(self).index
    }

    fn stack(&self) -> Option<StackBounds> {
        Light::stack(self).bounds_here()
    }

    fn in_child(&self) {
        forked::begin_child(self);
    }

    fn preempt(&self, returns_to: usize) {
        take_deferred_preemption(self, returns_to);
    }
}
