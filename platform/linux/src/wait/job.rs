//! What a body can do while it runs: look at its job, yield, sleep, lock, burn, end early.

use core::sync::atomic::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use punctual_kern::Event;
use punctual_model::{Instant, Work};

use crate::entry::request::{end_if_asked, give_way, is_to_end, request};
use crate::record::body::describe;
use crate::record::light::{Light, executed_at, executed_now};
use crate::record::local::current_light;

// Until the direct scheduler says where these are.
pub(crate) use crate::entry::request::{promise, rest};
pub(crate) use crate::record::body::StopJob;

pub use super::lock::{
    Held, LockError, lock, lock_number, lock_shared, lock_within, unlock_named, unlock_number,
};

/// Whether the caller is on a light thread of a run.
pub fn is_light() -> bool {
    current_light().is_some()
}

/// Whether the caller is on a light thread that may wait: nothing waits in a critical section,
/// the use of a spinning mutex among them. True at the end of the run, when a wait ends the thread.
pub fn may_wait() -> bool {
    current_light().is_some_and(|light| light.quit.get() || !light.has_gate_closed())
}

/// Nanoseconds since the start of the run; `None` outside of a run.
pub fn now_ns() -> Option<u64> {
    let light = current_light()?;
    // SAFETY: the host outlives its threads.
    let clock = unsafe { (*light.host()).clock() };
    Some(clock.frequency().ns_down(clock.now().ticks()))
}

/// Ticks of the run's clock since its start, for measurements of this platform.
pub(crate) fn now_ticks() -> u64 {
    // SAFETY: the host outlives its threads.
    current_light().map_or(0, |light| unsafe { (*light.host()).clock().now().ticks() })
}

/// Whether the job has used its budget at least once (the rule `on-overrun = "signal"` tells a body
/// this way). False outside of a run.
pub fn has_overrun() -> bool {
    current_light().is_some_and(|light| light.job.get().is_some_and(|job| job.overran))
}

/// Whether the job is to end at its next scheduling point: its overrun rule stops it, or its thread
/// was cancelled. Two loads.
pub fn should_stop() -> bool {
    current_light().is_some_and(is_to_end)
}

/// A place in a long stretch of work at which the job may end: if it is to, it does so here, by
/// unwinding to the job's boundary, unless it unwinds already. Three loads otherwise; does nothing
/// outside of a run. A thread that has promised checkpoints is preempted here, too
/// ([`promise_checkpoints`]).
#[inline]
pub fn checkpoint() {
    if let Some(light) = current_light() {
        look_at_clock(light);
        end_if_asked(light);
    }
}

/// The most that [`promise_checkpoints`] lets a preemption wait, in nanoseconds.
pub const LONGEST_PROMISE_NS: u64 = 20_000_000;

/// The calling thread promises to pass a [`checkpoint`], or to do anything else that enters the
/// scheduler, at least once in `within_ns` nanoseconds of its execution (at most
/// [`LONGEST_PROMISE_NS`] counts), from now on until it ends, or others run in its place (direct
/// threads, kernel-backed ones); 0 takes the promise back.
///
/// It is then preempted at its checkpoints, which read the clock for that: no signal interrupts it,
/// which on most machines costs many times more. A timer stands behind the promise, `within_ns`
/// later than what it is set for: so much longer may others wait if the promise is broken. While it
/// is kept they wait no longer than it takes to come to the next checkpoint. A bound that counts a
/// preemption by signal for each job (the term `preemption` of the machine) covers checkpoints that
/// are no further apart than that. Outside of a run, and while a spin mutex is in use, nothing
/// happens.
pub fn promise_checkpoints(within_ns: u64) {
    if let Some(light) = current_light()
        && !light.has_gate_closed()
    {
        // SAFETY: the host outlives its threads.
        let clock = unsafe { (*light.host()).clock() };
        promise(light, clock.ticks(within_ns.min(LONGEST_PROMISE_NS)));
    }
}

/// The part of [`checkpoint`] that is about preemption: enters the scheduler if something is due
/// and the caller has promised to come by itself. For callers that must not be unwound.
pub fn come_in_if_due() {
    if let Some(light) = current_light() {
        look_at_clock(light);
    }
}

#[inline]
fn look_at_clock(light: &Light) {
    if light.promise.load(Ordering::Relaxed) == 0 {
        return;
    }
    // SAFETY: the host outlives its threads.
    let clock = unsafe { (*light.host()).clock() };
    if clock.now().ticks() >= light.due.load(Ordering::Relaxed) {
        request(light, Event::Tick);
    }
}

/// Does something whose panic ends it alone: what that said. The panic is told in one line and
/// calls no hook. The end of the job or of the run goes on through it.
///
/// # Errors
/// What the panic said.
pub fn contain<R>(body: impl FnOnce() -> R) -> Result<R, String> {
    let light = current_light();
    if let Some(light) = light {
        light.contains.fetch_add(1, Ordering::Relaxed);
    }
    let outcome = catch_unwind(AssertUnwindSafe(body));
    if let Some(light) = light {
        light.contains.fetch_sub(1, Ordering::Relaxed);
    }
    match outcome {
        Ok(result) => Ok(result),
        Err(payload) if payload.is::<StopJob>() => resume_unwind(payload),
        Err(payload) => Err(describe(payload.as_ref())),
    }
}

/// Lets all others of the same urgency that are ready go first; a reservation gives up the rest of
/// its slice. A scheduling point.
#[inline]
pub fn yield_now() {
    if let Some(light) = current_light() {
        give_way(light);
    }
}

/// Runs `section` without letting anybody of the same scheduler in between (an overrun, or the end
/// of its supply, ends that early). Outside of a run it just runs it.
pub fn protected<R>(section: impl FnOnce() -> R) -> R {
    /// Ends the section, also when it panics.
    struct End(Option<&'static Light>);
    impl Drop for End {
        fn drop(&mut self) {
            if let Some(light) = self.0 {
                request(light, Event::Unprotect);
            }
        }
    }
    let light = current_light();
    if let Some(light) = light {
        request(light, Event::Protect);
    }
    let _end = End(light);
    section()
}

/// Suspends the job for `ns` nanoseconds. A scheduling point. Outside of a run the calling thread
/// sleeps.
pub fn sleep_ns(ns: u64) {
    let Some(light) = current_light() else {
        std::thread::sleep(core::time::Duration::from_nanos(ns));
        return;
    };
    // SAFETY: the host outlives its threads.
    let clock = unsafe { (*light.host()).clock() };
    let until = Instant::from_ticks(clock.now().ticks().saturating_add(clock.ticks(ns)));
    while clock.now() < until {
        // A wake-up meant for something else returns early: wait again.
        rest(Event::Block { until: Some(until) });
    }
}

/// A gap between two readings of the clock in a loop of a few instructions that is longer than this
/// was not executed. (An interrupt of the host's own kernel takes less; it stays in the work.)
const GAP_NS: u64 = 4_000;

/// Executes until the calling light thread has executed `ns` nanoseconds of processor time: time
/// in which others ran, or in which the machine stood still, does not count. A job that is stopped
/// ends here. Outside of a run it burns wall time.
pub fn burn_ns(ns: u64) {
    if let Some(light) = current_light() {
        // A hole between the loop and the entry that ends it is seen, too.
        let _looks = Looks(light);
        burn_on(light, ns);
    } else {
        let start = std::time::Instant::now();
        while start.elapsed().as_nanos() < u128::from(ns) {
            core::hint::spin_loop();
        }
    }
}

/// [`burn_ns`] for a body that does nothing else between scheduling points. The time since the
/// scheduler let it go on, without a look at the clock, is a hole then. So is the time from the
/// end of the loop to the body's next request.
///
/// A body that uses it must execute nothing of its own: that would be taken for a hole, and charged
/// to nobody. Use [`burn_ns`] there.
pub fn burn_alone_ns(ns: u64) {
    let Some(light) = current_light() else {
        return burn_ns(ns);
    };
    // SAFETY: the host outlives its threads.
    let host = unsafe { &*light.host() };
    let entries = host.entries.load(Ordering::Relaxed);
    let left = Instant::from_ticks(host.left_at());
    let passed = host.clock().now().since(left).ticks();
    let is_undisturbed = host.entries.load(Ordering::Relaxed) == entries;
    if is_undisturbed && !light.has_gate_closed() && passed > host.limits.late {
        host.note_missing(passed);
    }
    burn_on(light, ns);
}

fn burn_on(light: &Light, ns: u64) {
    // SAFETY: the host outlives its threads.
    let host = unsafe { &*light.host() };
    // A hole that nobody has seen yet would be executed again.
    let entered = Instant::from_ticks(host.last_entry.load(Ordering::Relaxed));
    if !light.has_gate_closed() && host.clock().now().since(entered).ticks() > host.limits.late {
        request(light, Event::Tick);
        checkpoint();
    }
    let end = executed_now(light).saturating_add(host.clock().frequency().ticks_up(ns));
    // As of an entry: one may find that part of this was not executed (by the kernel's account),
    // and what has passed since the last one may be a hole that it has not seen. Where there are no
    // entries, nobody accounts.
    let executed = || match light.has_gate_closed() {
        false => light.executed.load(Ordering::Relaxed),
        true => executed_now(light),
    };
    while executed() < end {
        spin_until(light, end);
        request(light, Event::Tick);
        checkpoint();
    }
}

/// One reading of the clock per round serves both questions, whether the thread was away since the
/// last round and whether it has executed enough: a gap between two readings would be nobody's in
/// one of them and work in the other.
fn spin_until(light: &Light, end: u64) {
    // SAFETY: the host outlives its threads.
    let host = unsafe { &*light.host() };
    let clock = host.clock();
    let gap = clock.ticks(GAP_NS);
    let mut entries = host.entries.load(Ordering::Relaxed);
    let mut last = clock.now();
    light.looked.store(last.ticks(), Ordering::Relaxed);
    loop {
        checkpoint();
        let now = clock.now();
        let entered = host.entries.load(Ordering::Relaxed);
        let (since, longest) = if entered == entries {
            (last, gap)
        } else {
            // Others ran, or the scheduler did, which has booked that interval. The way back to
            // here is longer than from one reading to the next.
            let left = Instant::from_ticks(host.left_at());
            if left > now {
                // It did so after the reading.
                continue;
            }
            (last.max(left), host.limits.late)
        };
        (last, entries) = (now, entered);
        light.looked.store(now.ticks(), Ordering::Relaxed);
        let pause = now.since(since).ticks();
        if pause > longest {
            host.note_missing(pause);
        }
        if executed_at(light, now).is_some_and(|executed| executed >= end) {
            return;
        }
    }
}

/// A light thread in a loop of readings of the clock.
struct Looks<'a>(&'a Light);

impl Drop for Looks<'_> {
    fn drop(&mut self) {
        self.0.looked.store(0, Ordering::Relaxed);
    }
}

/// This moment in ticks since the start of the run, and the work that the calling light thread has
/// executed, less what is known to have been nobody's; `None` outside of a run. One reading of the
/// clock, no entry of the scheduler.
#[inline]
pub fn executed() -> Option<(Instant, Work)> {
    let light = current_light()?;
    loop {
        // SAFETY: the host outlives its threads.
        let now = unsafe { (*light.host()).clock().now() };
        if let Some(executed) = executed_at(light, now) {
            return Some((now, Work::from_ticks(executed)));
        }
    }
}

/// How often the scheduler of the calling light thread's CPU has been entered; 0 outside of a run.
/// Two equal readings around a stretch of code say that nobody interrupted it.
pub fn entries() -> u64 {
    current_light().map_or(0, |light| {
        // SAFETY: the host outlives its threads.
        unsafe { (*light.host()).entries.load(Ordering::Relaxed) }
    })
}
