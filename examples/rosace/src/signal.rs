//! Signals between tasks: one value each, one writer each, never a wait.
//!
//! The tasks live on different threads, perhaps on different CPUs, and any of them may be preempted
//! anywhere. A signal is therefore an atomic word that holds the bits of one double: sound under
//! every interleaving, and *exact* under those that keep the precedence of the tasks, because then
//! a write never falls between two reads that belong to one step. No lock, so nobody waits for a
//! preempted neighbour.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::plant::{DELTA_E_START, DELTA_TH_START};

/// The latest value of a signal.
#[derive(Debug)]
pub(crate) struct Signal(AtomicU64);

impl Signal {
    fn new(value: f64) -> Signal {
        Signal(AtomicU64::new(value.to_bits()))
    }

    /// The value held. Acquire: who sees a value sees all that its writer did before.
    pub(crate) fn read(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Acquire))
    }

    /// Holds `value` until the next write.
    pub(crate) fn write(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Release);
    }
}

/// Every signal of the controller; the comment names its one writer.
#[derive(Debug)]
pub(crate) struct Signals {
    // elevator, engine
    pub(crate) delta_e: Signal,
    pub(crate) thrust: Signal,
    // dynamics
    pub(crate) h: Signal,
    pub(crate) vz: Signal,
    pub(crate) va: Signal,
    pub(crate) q: Signal,
    pub(crate) az: Signal,
    // the filter of the same name
    pub(crate) h_f: Signal,
    pub(crate) vz_f: Signal,
    pub(crate) va_f: Signal,
    pub(crate) q_f: Signal,
    pub(crate) az_f: Signal,
    // altitude hold
    pub(crate) vz_c: Signal,
    // vz control, va control
    pub(crate) delta_e_c: Signal,
    pub(crate) delta_th_c: Signal,
}

impl Signals {
    /// The commands at equilibrium. All others are written before they are read when the
    /// precedence is kept; "not a number" makes it visible when it is not.
    pub(crate) fn new() -> Signals {
        let unwritten = || Signal::new(f64::NAN);
        Signals {
            delta_e: unwritten(),
            thrust: unwritten(),
            h: unwritten(),
            vz: unwritten(),
            va: unwritten(),
            q: unwritten(),
            az: unwritten(),
            h_f: unwritten(),
            vz_f: unwritten(),
            va_f: unwritten(),
            q_f: unwritten(),
            az_f: unwritten(),
            vz_c: unwritten(),
            delta_e_c: Signal::new(DELTA_E_START),
            delta_th_c: Signal::new(DELTA_TH_START),
        }
    }
}
