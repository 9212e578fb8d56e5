//! The C library's calls that may block, entered through here by every caller of the program.
//!
//! As with `interpose`, the executable defines these names. A light thread's call goes through the
//! ring of its CPU ([`crate::io`]); everybody else's is made directly, as the library would, except
//! that it is no cancellation point.

use core::ffi::{c_int, c_long, c_uint, c_void};

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::{Fd, FsyncFlags};

use crate::attempt::eagerly;
use crate::io::{perform, poll as poll_light, sleep_until};
use crate::sys::calls::{
    ABSOLUTE, DONTWAIT, Direction, MONOTONIC, NO_WAIT, POLLIN, PollEntry, REALTIME, WAITALL,
    direct, epoll_event, iovec, message, msghdr, never_waits, number, patience, place, raw,
    sockaddr, socklen_t, timespec,
};
use crate::sys::{self, KernelClock};
use crate::transfer::{CURRENT, read_from, write_to};

/// The kernel transfers no more at once.
const MOST_BYTES: usize = 0x7fff_f000;

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
    // SAFETY: as the caller vouches.
    unsafe { through_flagged(descriptor, direction, 0, entry, number, arguments) }
}

/// [`through`] for a call with flags that may say not to wait.
///
/// # Safety
/// As for [`through`].
unsafe fn through_flagged(
    descriptor: c_int,
    direction: Direction,
    flags: c_int,
    entry: impl FnOnce() -> Entry,
    number: c_long,
    arguments: [u64; 6],
) -> c_long {
    let patience = || patience(descriptor, direction);
    // SAFETY: as the caller vouches.
    unsafe { through_within(descriptor, flags, patience, entry, number, arguments) }
}

/// [`through_flagged`], waiting as long as `patience` says.
///
/// # Safety
/// As for [`through`].
pub(crate) unsafe fn through_within(
    descriptor: c_int,
    flags: c_int,
    patience: impl FnOnce() -> Option<u64>,
    entry: impl FnOnce() -> Entry,
    number: c_long,
    arguments: [u64; 6],
) -> c_long {
    // SAFETY: as the caller vouches.
    match unsafe { perform_if_light(descriptor, flags, patience, entry) } {
        Some(result) => answer(result),
        // SAFETY: as above.
        None => unsafe { direct(number, arguments) },
    }
}

pub(crate) fn number_of(descriptor: c_int) -> u64 {
    i64::from(descriptor).cast_unsigned()
}

// Under plain names for programs, not for Miri, which has functions of its own under these names.

/// `read(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn read(fd: c_int, to: *mut c_void, bytes: usize) -> isize {
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
unsafe extern "C" fn pread64(fd: c_int, to: *mut c_void, bytes: usize, at: i64) -> isize {
    if at < 0 {
        return as_count(sys::fail(sys::EINVAL));
    }
    // SAFETY: the caller keeps the contract of pread(2).
    unsafe { read_from(fd, to, bytes, at.cast_unsigned()) }
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

/// `readv(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn readv(fd: c_int, pieces: *const iovec, count: c_int) -> isize {
    let pieces_count = count.cast_unsigned();
    let entry = || {
        opcode::Readv::new(Fd(fd), pieces, pieces_count)
            .offset(CURRENT)
            .build()
    };
    let arguments = [number_of(fd), place(pieces), number_of(count), 0, 0, 0];
    // SAFETY: the caller keeps the contract of readv(2).
    as_count(unsafe { through(fd, Direction::In, entry, number::READV, arguments) })
}

/// `writev(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn writev(fd: c_int, pieces: *const iovec, count: c_int) -> isize {
    let pieces_count = count.cast_unsigned();
    let entry = || {
        opcode::Writev::new(Fd(fd), pieces, pieces_count)
            .offset(CURRENT)
            .build()
    };
    let arguments = [number_of(fd), place(pieces), number_of(count), 0, 0, 0];
    // SAFETY: the caller keeps the contract of writev(2).
    as_count(unsafe { through(fd, Direction::Out, entry, number::WRITEV, arguments) })
}

/// `recv(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn recv(fd: c_int, to: *mut c_void, bytes: usize, flags: c_int) -> isize {
    let entry = || {
        opcode::Recv::new(Fd(fd), to.cast(), length(bytes))
            .flags(flags)
            .build()
    };
    let arguments = |more: c_int| {
        [
            number_of(fd),
            place(to),
            bytes as u64,
            number_of(flags | more),
            0,
            0,
        ]
    };
    // SAFETY: the caller keeps the contract of recv(2).
    let rest = |_| unsafe {
        through_flagged(
            fd,
            Direction::In,
            flags,
            entry,
            number::RECVFROM,
            arguments(0),
        )
    };
    if flags & (WAITALL | NO_WAIT) != 0 {
        return as_count(rest(0));
    }
    // SAFETY: as above; not to wait is all that differs.
    let attempt = || unsafe { raw(number::RECVFROM, arguments(DONTWAIT)) };
    as_count(eagerly(Direction::In, bytes, attempt, || true, rest))
}

/// `send(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn send(fd: c_int, from: *const c_void, bytes: usize, flags: c_int) -> isize {
    let entry = || {
        opcode::Send::new(Fd(fd), from.cast(), length(bytes))
            .flags(flags)
            .build()
    };
    let arguments = [
        number_of(fd),
        place(from),
        bytes as u64,
        number_of(flags),
        0,
        0,
    ];
    // SAFETY: the caller keeps the contract of send(2).
    as_count(unsafe {
        through_flagged(fd, Direction::Out, flags, entry, number::SENDTO, arguments)
    })
}

/// `recvfrom(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn recvfrom(
    fd: c_int,
    to: *mut c_void,
    bytes: usize,
    flags: c_int,
    name: *mut sockaddr,
    name_length: *mut socklen_t,
) -> isize {
    // SAFETY: null, or the caller's place for the length.
    let room = unsafe { name_length.as_ref() }.copied().unwrap_or(0);
    let mut piece = iovec {
        iov_base: to,
        iov_len: bytes.min(MOST_BYTES),
    };
    let mut whole = message(name, room, &mut piece);
    let address: *mut msghdr = &raw mut whole;
    let entry = || {
        opcode::RecvMsg::new(Fd(fd), address)
            .flags(flags.cast_unsigned())
            .build()
    };
    // SAFETY: the message and its piece live until the call is over.
    let result = unsafe { perform_if_light(fd, flags, || patience(fd, Direction::In), entry) };
    let Some(result) = result else {
        let flags = number_of(flags);
        let (name, name_length) = (place(name), place(name_length));
        let arguments = [
            number_of(fd),
            place(to),
            bytes as u64,
            flags,
            name,
            name_length,
        ];
        // SAFETY: the caller keeps the contract of recvfrom(2).
        return as_count(unsafe { direct(number::RECVFROM, arguments) });
    };
    if result >= 0 && !name_length.is_null() && !name.is_null() {
        // SAFETY: the caller's place for the length.
        unsafe { *name_length = whole.msg_namelen };
    }
    as_count(answer(result))
}

/// `sendto(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn sendto(
    fd: c_int,
    from: *const c_void,
    bytes: usize,
    flags: c_int,
    name: *const sockaddr,
    name_length: socklen_t,
) -> isize {
    let mut piece = iovec {
        iov_base: from.cast_mut(),
        iov_len: bytes.min(MOST_BYTES),
    };
    let whole = message(name.cast_mut(), name_length, &mut piece);
    let entry = || {
        opcode::SendMsg::new(Fd(fd), &raw const whole)
            .flags(flags.cast_unsigned())
            .build()
    };
    let (name, name_length) = (place(name), u64::from(name_length));
    let arguments = [
        number_of(fd),
        place(from),
        bytes as u64,
        number_of(flags),
        name,
        name_length,
    ];
    // SAFETY: the message and its piece live until the call is over; the caller keeps the contract
    // of sendto(2).
    as_count(unsafe {
        through_flagged(fd, Direction::Out, flags, entry, number::SENDTO, arguments)
    })
}

/// `recvmsg(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn recvmsg(fd: c_int, whole: *mut msghdr, flags: c_int) -> isize {
    let entry = || {
        opcode::RecvMsg::new(Fd(fd), whole)
            .flags(flags.cast_unsigned())
            .build()
    };
    let arguments = [number_of(fd), place(whole), number_of(flags), 0, 0, 0];
    // SAFETY: the caller keeps the contract of recvmsg(2).
    as_count(unsafe {
        through_flagged(fd, Direction::In, flags, entry, number::RECVMSG, arguments)
    })
}

/// `sendmsg(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn sendmsg(fd: c_int, whole: *const msghdr, flags: c_int) -> isize {
    let entry = || {
        opcode::SendMsg::new(Fd(fd), whole)
            .flags(flags.cast_unsigned())
            .build()
    };
    let arguments = [number_of(fd), place(whole), number_of(flags), 0, 0, 0];
    // SAFETY: the caller keeps the contract of sendmsg(2).
    as_count(unsafe {
        through_flagged(fd, Direction::Out, flags, entry, number::SENDMSG, arguments)
    })
}

/// `accept4(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn accept4(
    fd: c_int,
    name: *mut sockaddr,
    name_length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    let entry = || {
        opcode::Accept::new(Fd(fd), name, name_length)
            .flags(flags)
            .build()
    };
    let arguments = [
        number_of(fd),
        place(name),
        place(name_length),
        number_of(flags),
        0,
        0,
    ];
    // SAFETY: the caller keeps the contract of accept4(2).
    as_code(unsafe { through(fd, Direction::In, entry, number::ACCEPT, arguments) })
}

/// `accept(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn accept(fd: c_int, name: *mut sockaddr, name_length: *mut socklen_t) -> c_int {
    // SAFETY: the caller keeps the contract of accept(2), which is that of accept4(2).
    unsafe { accept4(fd, name, name_length, 0) }
}

/// `connect(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn connect(fd: c_int, name: *const sockaddr, name_length: socklen_t) -> c_int {
    let entry = || opcode::Connect::new(Fd(fd), name, name_length).build();
    let arguments = [number_of(fd), place(name), u64::from(name_length), 0, 0, 0];
    // SAFETY: the caller keeps the contract of connect(2).
    as_code(unsafe { through(fd, Direction::Out, entry, number::CONNECT, arguments) })
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

/// `poll(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn poll(entries: *mut PollEntry, count: u64, timeout_ms: c_int) -> c_int {
    let wait = u64::try_from(timeout_ms).ok().map(|ms| ms * 1_000_000);
    if wait != Some(0)
        && crate::local::current_light().is_some()
        && let Ok(count) = usize::try_from(count)
        && !entries.is_null()
    {
        // SAFETY: the caller gives so many entries, by the contract of poll(2).
        let entries = unsafe { core::slice::from_raw_parts_mut(entries, count) };
        if let Some(result) = poll_light(entries, wait) {
            return as_code(answer(result));
        }
    }
    let arguments = [place(entries), count, number_of(timeout_ms), 0, 0, 0];
    // SAFETY: the caller keeps the contract of poll(2).
    as_code(unsafe { direct(number::POLL, arguments) })
}

/// `epoll_wait(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn epoll_wait(
    fd: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout_ms: c_int,
) -> c_int {
    let wait = u64::try_from(timeout_ms).ok().map(|ms| ms * 1_000_000);
    let mut timeout_ms = timeout_ms;
    if wait != Some(0) && crate::local::current_light().is_some() {
        let mut readable = [PollEntry {
            fd,
            events: POLLIN,
            revents: 0,
        }];
        match poll_light(&mut readable, wait) {
            Some(failed) if failed < 0 => return as_code(answer(failed)),
            Some(_) => timeout_ms = 0,
            None => {}
        }
    }
    let arguments = [
        number_of(fd),
        place(events),
        number_of(most),
        number_of(timeout_ms),
        0,
        0,
    ];
    // SAFETY: the caller keeps the contract of epoll_wait(2).
    as_code(unsafe { direct(number::EPOLL_WAIT, arguments) })
}

/// `clock_nanosleep(2)`. Unlike others it returns its error.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn clock_nanosleep(
    clock: c_int,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    let kernel_clock = match clock {
        MONOTONIC => Some(KernelClock::Monotonic),
        REALTIME => Some(KernelClock::Wall),
        _ => None,
    };
    // SAFETY: the caller gives a valid time, by the contract of clock_nanosleep(2).
    let ns = unsafe { sys::timespec_at(place(time)) };
    if let (Some(clock), Some(ns)) = (kernel_clock, ns)
        && crate::local::current_light().is_some()
    {
        // A relative sleep is not moved by setting the wall clock.
        let (clock, until) = if flags & ABSOLUTE == 0 {
            let now = sys::read_clock(KernelClock::Monotonic);
            (KernelClock::Monotonic, now.saturating_add(ns))
        } else {
            (clock, ns)
        };
        if sleep_until(clock, until) {
            return 0;
        }
    }
    let arguments = [
        number_of(clock),
        number_of(flags),
        place(time),
        place(left),
        0,
        0,
    ];
    // SAFETY: the caller keeps the contract of clock_nanosleep(2).
    match unsafe { direct(number::CLOCK_NANOSLEEP, arguments) } {
        // SAFETY: the address is that of this thread's own variable.
        -1 => unsafe { *sys::errno() },
        _ => 0,
    }
}

/// `nanosleep(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    // SAFETY: the caller keeps the contract of nanosleep(2), which sleeps by this clock.
    match unsafe { clock_nanosleep(MONOTONIC, 0, time, left) } {
        0 => 0,
        error => as_code(sys::fail(error)),
    }
}

/// `usleep(3)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
extern "C" fn usleep(us: c_uint) -> c_int {
    let time = timespec {
        tv_sec: i64::from(us / 1_000_000),
        tv_nsec: i64::from(us % 1_000_000) * 1_000,
    };
    // SAFETY: the time is valid, and nobody wants the rest.
    unsafe { nanosleep(&raw const time, core::ptr::null_mut()) }
}

/// Through the ring, unless nobody is to wait; `None`: make the call directly.
///
/// # Safety
/// As for [`perform`].
unsafe fn perform_if_light(
    fd: c_int,
    flags: c_int,
    patience: impl FnOnce() -> Option<u64>,
    entry: impl FnOnce() -> Entry,
) -> Option<c_int> {
    crate::local::current_light()?;
    if flags & NO_WAIT != 0 || never_waits(fd) {
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
fn as_code(result: c_long) -> c_int {
    c_int::try_from(result).unwrap_or(-1)
}

/// What a call returns for this result.
fn answer(result: c_int) -> c_long {
    if result < 0 {
        sys::fail(-result)
    } else {
        c_long::from(result)
    }
}
