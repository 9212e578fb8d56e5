//! The same calls as programs make them that are compiled with `-D_FORTIFY_SOURCE`.
//!
//! Where a compiler knows how large the memory is that a call is given, and not that it suffices,
//! it calls these, which end the process if it does not, as the C library's do. What has no entry
//! here is called under its plain name then, too (`write`, `send`).
//!
//! Under plain names for programs, not for Miri, as in `files`.

use core::ffi::{c_int, c_void};

use super::files::{pread64, read};
use super::sockets::{recv, recvfrom};
use super::waiting::{poll, ppoll};
use crate::sys::calls::{PollEntry, overflow, sigset_t, sockaddr, socklen_t, timespec};

/// Ends the process unless so many `bytes` fit into what has `room`.
fn must_fit(bytes: usize, room: usize) {
    if bytes > room {
        overflow();
    }
}

/// As [`must_fit`], for so many entries of `poll(2)`.
fn entries_must_fit(count: u64, room: usize) {
    let fit = room / size_of::<PollEntry>();
    must_fit(usize::try_from(count).unwrap_or(usize::MAX), fit);
}

/// `read(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn __read_chk(fd: c_int, to: *mut c_void, bytes: usize, room: usize) -> isize {
    must_fit(bytes, room);
    // SAFETY: the caller keeps the contract of read(2).
    unsafe { read(fd, to, bytes) }
}

/// `pread(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn __pread64_chk(
    fd: c_int,
    to: *mut c_void,
    bytes: usize,
    at: i64,
    room: usize,
) -> isize {
    must_fit(bytes, room);
    // SAFETY: the caller keeps the contract of pread(2).
    unsafe { pread64(fd, to, bytes, at) }
}

/// `pread(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn __pread_chk(
    fd: c_int,
    to: *mut c_void,
    bytes: usize,
    at: i64,
    room: usize,
) -> isize {
    // SAFETY: the caller keeps the contract of pread(2).
    unsafe { __pread64_chk(fd, to, bytes, at, room) }
}

/// `recv(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn __recv_chk(
    fd: c_int,
    to: *mut c_void,
    bytes: usize,
    room: usize,
    flags: c_int,
) -> isize {
    must_fit(bytes, room);
    // SAFETY: the caller keeps the contract of recv(2).
    unsafe { recv(fd, to, bytes, flags) }
}

/// `recvfrom(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    to: *mut c_void,
    bytes: usize,
    room: usize,
    flags: c_int,
    name: *mut sockaddr,
    name_length: *mut socklen_t,
) -> isize {
    must_fit(bytes, room);
    // SAFETY: the caller keeps the contract of recvfrom(2).
    unsafe { recvfrom(fd, to, bytes, flags, name, name_length) }
}

/// `poll(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn __poll_chk(
    entries: *mut PollEntry,
    count: u64,
    timeout_ms: c_int,
    room: usize,
) -> c_int {
    entries_must_fit(count, room);
    // SAFETY: the caller keeps the contract of poll(2).
    unsafe { poll(entries, count, timeout_ms) }
}

/// `ppoll(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn __ppoll_chk(
    entries: *mut PollEntry,
    count: u64,
    timeout: *const timespec,
    mask: *const sigset_t,
    room: usize,
) -> c_int {
    entries_must_fit(count, room);
    // SAFETY: the caller keeps the contract of ppoll(2).
    unsafe { ppoll(entries, count, timeout, mask) }
}
