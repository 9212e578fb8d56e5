//! What a run changes in its process, each with its way back.

use crate::entry::signal;
use crate::record::input::RunError;
use crate::record::outcome::Loss;
use crate::run::fault;
use crate::sys::action::KernelAction;
use crate::sys::{self, FAULTS};

/// All pages locked, until dropped.
#[derive(Debug)]
pub(crate) struct MemoryLock {
    locked: bool,
}

/// A lock that leaves less room than this would make later allocations fail.
const ROOM: usize = 64 << 20;

impl MemoryLock {
    /// Locks all pages, present and future, if that leaves room to work with.
    pub(crate) fn take(lost: &mut Vec<Loss>) -> MemoryLock {
        let refused = |why: String| Loss {
            what: "mlockall",
            detail: format!("page faults may delay jobs ({why})"),
        };
        if let Err(error) = sys::lock_memory() {
            lost.push(refused(error.to_string()));
            return MemoryLock { locked: false };
        }
        // With a limit on locked memory, later mappings fail: try one.
        if sys::lockable_bytes().is_some() {
            // The kernel counts a mapping when it is made, before anything is touched.
            let usable = sys::reserve(ROOM).map(|area| {
                // SAFETY: the area was just reserved with this size, and nobody has used it.
                unsafe { sys::release(area, ROOM) };
            });
            if let Err(error) = usable {
                sys::unlock_memory();
                lost.push(refused(format!(
                    "the limit on locked memory is too small: {error}"
                )));
                return MemoryLock { locked: false };
            }
        }
        MemoryLock { locked: true }
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        if self.locked {
            sys::unlock_memory();
        }
    }
}

/// The preemption signal and the fault handlers, installed until dropped.
#[derive(Debug)]
pub(crate) struct ClaimedSignal {
    number: i32,
    before: KernelAction,
    faults: [Option<KernelAction>; FAULTS.len()],
    kept: bool,
}

/// Takes the first real-time signal that nobody uses.
pub(crate) fn claim_signal() -> Result<ClaimedSignal, RunError> {
    let error = |what, error| RunError::System { what, error };
    for number in sys::real_time_signals() {
        let Ok(before) = sys::set_action(number, None) else {
            continue;
        };
        if !before.is_default() {
            continue;
        }
        sys::set_action(number, Some(&KernelAction::preemption(signal::body)))
            .map_err(|e| error("install the preemption signal", e))?;
        let fault = KernelAction::fault(fault::handle);
        let faults = FAULTS.map(|fatal| sys::set_action(fatal, Some(&fault)).ok());
        fault::keep_before(&faults);
        return Ok(ClaimedSignal {
            number,
            before,
            faults,
            kept: false,
        });
    }
    let none = std::io::Error::other("every real-time signal has a handler");
    Err(error("find a free signal", none))
}

impl ClaimedSignal {
    pub(crate) fn number(&self) -> i32 {
        self.number
    }

    /// Leaves the handlers installed: somebody may still need them.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for ClaimedSignal {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // Restoring what was in force cannot fail.
        let _ = sys::set_action(self.number, Some(&self.before));
        let ours = KernelAction::fault(fault::handle);
        for (fatal, before) in FAULTS.iter().zip(&self.faults) {
            // The program may have claimed it meanwhile.
            let is_ours = sys::set_action(*fatal, None).is_ok_and(|now| now.is_as(&ours));
            if let Some(before) = before.filter(|_| is_ours) {
                let _ = sys::set_action(*fatal, Some(&before));
            }
        }
    }
}
