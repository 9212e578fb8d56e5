//! Threads of a CPU that others have let go on since its last entry.

use punctual_linux_io::Ring;
use punctual_model::ThreadId;

use crate::record::bell;
use crate::record::host::Host;
use crate::record::light::Light;

/// The next thread that a bell wakes. An entry of the home CPU, gate closed. O(1).
pub(crate) fn next_rung(host: &Host) -> Option<ThreadId> {
    while let Some(bell) = bell::take(host.shared.post.rung(host.index)) {
        // From now on a ring lists it again; what was rung before is seen by who wakes up.
        if let Some(thread) = bell.waiter.get() {
            return Some(thread);
        }
    }
    None
}

/// The next thread of this CPU that was answered by another. An entry, gate closed. O(1). It may
/// have ended its wait by itself since, and begun another: every wait looks whether it is meant.
pub(crate) fn next_called(host: &Host) -> Option<ThreadId> {
    // From now on an answer lists it again; what was answered before is seen when it goes on.
    let light = host.shared.post.called(host.index).take()?;
    // SAFETY: a record of this CPU, which outlives the run (INV-L1).
    Some(unsafe { &*light }.id())
}

/// Whether blocking calls of this CPU are outstanding.
#[inline]
pub(crate) fn awaits_answers(host: &Host) -> bool {
    // SAFETY: gate closed; the borrow ends here.
    unsafe { &*host.ring.get() }
        .as_ref()
        .is_some_and(Ring::is_busy)
}

/// The next thread whose blocking call is over.
#[inline]
pub(crate) fn next_answered(host: &Host) -> Option<ThreadId> {
    // SAFETY: gate closed; the borrow ends here.
    let ring = unsafe { &mut *host.ring.get() }.as_mut()?;
    let light = ring.next_woken()?.0.cast::<Light>();
    // SAFETY: a record of this CPU, which outlives the run (INV-L1).
    Some(unsafe { &*light }.id())
}
