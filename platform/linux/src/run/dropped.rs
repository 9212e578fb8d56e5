//! Handles of threads that were let go of where their records cannot be touched.
//!
//! A record belongs to its CPU. A handle may be dropped on another CPU, or on a thread that is not
//! of the run: what is left then is a note, and the CPU of the record reads its notes before it
//! takes a record from its pool. Notes of runs that are over are thrown away.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::record::light::Light;
use crate::record::per_cpu::PerCpu;
use punctual_linux_io::undisturbed;

/// A handle that was dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dropped {
    /// Only an address: it is followed on its own CPU, in its own run.
    pub(crate) light: *const Light,
    pub(crate) generation: u64,
    pub(crate) home: u64,
}

// SAFETY: the address is followed on the CPU of its record only.
unsafe impl Send for Dropped {}

static NOTES: Mutex<Vec<Dropped>> = Mutex::new(Vec::new());
/// How many there are, for a look without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The run that is on; 0: none.
static RUN: AtomicU64 = AtomicU64::new(0);

/// Whoever is preempted with the list may never go on: so nobody is.
fn with_notes<R>(look: impl FnOnce(&mut Vec<Dropped>) -> R) -> R {
    undisturbed(|| {
        let mut notes = NOTES.lock().unwrap_or_else(PoisonError::into_inner);
        let result = look(&mut notes);
        COUNT.store(notes.len(), Ordering::Relaxed);
        result
    })
}

/// A run begins, or is over (0): what earlier ones left is of no use any more.
pub(crate) fn begin(run: u64) {
    RUN.store(run, Ordering::Relaxed);
    with_notes(Vec::clear);
}

/// Leaves a note, if the run of the handle is on. Anywhere.
pub(crate) fn note(dropped: Dropped) {
    if dropped.home >> 16 == RUN.load(Ordering::Relaxed) {
        with_notes(|notes| notes.push(dropped));
    }
}

/// Takes a note for this CPU. One load when there is none for anybody.
pub(crate) fn take(host: &PerCpu) -> Option<Dropped> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let home = host.pool.home.get();
    with_notes(|notes| {
        let place = notes.iter().position(|note| note.home == home)?;
        Some(notes.swap_remove(place))
    })
}
