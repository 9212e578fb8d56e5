//! What the preemption signal does about a direct scheduler.
//!
//! Before it enters the core it finds out who ran, charges it and says so; when the light thread
//! has the processor again, it goes on with the thread that was interrupted, or with the
//! scheduler's own. Everything here runs behind the gate.

use core::sync::atomic::Ordering;

use punctual_switch::{
    DispatchRecord, PreemptionEvent, RecordCell, Recovered, SignalFrame, examine, is_entry,
    recover, roll_back,
};

use crate::group::{Group, MAIN};
use crate::platform::DirectScheduler;

// SAFETY: what is returned is a record of the group that can be resumed (see `after_entry`).
unsafe impl DirectScheduler for Group {
    unsafe fn preempted(
        &self,
        context: *mut u8,
        enter: &mut dyn FnMut(),
    ) -> Option<*mut DispatchRecord> {
        // SAFETY: as the caller vouches.
        let frame = unsafe { SignalFrame::new(context) };
        // SAFETY: the frame of the signal being handled.
        let recovered = unsafe { self.before_entry(frame) };
        enter();
        // SAFETY: as above.
        unsafe { self.after_entry(recovered?, frame) }
    }

    fn owns(&self, stack_pointer: u64) -> bool {
        let mut stacks = self.threads.iter().filter_map(|t| t.stack.as_ref());
        stacks.any(|stack| stack.contains(stack_pointer))
    }

    fn broken_invariant(&self, executes: bool, stack_pointer: u64) -> u32 {
        let current = self.record.current();
        for (place, record) in self.records[..self.threads.len()].iter().enumerate() {
            let is_current = record.get() == current;
            if is_current && !executes {
                // The core has taken the processor from all of them together.
                continue;
            }
            // SAFETY: a record of the group, which nobody changes while this handler runs.
            let record = unsafe { &*record.get() };
            let owns = |pointer| self.has_on_stack(place, pointer);
            if let Err(broken) = examine(record, is_current, stack_pointer, owns) {
                return broken;
            }
        }
        0
    }
}

impl Group {
    /// Recovers the scheduler; `None` when its records say something impossible: then the frame is
    /// all there is.
    ///
    /// # Safety
    /// The frame is that of the signal being handled, which interrupted this scheduler's light
    /// thread; the gate is closed.
    unsafe fn before_entry(&self, frame: SignalFrame) -> Option<Recovered> {
        // SAFETY: the frame of the signal being handled.
        let _begins_again = unsafe { roll_back(frame) };
        let Some(place) = self.place_of(self.record.current()) else {
            self.refused.set(self.refused.get() + 1);
            return None;
        };
        // SAFETY: (1) `current` is one of the group's records (just checked); (2) by the caller.
        let recovered = unsafe { recover(&self.record, frame) };
        if matches!(recovered, Recovered::InStore(_)) && !self.is_plausible(place) {
            self.refused.set(self.refused.get() + 1);
            return None;
        }
        let executed = self
            .now()
            .ticks()
            .saturating_sub(self.since.load(Ordering::Relaxed));
        let tag = place as u64;
        if !self.record.events.post(PreemptionEvent { tag, executed }) {
            let thread = &self.threads[place];
            thread.unposted.fetch_add(executed, Ordering::Relaxed);
        }
        self.record.advance();
        self.preemptions.set(self.preemptions.get() + 1);
        Some(recovered)
    }

    /// The light thread has the processor again: who goes on? `None`: return from the signal.
    /// Otherwise this thread is `current` and in store.
    ///
    /// # Safety
    /// The handler of the frame has not returned, and the gate is closed.
    unsafe fn after_entry(
        &self,
        recovered: Recovered,
        frame: SignalFrame,
    ) -> Option<*mut DispatchRecord> {
        let now = self.now();
        self.since.store(now.ticks(), Ordering::Relaxed);
        let main = self.records[MAIN].get();
        let current = recovered.current();
        let busy = self.busy.load(Ordering::Relaxed);
        // SAFETY: a record of the group.
        let main_waits = current != main && unsafe { (*main).is_resumable() };
        let is_due = self.choice.as_ref().is_none_or(|choice| choice.is_due(now));
        let main_waits = main_waits && is_due;
        let takes_over = main_waits && !busy && self.is_plausible(MAIN);
        if main_waits && busy {
            self.wanted.store(true, Ordering::Relaxed);
        }
        match recovered {
            Recovered::Executing(_) if takes_over => {
                // SAFETY: it was interrupted on its own stack; nobody runs there until it does.
                unsafe { (*current).set_preempted(frame.address()) };
            }
            Recovered::Executing(_) => return None,
            Recovered::InStore(_) => {}
        }
        let next = if takes_over { main } else { current };
        self.record.set_current(next);
        Some(next)
    }

    /// Which thread of the group a record is, if it is one.
    fn place_of(&self, record: *const DispatchRecord) -> Option<usize> {
        let first = self.records.as_ptr().addr();
        let offset = record.addr().checked_sub(first)?;
        let place = offset / size_of::<RecordCell>();
        let exact = offset.is_multiple_of(size_of::<RecordCell>());
        (exact && place < self.threads.len()).then_some(place)
    }

    /// Whether a stack pointer lies in this thread's own stack.
    fn has_on_stack(&self, place: usize, pointer: u64) -> bool {
        match &self.threads[place].stack {
            Some(own) => own.contains(pointer),
            // The scheduler's own thread runs on the stack of its light thread.
            None => self.light.has_on_stack(pointer),
        }
    }

    /// Whether a thread can be where its record says that it is: its stack pointer in its own
    /// stack, and its instruction one that dispatches leave behind.
    fn is_plausible(&self, place: usize) -> bool {
        // SAFETY: a record of the group, behind the gate.
        let (preempted, (instruction, stack)) = unsafe {
            let record = self.records[place].get();
            ((*record).is_preempted(), (*record).says())
        };
        // Frames are kept by this file alone.
        preempted || (self.has_on_stack(place, stack) && is_entry(instruction))
    }
}
