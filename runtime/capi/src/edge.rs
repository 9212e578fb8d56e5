//! The edge to C: what comes in is looked at before it is believed, and nothing unwinds out.

use core::ffi::{CStr, c_char};
use core::fmt;
use std::borrow::Cow;

use punctual_linux::{Left, contained};

use crate::status::{Answer, punctual_status as Status};

/// Does `call` for C.
pub(crate) fn answer(call: impl FnOnce() -> Answer) -> Status {
    match contained(call) {
        Ok(Ok(())) => Status::PUNCTUAL_OK,
        Ok(Err(status)) => status,
        Err(Left::Cancelled) => Status::PUNCTUAL_CANCELLED,
        Err(Left::Panicked(_)) => Status::PUNCTUAL_INTERNAL,
    }
}

/// Gives a value to the caller.
///
/// # Safety
/// If it is neither null nor misaligned, the pointer is one that a `T` may be written to.
pub(crate) unsafe fn give<T>(place: *mut T, value: T) -> Answer {
    if place.is_null() || !place.is_aligned() {
        return Err(Status::PUNCTUAL_INVALID);
    }
    // SAFETY: neither null nor misaligned, and so writable (the caller).
    unsafe { place.write(value) };
    Ok(())
}

/// Gives a value to a caller that may not want it (null).
///
/// # Safety
/// As for [`give`].
pub(crate) unsafe fn offer<T>(place: *mut T, value: T) -> Answer {
    if place.is_null() {
        return Ok(());
    }
    // SAFETY: as the caller vouches.
    unsafe { give(place, value) }
}

/// Whether [`give`] would work.
pub(crate) fn is_place<T>(place: *const T) -> Answer {
    match place.is_null() || !place.is_aligned() {
        true => Err(Status::PUNCTUAL_INVALID),
        false => Ok(()),
    }
}

/// Whether [`offer`] would work.
pub(crate) fn is_place_or_null<T>(place: *const T) -> Answer {
    match place.is_null() {
        true => Ok(()),
        false => is_place(place),
    }
}

/// A string of the caller's; what is not UTF-8 is replaced.
///
/// # Safety
/// If it is not null, the pointer is to a string that ends with a zero, for as long as the result
/// lives.
pub(crate) unsafe fn text<'a>(from: *const c_char) -> Result<Cow<'a, str>, Status> {
    if from.is_null() {
        return Err(Status::PUNCTUAL_INVALID);
    }
    // SAFETY: not null, so a string (the caller).
    Ok(unsafe { CStr::from_ptr(from) }.to_string_lossy())
}

/// A structure of the caller's whose first word is its size.
///
/// # Safety
/// If it is neither null nor misaligned, the pointer is to as many readable bytes as the first
/// word says, of a `T` or a longer one that begins so.
pub(crate) unsafe fn sized<T: Copy>(from: *const T) -> Result<T, Status> {
    is_place(from)?;
    // SAFETY: readable and aligned for the first word (the caller; the word is a `size_t`).
    let size = unsafe { from.cast::<usize>().read() };
    if size != size_of::<T>() {
        return Err(Status::PUNCTUAL_INVALID);
    }
    // SAFETY: as large as a `T`, which is plain data.
    Ok(unsafe { from.read() })
}

/// An array of the caller's.
///
/// # Safety
/// `from` is null, or to that many.
pub(crate) unsafe fn all<'a, T>(from: *const T, count: usize) -> Result<&'a [T], Status> {
    if count == 0 {
        return Ok(&[]);
    }
    is_place(from)?;
    // SAFETY: neither null nor misaligned, and to as many (the caller).
    Ok(unsafe { core::slice::from_raw_parts(from, count) })
}

/// Writes a text and its end into a buffer of the caller's, as far as it fits; `length` gets the
/// bytes of the whole text, without its end.
///
/// # Safety
/// `buffer` is null with a `capacity` of 0, or to that many writable bytes; `length` as for
/// [`offer`].
pub(crate) unsafe fn write_text(
    what: &dyn fmt::Display,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Answer {
    if buffer.is_null() && capacity > 0 {
        return Err(Status::PUNCTUAL_INVALID);
    }
    let text = what.to_string();
    // SAFETY: as the caller vouches.
    unsafe { offer(length, text.len()) }?;
    let fits = text.len().min(capacity.saturating_sub(1));
    if capacity > 0 {
        // SAFETY: `fits` and one more are within the capacity, and the text is not in the buffer.
        unsafe { core::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), fits) };
        // SAFETY: as above.
        unsafe { buffer.add(fits).write(0) };
    }
    match fits == text.len() && capacity > 0 {
        true => Ok(()),
        false => Err(Status::PUNCTUAL_TRUNCATED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_as_far_as_it_fits_and_always_ended() {
        let mut buffer = [1_i8; 4];
        let mut length = 0;
        let mut write = |capacity| {
            buffer = [1; 4];
            // SAFETY: the capacity is at most that of the buffer.
            let wrote = unsafe { write_text(&"abc", buffer.as_mut_ptr(), capacity, &mut length) };
            (wrote, buffer, length)
        };
        let abc = [97, 98, 99].map(|byte: i8| byte);
        assert_eq!(write(4), (Ok(()), [abc[0], abc[1], abc[2], 0], 3));
        let short = Err(Status::PUNCTUAL_TRUNCATED);
        assert_eq!(write(3), (short, [abc[0], abc[1], 0, 1], 3));
        assert_eq!(write(1), (short, [0, 1, 1, 1], 3));
        assert_eq!(write(0), (short, [1; 4], 3));
        // SAFETY: a capacity without a buffer is refused.
        let refused = unsafe { write_text(&"abc", core::ptr::null_mut(), 9, &mut length) };
        assert_eq!(refused, Err(Status::PUNCTUAL_INVALID));
    }

    #[test]
    fn a_panic_and_a_misaligned_place_are_codes() {
        let broken = answer(|| std::panic::resume_unwind(Box::new("no")));
        assert_eq!(broken, Status::PUNCTUAL_INTERNAL);
        let mut words = [0_u64; 2];
        let odd = words
            .as_mut_ptr()
            .cast::<u8>()
            .wrapping_add(1)
            .cast::<u64>();
        // SAFETY: refused, because it is misaligned.
        assert_eq!(unsafe { give(odd, 1) }, Err(Status::PUNCTUAL_INVALID));
    }
}
