//! The words of calls that may block: their numbers, structures, and how long they wait.

use core::ffi::{c_int, c_long, c_void};

use super::{call, forward, word};

pub(crate) use libc::{
    epoll_event, fd_set, iovec, msghdr, pollfd as PollEntry, sem_t, sembuf, siginfo_t, sigset_t,
    sockaddr, socklen_t, timespec, timeval,
};

/// Numbers of calls.
pub(crate) mod number {
    use core::ffi::c_long;

    pub(crate) const READ: c_long = libc::SYS_read;
    pub(crate) const WRITE: c_long = libc::SYS_write;
    pub(crate) const PREAD: c_long = libc::SYS_pread64;
    pub(crate) const PWRITE: c_long = libc::SYS_pwrite64;
    pub(crate) const PREADV: c_long = libc::SYS_preadv;
    pub(crate) const PWRITEV: c_long = libc::SYS_pwritev;
    pub(crate) const READV: c_long = libc::SYS_readv;
    pub(crate) const WRITEV: c_long = libc::SYS_writev;
    pub(crate) const RECVFROM: c_long = libc::SYS_recvfrom;
    pub(crate) const SENDTO: c_long = libc::SYS_sendto;
    pub(crate) const RECVMSG: c_long = libc::SYS_recvmsg;
    pub(crate) const SENDMSG: c_long = libc::SYS_sendmsg;
    pub(crate) const ACCEPT: c_long = libc::SYS_accept4;
    pub(crate) const CONNECT: c_long = libc::SYS_connect;
    pub(crate) const POLL: c_long = libc::SYS_poll;
    pub(crate) const PPOLL: c_long = libc::SYS_ppoll;
    pub(crate) const SELECT: c_long = libc::SYS_pselect6;
    pub(crate) const EPOLL_WAIT: c_long = libc::SYS_epoll_wait;
    pub(crate) const EPOLL_PWAIT: c_long = libc::SYS_epoll_pwait;
    pub(crate) const FSYNC: c_long = libc::SYS_fsync;
    pub(crate) const FDATASYNC: c_long = libc::SYS_fdatasync;
    pub(crate) const CLOCK_NANOSLEEP: c_long = libc::SYS_clock_nanosleep;
}

/// Flags of a call on a socket: not to wait; those with which nothing is waited for in receiving;
/// and others.
pub(crate) const DONTWAIT: c_int = libc::MSG_DONTWAIT;
pub(crate) const NO_WAIT: c_int = libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE | libc::MSG_OOB;
pub(crate) const FASTOPEN: c_int = libc::MSG_FASTOPEN;
pub(crate) const PEEK: c_int = libc::MSG_PEEK;
pub(crate) const WAITALL: c_int = libc::MSG_WAITALL;
pub(crate) const POLLIN: i16 = libc::POLLIN;
pub(crate) const POLLOUT: i16 = libc::POLLOUT;
pub(crate) const POLLPRI: i16 = libc::POLLPRI;
pub(crate) const BOOTTIME: c_int = libc::CLOCK_BOOTTIME;
pub(crate) const TAI: c_int = libc::CLOCK_TAI;
pub(crate) const MONOTONIC: c_int = libc::CLOCK_MONOTONIC;
pub(crate) const REALTIME: c_int = libc::CLOCK_REALTIME;
pub(crate) const ABSOLUTE: c_int = libc::TIMER_ABSTIME;

/// Which of a socket's limits on waiting applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
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
    loop {
        // SAFETY: the entries are ours and as many as said.
        let result = unsafe { call(libc::SYS_poll, [address, entries.len() as u64, 0]) };
        if result != i64::from(-libc::EINTR) {
            return c_int::try_from(result).unwrap_or(0);
        }
    }
}

/// A clock of the kernel by its number, in nanoseconds; 0 when it does not exist.
pub(crate) fn clock_ns(clock: c_int) -> u64 {
    let mut now = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let place = (&raw mut now).expose_provenance() as u64;
    // SAFETY: the place outlives the call.
    unsafe { call(libc::SYS_clock_gettime, [word(clock), place]) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// A set of descriptors without members.
pub(crate) fn no_members() -> fd_set {
    // SAFETY: all zero is a valid empty set.
    unsafe { core::mem::zeroed() }
}

/// Whether a descriptor below the size of the set is one of its members.
pub(crate) fn is_member(descriptor: c_int, set: &fd_set) -> bool {
    // SAFETY: the set is there, and the caller's descriptors are below its size.
    (0..c_int::try_from(libc::FD_SETSIZE).unwrap_or(0)).contains(&descriptor)
        && unsafe { libc::FD_ISSET(descriptor, set) }
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
    let piece = iovec {
        iov_base: memory,
        iov_len: bytes,
    };
    // SAFETY: as the caller vouches; the piece outlives the call.
    unsafe { pieces_at_once(direction, descriptor, &raw const piece, 1, at) }
}

/// [`piece_at_once`] for several pieces.
///
/// # Safety
/// The memory may be read, or written to; where it is not there the kernel says so.
pub(crate) unsafe fn pieces_at_once(
    direction: Direction,
    descriptor: c_int,
    pieces: *const iovec,
    count: c_int,
    at: u64,
) -> c_long {
    let number = match direction {
        Direction::In => libc::SYS_preadv2,
        Direction::Out => libc::SYS_pwritev2,
    };
    // The upper half of the place is not used where registers are as wide as it is.
    let arguments = [
        word(descriptor),
        place(pieces),
        word(count),
        at,
        0,
        word(libc::RWF_NOWAIT),
    ];
    // SAFETY: as the caller vouches.
    unsafe { call(number, arguments) }
}

unsafe extern "C" {
    safe fn __chk_fail() -> !;
}

/// Ends the process, and says that it was given less memory than it has asked to be filled.
pub(crate) fn overflow() -> ! {
    __chk_fail()
}

/// Whether calls on a descriptor never wait, because its user wanted that. What is stored is waited
/// for all the same.
pub(crate) fn never_waits(descriptor: c_int) -> bool {
    let arguments = [word(descriptor), word(libc::F_GETFL)];
    // SAFETY: no memory is named.
    let flags = unsafe { call(libc::SYS_fcntl, arguments) };
    flags >= 0 && flags & i64::from(libc::O_NONBLOCK) != 0 && !is_stored(descriptor)
}

/// What a descriptor stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A file, a disk or a directory: a call transfers less than it is asked for only at the end.
    Stored,
    /// A pipe or a socket: gives what there is, and takes all.
    Flow,
    /// Anything else, with rules of its own, or nothing.
    Other,
}

pub(crate) fn kind(descriptor: c_int) -> Kind {
    // SAFETY: all zero is a valid answer.
    let mut about: libc::stat = unsafe { core::mem::zeroed() };
    let arguments = [
        word(descriptor),
        (&raw mut about).expose_provenance() as u64,
    ];
    // SAFETY: the place outlives the call and is as large as the kernel's answer.
    let result = unsafe { call(libc::SYS_fstat, arguments) };
    match about.st_mode & libc::S_IFMT {
        _ if result != 0 => Kind::Other,
        libc::S_IFREG | libc::S_IFBLK | libc::S_IFDIR => Kind::Stored,
        libc::S_IFIFO | libc::S_IFSOCK => Kind::Flow,
        _ => Kind::Other,
    }
}

pub(crate) fn is_stored(descriptor: c_int) -> bool {
    kind(descriptor) == Kind::Stored
}

/// Whether the files of the process may not grow beyond a limit.
pub(crate) fn are_files_limited() -> bool {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    let place = (&raw mut limit).expose_provenance() as u64;
    let arguments = [0, u64::from(libc::RLIMIT_FSIZE), 0, place];
    // SAFETY: the place outlives the call.
    unsafe { call(libc::SYS_prlimit64, arguments) };
    limit.rlim_cur != libc::RLIM_INFINITY
}

/// A number that a socket tells of itself; `None`: no socket.
fn socket_number(descriptor: c_int, option: c_int) -> Option<c_int> {
    let mut value: c_int = 0;
    let mut length = size_of::<c_int>();
    let arguments = [
        word(descriptor),
        word(libc::SOL_SOCKET),
        word(option),
        (&raw mut value).expose_provenance() as u64,
        (&raw mut length).expose_provenance() as u64,
    ];
    // SAFETY: both places outlive the call, and the length is that of the first.
    let result = unsafe { call(libc::SYS_getsockopt, arguments) };
    (result == 0).then_some(value)
}

/// Whether bytes flow through this socket, so that several of its messages are one.
pub(crate) fn is_stream(descriptor: c_int) -> bool {
    socket_number(descriptor, libc::SO_TYPE) == Some(libc::SOCK_STREAM)
}

/// Whether this is a socket within the machine.
pub(crate) fn is_local_socket(descriptor: c_int) -> bool {
    socket_number(descriptor, libc::SO_DOMAIN) == Some(libc::AF_UNIX)
}

/// Whether a stream will give no more than it has.
pub(crate) fn has_ended(descriptor: c_int) -> bool {
    let mut entry = [PollEntry {
        fd: descriptor,
        events: libc::POLLRDHUP,
        revents: 0,
    }];
    poll_now(&mut entry) != 0
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
pub(crate) fn message(name: *mut sockaddr, name_length: socklen_t, piece: *mut iovec) -> msghdr {
    // SAFETY: all zero is a valid empty message.
    let mut message: msghdr = unsafe { core::mem::zeroed() };
    message.msg_name = name.cast::<c_void>();
    message.msg_namelen = name_length;
    message.msg_iov = piece;
    message.msg_iovlen = 1;
    message
}
