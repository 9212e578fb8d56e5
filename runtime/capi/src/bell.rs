//! From CPU to CPU: something has happened.

use ::punctual_thread::sync::Bell;

use crate::edge::{answer, give, is_place, is_place_or_null, offer, within};
use crate::status::punctual_status;
use crate::table::Table;

static BELLS: Table<Bell> = Table::new();

/// A bell. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_bell {
    /// The library's.
    pub id: u64,
}

/// Makes a bell that is heard on the caller's CPU. On threads of a run.
///
/// # Safety
/// `bell` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_bell_create(bell: *mut punctual_bell) -> punctual_status {
    answer(|| {
        is_place(bell)?;
        let id = BELLS.insert(Bell::new()?)?;
        // SAFETY: as the caller vouches.
        unsafe { give(bell, punctual_bell { id }) }
    })
}

/// Ends a bell; `PUNCTUAL_BUSY` while somebody waits for it. Legal everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_bell_destroy(bell: punctual_bell) -> punctual_status {
    answer(|| BELLS.remove(bell.id))
}

/// Rings it. None is lost: each counts. On threads of a run, of any CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_bell_ring(bell: punctual_bell) -> punctual_status {
    answer(|| Ok(BELLS.get(bell.id)?.ring()?))
}

/// Takes the rings so far, at least one; waits for it for `within_ns` at most. `rings`, if not
/// null, gets their number. `PUNCTUAL_TAKEN` when somebody waits already. A scheduling point when
/// it waits. On threads of the CPU that made it.
///
/// # Safety
/// `rings` is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_bell_wait(
    bell: punctual_bell,
    within_ns: u64,
    rings: *mut u64,
) -> punctual_status {
    answer(|| {
        is_place_or_null(rings)?;
        let bell = BELLS.get(bell.id)?;
        let count = match within(within_ns) {
            Some(span) => bell.wait_within(span)?,
            None => bell.wait()?,
        };
        // SAFETY: as the caller vouches.
        unsafe { offer(rings, count) }
    })
}
