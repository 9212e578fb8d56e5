//! Futexes for light threads: waiting on a lock of the program stops the waiter, not the CPU.
//!
//! The standard library's locks (and everything built on them: channels, `Once`, standard output)
//! wait through `syscall(SYS_futex, FUTEX_WAIT, ...)`. For a light thread this becomes a blocking
//! of the light thread alone: it looks again when a thread of its CPU wakes the word, and after
//! short timeouts for wakers elsewhere. All users of a futex must expect such early returns.

use core::ffi::c_long;
use core::sync::atomic::Ordering;

use punctual_kern::Event;
use punctual_linux_io::FutexRequest;
use punctual_model::Instant;

use crate::entry::request::request;
use crate::entry::switch::switch_to;
use crate::record::light::{Light, Phase};
use crate::sys::{self, KernelClock};

/// Looking again costs an entry, so the distance doubles from the first to the last value.
const FIRST_LOOK_NS: u64 = 20_000;
const LAST_LOOK_NS: u64 = 1_000_000;

/// Does what `futex(2)` was asked to do, in a light thread's way; `None`: let the kernel do it.
///
/// # Safety
/// The word of the request is valid, by the contract of futex(2).
pub(crate) unsafe fn futex(light: &Light, request: FutexRequest) -> Option<c_long> {
    let ends = light.quit.get();
    if light.has_gate_closed() && !ends {
        return None;
    }
    match request {
        FutexRequest::Wait {
            word,
            value,
            until_ns,
        } => {
            // SAFETY: the word is valid, by the contract of futex(2).
            let still = || unsafe { (*word).load(Ordering::SeqCst) } == value;
            Some(match ends {
                true => wait_at_the_end(light, still, until_ns),
                false => wait(light, still, word.addr(), until_ns),
            })
        }
        FutexRequest::Wake { word } => {
            if !ends {
                wake(light, word.addr());
            }
            None
        }
    }
}

fn wait(light: &Light, still: impl Fn() -> bool, word: usize, until_ns: Option<u64>) -> c_long {
    // SAFETY: the host outlives its threads.
    let host = unsafe { &*light.host() };
    host.futex_waiters.fetch_add(1, Ordering::Relaxed);
    // First say for what, then look: a waker does it the other way round.
    light.waits_for.store(word, Ordering::SeqCst);
    let result = if still() {
        look_until(light, still, until_ns)
    } else {
        sys::fail(sys::EAGAIN)
    };
    light.waits_for.store(0, Ordering::SeqCst);
    host.futex_waiters.fetch_sub(1, Ordering::Relaxed);
    result
}

fn look_until(light: &Light, still: impl Fn() -> bool, until_ns: Option<u64>) -> c_long {
    // SAFETY: the host outlives its threads.
    let clock = unsafe { (*light.host()).clock() };
    let mut look = FIRST_LOOK_NS;
    loop {
        let left = until_ns.map(|t| t.saturating_sub(sys::read_clock(KernelClock::Monotonic)));
        if left == Some(0) {
            return sys::fail(sys::ETIMEDOUT);
        }
        let span = clock.ticks(look.min(left.unwrap_or(u64::MAX)));
        let until = Instant::from_ticks(clock.now().ticks().saturating_add(span));
        light.wait_by(|| request(light, Event::Block { until: Some(until) }));
        let woken = light.waits_for.load(Ordering::SeqCst) == 0;
        if woken || !still() {
            return 0;
        }
        look = (look * 2).min(LAST_LOOK_NS);
    }
}

/// The run is over, and the thread waits on its way out. Who has what it waits for may be a thread
/// that ends after it, one of another CPU, or one that was preempted for good: so the carrier ends
/// the others meanwhile, comes back for a while, and leaves it behind then. Gate: closed by the
/// carrier, before and after.
fn wait_at_the_end(light: &Light, still: impl Fn() -> bool, until_ns: Option<u64>) -> c_long {
    while still() {
        if until_ns.is_some_and(|until| until <= sys::read_clock(KernelClock::Monotonic)) {
            return sys::fail(sys::ETIMEDOUT);
        }
        let before = light.phase.replace(Phase::Held);
        // SAFETY: gate closed, and the carrier waits.
        unsafe { switch_to(light.host(), core::ptr::null()) };
        light.phase.set(before);
    }
    0
}

/// Wakes the light threads of this CPU that wait for the word. O(threads of the CPU), and only when
/// there are waiters at all.
fn wake(light: &Light, word: usize) {
    // SAFETY: the host outlives its threads.
    let host = unsafe { &*light.host() };
    if host.futex_waiters.load(Ordering::Relaxed) == 0 {
        return;
    }
    // SAFETY: the list is set before the run starts and does not change.
    let lights = unsafe { &*host.lights.get() };
    for &other in lights {
        // SAFETY: records outlive the run (INV-L1).
        let other = unsafe { &*other };
        if other
            .waits_for
            .compare_exchange(word, 0, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
        {
            request(light, Event::Wake(other.id()));
        }
    }
}
