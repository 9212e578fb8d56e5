//! What a thread holds: the guards that C has no place for.
//!
//! INV-C2: a slot is its owner's alone: only the thread whose mark is in it reads or writes the
//! guard; beside it only the end of the run, when no thread is left. An entry of a table with a
//! guard in a slot is in use once more than by its callers.

use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicUsize, Ordering};

/// A place for the guard of one holder.
pub(crate) struct Slot<G> {
    /// Which thread, as [`me`] tells them; 0: nobody.
    owner: AtomicUsize,
    guard: UnsafeCell<Option<G>>,
}

// SAFETY: INV-C2: the guard is touched by its thread alone, and after the run by nobody else.
unsafe impl<G> Send for Slot<G> {}
// SAFETY: as above; the owner is atomic.
unsafe impl<G> Sync for Slot<G> {}

thread_local! {
    /// Slots that the calling thread has. Its address tells threads apart.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// What tells the calling thread from the others that there are.
fn me() -> usize {
    HELD.with(|held| core::ptr::from_ref(held).addr())
}

/// Whether the calling thread holds anything.
pub(crate) fn holds_something() -> bool {
    HELD.with(Cell::get) > 0
}

impl<G> Slot<G> {
    pub(crate) const fn new() -> Slot<G> {
        Slot {
            owner: AtomicUsize::new(0),
            guard: UnsafeCell::new(None),
        }
    }

    /// Puts the calling thread's guard here; gives it back when the slot is another's.
    pub(crate) fn put(&self, guard: G) -> Result<(), G> {
        let order = Ordering::Relaxed;
        if self.owner.compare_exchange(0, me(), order, order).is_err() {
            return Err(guard);
        }
        // SAFETY: the slot is the calling thread's (INV-C2).
        unsafe { *self.guard.get() = Some(guard) };
        HELD.with(|held| held.set(held.get() + 1));
        Ok(())
    }

    /// The calling thread's guard; `None` when this is not its slot.
    pub(crate) fn take(&self) -> Option<G> {
        if self.owner.load(Ordering::Relaxed) != me() {
            return None;
        }
        // SAFETY: the slot is the calling thread's (INV-C2).
        let guard = unsafe { (*self.guard.get()).take() };
        HELD.with(|held| held.set(held.get().saturating_sub(1)));
        self.owner.store(0, Ordering::Relaxed);
        guard
    }

    /// Forgets a guard whose thread is gone; whether there was one.
    ///
    /// # Safety
    /// No thread of a run is left.
    pub(crate) unsafe fn forget(&self) -> bool {
        // SAFETY: there is no owner any more (the caller).
        let guard = unsafe { (*self.guard.get()).take() };
        self.owner.store(0, Ordering::Relaxed);
        let was_held = guard.is_some();
        core::mem::forget(guard);
        was_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_gives_its_guard_to_its_owner_alone() {
        let slot = Slot::new();
        assert_eq!(slot.put(7), Ok(()));
        assert_eq!(slot.put(8), Err(8), "one guard at a time");
        let other = std::thread::scope(|scope| scope.spawn(|| slot.take()).join());
        assert_eq!(other.ok(), Some(None));
        assert!(holds_something());
        assert_eq!((slot.take(), slot.take()), (Some(7), None));
        assert!(!holds_something());
        // SAFETY: nobody uses it.
        assert!(!unsafe { slot.forget() });
    }
}
