//! A meeting point of a fixed number of threads.

use core::ffi::c_int;

use ::punctual_thread::sync::Barrier;
use punctual_model::Span;

use crate::edge::{answer, is_place_or_null, offer};
use crate::status::{Answer, punctual_status};
use crate::table::Table;

static BARRIERS: Table<Barrier> = Table::new();

/// A barrier. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_barrier {
    /// The library's.
    pub id: u64,
}

/// Makes a barrier for `threads` (0 counts as 1), which meet there again and again. Legal
/// everywhere; it belongs to the CPU of its first use.
///
/// # Safety
/// `barrier` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_barrier_create(
    barrier: *mut punctual_barrier,
    threads: u32,
) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe { create(barrier, Barrier::new, threads) })
}

/// `punctual_barrier_create` for threads of every CPU of a run. Legal everywhere.
///
/// # Safety
/// `barrier` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_barrier_create_cross_cpu(
    barrier: *mut punctual_barrier,
    threads: u32,
) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe { create(barrier, Barrier::cross_cpu, threads) })
}

/// # Safety
/// `barrier` is null, or to a place for one.
unsafe fn create(
    barrier: *mut punctual_barrier,
    new: fn(usize) -> Barrier,
    threads: u32,
) -> Answer {
    let threads = usize::try_from(threads).unwrap_or(usize::MAX);
    // SAFETY: as the caller vouches.
    unsafe { BARRIERS.create(barrier, |id| punctual_barrier { id }, || Ok(new(threads))) }
}

/// Ends a barrier; `PUNCTUAL_BUSY` while somebody waits at it. Legal everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_barrier_destroy(barrier: punctual_barrier) -> punctual_status {
    answer(|| BARRIERS.remove(barrier.id))
}

/// Waits for the others, for `within_ns` at most; a thread that gives up has not come. `last`, if
/// not null, gets 1 for the thread that came last and 0 for the others. A scheduling point. On
/// threads of a run.
///
/// # Safety
/// `last` is null, or to a place for an `int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_barrier_wait(
    barrier: punctual_barrier,
    within_ns: u64,
    last: *mut c_int,
) -> punctual_status {
    answer(|| {
        is_place_or_null(last)?;
        let barrier = BARRIERS.get(barrier.id)?;
        let was_last = barrier.wait_within(Span::from_ns(within_ns))?;
        // SAFETY: as the caller vouches.
        unsafe { offer(last, c_int::from(was_last)) }
    })
}
