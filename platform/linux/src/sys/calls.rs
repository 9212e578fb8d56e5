//! The words of calls that may block: their numbers, structures, and how long they wait.

use core::ffi::{c_int, c_long, c_void};

use super::{call, forward, word};

pub(crate) use libc::{
    epoll_event, iovec, msghdr, pollfd as PollEntry, sockaddr, socklen_t, timespec,
};

/// Numbers of calls.
pub(crate) mod number {
    use core::ffi::c_long;

    pub(crate) const READ: c_long = libc::SYS_read;
    pub(crate) const WRITE: c_long = libc::SYS_write;
    pub(crate) const PREAD: c_long = libc::SYS_pread64;
    pub(crate) const PWRITE: c_long = libc::SYS_pwrite64;
    pub(crate) const READV: c_long = libc::SYS_readv;
    pub(crate) const WRITEV: c_long = libc::SYS_writev;
    pub(crate) const RECVFROM: c_long = libc::SYS_recvfrom;
    pub(crate) const SENDTO: c_long = libc::SYS_sendto;
    pub(crate) const RECVMSG: c_long = libc::SYS_recvmsg;
    pub(crate) const SENDMSG: c_long = libc::SYS_sendmsg;
    pub(crate) const ACCEPT: c_long = libc::SYS_accept4;
    pub(crate) const CONNECT: c_long = libc::SYS_connect;
    pub(crate) const POLL: c_long = libc::SYS_poll;
    pub(crate) const EPOLL_WAIT: c_long = libc::SYS_epoll_wait;
    pub(crate) const FSYNC: c_long = libc::SYS_fsync;
    pub(crate) const FDATASYNC: c_long = libc::SYS_fdatasync;
    pub(crate) const CLOCK_NANOSLEEP: c_long = libc::SYS_clock_nanosleep;
}

/// Flags of a call on a socket: not to wait, those that mean it too, and to wait for all.
pub(crate) const DONTWAIT: c_int = libc::MSG_DONTWAIT;
pub(crate) const NO_WAIT: c_int = libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE;
pub(crate) const WAITALL: c_int = libc::MSG_WAITALL;
pub(crate) const POLLIN: i16 = libc::POLLIN;
pub(crate) const MONOTONIC: c_int = libc::CLOCK_MONOTONIC;
pub(crate) const REALTIME: c_int = libc::CLOCK_REALTIME;
pub(crate) const ABSOLUTE: c_int = libc::TIMER_ABSTIME;

/// Which of a socket's limits on waiting applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// Receiving and accepting.
    In,
    /// Sending and connecting.
    Out,
}

/// How long a call may wait on a descriptor, in nanoseconds; `None`: without end, or no socket.
pub(crate) fn patience(descriptor: c_int, direction: Direction) -> Option<u64> {
    let option = match direction {
        Direction::In => libc::SO_RCVTIMEO,
        Direction::Out => libc::SO_SNDTIMEO,
    };
    let mut time = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    let mut length = size_of::<libc::timeval>();
    let arguments = [
        word(descriptor),
        word(libc::SOL_SOCKET),
        word(option),
        (&raw mut time).expose_provenance() as u64,
        (&raw mut length).expose_provenance() as u64,
    ];
    // SAFETY: both places outlive the call, and the length is that of the first.
    let result = unsafe { call(libc::SYS_getsockopt, arguments) };
    let ns = time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1_000;
    (result == 0 && ns > 0).then_some(ns)
}

/// `poll(2)` without waiting; a count, or a negated error.
pub(crate) fn poll_now(entries: &mut [PollEntry]) -> c_int {
    let address = entries.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: the entries are ours and as many as said.
    let result = unsafe { call(libc::SYS_poll, [address, entries.len() as u64, 0]) };
    c_int::try_from(result).unwrap_or(0)
}

/// A call with a pointer, made directly.
///
/// # Safety
/// As for the call itself.
pub(crate) unsafe fn direct(number: c_long, arguments: [u64; 6]) -> c_long {
    // SAFETY: as the caller vouches.
    unsafe { forward(number, arguments) }
}

/// A call with a pointer, made directly; a count or a negated error.
///
/// # Safety
/// As for the call itself.
pub(crate) unsafe fn raw(number: c_long, arguments: [u64; 6]) -> c_long {
    // SAFETY: as the caller vouches.
    unsafe { call(number, arguments) }
}

/// Reads or writes one piece of memory, at this place of the file (all ones: at its own position),
/// as far as that needs no waiting; a count or a negated error.
///
/// # Safety
/// The memory may be read, or written to.
pub(crate) unsafe fn piece_at_once(
    direction: Direction,
    descriptor: c_int,
    memory: *mut c_void,
    bytes: usize,
    at: u64,
) -> c_long {
    let number = match direction {
        Direction::In => libc::SYS_preadv2,
        Direction::Out => libc::SYS_pwritev2,
    };
    let piece = iovec {
        iov_base: memory,
        iov_len: bytes,
    };
    // The upper half of the place is not used where registers are as wide as it is.
    let arguments = [
        word(descriptor),
        place(&raw const piece),
        1,
        at,
        0,
        word(libc::RWF_NOWAIT),
    ];
    // SAFETY: as the caller vouches; the piece outlives the call.
    unsafe { call(number, arguments) }
}

/// Whether calls on a descriptor never wait, because its user wanted that. What is stored is waited
/// for all the same.
pub(crate) fn never_waits(descriptor: c_int) -> bool {
    let arguments = [word(descriptor), word(libc::F_GETFL)];
    // SAFETY: no memory is named.
    let flags = unsafe { call(libc::SYS_fcntl, arguments) };
    flags >= 0 && flags & i64::from(libc::O_NONBLOCK) != 0 && !is_stored(descriptor)
}

/// Whether a descriptor is that of a file, a disk or a directory, of which a call transfers less
/// than it is asked for only at the end; everything else gives what there is.
pub(crate) fn is_stored(descriptor: c_int) -> bool {
    // SAFETY: all zero is a valid answer.
    let mut about: libc::stat = unsafe { core::mem::zeroed() };
    let arguments = [
        word(descriptor),
        (&raw mut about).expose_provenance() as u64,
    ];
    // SAFETY: the place outlives the call and is as large as the kernel's answer.
    let result = unsafe { call(libc::SYS_fstat, arguments) };
    let kind = about.st_mode & libc::S_IFMT;
    result == 0 && matches!(kind, libc::S_IFREG | libc::S_IFBLK | libc::S_IFDIR)
}

/// All CPUs that the calling process may use but this one; `None` when there is no other.
pub(crate) fn other_cpus(cpu: u32) -> Option<libc::cpu_set_t> {
    // SAFETY: an all-zero set is a valid empty set.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: the kernel fills at most the size that it is told.
    let pid = unsafe { libc::getpid() };
    // SAFETY: as above. The first thread's set is the process's, before anything was pinned.
    let asked = unsafe { libc::sched_getaffinity(pid, size_of::<libc::cpu_set_t>(), &mut set) };
    if asked != 0 || i64::from(cpu) >= i64::from(libc::CPU_SETSIZE) {
        return None;
    }
    // SAFETY: the index is below the size of the set.
    unsafe { libc::CPU_CLR(cpu as usize, &mut set) };
    // SAFETY: the set is valid.
    (unsafe { libc::CPU_COUNT(&set) } > 0).then_some(set)
}

/// An address as an argument.
pub(crate) fn place<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

/// A message of one piece, to or from an address.
pub(crate) fn message(name: *mut sockaddr, name_length: socklen_t, piece: &mut iovec) -> msghdr {
    // SAFETY: all zero is a valid empty message.
    let mut message: msghdr = unsafe { core::mem::zeroed() };
    message.msg_name = name.cast::<c_void>();
    message.msg_namelen = name_length;
    message.msg_iov = piece;
    message.msg_iovlen = 1;
    message
}
