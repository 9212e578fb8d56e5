//! One call, through the ring of the CPU or directly, and its result.

use core::ffi::{c_int, c_long};

use io_uring::squeue::Entry;

use crate::blocking::perform;
use crate::caller::current;
use crate::sys;
use crate::sys::calls::{Direction, direct, never_waits, patience};

/// The kernel transfers no more at once.
pub(crate) const MOST_BYTES: usize = 0x7fff_f000;

pub(crate) fn length(bytes: usize) -> u32 {
    // The limit is below the range of the type.
    u32::try_from(bytes.min(MOST_BYTES)).unwrap_or(0)
}

/// Through the ring, or directly: so also where nobody is to wait, as the ring would wait.
///
/// # Safety
/// The caller keeps the contract of the call, both ways of making it mean the same.
pub(crate) unsafe fn through(
    descriptor: c_int,
    direction: Direction,
    entry: impl FnOnce() -> Entry,
    number: c_long,
    arguments: [u64; 6],
) -> c_long {
    let patience = || patience(descriptor, direction);
    // SAFETY: as the caller vouches.
    unsafe { through_within(descriptor, true, patience, entry, number, arguments) }
}

/// [`through`] for a call that may be told not to wait, else waiting as long as `patience` says.
///
/// # Safety
/// As for [`through`].
pub(crate) unsafe fn through_within(
    descriptor: c_int,
    waits: bool,
    patience: impl FnOnce() -> Option<u64>,
    entry: impl FnOnce() -> Entry,
    number: c_long,
    arguments: [u64; 6],
) -> c_long {
    // SAFETY: as the caller vouches.
    match unsafe { perform_if_light(descriptor, waits, patience, entry) } {
        Some(result) => answer(result),
        // SAFETY: as above.
        None => unsafe { direct(number, arguments) },
    }
}

pub(crate) fn number_of(descriptor: c_int) -> u64 {
    i64::from(descriptor).cast_unsigned()
}

/// Through the ring, unless nobody is to wait; `None`: make the call directly.
///
/// # Safety
/// As for [`perform`].
pub(crate) unsafe fn perform_if_light(
    fd: c_int,
    waits: bool,
    patience: impl FnOnce() -> Option<u64>,
    entry: impl FnOnce() -> Entry,
) -> Option<c_int> {
    current()?;
    if !waits || never_waits(fd) {
        return None;
    }
    // SAFETY: as the caller vouches.
    unsafe { perform(entry(), patience) }
}

/// The result of a call that returns a count.
pub(crate) fn as_count(result: c_long) -> isize {
    // The two are equally wide here.
    isize::try_from(result).unwrap_or(-1)
}

/// The result of a call that returns a small number.
pub(crate) fn as_code(result: c_long) -> c_int {
    c_int::try_from(result).unwrap_or(-1)
}

/// The return value of a call with this result.
pub(crate) fn answer(result: c_int) -> c_long {
    if result < 0 {
        sys::fail(-result)
    } else {
        c_long::from(result)
    }
}
