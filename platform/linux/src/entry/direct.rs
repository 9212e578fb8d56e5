//! What a direct scheduler is made of: a light thread, its clock, stacks and storages.
//!
//! `punctual-direct` is one. It registers itself with [`LightThread::register`]; from then on the
//! preemption signal asks it which of its threads was interrupted ([`DirectScheduler`]).

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{Ordering, compiler_fence};

use punctual_kern::Event;
use punctual_model::Instant;

use crate::entry::request::{open_gate, promise, rest};
use crate::record::light::Light;
use crate::record::local::{current_light, local};

pub use crate::record::direct::DirectScheduler;
pub use crate::storage::stack::Stack;
pub use crate::storage::tls::{Library, Storage};
pub use crate::sys::can_write_thread_pointer;
pub use crate::time::clock::Clock;

/// A light thread that is to carry a scheduler. It is its own: the handle stays on its thread.
#[derive(Clone, Copy)]
pub struct LightThread {
    light: &'static Light,
    here: PhantomData<*const ()>,
}

impl fmt::Debug for LightThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LightThread").finish_non_exhaustive()
    }
}

impl LightThread {
    /// The calling light thread; `None` outside of a run, and where it carries a scheduler already.
    pub fn current() -> Option<LightThread> {
        let light = current_light().filter(|light| light.direct().is_none())?;
        Some(LightThread {
            light,
            here: PhantomData,
        })
    }

    /// The clock of the run on this CPU.
    pub fn clock(self) -> Clock {
        // SAFETY: the host outlives its threads.
        unsafe { (*self.light.host()).clock() }
    }

    /// Whether a stack pointer lies in the thread's own stack.
    pub fn has_on_stack(self, pointer: u64) -> bool {
        self.light.has_on_stack(pointer)
    }

    /// Makes the scheduler known to the preemption signal until the registration is dropped. A
    /// promise of checkpoints ends here: the threads of the scheduler have not made it.
    ///
    /// # Safety
    /// The registration is dropped, on this thread, before the borrow ends.
    pub unsafe fn register<'a>(self, scheduler: &'a &'a dyn DirectScheduler) -> Registration<'a> {
        promise(self.light, 0);
        compiler_fence(Ordering::SeqCst);
        self.light.set_direct(scheduler);
        Registration {
            light: self.light,
            scheduler: PhantomData,
        }
    }

    /// Calls `section` with no preemption until its end, where one that came meanwhile is taken.
    pub fn without_preemption(self, section: impl FnOnce()) {
        // SAFETY: the host outlives its threads; the gate is atomic.
        let gate = unsafe { &(*self.light.host()).gate };
        gate.close();
        section();
        // A signal in a thread that did not know its CPU yet has found nothing: look at everything.
        gate.note_pending();
        open_gate(self.light.host());
    }

    /// Binds the calling thread, which is new and has this storage to itself, to the light thread
    /// that carries it. Before that a signal does not find its CPU: so in
    /// [`LightThread::without_preemption`].
    ///
    /// # Safety
    /// The storage is the calling thread's own, and the light thread outlives it.
    pub unsafe fn bind_storage(self, library: &Library) {
        local(|l| {
            l.host.set(self.light.host());
            l.light.set(self.light);
            l.recovery.set(None);
        });
        library.begin_thread();
    }

    /// Waits in the core until an instant, or until somebody wakes the light thread. A scheduling
    /// point: a job that is to end unwinds from here.
    pub fn wait_until(self, until: Instant) {
        rest(Event::Block { until: Some(until) });
    }
}

/// A scheduler is known to the preemption signal while this lives.
#[must_use = "what is dropped at once is known to nobody"]
pub struct Registration<'a> {
    light: &'static Light,
    scheduler: PhantomData<&'a dyn DirectScheduler>,
}

impl fmt::Debug for Registration<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").finish_non_exhaustive()
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.light.clear_direct();
        compiler_fence(Ordering::SeqCst);
    }
}
