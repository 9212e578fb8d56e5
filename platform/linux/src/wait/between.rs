//! Monitors that threads of several CPUs visit.
//!
//! ```text
//!   visit:  close gate -> wait for the turn -> look at the state, change it, answer waiters
//!           -> end the turn -> call the CPUs of who goes on -> enter the scheduler if somebody of
//!           this CPU is to go on or the caller is to wait -> open gate
//! ```
//!
//! Nobody is preempted in a turn, by anything of ours, so a turn is a few dozen instructions. Who
//! is answered on another CPU stands in that CPU's list of those who are called, which it looks at
//! when it enters its scheduler, and is kicked if it would not do that by itself.
//!
//! INV-M2: the seat of a thread that waits in such a monitor is touched in a turn of it only; so
//! who leaves the line, also at the end of the run, has a turn for that.

use core::sync::atomic::Ordering;

use punctual_kern::Event;
use punctual_model::Instant;

use crate::entry::request::{enter, open_gate};
use crate::record::host::Host;
use crate::record::light::{Light, Phase};
use crate::shared::turn::Turn;
use crate::wait::desk::{After, Desk};
use crate::wait::monitor::{Monitor, OpenOnPanic, Step, Visit, VisitError, end_or, is_to_end};

/// The place of a home that is a whole run.
pub(crate) const EVERY_CPU: u64 = 0xFFFF;

impl<S, const LINES: usize> Monitor<S, LINES> {
    /// State that belongs to all CPUs of the run of its first visitor. Who waits is served in the
    /// order of coming, since urgencies of different CPUs do not compare, and lends nothing.
    pub const fn between_cpus(state: S) -> Self {
        Monitor::belonging_to(EVERY_CPU, state)
    }

    /// Whether threads of every CPU of its run may visit it.
    #[cold]
    pub(crate) fn is_between_cpus(&self) -> bool {
        self.home.load(Ordering::Relaxed) & EVERY_CPU == EVERY_CPU
    }

    /// Gives the monitor its run, once.
    fn settle_between(&self, host: &Host) -> Result<(), VisitError> {
        let home = host.pool.home.get() | EVERY_CPU;
        let order = Ordering::Relaxed;
        match self.home.compare_exchange(EVERY_CPU, home, order, order) {
            Ok(_) => Ok(()),
            Err(other) if other == home => Ok(()),
            Err(_) => Err(VisitError::OtherCpu),
        }
    }

    /// [`Monitor::visit`] between CPUs. Waits for one visit of each other CPU at most, spinning.
    #[inline(never)]
    pub(crate) fn visit_between<R>(
        &self,
        light: &Light,
        host: &Host,
        until: Option<Instant>,
        visitor: impl FnOnce(&mut S, &mut Desk<'_>) -> Step<R>,
    ) -> Result<Visit<R>, VisitError> {
        self.settle_between(host)?;
        if host.gate.is_closed() {
            return Err(match light.quit.get() {
                true => VisitError::Over,
                false => VisitError::NoRun,
            });
        }
        host.gate.close();
        let mut desk = Desk::new(host, light, &self.lines, true);
        let step = {
            let opened = OpenOnPanic(host);
            let turn = InTurn::take(&self.turn);
            // SAFETY: it is this thread's turn, and its gate is closed: nobody else borrows the
            // state (INV-M1); the borrow ends with this call.
            let step = visitor(unsafe { &mut *self.state.get() }, &mut desk);
            if let Step::Wait { line, ask, .. } = step {
                self.lines[line].join(light, ask);
            }
            drop(turn);
            core::mem::forget(opened);
            step
        };
        let After { also, kicks, .. } = desk.close();
        host.shared.post.kick_all(kicks);
        match step {
            Step::Done(result) => {
                if also.is_null() {
                    open_gate(host);
                } else {
                    self.let_go(light, also, None);
                }
                Ok(Visit::Done(result))
            }
            Step::Wait { .. } => {
                host.pool.waking.set(also);
                self.wait_between(light, until)
            }
        }
    }

    /// Gate: closed on entry, open on return.
    #[inline(never)]
    fn wait_between<R>(
        &self,
        light: &Light,
        until: Option<Instant>,
    ) -> Result<Visit<R>, VisitError> {
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
            let turn = InTurn::take(&self.turn);
            let answer = light.seat.answer.take();
            if answer.is_none() && (late || ends) {
                light.seat.leave();
            }
            drop(turn);
            let result = match answer {
                Some(answer) => Ok(Visit::Answered(answer)),
                None if ends => Err(VisitError::Over),
                None if late => Err(VisitError::TimedOut),
                None => continue,
            };
            if !quit {
                open_gate(light.host());
            }
            return match result {
                Err(VisitError::Over) => end_or(result),
                result => result,
            };
        }
    }
}

/// A turn, which ends also when its visitor panics.
struct InTurn<'a>(&'a Turn);

impl InTurn<'_> {
    fn take(turn: &Turn) -> InTurn<'_> {
        turn.take();
        InTurn(turn)
    }
}

impl Drop for InTurn<'_> {
    fn drop(&mut self) {
        self.0.pass();
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;

    fn turn(first: u32) -> Turn {
        Turn::of(AtomicU32::new(first), AtomicU32::new(first))
    }

    #[test]
    fn nobody_takes_a_turn_during_another_s() {
        struct Count(core::cell::UnsafeCell<u64>);
        // SAFETY: touched in turns only.
        unsafe impl Sync for Count {}
        let (turn, count) = (turn(0), Count(core::cell::UnsafeCell::new(0)));
        let (turn, count) = (&turn, &count);
        let rounds = if cfg!(miri) { 20 } else { 200 };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(move || {
                    for _ in 0..rounds {
                        turn.take();
                        // SAFETY: it is this thread's turn.
                        unsafe { *count.0.get() += 1 };
                        turn.pass();
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
        let turn = turn(u32::MAX);
        for _ in 0..2 {
            turn.take();
            turn.pass();
        }
        let words = format!("{turn:?}");
        assert!(words.contains("now: 1"), "{words}");
    }
}
