//! Reading and writing: at the file's own place or at another, one piece or several.
//!
//! Under plain names for programs, not for Miri, which has functions of its own under these names.
//! What takes a place has two names in the C library, for places of 64 bits and for all that fit,
//! which is the same here.

use core::ffi::{c_int, c_void};

use io_uring::opcode;
use io_uring::types::{Fd, FsyncFlags};

use crate::sys;
use crate::sys::calls::{Direction, iovec, number};
use crate::through::{as_code, as_count, number_of, through};
use crate::transfer::{CURRENT, Pieces, read_from, read_pieces, write_pieces, write_to};

/// `read(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(super) unsafe extern "C" fn read(fd: c_int, to: *mut c_void, bytes: usize) -> isize {
    // SAFETY: the caller keeps the contract of read(2).
    unsafe { read_from(fd, to, bytes, CURRENT) }
}

/// `write(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn write(fd: c_int, from: *const c_void, bytes: usize) -> isize {
    // SAFETY: the caller keeps the contract of write(2).
    unsafe { write_to(fd, from, bytes, CURRENT) }
}

/// `pread(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(super) unsafe extern "C" fn pread64(
    fd: c_int,
    to: *mut c_void,
    bytes: usize,
    at: i64,
) -> isize {
    if at < 0 {
        return as_count(sys::fail(sys::EINVAL));
    }
    // SAFETY: the caller keeps the contract of pread(2).
    unsafe { read_from(fd, to, bytes, at.cast_unsigned()) }
}

/// `pread(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn pread(fd: c_int, to: *mut c_void, bytes: usize, at: i64) -> isize {
    // SAFETY: the caller keeps the contract of pread(2).
    unsafe { pread64(fd, to, bytes, at) }
}

/// `pwrite(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn pwrite64(fd: c_int, from: *const c_void, bytes: usize, at: i64) -> isize {
    if at < 0 {
        return as_count(sys::fail(sys::EINVAL));
    }
    // SAFETY: the caller keeps the contract of pwrite(2).
    unsafe { write_to(fd, from, bytes, at.cast_unsigned()) }
}

/// `pwrite(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn pwrite(fd: c_int, from: *const c_void, bytes: usize, at: i64) -> isize {
    // SAFETY: the caller keeps the contract of pwrite(2).
    unsafe { pwrite64(fd, from, bytes, at) }
}

/// `readv(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn readv(fd: c_int, pieces: *const iovec, count: c_int) -> isize {
    let pieces = Pieces::new(pieces, count);
    // SAFETY: the caller keeps the contract of readv(2).
    unsafe { read_pieces(fd, pieces, CURRENT) }
}

/// `writev(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn writev(fd: c_int, pieces: *const iovec, count: c_int) -> isize {
    let pieces = Pieces::new(pieces, count);
    // SAFETY: the caller keeps the contract of writev(2).
    unsafe { write_pieces(fd, pieces, CURRENT) }
}

/// `preadv(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn preadv64(fd: c_int, pieces: *const iovec, count: c_int, at: i64) -> isize {
    if at < 0 {
        return as_count(sys::fail(sys::EINVAL));
    }
    let pieces = Pieces::new(pieces, count);
    // SAFETY: the caller keeps the contract of preadv(2).
    unsafe { read_pieces(fd, pieces, at.cast_unsigned()) }
}

/// `preadv(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn preadv(fd: c_int, pieces: *const iovec, count: c_int, at: i64) -> isize {
    // SAFETY: the caller keeps the contract of preadv(2).
    unsafe { preadv64(fd, pieces, count, at) }
}

/// `pwritev(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn pwritev64(fd: c_int, pieces: *const iovec, count: c_int, at: i64) -> isize {
    if at < 0 {
        return as_count(sys::fail(sys::EINVAL));
    }
    let pieces = Pieces::new(pieces, count);
    // SAFETY: the caller keeps the contract of pwritev(2).
    unsafe { write_pieces(fd, pieces, at.cast_unsigned()) }
}

/// `pwritev(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn pwritev(fd: c_int, pieces: *const iovec, count: c_int, at: i64) -> isize {
    // SAFETY: the caller keeps the contract of pwritev(2).
    unsafe { pwritev64(fd, pieces, count, at) }
}

/// `fsync(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
extern "C" fn fsync(fd: c_int) -> c_int {
    let entry = || opcode::Fsync::new(Fd(fd)).build();
    let arguments = [number_of(fd), 0, 0, 0, 0, 0];
    // SAFETY: no memory is involved.
    as_code(unsafe { through(fd, Direction::Out, entry, number::FSYNC, arguments) })
}

/// `fdatasync(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
extern "C" fn fdatasync(fd: c_int) -> c_int {
    let entry = || {
        opcode::Fsync::new(Fd(fd))
            .flags(FsyncFlags::DATASYNC)
            .build()
    };
    let arguments = [number_of(fd), 0, 0, 0, 0, 0];
    // SAFETY: no memory is involved.
    as_code(unsafe { through(fd, Direction::Out, entry, number::FDATASYNC, arguments) })
}
