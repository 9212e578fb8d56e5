//! Calls of the C library, as they are.

use core::ffi::{c_int, c_void};
use std::fmt;

/// What a call returned, with its error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told(isize, i32);

impl Told {
    pub(crate) fn new(result: impl TryInto<isize>) -> Told {
        let result = result.try_into().unwrap_or(isize::MIN);
        let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        Told(result, if result < 0 { error } else { 0 })
    }

    pub(crate) fn count(self) -> isize {
        self.0
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 0 {
            return write!(f, "{}", self.0);
        }
        write!(
            f,
            "{} {}",
            self.0,
            std::io::Error::from_raw_os_error(self.1)
        )
    }
}

/// No address of any memory.
pub(crate) const NOWHERE: *mut c_void = core::ptr::without_provenance_mut(64);

pub(crate) fn read(fd: c_int, to: &mut [u8]) -> Told {
    // SAFETY: the place has this room.
    Told::new(unsafe { libc::read(fd, to.as_mut_ptr().cast(), to.len()) })
}

pub(crate) fn write(fd: c_int, from: &[u8]) -> Told {
    // SAFETY: so many bytes are there.
    Told::new(unsafe { libc::write(fd, from.as_ptr().cast(), from.len()) })
}

pub(crate) fn recv(fd: c_int, to: &mut [u8], flags: c_int) -> Told {
    // SAFETY: the place has this room.
    Told::new(unsafe { libc::recv(fd, to.as_mut_ptr().cast(), to.len(), flags) })
}

pub(crate) fn send(fd: c_int, from: &[u8], flags: c_int) -> Told {
    // SAFETY: so many bytes are there.
    Told::new(unsafe { libc::send(fd, from.as_ptr().cast(), from.len(), flags) })
}

pub(crate) fn sendto(fd: c_int, from: &[u8], flags: c_int) -> Told {
    let nobody = core::ptr::null();
    // SAFETY: so many bytes are there.
    Told::new(unsafe { libc::sendto(fd, from.as_ptr().cast(), from.len(), flags, nobody, 0) })
}

pub(crate) fn recvfrom(fd: c_int, to: &mut [u8], flags: c_int) -> Told {
    let (place, room) = (to.as_mut_ptr().cast(), to.len());
    let nobody = core::ptr::null_mut();
    // SAFETY: the place has this room.
    Told::new(unsafe { libc::recvfrom(fd, place, room, flags, nobody, core::ptr::null_mut()) })
}

/// Pieces of these lengths of one memory, as far as it goes.
pub(crate) fn pieces(memory: &[u8], lengths: &[usize]) -> Vec<libc::iovec> {
    let mut rest = memory;
    let mut pieces = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let (piece, more) = rest.split_at(length.min(rest.len()));
        pieces.push(libc::iovec {
            iov_base: piece.as_ptr().cast_mut().cast(),
            iov_len: piece.len(),
        });
        rest = more;
    }
    pieces
}

fn number_of(pieces: &[libc::iovec]) -> c_int {
    c_int::try_from(pieces.len()).expect("few")
}

pub(crate) fn readv(fd: c_int, to: &mut [u8], lengths: &[usize]) -> Told {
    let pieces = pieces(to, lengths);
    // SAFETY: the pieces lie in the place.
    Told::new(unsafe { libc::readv(fd, pieces.as_ptr(), number_of(&pieces)) })
}

pub(crate) fn writev(fd: c_int, from: &[u8], lengths: &[usize]) -> Told {
    let pieces = pieces(from, lengths);
    // SAFETY: the pieces lie in the place.
    Told::new(unsafe { libc::writev(fd, pieces.as_ptr(), number_of(&pieces)) })
}

/// A message of these pieces.
pub(crate) fn message(pieces: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: all zero is a valid empty message.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    message.msg_iov = pieces.as_mut_ptr();
    message.msg_iovlen = pieces.len();
    message
}

pub(crate) fn sendmsg(fd: c_int, from: &[u8], lengths: &[usize], flags: c_int) -> Told {
    let mut pieces = pieces(from, lengths);
    let message = message(&mut pieces);
    // SAFETY: the message and its pieces are there.
    Told::new(unsafe { libc::sendmsg(fd, &raw const message, flags) })
}

pub(crate) fn recvmsg(fd: c_int, to: &mut [u8], lengths: &[usize], flags: c_int) -> Told {
    let mut pieces = pieces(to, lengths);
    let mut message = message(&mut pieces);
    // SAFETY: the message and its pieces are there.
    Told::new(unsafe { libc::recvmsg(fd, &raw mut message, flags) })
}

/// The first bytes, for comparing.
pub(crate) fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(24)]).replace('\0', ".")
}

/// One number for all bytes and their order.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |digest, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        digest.rotate_left(5) ^ u64::from_le_bytes(word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// Bytes of which no two neighbouring places look alike.
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    let line: Vec<u8> = (b' '..=b'~').collect();
    let mut text = line.repeat(bytes / line.len() + 1);
    text.truncate(bytes);
    text
}

/// Sets an option of a socket.
pub(crate) fn set<T>(fd: c_int, option: c_int, value: T) {
    let length = libc::socklen_t::try_from(size_of::<T>()).expect("small");
    // SAFETY: the value is there and as long as said.
    let set = unsafe {
        libc::setsockopt(
            fd,
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            length,
        )
    };
    assert_eq!(set, 0);
}

/// A limit on waiting.
pub(crate) fn limit(fd: c_int, option: c_int, ms: i64) {
    let time = libc::timeval {
        tv_sec: 0,
        tv_usec: ms * 1_000,
    };
    set(fd, option, time);
}
