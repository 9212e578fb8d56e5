//! What code finds out about itself through its thread-local storage: its light thread, its CPU.
//!
//! Every light thread has its own storage (`tls`), and so has the carrier, so these words can be
//! read in the middle of anything: a switch changes them together with the stack (INV-9 of
//! `switch`). All words are plain cells without destructors: reading one is one load.

use core::cell::Cell;

use crate::record::light::Light;
use crate::record::per_cpu::PerCpu;
use crate::record::recovery::Recovery;

/// The words of one thread.
#[derive(Debug)]
pub(crate) struct Local {
    /// The CPU that this thread belongs to; null outside of a run.
    pub(crate) host: Cell<*const PerCpu>,
    /// The light thread; null on carriers and everywhere else.
    pub(crate) light: Cell<*const Light>,
    /// Where this thread goes on if the code that it calls crashes. Direct threads have one each:
    /// they are in their calls by turns.
    pub(crate) recovery: Cell<Option<Recovery>>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            host: Cell::new(core::ptr::null()),
            light: Cell::new(core::ptr::null()),
            recovery: Cell::new(None),
        }
    };
}

/// Looks at the words of the calling thread.
#[inline(always)]
pub(crate) fn local<R>(look: impl FnOnce(&Local) -> R) -> R {
    LOCAL.with(look)
}

/// The light thread that is running, if the caller is on one.
#[inline]
pub(crate) fn current_light() -> Option<&'static Light> {
    let light = local(|l| l.light.get());
    // SAFETY: the word is set by the light thread itself at its start, to its own record, which
    // outlives the thread's last instruction (INV-L1 in `light`).
    unsafe { light.as_ref() }
}
