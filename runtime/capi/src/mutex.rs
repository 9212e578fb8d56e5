//! One at a time: a lock that lends its holder the urgency of whoever waits.
//!
//! C has no guards, so that of a held mutex lies in its entry.
//!
//! INV-C2: `guard` and `owner` are written by the thread that holds the mutex, and by the end of
//! the run; an entry whose guard is there is in use once more than by its callers.

use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicUsize, Ordering};

use ::punctual_thread::sync::{Ceiling, Guard, Mutex};
use punctual_model::Span;

use crate::edge::{Within, answer, give, is_place};
use crate::status::{punctual_status, punctual_status as Status};
use crate::table::Table;

pub(crate) static MUTEXES: Table<Entry> = Table::new();

/// A mutex. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_mutex {
    /// The library's.
    pub id: u64,
}

/// What the ceiling of a mutex is: `kind` of `punctual_mutex_create_ceiling`.
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
    /// Which thread, as `me` tells them; 0: nobody that can unlock it.
    owner: AtomicUsize,
    guard: UnsafeCell<Option<Guard<'static, ()>>>,
}

// SAFETY: INV-C2: the guard is touched by its thread alone, and after the run by nobody else.
unsafe impl Send for Entry {}
// SAFETY: as above; everything else is shared anyway.
unsafe impl Sync for Entry {}

thread_local! {
    /// Mutexes that the calling thread holds. Its address tells threads apart.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// What tells the calling thread from the others that there are.
fn me() -> usize {
    HELD.with(|held| core::ptr::from_ref(held).addr())
}

impl Entry {
    fn new(mutex: Mutex<()>) -> Entry {
        Entry {
            mutex,
            owner: AtomicUsize::new(0),
            guard: UnsafeCell::new(None),
        }
    }

    /// The guard of a mutex that the caller holds; whoever takes it puts the entry back once.
    pub(crate) fn take(&self) -> Result<Guard<'_, ()>, Status> {
        if self.owner.load(Ordering::Relaxed) != me() {
            return Err(Status::PUNCTUAL_NOT_HELD);
        }
        // SAFETY: the caller holds it (INV-C2).
        let guard = unsafe { (*self.guard.get()).take() };
        self.owner.store(0, Ordering::Relaxed);
        HELD.with(|held| held.set(held.get().saturating_sub(1)));
        guard.ok_or(Status::PUNCTUAL_NOT_HELD)
    }

    /// Puts the guard of this mutex into the entry; whoever does keeps the entry in use.
    pub(crate) fn hold(&self, guard: Guard<'_, ()>) {
        // SAFETY: the entry does not move and stays in use for as long as it has the guard.
        let guard = unsafe { core::mem::transmute::<Guard<'_, ()>, Guard<'static, ()>>(guard) };
        // SAFETY: the caller holds the mutex (INV-C2).
        unsafe { *self.guard.get() = Some(guard) };
        self.owner.store(me(), Ordering::Relaxed);
        HELD.with(|held| held.set(held.get() + 1));
    }
}

/// The calling thread ends: what it holds is unlocked.
pub(crate) fn let_go() {
    if HELD.with(Cell::get) > 0 {
        MUTEXES.each(|entry| {
            if let Ok(guard) = entry.take() {
                entry.put_back();
                drop(guard);
            }
        });
    }
}

/// The run is over, and with it who held something.
///
/// # Safety
/// No thread of a run is left.
pub(crate) unsafe fn forget_holders() {
    MUTEXES.each(|entry| {
        // SAFETY: there is no holder any more (the caller).
        if let Some(guard) = unsafe { (*entry.guard.get()).take() } {
            entry.owner.store(0, Ordering::Relaxed);
            core::mem::forget(guard);
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
    answer(|| {
        is_place(mutex)?;
        let id = MUTEXES.insert(Entry::new(Mutex::new(())))?;
        // SAFETY: as the caller vouches.
        unsafe { give(mutex, punctual_mutex { id }) }
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
    answer(|| {
        is_place(mutex)?;
        let priority = || u32::try_from(value).map_err(|_| Status::PUNCTUAL_INVALID);
        let ceiling = match kind {
            0 => Ceiling::Priority(priority()?),
            1 => Ceiling::Background(priority()?),
            2 => Ceiling::Deadline(Span::from_ns(value)),
            _ => return Err(Status::PUNCTUAL_INVALID),
        };
        let id = MUTEXES.insert(Entry::new(Mutex::with_ceiling((), ceiling)))?;
        // SAFETY: as the caller vouches.
        unsafe { give(mutex, punctual_mutex { id }) }
    })
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
        let guard = match Within::of(within_ns) {
            Within::AtOnce => entry.mutex.try_lock()?,
            Within::For(span) => entry.mutex.lock_within(span)?,
            Within::Forever => entry.mutex.lock()?,
        };
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
        let entry = MUTEXES.get(mutex.id)?;
        let guard = entry.take()?;
        // The caller is still counted.
        entry.put_back();
        drop(guard);
        Ok(())
    })
}
