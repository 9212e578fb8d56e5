//! Reading, writing and sending, at once where that is possible, else through the ring.
//!
//! The ring does what fits for now, once. A call of the C library goes on until all is done where
//! bytes flow, through pipes and streams; so the rest is done here, by further operations.

use core::cell::Cell;
use core::ffi::{c_int, c_long, c_void};

use io_uring::opcode;
use io_uring::types::Fd;

use crate::caller::current;
use crate::nowait::{try_always, try_first};
use crate::sys::calls::{self, Direction, Kind, iovec, number, place};
use crate::sys::{self, KernelClock};
use crate::through::{MOST_BYTES, as_count, length, number_of, through_within};

/// The file's own position, for calls that may name another.
pub(crate) const CURRENT: u64 = u64::MAX;

/// `pread(2)`, or `read(2)` at [`CURRENT`].
///
/// # Safety
/// The caller keeps the contract of the call.
pub(crate) unsafe fn read_from(fd: c_int, to: *mut c_void, bytes: usize, at: u64) -> isize {
    let rest = |done: usize| {
        let (to, bytes) = (to.cast::<u8>().wrapping_add(done), bytes - done);
        let at = advanced(at, done);
        let entry = || {
            opcode::Read::new(Fd(fd), to, length(bytes))
                .offset(at)
                .build()
        };
        let (number, place_in_file) = match at {
            CURRENT => (number::READ, 0),
            at => (number::PREAD, at),
        };
        let arguments = [number_of(fd), place(to), bytes as u64, place_in_file, 0, 0];
        let waits = bytes > 0 && has_place(fd, at);
        let patience = || calls::patience(fd, Direction::In);
        // SAFETY: the caller keeps the contract of the call, of which this is the rest.
        unsafe { through_within(fd, waits, patience, entry, number, arguments) }
    };
    // SAFETY: the caller keeps the contract of the call.
    let attempt = || unsafe { calls::piece_at_once(Direction::In, fd, to, bytes, at) };
    // A file gives less only at its end, or where it is not in memory yet; everything else gives
    // what there is.
    let is_whole = |_| !calls::is_stored(fd);
    as_count(try_first(Direction::In, bytes, attempt, is_whole, rest))
}

/// `pwrite(2)`, or `write(2)` at [`CURRENT`].
///
/// # Safety
/// The caller keeps the contract of the call.
pub(crate) unsafe fn write_to(fd: c_int, from: *const c_void, bytes: usize, at: u64) -> isize {
    let limit = Limit::new();
    let whole = bytes.min(MOST_BYTES);
    let part = |done: usize| {
        let (from, bytes) = (from.cast::<u8>().wrapping_add(done), bytes - done);
        let at = advanced(at, done);
        let entry = || {
            opcode::Write::new(Fd(fd), from, length(bytes))
                .offset(at)
                .build()
        };
        let (number, place_in_file) = match at {
            CURRENT => (number::WRITE, 0),
            at => (number::PWRITE, at),
        };
        let arguments = [
            number_of(fd),
            place(from),
            bytes as u64,
            place_in_file,
            0,
            0,
        ];
        // An empty message is one, and waits.
        let is_something = bytes > 0 || flows(fd);
        let waits = is_something && has_place(fd, at) && !is_limited(fd);
        // SAFETY: the caller keeps the contract of the call, of which this is a part.
        unsafe { through_within(fd, waits, || limit.left(fd), entry, number, arguments) }
    };
    let rest = |done: usize| all_of(fd, || whole - done, |more| part(done + more));
    let out = from.cast_mut();
    // SAFETY: the caller keeps the contract of the call, which does not write to the memory.
    let attempt = || unsafe { calls::piece_at_once(Direction::Out, fd, out, bytes, at) };
    let is_whole = |done| done >= whole || takes_no_more(fd);
    as_count(try_first(Direction::Out, bytes, attempt, is_whole, rest))
}

/// `preadv(2)`, or `readv(2)` at [`CURRENT`].
///
/// # Safety
/// The caller keeps the contract of the call.
pub(crate) unsafe fn read_pieces(fd: c_int, pieces: Pieces, at: u64) -> isize {
    let rest = |done: usize| {
        let at = advanced(at, done);
        let mut split = None;
        // SAFETY: something was transferred, or nothing is looked at (INV-V1).
        let left = unsafe { pieces.after(done, &mut split) };
        let entry = || {
            opcode::Readv::new(Fd(fd), left.list, left.count.cast_unsigned())
                .offset(at)
                .build()
        };
        let (number, arguments) = left.call(fd, at, [number::READV, number::PREADV]);
        let waits = has_place(fd, at);
        let patience = || calls::patience(fd, Direction::In);
        // SAFETY: the caller keeps the contract of the call, of which this is the rest.
        unsafe { through_within(fd, waits, patience, entry, number, arguments) }
    };
    // SAFETY: the caller keeps the contract of the call.
    let attempt =
        || unsafe { calls::pieces_at_once(Direction::In, fd, pieces.list, pieces.count, at) };
    // SAFETY: something was transferred (INV-V1).
    let is_whole = |done| !calls::is_stored(fd) || done >= unsafe { pieces.bytes() };
    as_count(try_always(attempt, is_whole, rest))
}

/// `pwritev(2)`, or `writev(2)` at [`CURRENT`].
///
/// # Safety
/// The caller keeps the contract of the call.
pub(crate) unsafe fn write_pieces(fd: c_int, pieces: Pieces, at: u64) -> isize {
    let limit = Limit::new();
    let part = |done: usize| {
        let at = advanced(at, done);
        let mut split = None;
        // SAFETY: something was transferred, or nothing is looked at (INV-V1).
        let left = unsafe { pieces.after(done, &mut split) };
        let entry = || {
            opcode::Writev::new(Fd(fd), left.list, left.count.cast_unsigned())
                .offset(at)
                .build()
        };
        let (number, arguments) = left.call(fd, at, [number::WRITEV, number::PWRITEV]);
        let waits = has_place(fd, at) && !is_limited(fd);
        // SAFETY: the caller keeps the contract of the call, of which this is a part.
        unsafe { through_within(fd, waits, || limit.left(fd), entry, number, arguments) }
    };
    // SAFETY: asked after something was transferred (INV-V1).
    let whole = || unsafe { pieces.bytes() };
    let rest = |done: usize| all_of(fd, || whole() - done, |more| part(done + more));
    // SAFETY: the caller keeps the contract of the call.
    let attempt =
        || unsafe { calls::pieces_at_once(Direction::Out, fd, pieces.list, pieces.count, at) };
    let is_whole = |done| done >= whole() || takes_no_more(fd);
    as_count(try_always(attempt, is_whole, rest))
}

/// Repeats a call of which the ring does only what fits for now, until all is done. What others
/// than light threads call does that by itself, and who is not to wait takes what fits. How many
/// bytes are the `whole` is asked after the first part.
pub(crate) fn all_of(
    fd: c_int,
    whole: impl Fn() -> usize,
    part: impl Fn(usize) -> c_long,
) -> c_long {
    let mut done = 0;
    loop {
        let result = part(done);
        let Ok(more @ 1..) = usize::try_from(result) else {
            // A failure after something was done is told by the next call.
            return match done {
                0 => result,
                _ => c_long::try_from(done).unwrap_or(c_long::MAX),
            };
        };
        done += more;
        let is_whole = current().is_none() || done >= whole();
        if is_whole || !flows(fd) || calls::never_waits(fd) {
            return c_long::try_from(done).unwrap_or(c_long::MAX);
        }
    }
}

/// Whether what was not taken of a call's bytes is to be offered again.
fn flows(fd: c_int) -> bool {
    calls::kind(fd) == Kind::Flow
}

/// Whether what a descriptor took at once is all that a call of the C library would write.
fn takes_no_more(fd: c_int) -> bool {
    match calls::kind(fd) {
        Kind::Flow => calls::never_waits(fd),
        // It may have taken what was in memory.
        Kind::Stored => false,
        Kind::Other => true,
    }
}

/// Whether the descriptor has this place, which the ring does not ask.
fn has_place(fd: c_int, at: u64) -> bool {
    at == CURRENT || calls::is_stored(fd)
}

/// Whether a file may not grow beyond a limit, which the ring does not keep.
fn is_limited(fd: c_int) -> bool {
    calls::are_files_limited() && calls::is_stored(fd)
}

/// The pieces of memory of one call.
///
/// INV-V1: the list is read here only after the kernel has read it all, when it has transferred
/// some of it: a list that is not there is the kernel's to refuse.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pieces {
    pub(crate) list: *const iovec,
    pub(crate) count: c_int,
}

impl Pieces {
    pub(crate) const fn new(list: *const iovec, count: c_int) -> Pieces {
        Pieces { list, count }
    }

    /// # Safety
    /// INV-V1.
    unsafe fn all(&self) -> &[iovec] {
        let count = usize::try_from(self.count).unwrap_or(0);
        if self.list.is_null() || count == 0 {
            return &[];
        }
        // SAFETY: as the caller vouches, so many are there.
        unsafe { core::slice::from_raw_parts(self.list, count) }
    }

    /// How many bytes a call transfers at most.
    ///
    /// # Safety
    /// INV-V1.
    pub(crate) unsafe fn bytes(&self) -> usize {
        // SAFETY: as the caller vouches.
        let all = unsafe { self.all() };
        all.iter()
            .fold(0, |sum: usize, piece| sum.saturating_add(piece.iov_len))
            .min(MOST_BYTES)
    }

    /// What is left after so many bytes: whole pieces, or the rest of one, which `split` keeps.
    ///
    /// # Safety
    /// INV-V1, unless nothing is done.
    pub(crate) unsafe fn after(&self, done: usize, split: &mut Option<iovec>) -> Pieces {
        if done == 0 {
            return *self;
        }
        // SAFETY: as the caller vouches.
        let all = unsafe { self.all() };
        let (mut first, mut skipped) = (0, 0);
        while let Some(piece) = all.get(first) {
            if skipped + piece.iov_len > done {
                break;
            }
            skipped += piece.iov_len;
            first += 1;
        }
        let Some(piece) = all.get(first).filter(|_| done > skipped) else {
            let left = all.get(first..).unwrap_or_default();
            return Pieces::new(left.as_ptr(), c_int::try_from(left.len()).unwrap_or(0));
        };
        let taken = done - skipped;
        let rest = split.insert(iovec {
            iov_base: piece.iov_base.cast::<u8>().wrapping_add(taken).cast(),
            iov_len: piece.iov_len - taken,
        });
        Pieces::new(rest, 1)
    }

    /// The call to make directly, by its number without and with a place.
    fn call(&self, fd: c_int, at: u64, numbers: [c_long; 2]) -> (c_long, [u64; 6]) {
        let (number, at) = match at {
            CURRENT => (numbers[0], 0),
            at => (numbers[1], at),
        };
        let count = number_of(self.count);
        (number, [number_of(fd), place(self.list), count, at, 0, 0])
    }
}

/// How long a call of several parts may wait: for all of them together.
pub(crate) struct Limit {
    /// When it first waited.
    began: Cell<Option<u64>>,
}

impl Limit {
    pub(crate) fn new() -> Limit {
        Limit {
            began: Cell::new(None),
        }
    }

    /// What is left now of what this descriptor may be waited for to take more.
    pub(crate) fn left(&self, fd: c_int) -> Option<u64> {
        let all = calls::patience(fd, Direction::Out)?;
        Some(self.left_of(all, sys::read_clock(KernelClock::Monotonic)))
    }

    /// What is left now of so many nanoseconds, from the first time that this is asked.
    fn left_of(&self, all: u64, now_ns: u64) -> u64 {
        let began = self.began.get().unwrap_or(now_ns);
        self.began.set(Some(began));
        all.saturating_sub(now_ns.saturating_sub(began))
    }
}

fn advanced(at: u64, done: usize) -> u64 {
    match at {
        CURRENT => CURRENT,
        at => at + done as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_call_share_what_it_may_wait() {
        let limit = Limit::new();
        assert_eq!(limit.left_of(100, 1_000), 100);
        assert_eq!(limit.left_of(100, 1_030), 70);
        assert_eq!(limit.left_of(100, 1_100), 0);
        assert_eq!(limit.left_of(100, 5_000), 0);
    }

    #[test]
    fn what_is_left_of_pieces_is_the_rest_of_one_or_whole_ones() {
        let memory = b"0123456789";
        let piece = |range: core::ops::Range<usize>| iovec {
            iov_base: memory[range.clone()].as_ptr().cast_mut().cast(),
            iov_len: range.len(),
        };
        let list = [piece(0..0), piece(0..4), piece(4..4), piece(4..10)];
        let pieces = Pieces::new(list.as_ptr(), 4);
        // SAFETY: the list is there.
        assert_eq!(unsafe { pieces.bytes() }, 10);
        for done in 0..=10 {
            let mut split = None;
            // SAFETY: as above.
            let left = unsafe { pieces.after(done, &mut split) };
            // SAFETY: as above, or the piece that `split` keeps.
            let left = unsafe { left.all() };
            let Some(first) = left.iter().find(|piece| piece.iov_len > 0) else {
                assert_eq!(done, 10);
                continue;
            };
            let begins = memory.as_ptr().wrapping_add(done);
            assert_eq!(first.iov_base.cast_const(), begins.cast());
            let bytes: usize = left.iter().map(|piece| piece.iov_len).sum();
            let ends = if done < 4 && done > 0 { 4 } else { 10 };
            assert_eq!(done + bytes, ends);
        }
    }
}
