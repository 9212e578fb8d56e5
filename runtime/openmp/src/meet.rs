//! Barriers: counting arrivals, and the release of those that wait.

use core::sync::atomic::{Ordering, fence};

use crate::carry::{make_ready, members};
use crate::parts::{Member, Team, Thread};

/// One more member, and everything below it, has arrived. The last one releases all.
pub(crate) fn arrive_at(team: &'static Team) {
    let size = team.size.load(Ordering::Relaxed);
    if team.arrived.fetch_add(1, Ordering::AcqRel) + 1 < size {
        return;
    }
    team.arrived.store(0, Ordering::Relaxed);
    // From here on the first member may begin another region.
    team.generation.fetch_add(1, Ordering::Release);
    fence(Ordering::SeqCst);
    if team.parked.load(Ordering::Relaxed) == 0 {
        return;
    }
    for member in members(team) {
        if let Some(thread) = unpark(member) {
            make_ready(thread);
        }
    }
}

/// The barrier that is to be passed next.
#[inline]
pub(crate) fn generation(team: &Team) -> u64 {
    team.generation.load(Ordering::Acquire)
}

/// Says who waits for the next generation; `false`: it has come, and nobody will be told.
pub(crate) fn park(member: &Member, thread: &'static Thread, passed: u64) -> bool {
    let address = core::ptr::from_ref(thread).cast_mut();
    member.parked.store(address, Ordering::Release);
    member.team.parked.fetch_add(1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    // Somebody else may have taken it out already; then this thread is on the list of ready ones.
    generation(member.team) == passed || unpark(member).is_none()
}

fn unpark(member: &Member) -> Option<&'static Thread> {
    if member.parked.load(Ordering::Relaxed).is_null() {
        return None;
    }
    let thread = member.parked.swap(core::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: threads are never unmade.
    let thread = unsafe { thread.as_ref() };
    if thread.is_some() {
        member.team.parked.fetch_sub(1, Ordering::Relaxed);
    }
    thread
}
