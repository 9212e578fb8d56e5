//! Thread-locals as a new thread finds them, in a storage that others have used.
//!
//! ```text
//!   storage of this program:   | initialised ... | LOCAL | ... zero |
//!                                copied from the   kept    cleared
//!                                program's image
//! ```
//!
//! A thread of the pool lives in a storage that was made before the run. When it ends, the
//! destructors of its thread-locals run, as in any thread; then those of this program become again
//! what they are in a new thread. Our own words stay, and so do those of the C library (the caches
//! of its allocator above all), which belong to the record.

use core::ops::Range;
use std::sync::OnceLock;

use punctual_switch::instructions::read_thread_pointer;

use crate::local::{Local, local};
use crate::sys::locals::storage_around;

/// This program's storage, seen from the thread pointer.
#[derive(Clone, Copy, Debug)]
struct Fresh {
    /// Where it begins; the same in every thread.
    begin: i64,
    bytes: usize,
    /// The address of what its first bytes are at first.
    image: usize,
    image_bytes: usize,
    /// Where our own words lie in it.
    kept: (usize, usize),
    /// Nobody else has thread-locals but the C library, which keeps its own.
    alone: bool,
}

static FRESH: OnceLock<Option<Fresh>> = OnceLock::new();

fn here() -> *const u8 {
    local(|words: &Local| core::ptr::from_ref(words).cast())
}

fn distance(address: usize, from: u64) -> i64 {
    (address as u64).wrapping_sub(from).cast_signed()
}

/// Looks the storage up, before a run.
pub(crate) fn find() {
    let _ = FRESH.get_or_init(|| {
        let words = here();
        let storage = storage_around(words)?;
        let first = words.addr() - storage.begin.addr();
        Some(Fresh {
            begin: distance(storage.begin.addr(), read_thread_pointer()),
            bytes: storage.bytes,
            image: storage.image.expose_provenance(),
            image_bytes: storage.image_bytes,
            kept: (first, first + size_of::<Local>()),
            alone: !storage.has_neighbours,
        })
    });
}

/// Whether thread-locals are made new at the end of a thread: where other libraries have some, too,
/// destructors would run that nobody undoes, and the next thread would use what was destroyed.
pub(crate) fn renews() -> bool {
    FRESH.get().copied().flatten().is_some_and(|f| f.alone)
}

/// Makes the calling thread's thread-locals new. O(their bytes). Where the loader has put the
/// storage of this program somewhere else in each thread (it was loaded by a running program), it
/// stays as it is.
///
/// # Safety
/// No value of a thread-local of this thread is used any more, and its destructors have run.
pub(crate) unsafe fn renew() {
    local(|words| words.rest_of_text.set(core::ptr::null_mut()));
    let Some(fresh) = FRESH.get().copied().flatten() else {
        return;
    };
    if !fresh.alone {
        return;
    }
    let pointer = read_thread_pointer();
    let begin = here().wrapping_sub(fresh.kept.0).cast_mut();
    if distance(begin.addr(), pointer) != fresh.begin {
        return;
    }
    for part in [0..fresh.kept.0, fresh.kept.1..fresh.bytes] {
        let (copied, cleared) = split(&part, fresh.image_bytes);
        let image = core::ptr::with_exposed_provenance::<u8>(fresh.image);
        // SAFETY: (1) both lie in the program's storage of this thread, which the loader made of
        // that many bytes, and beside our own words; (2) the image is the loader's own, and as long
        // as it says; (3) nobody else reads or writes this thread's storage, and it does not use
        // what it held, as the caller vouches.
        unsafe {
            let place = begin.add(copied.start);
            core::ptr::copy_nonoverlapping(image.add(copied.start), place, copied.len());
            begin.add(cleared.start).write_bytes(0, cleared.len());
        }
    }
}

/// The bytes of a part that the image has, and those that it has not.
fn split(part: &Range<usize>, image: usize) -> (Range<usize>, Range<usize>) {
    let border = image.clamp(part.start, part.end);
    (part.start..border, border..part.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    thread_local! {
        static ONCE: Cell<u64> = const { Cell::new(0xABCD) };
        static ZERO: Cell<u64> = const { Cell::new(0) };
    }

    #[test]
    fn thread_locals_become_what_they_are_in_a_new_thread_and_ours_stay() {
        find();
        let thread = std::thread::spawn(|| {
            ONCE.set(1);
            ZERO.set(2);
            local(|words| words.foreign.set(3));
            // SAFETY: nothing here uses the values across the call, and they have no destructors.
            unsafe { renew() };
            let kept = local(|words| words.foreign.replace(0));
            (ONCE.get(), ZERO.get(), kept)
        });
        assert_eq!(thread.join().ok(), Some((0xABCD, 0, 3)));
    }

    #[test]
    fn a_part_is_split_where_the_image_ends() {
        assert_eq!(split(&(0..8), 16), (0..8, 8..8));
        assert_eq!(split(&(8..32), 16), (8..16, 16..32));
        assert_eq!(split(&(24..32), 16), (24..24, 24..32));
    }
}
