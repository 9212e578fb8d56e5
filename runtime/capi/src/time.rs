//! Instants of the run, sleeping, and timeouts that come again.

use ::punctual_thread::{Timer, thread};
use punctual_linux::job;
use punctual_model::{Instant, Span};

use crate::edge::{answer, give, is_place, is_place_or_null, offer};
use crate::status::{punctual_status, punctual_status as Status};

/// Instants at a fixed distance: late or not, the next one is where it belongs. A plain value of
/// the caller's, which may be copied and needs no end.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_timer {
    /// The next instant, in nanoseconds of the run; the largest number: never again.
    pub next_ns: u64,
    /// The distance; 0: once.
    pub period_ns: u64,
}

/// Nanoseconds since the start of the run. On threads of a run.
///
/// # Safety
/// `now_ns` is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_now(now_ns: *mut u64) -> punctual_status {
    answer(|| {
        is_place(now_ns)?;
        let now = thread::now().ok_or(Status::PUNCTUAL_NO_RUN)?;
        // SAFETY: as the caller vouches.
        unsafe { give(now_ns, now.as_ns()) }
    })
}

/// Suspends the calling thread. A scheduling point. On threads of a run; elsewhere the kernel
/// thread sleeps.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_sleep(span_ns: u64) -> punctual_status {
    answer(|| {
        not_in_a_use()?;
        thread::sleep(Span::from_ns(span_ns));
        Ok(())
    })
}

/// Suspends the calling thread until an instant of the run; one that has passed is no suspension. A
/// scheduling point. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_sleep_until(at_ns: u64) -> punctual_status {
    answer(|| {
        on_a_thread()?;
        thread::sleep_until(Instant::from_ns(at_ns));
        Ok(())
    })
}

/// Sets a timer: for the first time `first_ns` from now, then every `period_ns`; once if that is 0.
/// On threads of a run.
///
/// # Safety
/// `timer` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_timer_set(
    timer: *mut punctual_timer,
    first_ns: u64,
    period_ns: u64,
) -> punctual_status {
    answer(|| {
        is_place(timer)?;
        on_a_thread()?;
        let first = Timer::after(Span::from_ns(first_ns)).ok_or(Status::PUNCTUAL_NO_RUN)?;
        let next_ns = first.next().as_ns();
        // SAFETY: as the caller vouches.
        unsafe { give(timer, punctual_timer { next_ns, period_ns }) }
    })
}

/// Sleeps until the next instant of the timer. `passed`, if not null, gets how many have passed
/// since the last call: 1 when none was missed, 0 at once when a timer for once has passed already.
/// A scheduling point. On threads of a run.
///
/// # Safety
/// `timer` is null, or to one that nobody else uses meanwhile; `passed` is null, or to a place for
/// a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_timer_wait(
    timer: *mut punctual_timer,
    passed: *mut u64,
) -> punctual_status {
    answer(|| {
        is_place(timer)?;
        is_place_or_null(passed)?;
        on_a_thread()?;
        // SAFETY: neither null nor misaligned, and the caller's own.
        let set = unsafe { timer.read() };
        let period = Span::from_ns(set.period_ns);
        let mut waits = Timer::starting(Instant::from_ns(set.next_ns), period);
        let count = waits.wait();
        let next_ns = waits.next().as_ns();
        let period_ns = set.period_ns;
        // SAFETY: as the caller vouches.
        unsafe { give(timer, punctual_timer { next_ns, period_ns }) }?;
        // SAFETY: as the caller vouches.
        unsafe { offer(passed, count) }
    })
}

/// Whether there is a run to be in, and the caller is in no use of a spin mutex.
pub(crate) fn on_a_thread() -> Result<(), Status> {
    match job::may_wait() {
        true => Ok(()),
        false => Err(Status::PUNCTUAL_NO_RUN),
    }
}

/// Whether the caller is in no use of a spin mutex, in which nothing waits or lets others go on.
pub(crate) fn not_in_a_use() -> Result<(), Status> {
    match job::is_light() {
        true => on_a_thread(),
        false => Ok(()),
    }
}
