//! What a signal costs the thread that it interrupts: stock Linux has no cheaper preemption.

use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::Instant;

use corosensei::{Coroutine, CoroutineResult};

use crate::Samples;
use crate::call::check;
use crate::thread::{Place, on};

/// A signal that nothing else uses here.
fn signal() -> i32 {
    libc::SIGRTMIN() + 9
}

static COUNT: AtomicU64 = AtomicU64::new(0);

/// Interruptions that are measured.
const INTERRUPTIONS: usize = if cfg!(debug_assertions) { 50 } else { 2_000 };

/// The hole that a timer's signal with an empty handler makes in a computing thread: signal frame,
/// handler, `sigreturn`.
///
/// # Errors
/// When there is no timer.
pub fn bare(place: Place, every_ns: u64) -> Samples {
    on(place, move || {
        handle()?;
        let timer = Timer::start(every_ns)?;
        let holes = holes(INTERRUPTIONS, || COUNT.load(Ordering::Relaxed));
        drop(timer);
        Ok(holes)
    })
}

/// The same where the handler does what a preemption does, too: it switches to another stack, where
/// the interruption is counted, and back, and sets its one-shot timer again.
///
/// # Errors
/// When there is no timer.
pub fn rearmed(place: Place, every_ns: u64) -> Samples {
    on(place, move || {
        let mut other = Coroutine::new(|yielder, ()| {
            loop {
                COUNT.fetch_add(1, Ordering::Relaxed);
                yielder.suspend(());
            }
        });
        handle()?;
        let timer = Timer::new()?;
        let mut again = Again {
            other: &raw mut other,
            timer: &raw const timer,
            every_ns,
        };
        AGAIN.store(&raw mut again, Ordering::Relaxed);
        let started = timer.set(every_ns, 0);
        let holes = holes(INTERRUPTIONS, || COUNT.load(Ordering::Relaxed));
        AGAIN.store(null_mut(), Ordering::Relaxed);
        drop(timer);
        started.map(|()| holes)
    })
}

/// The rest of an interruption.
struct Again {
    other: *mut Coroutine<(), (), ()>,
    timer: *const Timer,
    every_ns: u64,
}

/// Null: nothing. Written and read by one thread and its handler.
static AGAIN: AtomicPtr<Again> = AtomicPtr::new(null_mut());

/// The holes that interruptions make in a loop, in nanoseconds, the clock's reading included.
/// `count` says how many there have been. The loop gives up after two seconds.
pub fn holes(most: usize, count: impl Fn() -> u64) -> Vec<f64> {
    let started = Instant::now();
    let (mut last, mut before, mut at) = (count(), started, started);
    let mut samples = Vec::with_capacity(most);
    let mut open = false;
    while samples.len() < most && at.duration_since(started).as_secs() < 2 {
        let now = Instant::now();
        if open {
            // The interruption came before or after the clock was read the last time.
            let hole = at.duration_since(before).max(now.duration_since(at));
            samples.push(hole.as_secs_f64() * 1e9);
        }
        let seen = count();
        open = seen != last;
        (last, before, at) = (seen, at, now);
    }
    samples
}

extern "C" fn on_signal(_: libc::c_int) {
    let again = AGAIN.load(Ordering::Relaxed);
    // SAFETY: null, or of the thread that is interrupted, which uses it nowhere but here.
    let Some(Again {
        other,
        timer,
        every_ns,
    }) = (unsafe { again.as_ref() })
    else {
        COUNT.fetch_add(1, Ordering::Relaxed);
        return;
    };
    // SAFETY: as above.
    let CoroutineResult::Yield(()) = (unsafe { (**other).resume(()) }) else {
        return;
    };
    // SAFETY: as above. A timer that exists is set.
    let _ = unsafe { (**timer).set(*every_ns, 0) };
}

fn handle() -> Result<(), String> {
    // SAFETY: an action is plain numbers, with an empty mask.
    let mut action: libc::sigaction = unsafe { zeroed() };
    action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART | libc::SA_NODEFER;
    // SAFETY: the handler does nothing but count.
    let set = unsafe { libc::sigaction(signal(), &raw const action, null_mut()) };
    check("sigaction", set).map(drop)
}

/// A timer that signals the thread that made it, until it is dropped.
struct Timer(libc::timer_t);

impl Timer {
    /// One that fires again and again.
    fn start(every_ns: u64) -> Result<Timer, String> {
        let timer = Timer::new()?;
        timer.set(every_ns, every_ns).map(|()| timer)
    }

    fn new() -> Result<Timer, String> {
        // SAFETY: an event is plain numbers.
        let mut event: libc::sigevent = unsafe { zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal();
        // SAFETY: it only asks for a number.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer = null_mut();
        // SAFETY: the event and the place of the timer live during the call.
        let made =
            unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) };
        check("timer_create", made)?;
        Ok(Timer(timer))
    }

    /// Fires after so many nanoseconds, and then every so many.
    fn set(&self, after_ns: u64, every_ns: u64) -> Result<(), String> {
        let span = |ns: u64| {
            let nanoseconds = i64::try_from(ns).unwrap_or(1_000_000);
            libc::timespec {
                tv_sec: nanoseconds / 1_000_000_000,
                tv_nsec: nanoseconds % 1_000_000_000,
            }
        };
        let setting = libc::itimerspec {
            it_interval: span(every_ns),
            it_value: span(after_ns),
        };
        // SAFETY: this value made the timer.
        let set = unsafe { libc::timer_settime(self.0, 0, &raw const setting, null_mut()) };
        check("timer_settime", set).map(drop)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: made by this value, and deleted once.
        let _ = unsafe { libc::timer_delete(self.0) };
    }
}
