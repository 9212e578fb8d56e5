//! Sending and receiving, and making connections.
//!
//! Under plain names for programs, not for Miri, as in `files`.

use core::ffi::{c_int, c_long, c_void};

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::Fd;

use crate::blocking::nap;
use crate::caller::current;
use crate::nowait::try_first;
use crate::sys::calls::{
    DONTWAIT, Direction, FASTOPEN, NO_WAIT, PEEK, WAITALL, direct, has_ended, iovec,
    is_local_socket, is_stream, message, msghdr, never_waits, number, patience, place, raw,
    sockaddr, socklen_t,
};
use crate::sys::{self, KernelClock};
use crate::through::{
    MOST_BYTES, answer, as_code, as_count, length, number_of, perform_if_light, through_within,
};
use crate::transfer::{Limit, Pieces, all_of};

/// Between two looks at what a stream has.
const LOOK_NS: u64 = 1_000_000;
const NOTHING: c_long = -(sys::EAGAIN as c_long);

/// Flags for receiving: a message is not made up to what is asked for, and neither is what is
/// looked at in a socket within the machine. The ring would do it.
fn receiving(fd: c_int, flags: c_int) -> c_int {
    let all = flags & WAITALL != 0 && current().is_some();
    if all && (!is_stream(fd) || flags & PEEK != 0 && is_local_socket(fd)) {
        flags & !WAITALL
    } else {
        flags
    }
}

/// Whether a call only looks, at all that it asks for: the ring would show the same bytes twice.
fn peeks_at_all(flags: c_int) -> bool {
    flags & (WAITALL | PEEK) == WAITALL | PEEK
}

/// Looks at so many bytes of a stream, without taking them, when all are there; `None`: make the
/// call directly. Looks again and again, because a stream that has some of them is ready.
fn peek_at_all(fd: c_int, flags: c_int, bytes: usize, look: impl Fn() -> c_long) -> Option<c_long> {
    if !peeks_at_all(flags) || flags & NO_WAIT != 0 || never_waits(fd) {
        return None;
    }
    current()?;
    let now = || sys::read_clock(KernelClock::Monotonic);
    let until = patience(fd, Direction::In).map(|ns| now().saturating_add(ns));
    loop {
        // What comes before the end is there when it is looked at.
        let ended = has_ended(fd);
        let seen = look();
        let is_less = seen == NOTHING || seen > 0 && seen.cast_unsigned() < bytes as u64;
        let is_late = until.is_some_and(|until| now() >= until);
        if !is_less || ended || is_late || !nap(LOOK_NS)? {
            return Some(answer(c_int::try_from(seen).unwrap_or(c_int::MAX)));
        }
    }
}

/// `recv(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(super) unsafe extern "C" fn recv(
    fd: c_int,
    to: *mut c_void,
    bytes: usize,
    flags: c_int,
) -> isize {
    let flags = receiving(fd, flags);
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
    // SAFETY: the caller keeps the contract of recv(2); not to wait is all that differs.
    let attempt = || unsafe { raw(number::RECVFROM, arguments(DONTWAIT)) };
    if let Some(seen) = peek_at_all(fd, flags, bytes, attempt) {
        return as_count(seen);
    }
    let waits = flags & NO_WAIT == 0 && !peeks_at_all(flags);
    let patience = || patience(fd, Direction::In);
    // SAFETY: the caller keeps the contract of recv(2).
    let rest =
        |_| unsafe { through_within(fd, waits, patience, entry, number::RECVFROM, arguments(0)) };
    if flags & WAITALL != 0 || !waits {
        return as_count(rest(0));
    }
    as_count(try_first(Direction::In, bytes, attempt, |_| true, rest))
}

/// `recvfrom(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(super) unsafe extern "C" fn recvfrom(
    fd: c_int,
    to: *mut c_void,
    bytes: usize,
    flags: c_int,
    name: *mut sockaddr,
    name_length: *mut socklen_t,
) -> isize {
    if name.is_null() {
        // SAFETY: the caller keeps the contract of recvfrom(2), which is that of recv(2) then.
        return unsafe { recv(fd, to, bytes, flags) };
    }
    let flags = receiving(fd, flags);
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
    let waits = flags & NO_WAIT == 0 && !peeks_at_all(flags) && !name_length.is_null();
    // SAFETY: the message and its piece live until the call is over.
    let result = unsafe { perform_if_light(fd, waits, || patience(fd, Direction::In), entry) };
    let Some(result) = result else {
        let arguments = [
            number_of(fd),
            place(to),
            bytes as u64,
            number_of(flags),
            place(name),
            place(name_length),
        ];
        // SAFETY: the caller keeps the contract of recvfrom(2).
        return as_count(unsafe { direct(number::RECVFROM, arguments) });
    };
    if result >= 0 {
        // SAFETY: the caller's place for the length, which is there.
        unsafe { *name_length = whole.msg_namelen };
    }
    as_count(answer(result))
}

/// `recvmsg(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn recvmsg(fd: c_int, whole: *mut msghdr, flags: c_int) -> isize {
    let flags = receiving(fd, flags);
    let entry = || {
        opcode::RecvMsg::new(Fd(fd), whole)
            .flags(flags.cast_unsigned())
            .build()
    };
    let arguments = [number_of(fd), place(whole), number_of(flags), 0, 0, 0];
    let waits = flags & NO_WAIT == 0 && !peeks_at_all(flags);
    let patience = || patience(fd, Direction::In);
    // SAFETY: the caller keeps the contract of recvmsg(2).
    as_count(unsafe { through_within(fd, waits, patience, entry, number::RECVMSG, arguments) })
}

/// Sends all, by parts that are told how much was sent before them and with which flags.
fn send_all(
    fd: c_int,
    flags: c_int,
    whole: impl Fn() -> usize,
    part: impl Fn(usize, c_int) -> c_long,
) -> isize {
    if flags & DONTWAIT != 0 {
        return as_count(part(0, flags));
    }
    // Only the first part makes a connection.
    let flags_of = |done| if done == 0 { flags } else { flags & !FASTOPEN };
    as_count(all_of(fd, whole, |done| part(done, flags_of(done))))
}

/// One part of a message, which the ring sends whole if it is no stream.
///
/// # Safety
/// The entry and the arguments are those of one call, whose contract the caller keeps.
unsafe fn send_part(
    fd: c_int,
    flags: c_int,
    limit: &Limit,
    entry: impl FnOnce() -> Entry,
    number: c_long,
    arguments: [u64; 6],
) -> c_long {
    let waits = flags & DONTWAIT == 0;
    // SAFETY: as the caller vouches.
    unsafe { through_within(fd, waits, || limit.left(fd), entry, number, arguments) }
}

/// `send(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn send(fd: c_int, from: *const c_void, bytes: usize, flags: c_int) -> isize {
    // SAFETY: the caller keeps the contract of send(2), which is that of sendto(2) to nobody.
    unsafe { sendto(fd, from, bytes, flags, core::ptr::null(), 0) }
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
    let limit = Limit::new();
    let part = |done: usize, flags: c_int| {
        let (from, bytes) = (from.cast::<u8>().wrapping_add(done), bytes - done);
        // A stream that has taken something knows its peer.
        let is_named = done == 0 && !name.is_null();
        let mut piece = iovec {
            iov_base: from.cast_mut().cast(),
            iov_len: bytes.min(MOST_BYTES),
        };
        let whole = message(name.cast_mut(), name_length, &mut piece);
        let entry = || {
            if is_named {
                opcode::SendMsg::new(Fd(fd), &raw const whole)
                    .flags(flags.cast_unsigned())
                    .build()
            } else {
                opcode::Send::new(Fd(fd), from, length(bytes))
                    .flags(flags)
                    .build()
            }
        };
        let (name, name_length) = match is_named {
            true => (place(name), u64::from(name_length)),
            false => (0, 0),
        };
        let arguments = [
            number_of(fd),
            place(from),
            bytes as u64,
            number_of(flags),
            name,
            name_length,
        ];
        // SAFETY: the message and its piece live until the call is over; the caller keeps the
        // contract of sendto(2), of which this is a part.
        unsafe { send_part(fd, flags, &limit, entry, number::SENDTO, arguments) }
    };
    send_all(fd, flags, || bytes.min(MOST_BYTES), part)
}

/// `sendmsg(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn sendmsg(fd: c_int, whole: *const msghdr, flags: c_int) -> isize {
    let limit = Limit::new();
    // SAFETY: asked after something was sent, so the message is there (INV-V1 of `transfer`).
    let pieces = || unsafe {
        let count = c_int::try_from((*whole).msg_iovlen).unwrap_or(c_int::MAX);
        Pieces::new((*whole).msg_iov, count)
    };
    let part = |done: usize, flags: c_int| {
        let (mut split, mut rest);
        let mut sent = whole;
        if done > 0 {
            split = None;
            // SAFETY: something was sent (INV-V1 of `transfer`).
            let left = unsafe { pieces().after(done, &mut split) };
            // What the message carries beside its bytes went with the first of them.
            rest = message(core::ptr::null_mut(), 0, left.list.cast_mut());
            rest.msg_iovlen = usize::try_from(left.count).unwrap_or(0);
            sent = &raw const rest;
        }
        let entry = || {
            opcode::SendMsg::new(Fd(fd), sent)
                .flags(flags.cast_unsigned())
                .build()
        };
        let arguments = [number_of(fd), place(sent), number_of(flags), 0, 0, 0];
        // SAFETY: the caller keeps the contract of sendmsg(2), of which this is a part.
        unsafe { send_part(fd, flags, &limit, entry, number::SENDMSG, arguments) }
    };
    // SAFETY: asked after something was sent (INV-V1 of `transfer`).
    send_all(fd, flags, || unsafe { pieces().bytes() }, part)
}

/// A call of which the ring refuses wrong arguments before it looks at the descriptor: it is asked
/// again, directly, in the order of the C library. A wrong address it finds out so early only for
/// connecting; who accepts has taken the connection then, and the next one would be waited for.
///
/// # Safety
/// As for `through`.
unsafe fn refused_in_order(
    fd: c_int,
    direction: Direction,
    entry: impl FnOnce() -> Entry,
    number: c_long,
    arguments: [u64; 6],
) -> c_long {
    let patience = || patience(fd, direction);
    let is_early =
        |result| result == -sys::EINVAL || direction == Direction::Out && result == -sys::EFAULT;
    // SAFETY: as the caller vouches.
    match unsafe { perform_if_light(fd, true, patience, entry) } {
        Some(result) if !is_early(result) => answer(result),
        // SAFETY: as the caller vouches.
        _ => unsafe { direct(number, arguments) },
    }
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
    as_code(unsafe { refused_in_order(fd, Direction::In, entry, number::ACCEPT, arguments) })
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
    let result = unsafe { refused_in_order(fd, Direction::Out, entry, number::CONNECT, arguments) };
    // A connection to elsewhere goes on by itself when nobody waits for it any more.
    // SAFETY: the address is that of this thread's own variable.
    let is_late = result < 0 && unsafe { *sys::errno() } == sys::EAGAIN;
    if is_late && current().is_some() && !is_local_socket(fd) && is_stream(fd) {
        return as_code(sys::fail(sys::EINPROGRESS));
    }
    as_code(result)
}
