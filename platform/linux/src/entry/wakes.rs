//! Threads of a CPU that others have let go on since its last entry, and the running one's ceiling.

use punctual_kern::Ceiling;
use punctual_linux_io::Ring;
use punctual_model::ThreadId;

use crate::record::light::Light;
use crate::record::notify;
use crate::record::per_cpu::PerCpu;

/// The next thread that a notification wakes. An entry of the home CPU, gate closed. O(1).
pub(crate) fn next_notified(host: &PerCpu) -> Option<ThreadId> {
    while let Some(notify) = notify::take(host.shared.post.notified(host.index)) {
        // From now on a notification lists it again; the waiter sees those before.
        if let Some(thread) = notify.waiter.get() {
            return Some(thread);
        }
    }
    None
}

/// The next thread of this CPU that was answered by another. An entry, gate closed. O(1). It may
/// have ended its wait by itself since, and begun another: every wait looks whether it is meant.
pub(crate) fn next_woken(host: &PerCpu) -> Option<ThreadId> {
    // From now on an answer lists it again; what was answered before is seen when it goes on.
    let light = host.shared.post.woken(host.index).take()?;
    // SAFETY: a record of this CPU, which outlives the run (INV-L1).
    Some(unsafe { &*light }.id())
}

/// Whether blocking calls of this CPU are outstanding.
#[inline]
pub(crate) fn awaits_answers(host: &PerCpu) -> bool {
    // SAFETY: gate closed; the borrow ends here.
    unsafe { &*host.ring.get() }
        .as_ref()
        .is_some_and(Ring::is_busy)
}

/// The next thread whose blocking call is over.
#[inline]
pub(crate) fn next_answered(host: &PerCpu) -> Option<ThreadId> {
    // SAFETY: gate closed; the borrow ends here.
    let ring = unsafe { &mut *host.ring.get() }.as_mut()?;
    let light = ring.next_woken()?.0.cast::<Light>();
    // SAFETY: a record of this CPU, which outlives the run (INV-L1).
    Some(unsafe { &*light }.id())
}

/// The ceiling of the running thread, if it has changed since the core was told.
pub(crate) fn new_ceiling(host: &PerCpu) -> Option<Option<Ceiling>> {
    // SAFETY: records outlive the run (INV-L1 of `light`).
    let light = unsafe { host.current.get().as_ref() }?;
    light.take_ceiling()
}
