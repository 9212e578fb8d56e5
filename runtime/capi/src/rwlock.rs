//! One writer or several readers at a time, which inherit the priority of a thread that waits.

use ::punctual_thread::sync::{MOST_READERS, ReadGuard, RwLock, WriteGuard};
use punctual_model::Span;

use crate::edge::answer;
use crate::held::Slot;
use crate::status::{Answer, punctual_status, punctual_status as Status};
use crate::table::Table;
use crate::time::not_in_a_use;

static RWLOCKS: Table<Entry> = Table::new();

/// The most threads that read at a time: more wait.
pub const PUNCTUAL_READERS: usize = 16;

const _: () = assert!(PUNCTUAL_READERS == MOST_READERS);

/// A lock for readers and writers. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_rwlock {
    /// The library's.
    pub id: u64,
}

/// What a thread has of a lock, until it gives that back.
enum Held {
    Read(#[expect(dead_code, reason = "kept to be dropped")] ReadGuard<'static, ()>),
    Write(#[expect(dead_code, reason = "kept to be dropped")] WriteGuard<'static, ()>),
}

/// A lock, and what those have who are in.
struct Entry {
    lock: RwLock<()>,
    slots: [Slot<Held>; PUNCTUAL_READERS],
}

impl Entry {
    /// What the caller has; whoever takes it puts the entry back once.
    fn take(&self) -> Result<Held, Status> {
        let held = self.slots.iter().find_map(Slot::take);
        held.ok_or(Status::PUNCTUAL_NOT_HELD)
    }

    /// Keeps what the caller has; whoever calls this keeps the entry in use.
    fn hold(&self, held: Held) -> Answer {
        let kept = self
            .slots
            .iter()
            .try_fold(held, |held, slot| match slot.put(held) {
                Ok(()) => Err(()),
                Err(held) => Ok(held),
            });
        match kept {
            Err(()) => Ok(()),
            // As many are in at most as there are slots, and who leaves empties its slot first.
            Ok(_) => Err(Status::PUNCTUAL_INTERNAL),
        }
    }

    fn read(&self, within_ns: u64) -> Result<Held, Status> {
        let guard = self.lock.read_within(Span::from_ns(within_ns))?;
        // SAFETY: the entry does not move and stays in use for as long as a slot has the guard.
        Ok(Held::Read(unsafe {
            core::mem::transmute::<ReadGuard<'_, ()>, ReadGuard<'static, ()>>(guard)
        }))
    }

    fn write(&self, within_ns: u64) -> Result<Held, Status> {
        let guard = self.lock.write_within(Span::from_ns(within_ns))?;
        // SAFETY: as in `read`.
        Ok(Held::Write(unsafe {
            core::mem::transmute::<WriteGuard<'_, ()>, WriteGuard<'static, ()>>(guard)
        }))
    }
}

/// The calling thread ends: it gives back what it reads or writes.
pub(crate) fn leave_mine() {
    RWLOCKS.each(|entry| {
        if let Ok(held) = entry.take() {
            entry.put_back();
            drop(held);
        }
    });
}

/// The run is over, and with it who reads and writes.
///
/// # Safety
/// No thread of a run is left.
pub(crate) unsafe fn forget_users() {
    RWLOCKS.each(|entry| {
        for slot in &entry.slots {
            // SAFETY: as the caller vouches.
            if unsafe { slot.forget() } {
                entry.put_back();
            }
        }
    });
}

/// Makes a lock for one writer or up to `PUNCTUAL_READERS` readers at a time. A reader waits behind
/// a writer that waits and is as urgent as itself or more, so writers do not starve. Those that
/// are in inherit the priority of a waiting thread, one after the other. Legal everywhere; it
/// belongs to the CPU of its first use.
///
/// # Safety
/// `rwlock` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_rwlock_create(rwlock: *mut punctual_rwlock) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe {
        RWLOCKS.create(
            rwlock,
            |id| punctual_rwlock { id },
            || {
                Ok(Entry {
                    lock: RwLock::new(()),
                    slots: [const { Slot::new() }; PUNCTUAL_READERS],
                })
            },
        )
    })
}

/// Ends a lock; `PUNCTUAL_BUSY` while somebody reads, writes or waits. Legal everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_rwlock_destroy(rwlock: punctual_rwlock) -> punctual_status {
    answer(|| RWLOCKS.remove(rwlock.id))
}

/// Locks for reading, beside other readers; waits for `within_ns` at most. `PUNCTUAL_ALREADY_HELD`
/// when the caller reads or writes already: locks are not counted, and a reader does not become a
/// writer. A scheduling point when it waits. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_rwlock_read(rwlock: punctual_rwlock, within_ns: u64) -> punctual_status {
    answer(|| {
        let entry = RWLOCKS.get(rwlock.id)?;
        entry.hold(entry.read(within_ns)?)?;
        entry.keep();
        Ok(())
    })
}

/// Locks for writing, alone; otherwise as `punctual_rwlock_read`.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_rwlock_write(
    rwlock: punctual_rwlock,
    within_ns: u64,
) -> punctual_status {
    answer(|| {
        let entry = RWLOCKS.get(rwlock.id)?;
        entry.hold(entry.write(within_ns)?)?;
        entry.keep();
        Ok(())
    })
}

/// Gives back what the caller reads or writes; a thread that ends does so, too. A scheduling point
/// when a more urgent thread goes on. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_rwlock_unlock(rwlock: punctual_rwlock) -> punctual_status {
    answer(|| {
        not_in_a_use()?;
        let entry = RWLOCKS.get(rwlock.id)?;
        let held = entry.take()?;
        // The caller is still counted.
        entry.put_back();
        drop(held);
        Ok(())
    })
}
