//! What the preemption signal does about a scheduler outside the core.
//!
//! Before it enters the core it finds out who ran, charges it and says so; when the light thread
//! has the processor again, it goes on with the thread that was interrupted, or with the
//! scheduler's own. Everything here runs behind the gate.

use core::sync::atomic::Ordering;

use punctual_switch::{
    DispatchRecord, PreemptionEvent, RecordCell, Recovered, SignalFrame, is_entry, recover,
    roll_back,
};

use super::group::{Group, MAIN};
use crate::light::Light;

/// A light thread whose scheduler was interrupted, until its preemption is over.
pub(crate) struct Interruption {
    group: *const Group,
    recovered: Recovered,
    frame: SignalFrame,
}

/// Recovers the scheduler that the light thread carries, if it carries one; `None` also when its
/// records say something impossible: then the frame is all there is.
///
/// # Safety
/// `context` is that of the signal being handled, which interrupted this light thread; the gate is
/// closed.
pub(crate) unsafe fn before_entry(light: &Light, context: *mut u8) -> Option<Interruption> {
    let group = light.direct.get();
    // SAFETY: set while the group lives; only cells are used through this.
    let view = unsafe { group.as_ref() }?;
    // SAFETY: as the caller vouches.
    let frame = unsafe { SignalFrame::new(context) };
    // SAFETY: the frame of the signal being handled.
    let _begins_again = unsafe { roll_back(frame) };
    let Some(place) = place_of(view, view.record.current()) else {
        view.refused.set(view.refused.get() + 1);
        return None;
    };
    // SAFETY: (1) `current` is one of the group's records (just checked); (2) by the caller.
    let recovered = unsafe { recover(&view.record, frame) };
    if matches!(recovered, Recovered::InStore(_)) && !is_plausible(view, place) {
        view.refused.set(view.refused.get() + 1);
        return None;
    }
    let executed = view
        .now()
        .ticks()
        .saturating_sub(view.since.load(Ordering::Relaxed));
    let tag = place as u64;
    if !view.record.events.post(PreemptionEvent { tag, executed }) {
        let thread = &view.threads[place];
        thread.unposted.fetch_add(executed, Ordering::Relaxed);
    }
    view.record.advance();
    view.preemptions.set(view.preemptions.get() + 1);
    Some(Interruption {
        group,
        recovered,
        frame,
    })
}

impl Interruption {
    /// The light thread has the processor again: who goes on? `None`: return from the signal.
    /// Otherwise this thread is `current` and in store.
    ///
    /// # Safety
    /// The handler of the frame has not returned, and the gate is closed.
    pub(crate) unsafe fn after_entry(self) -> Option<*mut DispatchRecord> {
        // SAFETY: the group lives as long as its threads have not all ended.
        let group = unsafe { &*self.group };
        group.since.store(group.now().ticks(), Ordering::Relaxed);
        let main = group.records[MAIN].get();
        let current = self.recovered.current();
        let busy = group.busy.load(Ordering::Relaxed);
        // SAFETY: a record of the group.
        let main_waits = current != main && unsafe { (*main).is_resumable() };
        let takes_over = main_waits && !busy && is_plausible(group, MAIN);
        if main_waits && busy {
            group.wanted.store(true, Ordering::Relaxed);
        }
        match self.recovered {
            Recovered::Executing(_) if takes_over => {
                // SAFETY: it was interrupted on its own stack; nobody runs there until it does.
                unsafe { (*current).set_preempted(self.frame.address()) };
            }
            Recovered::Executing(_) => return None,
            Recovered::InStore(_) => {}
        }
        let next = if takes_over { main } else { current };
        group.record.set_current(next);
        Some(next)
    }
}

/// Which thread of the group a record is, if it is one.
fn place_of(group: &Group, record: *const DispatchRecord) -> Option<usize> {
    let first = group.records.as_ptr().addr();
    let offset = record.addr().checked_sub(first)?;
    let place = offset / size_of::<RecordCell>();
    let exact = offset.is_multiple_of(size_of::<RecordCell>());
    (exact && place < group.threads.len()).then_some(place)
}

/// Whether a thread can be where its record says that it is: its stack pointer in its own stack,
/// and its instruction one that dispatches leave behind.
fn is_plausible(group: &Group, place: usize) -> bool {
    // SAFETY: a record of the group, behind the gate.
    let (preempted, (instruction, stack)) = unsafe {
        let record = group.records[place].get();
        ((*record).is_preempted(), (*record).says())
    };
    // The scheduler's own thread runs on the stack of its light thread.
    let within = match &group.threads[place].stack {
        Some(own) => own.contains(stack),
        // SAFETY: the light thread outlives its scheduler.
        None => unsafe { (*group.light).has_on_stack(stack) },
    };
    // Frames are kept by this file alone.
    preempted || (within && is_entry(instruction))
}
