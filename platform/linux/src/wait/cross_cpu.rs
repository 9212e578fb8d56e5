//! Monitors of several CPUs.
//!
//! ```text
//!   critical section:  close gate -> acquire the lock -> look at the state, change it,
//!           answer waiters -> release the lock -> kick the CPUs of those answered
//!           -> enter the scheduler if a thread of this CPU is to go on or the caller is to wait
//!           -> open gate
//! ```
//!
//! Nothing of ours preempts the holder of the lock, so a critical section is a few dozen
//! instructions. A waiter on another CPU is put on that CPU's pending-wake list, which its next
//! scheduler entry drains, and the CPU is kicked if it would not enter by itself.
//!
//! INV-M2: the wait node of a thread that waits in such a monitor is touched with the lock held
//! only; so a thread takes the lock to leave the queue, also at the end of the run.

use core::sync::atomic::Ordering;

use punctual_kern::Event;
use punctual_model::Instant;

use crate::entry::request::{enter, open_gate};
use crate::record::light::{Light, Phase};
use crate::record::per_cpu::PerCpu;
use crate::shared::ticket_lock::TicketLock;
use crate::wait::monitor::{
    EVERY_CPU, LeaveOnPanic, Monitor, MonitorError, SectionEnd, Step, end_or, is_to_end,
};
use crate::wait::waiters::After;

impl<S, const QUEUES: usize> Monitor<S, QUEUES> {
    /// State that belongs to all CPUs of the run of its first section. Who waits is served in the
    /// order of coming, since urgencies of different CPUs do not compare, and nobody inherits.
    pub const fn cross_cpu(state: S) -> Self {
        Monitor::belonging_to(EVERY_CPU, state)
    }

    /// Whether threads of every CPU of its run may use it.
    #[cold]
    pub(crate) fn is_cross_cpu(&self) -> bool {
        self.home.load(Ordering::Relaxed) & EVERY_CPU == EVERY_CPU
    }

    /// The end of a section between CPUs: a thread that waits does so in its queue before the lock
    /// is released. Gate: closed on entry, open on return.
    #[inline(never)]
    pub(crate) fn leave_across<R>(
        &self,
        light: &Light,
        host: &PerCpu,
        until: Option<Instant>,
        (step, after): (Step<R>, After),
    ) -> Result<SectionEnd<R>, MonitorError> {
        if let Step::Wait { queue, ask, .. } = step {
            // The program's number of a queue may be wrong.
            let left = LeaveOnPanic(host, Some(&self.lock));
            self.queues[queue].join(light, ask);
            core::mem::forget(left);
        }
        self.lock.release();
        let After { also, kicks, .. } = after;
        host.shared.post.kick_all(kicks);
        match step {
            Step::Done(result) => {
                if also.is_null() {
                    open_gate(host);
                } else {
                    self.let_go(light, also, None);
                }
                Ok(SectionEnd::Done(result))
            }
            Step::Wait { .. } => {
                host.wake_also(also);
                self.wait_cross_cpu(light, until)
            }
        }
    }

    /// Gate: closed on entry, open on return.
    #[inline(never)]
    fn wait_cross_cpu<R>(
        &self,
        light: &Light,
        until: Option<Instant>,
    ) -> Result<SectionEnd<R>, MonitorError> {
        loop {
            let late = until.is_some_and(|until| until <= light.now());
            // One that goes on after it was told to end (C) does not wait again.
            if !late && !is_to_end(light) {
                light.phase.set(Phase::Resting);
                let _ = enter(light, Event::Block { until });
                light.phase.set(Phase::Inside);
            }
            let quit = light.quit.get();
            let ends = quit || is_to_end(light);
            let guard = TicketGuard::acquire(&self.lock);
            let answer = light.wait_node.answer.take();
            if answer.is_none() && (late || ends) {
                light.wait_node.leave();
            }
            drop(guard);
            let result = match answer {
                Some(answer) => Ok(SectionEnd::Answered(answer)),
                None if ends => Err(MonitorError::Over),
                None if late => Err(MonitorError::TimedOut),
                None => continue,
            };
            if !quit {
                open_gate(light.host());
            }
            return match result {
                Err(MonitorError::Over) => end_or(result),
                result => result,
            };
        }
    }
}

/// The lock, released also when the section panics.
struct TicketGuard<'a>(&'a TicketLock);

impl TicketGuard<'_> {
    fn acquire(lock: &TicketLock) -> TicketGuard<'_> {
        lock.acquire();
        TicketGuard(lock)
    }
}

impl Drop for TicketGuard<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;

    fn lock(first: u32) -> TicketLock {
        TicketLock::of(AtomicU32::new(first), AtomicU32::new(first))
    }

    #[test]
    fn the_ticket_lock_has_one_holder_at_a_time() {
        struct Count(core::cell::UnsafeCell<u64>);
        // SAFETY: touched with the lock held only.
        unsafe impl Sync for Count {}
        let (lock, count) = (lock(0), Count(core::cell::UnsafeCell::new(0)));
        let (lock, count) = (&lock, &count);
        let rounds = if cfg!(miri) { 20 } else { 200 };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(move || {
                    for _ in 0..rounds {
                        lock.acquire();
                        // SAFETY: the lock is held.
                        unsafe { *count.0.get() += 1 };
                        lock.release();
                        std::thread::yield_now();
                    }
                });
            }
        });
        // SAFETY: the others have ended.
        assert_eq!(unsafe { *count.0.get() }, 2 * rounds);
    }

    #[test]
    fn numbers_that_wrap_are_as_good_as_others() {
        let lock = lock(u32::MAX);
        for _ in 0..2 {
            lock.acquire();
            lock.release();
        }
        let words = format!("{lock:?}");
        assert!(words.contains("now: 1"), "{words}");
    }
}
