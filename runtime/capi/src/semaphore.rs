//! Permits that threads of a CPU take and give.

use ::punctual_thread::sync::Semaphore;
use punctual_model::Span;

use crate::edge::{answer, give, is_place};
use crate::status::{punctual_status, punctual_status as Status};
use crate::table::Table;
use crate::time::on_a_thread;

static SEMAPHORES: Table<Semaphore> = Table::new();

/// A semaphore. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_semaphore {
    /// The library's.
    pub id: u64,
}

/// Makes a semaphore with `permits`. Legal everywhere; it belongs to the CPU of its first use.
///
/// # Safety
/// `semaphore` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_semaphore_create(
    semaphore: *mut punctual_semaphore,
    permits: u64,
) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe {
        SEMAPHORES.create(
            semaphore,
            |id| punctual_semaphore { id },
            || Ok(Semaphore::new(permits)),
        )
    })
}

/// `punctual_semaphore_create` for threads of every CPU of a run; waiting threads are served
/// in the order of coming. Legal everywhere.
///
/// # Safety
/// `semaphore` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_semaphore_create_cross_cpu(
    semaphore: *mut punctual_semaphore,
    permits: u64,
) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe {
        SEMAPHORES.create(
            semaphore,
            |id| punctual_semaphore { id },
            || Ok(Semaphore::cross_cpu(permits)),
        )
    })
}

/// Ends a semaphore; `PUNCTUAL_BUSY` while somebody waits for it. Legal everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_semaphore_destroy(semaphore: punctual_semaphore) -> punctual_status {
    answer(|| SEMAPHORES.remove(semaphore.id))
}

/// Takes a permit; waits for one for `within_ns` at most. A scheduling point when it waits. On
/// threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_semaphore_take(
    semaphore: punctual_semaphore,
    within_ns: u64,
) -> punctual_status {
    answer(|| {
        let semaphore = SEMAPHORES.get(semaphore.id)?;
        Ok(semaphore.acquire_within(Span::from_ns(within_ns))?)
    })
}

/// Gives a permit: to the most urgent thread that waits, else for the next that comes. A scheduling
/// point when a more urgent thread goes on. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_semaphore_give(semaphore: punctual_semaphore) -> punctual_status {
    answer(|| Ok(SEMAPHORES.get(semaphore.id)?.release()?))
}

/// The permits that are left; those that others take meanwhile are gone. On threads of its CPU.
///
/// # Safety
/// `permits` is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_semaphore_permits(
    semaphore: punctual_semaphore,
    permits: *mut u64,
) -> punctual_status {
    answer(|| {
        is_place(permits)?;
        on_a_thread()?;
        let semaphore = SEMAPHORES.get(semaphore.id)?;
        let found = semaphore.permits().ok_or(Status::PUNCTUAL_OTHER_CPU)?;
        // SAFETY: as the caller vouches.
        unsafe { give(permits, found) }
    })
}
