//! Barriers: counting arrivals, and the release of those that wait.

use crate::carry::make_ready;
use crate::parts::{Member, Team, Thread};
use crate::seek::members;

/// One more member, and everything below it, has arrived. The last one releases all.
pub(crate) fn arrive_at(team: &'static Team) {
    let size = team.size.load(core::sync::atomic::Ordering::Relaxed);
    // From then on the first member may begin another region.
    if !team.barrier.arrive(size) {
        return;
    }
    for member in members(team) {
        // SAFETY: threads are never unmade.
        if let Some(thread) = unsafe { team.barrier.unpark(&member.parked).as_ref() } {
            make_ready(thread);
        }
    }
}

/// The barrier that is to be passed next.
#[inline]
pub(crate) fn generation(team: &Team) -> u64 {
    team.barrier.generation()
}

/// Says who waits for the next generation; `false`: it has come, and nobody will be told.
pub(crate) fn park(member: &Member, thread: &'static Thread, passed: u64) -> bool {
    let address = core::ptr::from_ref(thread).cast_mut();
    let barrier = &member.team.barrier;
    barrier.park(&member.parked, address, passed)
}
