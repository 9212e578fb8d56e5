//! Reading from a pipe: bytes that are there, and bytes that have to come first.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Instant;

use crate::Samples;
use crate::batch::{batches, singles};
use crate::call::check;
use crate::thread::{Place, finish, on, start};

/// Bytes of one batch.
const ROUNDS: u32 = 50;

/// A byte that is there, by `read`: one system call and its copy.
///
/// # Errors
/// When there is no pipe.
pub fn ready(place: Place) -> Samples {
    on(place, || {
        let (mut from, mut to) = new()?;
        let mut byte = [0];
        singles(|| {
            let filled = to.write_all(&[1; ROUNDS as usize]);
            filled.map_err(failed)?;
            let start = Instant::now();
            for _ in 0..ROUNDS {
                from.read_exact(&mut byte).map_err(failed)?;
            }
            Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS))
        })
    })
}

/// The same by a call that would not wait if it were not there: the call that ours has to make,
/// since a `read` that waits would stop the CPU.
///
/// # Errors
/// When there is no pipe, and where the kernel has no such call.
pub fn ready_without_waiting(place: Place) -> Samples {
    on(place, || {
        let (from, mut to) = new()?;
        let mut byte = [0_u8];
        singles(|| {
            let filled = to.write_all(&[1; ROUNDS as usize]);
            filled.map_err(failed)?;
            let piece = libc::iovec {
                iov_base: byte.as_mut_ptr().cast(),
                iov_len: 1,
            };
            let start = Instant::now();
            for _ in 0..ROUNDS {
                // SAFETY: the piece names one byte, which outlives the call.
                let read = unsafe {
                    libc::preadv2(from.as_raw_fd(), &raw const piece, 1, -1, libc::RWF_NOWAIT)
                };
                check("preadv2", i64::try_from(read).unwrap_or(-1))?;
            }
            Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS))
        })
    })
}

/// A byte to a thread of the same CPU that waits for it in `read`, and one back: half of it.
///
/// # Errors
/// When there is no pipe.
pub fn blocking(place: Place) -> Samples {
    there_and_back(place, |from| Ok(Waits { from, epoll: None }))
}

/// The same where both wait in `epoll_wait`, and read then.
///
/// # Errors
/// When there is no pipe, or no epoll.
pub fn by_epoll(place: Place) -> Samples {
    there_and_back(place, |from| {
        // SAFETY: no memory is named.
        let epoll = check("epoll_create1", unsafe {
            libc::epoll_create1(libc::EPOLL_CLOEXEC)
        })?;
        let number = i32::try_from(epoll).map_err(|error| error.to_string())?;
        // SAFETY: a new descriptor that nobody else has.
        let epoll = unsafe { OwnedFd::from_raw_fd(number) };
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN.cast_unsigned(),
            u64: 0,
        };
        // SAFETY: both descriptors are open, and the event lives during the call.
        let added = unsafe {
            libc::epoll_ctl(
                number,
                libc::EPOLL_CTL_ADD,
                from.as_raw_fd(),
                &raw mut event,
            )
        };
        check("epoll_ctl", added)?;
        Ok(Waits {
            from,
            epoll: Some(epoll),
        })
    })
}

fn new() -> Result<(PipeReader, PipeWriter), String> {
    pipe().map_err(|error| format!("pipe: {error}"))
}

fn failed(error: std::io::Error) -> String {
    format!("pipe: {error}")
}

/// How a byte is waited for.
struct Waits {
    from: PipeReader,
    epoll: Option<OwnedFd>,
}

impl Waits {
    fn byte(&mut self) -> Result<(), String> {
        if let Some(epoll) = &self.epoll {
            let mut event = libc::epoll_event { events: 0, u64: 0 };
            // SAFETY: there is room for the one event that is asked for.
            let ready = unsafe { libc::epoll_wait(epoll.as_raw_fd(), &raw mut event, 1, -1) };
            check("epoll_wait", ready)?;
        }
        self.from.read_exact(&mut [0]).map_err(failed)
    }
}

fn there_and_back(place: Place, waits: fn(PipeReader) -> Result<Waits, String>) -> Samples {
    let ((there, mut out), (home, mut back)) = (new()?, new()?);
    let (mut theirs, mut ours) = (waits(there)?, waits(home)?);
    let partner = start(place, place.cpu, move || {
        // It ends when the other end is closed.
        while theirs.byte().is_ok() && back.write_all(&[1]).is_ok() {}
    })?;
    let samples = on(place, move || {
        let mut broken = None;
        let samples = batches(2 * ROUNDS, || {
            for _ in 0..ROUNDS {
                let came = out.write_all(&[1]).map_err(failed);
                let came = came.and_then(|()| ours.byte());
                broken = broken.take().or(came.err());
            }
        });
        broken.map_or(Ok(samples), Err)
    });
    finish(partner)?;
    samples
}
