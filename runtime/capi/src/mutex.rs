//! One at a time: a lock whose holder inherits the priority of a thread that waits.
//!
//! C has no guards, so that of a held mutex lies in its entry (`held`).

use ::punctual_thread::sync::{Ceiling, Guard, Mutex};
use punctual_model::Span;

use crate::edge::answer;
use crate::held::Slot;
use crate::status::{punctual_status, punctual_status as Status};
use crate::table::Table;
use crate::time::not_in_a_use;

pub(crate) static MUTEXES: Table<Entry> = Table::new();

/// A mutex. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_mutex {
    /// The library's.
    pub id: u64,
}

/// The kind of a mutex's ceiling: `kind` of `punctual_mutex_create_ceiling`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_ceiling {
    /// The highest priority among its users, some of which have deadlines or budgets.
    PUNCTUAL_CEILING_PRIORITY = 0,
    /// The highest priority among its users, all of which are background work.
    PUNCTUAL_CEILING_BACKGROUND = 1,
    /// The shortest relative deadline among its users in nanoseconds, where deadlines decide.
    PUNCTUAL_CEILING_DEADLINE = 2,
}

/// A mutex and, while it is held, its guard.
pub(crate) struct Entry {
    mutex: Mutex<()>,
    slot: Slot<Guard<'static, ()>>,
}

impl Entry {
    fn new(mutex: Mutex<()>) -> Entry {
        Entry {
            mutex,
            slot: Slot::new(),
        }
    }

    /// The guard of a mutex that the caller holds; whoever takes it puts the entry back once.
    pub(crate) fn take(&self) -> Result<Guard<'_, ()>, Status> {
        self.slot.take().ok_or(Status::PUNCTUAL_NOT_HELD)
    }

    /// Puts the guard of this mutex into the entry; whoever does keeps the entry in use.
    pub(crate) fn hold(&self, guard: Guard<'_, ()>) {
        // SAFETY: the entry does not move and stays in use for as long as it has the guard.
        let guard = unsafe { core::mem::transmute::<Guard<'_, ()>, Guard<'static, ()>>(guard) };
        // The holder before took its guard out before it unlocked: the slot is free.
        let put = self.slot.put(guard);
        debug_assert!(put.is_ok());
    }
}

/// The calling thread ends: the mutexes that it holds are unlocked.
pub(crate) fn unlock_mine() {
    MUTEXES.each(|entry| {
        if let Ok(guard) = entry.take() {
            entry.put_back();
            drop(guard);
        }
    });
}

/// The run is over, and with it who held a mutex.
///
/// # Safety
/// No thread of a run is left.
pub(crate) unsafe fn forget_holders() {
    MUTEXES.each(|entry| {
        // SAFETY: as the caller vouches.
        if unsafe { entry.slot.forget() } {
            entry.put_back();
        }
    });
}

/// Makes a mutex whose holder is as urgent as the most urgent thread that waits for it (priority
/// inheritance). Legal everywhere; it belongs to the CPU of its first use.
///
/// # Safety
/// `mutex` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_mutex_create(mutex: *mut punctual_mutex) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe {
        MUTEXES.create(
            mutex,
            |id| punctual_mutex { id },
            || Ok(Entry::new(Mutex::new(()))),
        )
    })
}

/// Makes a mutex whose holder is as urgent as `value` says from the first instruction on
/// (immediate ceiling); `kind` is one of `punctual_ceiling`. Several such are unlocked in the
/// reverse order of locking. Legal everywhere; it belongs to the CPU of its first use.
///
/// # Safety
/// `mutex` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_mutex_create_ceiling(
    mutex: *mut punctual_mutex,
    kind: u32,
    value: u64,
) -> punctual_status {
    let make = || {
        let priority = || u32::try_from(value).map_err(|_| Status::PUNCTUAL_INVALID);
        let ceiling = match kind {
            0 => Ceiling::Priority(priority()?),
            1 => Ceiling::Background(priority()?),
            2 => Ceiling::Deadline(Span::from_ns(value)),
            _ => return Err(Status::PUNCTUAL_INVALID),
        };
        Ok(Entry::new(Mutex::with_ceiling((), ceiling)))
    };
    // SAFETY: as the caller vouches.
    answer(|| unsafe { MUTEXES.create(mutex, |id| punctual_mutex { id }, make) })
}

/// Ends a mutex; `PUNCTUAL_BUSY` while somebody holds it or waits for it. Legal everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_mutex_destroy(mutex: punctual_mutex) -> punctual_status {
    answer(|| MUTEXES.remove(mutex.id))
}

/// Locks a mutex; waits for it for `within_ns` at most. `PUNCTUAL_ALREADY_HELD` when the caller
/// holds it. A scheduling point when it waits. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_mutex_lock(mutex: punctual_mutex, within_ns: u64) -> punctual_status {
    answer(|| {
        let entry = MUTEXES.get(mutex.id)?;
        let guard = entry.mutex.lock_within(Span::from_ns(within_ns))?;
        entry.hold(guard);
        entry.keep();
        Ok(())
    })
}

/// Unlocks a mutex that the caller holds: it goes to the most urgent thread that waits for it. A
/// thread that ends unlocks what it holds. A scheduling point when a more urgent thread goes on.
/// On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_mutex_unlock(mutex: punctual_mutex) -> punctual_status {
    answer(|| {
        not_in_a_use()?;
        let entry = MUTEXES.get(mutex.id)?;
        let guard = entry.take()?;
        // The caller is still counted.
        entry.put_back();
        drop(guard);
        Ok(())
    })
}
