//! The gate of a processor: its scheduler is not entered twice, and no signal is forgotten.
//!
//! A signal that finds the gate closed leaves a note and returns; whoever opens the gate looks for
//! the note after that (INV-7, INV-8). `interleave` puts signals into every place between the
//! accesses below.

use core::mem::offset_of;

use crate::words::{AtomicU32, Ordering, compiler_fence};

/// The gate of one processor: closed while its scheduler state is being looked at or changed.
///
/// Only code on that processor's kernel thread touches it, so a plain store is enough to open or
/// close it; atomics keep the compiler from moving it, and keep signals and main line honest.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Gate {
    /// 1: closed. The scheduler is not preemptible (design note 0004).
    closed: AtomicU32,
    /// A signal came while the gate was closed.
    pending: AtomicU32,
}

const _: () = assert!(offset_of!(Gate, closed) == 0);
const _: () = assert!(offset_of!(Gate, pending) == 4);

impl Gate {
    /// An open gate with nothing pending.
    pub const fn new() -> Gate {
        Gate {
            closed: AtomicU32::new(0),
            pending: AtomicU32::new(0),
        }
    }

    /// Whether somebody is inside.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) != 0
    }

    /// Closes the gate. It must be open.
    #[inline]
    pub fn close(&self) {
        debug_assert!(!self.is_closed(), "INV-7: nobody enters twice");
        self.closed.store(1, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
    }

    /// Opens the gate; `true`: a signal came meanwhile and wants to be served (INV-8).
    #[inline]
    #[must_use = "a pending signal must be served"]
    pub fn open(&self) -> bool {
        compiler_fence(Ordering::SeqCst);
        self.closed.store(0, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
        self.pending.load(Ordering::Acquire) != 0
    }

    /// Notes a signal that found the gate closed.
    #[inline]
    pub fn note_pending(&self) {
        self.pending.store(1, Ordering::Release);
    }

    /// Whether a signal that found the gate closed has not been served.
    #[inline]
    pub fn has_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire) != 0
    }

    /// Takes the note away, with the gate closed, before the core looks at the clock.
    #[inline]
    pub fn take_pending(&self) -> bool {
        let was = self.pending.load(Ordering::Acquire) != 0;
        if was {
            self.pending.store(0, Ordering::Release);
        }
        was
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_opens_the_gate_is_told_of_a_signal_that_came_meanwhile() {
        // INV-7, INV-8
        let gate = Gate::new();
        gate.close();
        assert!(gate.is_closed());
        gate.note_pending();
        assert!(gate.open());
        gate.close();
        assert!(gate.take_pending());
        assert!(!gate.take_pending());
        assert!(!gate.open());
    }
}
