//! Reading and writing, at once where that is possible, else through the ring.

use core::cell::Cell;
use core::ffi::{c_int, c_long, c_void};

use io_uring::opcode;
use io_uring::types::Fd;

use crate::attempt::eagerly;
use crate::calls::{as_count, length, number_of, through, through_within};
use crate::local::current_light;
use crate::sys::calls::{self, Direction, number, place};
use crate::sys::{self, KernelClock};

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
        let (number, at) = match at {
            CURRENT => (number::READ, 0),
            at => (number::PREAD, at),
        };
        let arguments = [number_of(fd), place(to), bytes as u64, at, 0, 0];
        // SAFETY: the caller keeps the contract of the call, of which this is the rest.
        unsafe { through(fd, Direction::In, entry, number, arguments) }
    };
    // SAFETY: the caller keeps the contract of the call.
    let attempt = || unsafe { calls::piece_at_once(Direction::In, fd, to, bytes, at) };
    // A file gives less only at its end, or where it is not in memory yet; everything else gives
    // what there is.
    let is_whole = || !calls::is_stored(fd);
    as_count(eagerly(Direction::In, bytes, attempt, is_whole, rest))
}

/// `pwrite(2)`, or `write(2)` at [`CURRENT`].
///
/// # Safety
/// The caller keeps the contract of the call.
pub(crate) unsafe fn write_to(fd: c_int, from: *const c_void, bytes: usize, at: u64) -> isize {
    let limit = Limit::new();
    let part = |done: usize| {
        let (from, bytes) = (from.cast::<u8>().wrapping_add(done), bytes - done);
        let at = advanced(at, done);
        let entry = || {
            opcode::Write::new(Fd(fd), from, length(bytes))
                .offset(at)
                .build()
        };
        let (number, at) = match at {
            CURRENT => (number::WRITE, 0),
            at => (number::PWRITE, at),
        };
        let arguments = [number_of(fd), place(from), bytes as u64, at, 0, 0];
        let left = || Some(limit.left(calls::patience(fd, Direction::Out)?, now_ns()));
        // SAFETY: the caller keeps the contract of the call, of which this is a part.
        unsafe { through_within(fd, 0, left, entry, number, arguments) }
    };
    let rest = |done: usize| all_of(fd, bytes - done, |more| part(done + more));
    let out = from.cast_mut();
    // SAFETY: the caller keeps the contract of the call, which does not write to the memory.
    let attempt = || unsafe { calls::piece_at_once(Direction::Out, fd, out, bytes, at) };
    let is_whole = || calls::never_waits(fd);
    as_count(eagerly(Direction::Out, bytes, attempt, is_whole, rest))
}

/// Repeats a call of which the ring does only what fits for now, until all is done. What others
/// than light threads call does that by itself, and who is not to wait takes what fits.
fn all_of(fd: c_int, bytes: usize, part: impl Fn(usize) -> c_long) -> c_long {
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
        if done >= bytes || current_light().is_none() || calls::never_waits(fd) {
            return c_long::try_from(done).unwrap_or(c_long::MAX);
        }
    }
}

/// How long a call of several parts may wait: for all of them together.
struct Limit {
    /// When it first waited.
    began: Cell<Option<u64>>,
}

impl Limit {
    fn new() -> Limit {
        Limit {
            began: Cell::new(None),
        }
    }

    /// What is left now of so many nanoseconds, from the first time that this is asked.
    fn left(&self, all: u64, now_ns: u64) -> u64 {
        let began = self.began.get().unwrap_or(now_ns);
        self.began.set(Some(began));
        all.saturating_sub(now_ns.saturating_sub(began))
    }
}

fn now_ns() -> u64 {
    sys::read_clock(KernelClock::Monotonic)
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
        assert_eq!(limit.left(100, 1_000), 100);
        assert_eq!(limit.left(100, 1_030), 70);
        assert_eq!(limit.left(100, 1_100), 0);
        assert_eq!(limit.left(100, 5_000), 0);
    }
}
