//! What a scheduler and the preemption signal share: who runs, since when, what happened.
//!
//! One record per CPU and scheduler. The scheduler's threads write `current` when they dispatch,
//! the signal writes `epoch` and the ring; nobody else writes anything.

use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::record::DispatchRecord;
use crate::ring::EventRing;

/// The record of one scheduler on one CPU.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct SchedulerRecord {
    /// The thread that runs, or is about to (INV-6).
    current: AtomicPtr<DispatchRecord>,
    /// Changes with every preemption: a decision that was taken before is stale.
    epoch: AtomicU64,
    /// What the preemption signal has to tell.
    pub events: EventRing,
}

pub(crate) const CURRENT: usize = offset_of!(SchedulerRecord, current);
pub(crate) const EPOCH: usize = offset_of!(SchedulerRecord, epoch);

impl SchedulerRecord {
    /// A scheduler whose running thread is `current`.
    pub const fn new(current: *mut DispatchRecord) -> SchedulerRecord {
        SchedulerRecord {
            current: AtomicPtr::new(current),
            epoch: AtomicU64::new(0),
            events: EventRing::new(),
        }
    }

    /// Who runs, as the record says.
    #[inline]
    pub fn current(&self) -> *mut DispatchRecord {
        self.current.load(Ordering::Relaxed)
    }

    /// Says who runs; for whoever takes the processor without a dispatch.
    #[inline]
    pub fn set_current(&self, current: *mut DispatchRecord) {
        self.current.store(current, Ordering::Relaxed);
    }

    /// To be read before a decision, and given to the dispatch that carries it out.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Makes every decision that has been taken stale. By the preemption signal.
    #[inline]
    pub fn advance(&self) {
        self.epoch.store(self.epoch() + 1, Ordering::Relaxed);
    }
}

/// A place for a record that its own thread, a dispatch and the signal all reach by address.
#[repr(transparent)]
#[derive(Debug)]
pub struct RecordCell(UnsafeCell<DispatchRecord>);

impl RecordCell {
    /// A cell with this record.
    pub const fn new(record: DispatchRecord) -> RecordCell {
        RecordCell(UnsafeCell::new(record))
    }

    /// The address of the record.
    #[inline]
    pub const fn get(&self) -> *mut DispatchRecord {
        self.0.get()
    }
}
