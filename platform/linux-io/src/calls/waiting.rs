//! Waiting for one of several descriptors, and sleeping.
//!
//! A light thread asks without waiting first, so that the kernel judges the arguments, and waits
//! ([`crate::blocking::wait_for_any`]) only when there is nothing yet. The masks of signals that
//! some of these calls take have no effect there: signals of the program come to its other threads.
//!
//! Under plain names for programs, not for Miri, as in `files`.

use core::ffi::{c_int, c_long, c_uint};

use crate::blocking::{nap, sleep_until, wait_for_any};
use crate::caller::current;
use crate::calls::again::is_to_be_made_again;
use crate::sys::calls::{
    ABSOLUTE, BOOTTIME, MONOTONIC, POLLIN, POLLOUT, POLLPRI, PollEntry, REALTIME, TAI, clock_ns,
    direct, epoll_event, fd_set, is_member, no_members, number, place, raw, sigset_t, timespec,
    timeval,
};
use crate::sys::{self, KernelClock};
use crate::through::{answer, as_code, number_of};

/// The kernel's sets of signals have so many bytes.
const MASK_BYTES: u64 = 8;
/// The kernel's sets of descriptors consist of such words.
const WORD_BITS: usize = core::ffi::c_ulong::BITS as usize;
const INTERRUPTED: c_long = -(sys::EINTR as c_long);
/// Until a descriptor is asked again that is ready in another way than is waited for.
const AGAIN_NS: u64 = 1_000_000;

fn now_ns() -> u64 {
    sys::read_clock(KernelClock::Monotonic)
}

/// A time that is one, in nanoseconds.
fn valid_ns(seconds: i64, parts: i64, parts_ns: u64) -> Option<u64> {
    let parts = u64::try_from(parts).ok()?;
    let seconds = u64::try_from(seconds).ok()?;
    let ns = parts
        .checked_mul(parts_ns)
        .filter(|&ns| ns < 1_000_000_000)?;
    Some(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
}

/// How long a call with a timeout in milliseconds waits; negative: without end.
fn ms(timeout: c_int) -> Option<u64> {
    u64::try_from(timeout).ok().map(|ms| ms * 1_000_000)
}

/// Asks, without waiting, until the answer (a count or a negated error) is not 0, or so many
/// nanoseconds have passed. `wait` waits for so many at most. `None`: make the call directly.
fn ask_until(
    patience: Option<u64>,
    mut ask: impl FnMut() -> c_long,
    mut wait: impl FnMut(Option<u64>) -> Option<c_int>,
) -> Option<c_long> {
    current()?;
    let until = patience.map(|ns| now_ns().saturating_add(ns));
    loop {
        let left = until.map(|until| until.saturating_sub(now_ns()));
        let ready = ask();
        // A preemption ends such calls, also those that would not wait.
        if ready == INTERRUPTED {
            continue;
        }
        if ready != 0 || left == Some(0) {
            return Some(answer(c_int::try_from(ready).unwrap_or(-sys::EINVAL)));
        }
        if let error @ ..0 = wait(left)? {
            return Some(sys::fail(-error));
        }
    }
}

/// Waits for entries that the kernel has just looked at.
///
/// # Safety
/// So many are there.
unsafe fn wait_for(entries: *const PollEntry, count: u64, left: Option<u64>) -> Option<c_int> {
    // The kernel reads the lower half alone.
    let count = usize::try_from(count & u64::from(u32::MAX)).unwrap_or(0);
    if entries.is_null() || count == 0 {
        return wait_for_any(&[], left);
    }
    // SAFETY: as the caller vouches.
    wait_for_any(unsafe { core::slice::from_raw_parts(entries, count) }, left)
}

/// `poll(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(super) unsafe extern "C" fn poll(
    entries: *mut PollEntry,
    count: u64,
    timeout_ms: c_int,
) -> c_int {
    let arguments = |wait| [place(entries), count, number_of(wait), 0, 0, 0];
    // SAFETY: the caller keeps the contract of poll(2).
    let ask = || unsafe { raw(number::POLL, arguments(0)) };
    // SAFETY: the kernel has looked at all entries when they are waited for.
    let wait = |left| unsafe { wait_for(entries, count, left) };
    as_code(ask_until(ms(timeout_ms), ask, wait).unwrap_or_else(|| {
        // SAFETY: the caller keeps the contract of poll(2).
        unsafe { direct(number::POLL, arguments(timeout_ms)) }
    }))
}

/// `ppoll(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(super) unsafe extern "C" fn ppoll(
    entries: *mut PollEntry,
    count: u64,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: null, or the caller's time.
    let time = unsafe { timeout.as_ref() }.copied();
    let patience = time.map(|time| valid_ns(time.tv_sec, time.tv_nsec, 1));
    if patience == Some(None) {
        return as_code(sys::fail(sys::EINVAL));
    }
    // SAFETY: the caller keeps the contract of ppoll(2).
    let ask = || unsafe { raw(number::POLL, [place(entries), count, 0, 0, 0, 0]) };
    // SAFETY: the kernel has looked at all entries when they are waited for.
    let wait = |left| unsafe { wait_for(entries, count, left) };
    as_code(ask_until(patience.flatten(), ask, wait).unwrap_or_else(|| {
        // The kernel writes to the time what is left of it.
        let mut time = time;
        let time = time.as_mut().map_or(0, |time| place(&raw const *time));
        let arguments = [place(entries), count, time, place(mask), MASK_BYTES, 0];
        // SAFETY: the caller keeps the contract of ppoll(2).
        unsafe { direct(number::PPOLL, arguments) }
    }))
}

/// What `select(2)` is asked: no more descriptors than a set of the C library has. The caller's
/// sets, each null or there, may be smaller than that: they have as many words as the descriptors
/// need, and what comes behind those is somebody else's.
struct Sets {
    count: c_int,
    /// What the kernel reads and writes of each set.
    bytes: usize,
    given: [*mut fd_set; 3],
    asked: [fd_set; 3],
}

impl Sets {
    /// `None`: there are more, or less than none.
    ///
    /// # Safety
    /// The sets are null, or have a word for every 64 descriptors begun.
    unsafe fn new(count: c_int, given: [*mut fd_set; 3]) -> Option<Sets> {
        let fits = |count: &usize| *count <= 8 * size_of::<fd_set>();
        let bits = usize::try_from(count).ok().filter(fits)?;
        let bytes = bits.div_ceil(WORD_BITS) * (WORD_BITS / 8);
        let mut asked = [no_members(); 3];
        for (asked, given) in asked.iter_mut().zip(given) {
            if !given.is_null() {
                let to: *mut fd_set = asked;
                // SAFETY: the caller vouches for so many bytes of its set, and ours has them.
                unsafe { core::ptr::copy_nonoverlapping(given.cast::<u8>(), to.cast(), bytes) };
            }
        }
        Some(Sets {
            count,
            bytes,
            given,
            asked,
        })
    }

    /// Who is ready now; sets that are not there stay so.
    fn look(&self) -> c_long {
        let now = timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        for (set, asked) in self.given.iter().zip(&self.asked) {
            if !set.is_null() {
                let from: *const fd_set = asked;
                // SAFETY: the caller's set has so many bytes ([`Sets::new`]), and ours has them.
                unsafe {
                    core::ptr::copy_nonoverlapping(from.cast(), set.cast::<u8>(), self.bytes);
                }
            }
        }
        let [reading, writing, failing] = self.given.map(|set| place(set));
        let count = number_of(self.count);
        let arguments = [count, reading, writing, failing, place(&raw const now), 0];
        // SAFETY: the kernel touches the same bytes of the sets; the time outlives the call.
        unsafe { raw(number::SELECT, arguments) }
    }

    fn entries(&self) -> Vec<PollEntry> {
        let events_of = |fd| {
            let kinds = self.asked.iter().zip([POLLIN, POLLOUT, POLLPRI]);
            let asked = kinds.filter(|(set, _)| is_member(fd, set));
            asked.fold(0, |events, (_, kind)| events | kind)
        };
        let entry = |fd| PollEntry {
            fd,
            events: events_of(fd),
            revents: 0,
        };
        let all = (0..self.count).map(entry);
        all.filter(|entry| entry.events != 0).collect()
    }
}

/// `select(2)` of a light thread, for so long; `None`: make the call directly.
///
/// # Safety
/// The caller keeps the contract of the call.
unsafe fn select_for(
    count: c_int,
    sets: [*mut fd_set; 3],
    patience: Option<u64>,
) -> Option<c_long> {
    current()?;
    // SAFETY: as the caller vouches.
    let sets = unsafe { Sets::new(count, sets) }?;
    let mut waited = false;
    let wait = |left: Option<u64>| {
        // Who is ready in another way than was asked for does not end the call.
        if core::mem::replace(&mut waited, true) && !nap(AGAIN_NS.min(left.unwrap_or(AGAIN_NS)))? {
            return Some(-sys::ECANCELED);
        }
        wait_for_any(&sets.entries(), left)
    };
    ask_until(patience, || sets.look(), wait)
}

/// `select(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn select(
    count: c_int,
    reading: *mut fd_set,
    writing: *mut fd_set,
    failing: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: null, or the caller's time.
    let mut timeout = unsafe { timeout.as_mut() };
    let mut patience = None;
    if let Some(time) = &timeout {
        let seconds = time
            .tv_sec
            .saturating_add(time.tv_usec.div_euclid(1_000_000));
        patience = valid_ns(seconds, time.tv_usec.rem_euclid(1_000_000), 1_000);
        if patience.is_none() || time.tv_sec < 0 || time.tv_usec < 0 {
            return as_code(sys::fail(sys::EINVAL));
        }
    }
    let began = now_ns();
    let sets = [reading, writing, failing];
    // SAFETY: the caller keeps the contract of select(2).
    let result = unsafe { select_for(count, sets, patience) }
        // SAFETY: as above.
        .unwrap_or_else(|| unsafe { select_directly(count, sets, patience, 0) });
    if let (Some(time), Some(ns)) = (&mut timeout, patience) {
        let left = time_of(ns.saturating_sub(now_ns() - began));
        // What the kernel tells, too: how much of the time is left.
        time.tv_sec = left.tv_sec;
        time.tv_usec = if result == 0 { 0 } else { left.tv_nsec / 1_000 };
    }
    as_code(result)
}

/// `pselect(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn pselect(
    count: c_int,
    reading: *mut fd_set,
    writing: *mut fd_set,
    failing: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: null, or the caller's time.
    let time = unsafe { timeout.as_ref() };
    let patience = time.map(|time| valid_ns(time.tv_sec, time.tv_nsec, 1));
    if patience == Some(None) {
        return as_code(sys::fail(sys::EINVAL));
    }
    let patience = patience.flatten();
    let sets = [reading, writing, failing];
    let mask = [place(mask), MASK_BYTES];
    // SAFETY: the caller keeps the contract of pselect(2).
    let result = unsafe { select_for(count, sets, patience) }.unwrap_or_else(|| {
        // SAFETY: as above; the mask outlives the call.
        unsafe { select_directly(count, sets, patience, place(mask.as_ptr())) }
    });
    as_code(result)
}

/// Makes the call as the kernel has it, for all of its time.
///
/// # Safety
/// The caller keeps the contract of pselect(2), for all but the time.
unsafe fn select_directly(
    count: c_int,
    sets: [*mut fd_set; 3],
    patience: Option<u64>,
    mask: u64,
) -> c_long {
    let began = now_ns();
    loop {
        let time = patience.map(|ns| time_of(ns.saturating_sub(now_ns() - began)));
        let time = time.as_ref().map_or(0, |time| place(&raw const *time));
        let [reading, writing, failing] = sets.map(|set| place(set));
        let arguments = [number_of(count), reading, writing, failing, time, mask];
        // SAFETY: as the caller vouches; the time outlives the call.
        let result = unsafe { direct(number::SELECT, arguments) };
        if !is_to_be_made_again(result == -1) {
            return result;
        }
    }
}

fn time_of(ns: u64) -> timespec {
    timespec {
        // Below the range of the type.
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
    }
}

/// `epoll_wait(2)` by a light thread; `None`: make the call directly.
///
/// # Safety
/// The caller keeps the contract of the call.
unsafe fn epoll_for(
    fd: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout_ms: c_int,
) -> Option<c_long> {
    let arguments = [number_of(fd), place(events), number_of(most), 0, 0, 0];
    // SAFETY: as the caller vouches; not to wait is all that differs.
    let ask = || unsafe { raw(number::EPOLL_WAIT, arguments) };
    let readable = PollEntry {
        fd,
        events: POLLIN,
        revents: 0,
    };
    ask_until(ms(timeout_ms), ask, |left| wait_for_any(&[readable], left))
}

/// `epoll_wait(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn epoll_wait(
    fd: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout_ms: c_int,
) -> c_int {
    // SAFETY: the caller keeps the contract of epoll_wait(2), which is that of epoll_pwait(2)
    // without a mask.
    unsafe { epoll_pwait(fd, events, most, timeout_ms, core::ptr::null()) }
}

/// `epoll_pwait(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn epoll_pwait(
    fd: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout_ms: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller keeps the contract of epoll_pwait(2).
    let result = unsafe { epoll_for(fd, events, most, timeout_ms) }.unwrap_or_else(|| {
        let (most, timeout) = (number_of(most), number_of(timeout_ms));
        let events = place(events);
        let arguments = [
            number_of(fd),
            events,
            most,
            timeout,
            place(mask),
            MASK_BYTES,
        ];
        // SAFETY: as above.
        unsafe { direct(number::EPOLL_PWAIT, arguments) }
    });
    as_code(result)
}

/// How many nanoseconds a sleep lasts from now on; `None`: by a clock that only the kernel knows.
fn left_of_sleep(clock: c_int, is_absolute: bool, ns: u64) -> Option<u64> {
    match clock {
        MONOTONIC | REALTIME | BOOTTIME | TAI if !is_absolute => Some(ns),
        MONOTONIC | REALTIME | BOOTTIME | TAI => Some(ns.saturating_sub(clock_ns(clock))),
        _ => None,
    }
}

/// `thrd_sleep(3)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn thrd_sleep(time: *const timespec, left: *mut timespec) -> c_int {
    // SAFETY: the caller keeps the contract of thrd_sleep(3), which is that of this call.
    match unsafe { clock_nanosleep(REALTIME, 0, time, left) } {
        0 => 0,
        sys::EINTR => -1,
        _ => -2,
    }
}

/// `clock_nanosleep(2)`. Unlike others it returns its error.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn clock_nanosleep(
    clock: c_int,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    let is_absolute = flags & ABSOLUTE != 0;
    let arguments = [
        number_of(clock),
        number_of(flags),
        place(time),
        place(left),
        0,
        0,
    ];
    if current().is_some()
        // SAFETY: null, or the caller's time.
        && let Some(time) = unsafe { time.as_ref() }
        && let Some(ns) = valid_ns(time.tv_sec, time.tv_nsec, 1)
    {
        // A relative sleep is not moved by setting the wall clock; one until then ends when it has
        // come by that clock.
        while let Some(left) = left_of_sleep(clock, is_absolute, ns) {
            let Some(slept) = sleep_until(now_ns().saturating_add(left)) else {
                break;
            };
            if !slept || !is_absolute || clock_ns(clock) >= ns {
                return 0;
            }
        }
    }
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

/// `sleep(3)`. Unlike the others it tells who is to end what is left, in seconds begun: what they
/// answer then is no error, because the one that there is for it, `EINTR`, says to sleep on.
#[cfg_attr(not(miri), unsafe(no_mangle))]
extern "C" fn sleep(seconds: c_uint) -> c_uint {
    let mut time = timespec {
        tv_sec: i64::from(seconds),
        tv_nsec: 0,
    };
    let place = &raw mut time;
    let began = now_ns();
    // SAFETY: the time is valid, and what is left of it may be written there.
    match unsafe { nanosleep(place, place) } {
        0 => {
            let ns = u64::from(seconds) * 1_000_000_000;
            let left = ns.saturating_sub(now_ns() - began);
            c_uint::try_from(left.div_ceil(1_000_000_000)).unwrap_or(0)
        }
        _ => c_uint::try_from(time.tv_sec).unwrap_or(0),
    }
}
