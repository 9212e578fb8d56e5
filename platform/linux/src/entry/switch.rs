//! The end of an entry: from one light thread, or the carrier, to another.

use core::sync::atomic::Ordering;

use punctual_model::{Instant, Span};
use punctual_switch::instructions::read_thread_pointer;
use punctual_switch::{
    DispatchRecord, Dispatched, SchedulerRecord, dispatch, dispatch_by_system_call, dispatch_to_own,
};

use crate::record::boundary::Leaving;
use crate::record::light::Light;
use crate::record::per_cpu::PerCpu;
use crate::record::thread_group::ThreadGroup;

/// Leaves the running thread (or the carrier) for `target` (null: the carrier); returns when
/// somebody comes back.
///
/// # Safety
/// The gate of `host` is closed, the caller runs on its kernel thread, `target` is null or a light
/// thread of this host that can be resumed, and no reference into scheduler state is alive.
#[inline(never)]
pub(crate) unsafe fn switch_to(host: *const PerCpu, target: *const Light) {
    // SAFETY: as the caller vouches.
    unsafe { switch_here(host, target) }
}

/// [`switch_to`] inlined, for the entries through which most switches go: the compiler saves what
/// is alive there and nothing else.
///
/// # Safety
/// As for [`switch_to`].
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) unsafe fn switch_here(host: *const PerCpu, target: *const Light) {
    // SAFETY: the host outlives the run; the reference ends before the switch.
    let (record, from, to, by_call) = unsafe {
        let host = &*host;
        let current = host.current.replace(target);
        if current == target {
            return;
        }
        let context = |light: *const Light| match light.as_ref() {
            Some(light) => light.context(),
            None => host.carrier.get(),
        };
        let record = &raw const host.record;
        (
            record,
            context(current),
            context(target),
            host.switches_by_call,
        )
    };
    // SAFETY: as the caller vouches; the way is the one that the kernel allows.
    unsafe {
        if by_call {
            leave(record, from, to, |record, from, to, epoch| {
                dispatch_by_system_call(record, from, to, epoch)
            });
        } else {
            leave(record, from, to, |record, from, to, epoch| {
                dispatch(record, from, to, epoch)
            });
        }
    }
}

/// [`switch_to`] from the light thread that runs to another one, where user code sets the thread
/// pointer. Each of the two has storage and control words of its own.
///
/// # Safety
/// As for [`switch_to`]; `from` is the running thread, `to` is not, and the kernel allows that.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) unsafe fn switch_between(host: *const PerCpu, from: &Light, to: &Light) {
    // SAFETY: the host outlives the run; the reference ends before the switch.
    let record = unsafe {
        let host = &*host;
        debug_assert!(core::ptr::eq(host.current.get(), from) && !host.switches_by_call);
        host.current.set(to);
        &raw const host.record
    };
    // SAFETY: as the caller vouches; the records outlive the run (INV-L1 of `light`).
    unsafe {
        leave(
            record,
            from.context(),
            to.context(),
            |record, from, to, epoch| dispatch_to_own(record, from, to, epoch),
        );
    }
}

/// # Safety
/// The gate is closed; `from` is the record of the running thread or the carrier, `to` that of
/// another one of this CPU, and no reference into scheduler state is alive. `dispatch` is one of
/// the dispatches, in a way that the kernel allows.
#[cfg_attr(not(debug_assertions), inline(always))]
unsafe fn leave(
    record: *const SchedulerRecord,
    from: *mut DispatchRecord,
    to: *mut DispatchRecord,
    dispatch: impl FnOnce(
        *const SchedulerRecord,
        *mut DispatchRecord,
        *mut DispatchRecord,
        u64,
    ) -> Dispatched,
) {
    // A light thread that carries a scheduler has the storage of one of that one's threads now, and
    // comes back to it. To write the word for everybody takes as long as to ask.
    // SAFETY: the record of the running thread, behind the gate; no reference into it is alive.
    unsafe { (*from).set_thread_pointer(read_thread_pointer()) };
    // SAFETY: a look at our own data, with the gate closed.
    let resumable = unsafe { (*to).is_resumable() };
    debug_assert!(resumable, "INV-1: the target is suspended");
    // SAFETY: (1) gate closed, `from` is the record of the running thread (INV-7, by the caller);
    // (2) `to` is in store (INV-2, INV-5) and belongs to this CPU; (3) only raw pointers are alive
    // here.
    let outcome = unsafe { dispatch(record, from, to, (*record).epoch()) };
    debug_assert_eq!(
        outcome,
        Dispatched::Away,
        "behind the gate nothing becomes stale"
    );
}

/// Whoever runs in place of the light thread that has the processor. Gate closed.
#[inline]
pub(crate) fn running_group(host: &PerCpu) -> Option<&'static ThreadGroup> {
    // SAFETY: records of light threads outlive the run (INV-L1 of `light`).
    unsafe { host.current.get().as_ref() }?.group()
}

impl PerCpu {
    /// Lowers the group at work, unless its light thread goes on. Gate closed.
    #[inline]
    pub(crate) fn suspend_for(&self, target: *const Light) {
        if let Some(group) = running_group(self)
            && self.current.get() != target
        {
            group.lower();
        }
    }

    /// The entry of a CPU that divides time is about to switch to `target` (null: the carrier). It
    /// has executed `work`; `None`: all the time. Gate closed.
    #[inline]
    pub(crate) fn leave_entry(&self, target: *const Light, work: Option<Span>) {
        let Some(boundaries) = &self.boundaries else {
            return;
        };
        let entered = Instant::from_ticks(self.last_entry.load(Ordering::Relaxed));
        if boundaries.is_crossed(entered) {
            let missing = self.clock().ticks(self.counters.get().missing_ns);
            let missing = missing + self.known_missing.load(Ordering::Relaxed);
            // SAFETY: records of light threads outlive the run (INV-L1 of `light`).
            let runs = unsafe { target.as_ref() };
            let left = self.clock().now();
            boundaries.leave(Leaving {
                entered,
                work: work.unwrap_or(left.since(entered)),
                left,
                ran: !self.current.get().is_null(),
                missing: Span::from_ticks(missing),
                runs: runs.is_some(),
                by_group: runs.is_some_and(|light| light.group().is_some()),
            });
        }
    }
}
