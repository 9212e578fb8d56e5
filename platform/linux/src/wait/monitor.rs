//! State that the threads of one CPU share, and the lines in which they wait for it to change.
//!
//! ```text
//!   visit:  close gate -> look at the state, change it, answer waiters -> enter the scheduler if
//!           somebody is to go on or the caller is to wait -> open gate
//! ```
//!
//! One kernel thread carries a CPU, so with the gate closed nobody else of that CPU executes: a
//! visit is atomic without any atomic instruction, and without an entry of the scheduler when
//! nobody has to wait or to go on. A thread of another CPU is refused.
//!
//! What threads of several CPUs visit takes turns beside that: see `between`.
//!
//! INV-M1: the state is borrowed only during a visit, with the gate closed and, between CPUs, in
//! one's turn, and never across an entry of the scheduler.

use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::panic::resume_unwind;

use punctual_kern::{Event, Refusal};
use punctual_model::Instant;

use crate::entry::request::{enter, open_gate};
use crate::record::body::StopJob;
use crate::record::host::Host;
use crate::record::light::{Light, Phase};
use crate::record::local::current_light;
use crate::record::seat::Line;
use crate::shared::turn::Turn;
use crate::wait::desk::{After, Desk};
use crate::wait::who::Who;

/// The state `S`, with `LINES` lines of waiting threads.
pub struct Monitor<S, const LINES: usize> {
    /// Which CPU of which run it belongs to, or which run; 0: none yet.
    pub(crate) home: AtomicU64,
    /// Whose turn it is, between CPUs.
    pub(crate) turn: Turn,
    pub(crate) state: UnsafeCell<S>,
    pub(crate) lines: [Line; LINES],
}

// SAFETY: the state is visited by one thread at a time: those of one CPU with its gate closed, or
// those of several each in its turn (INV-M1). It may be made on one kernel thread and visited on
// another.
unsafe impl<S: Send, const LINES: usize> Sync for Monitor<S, LINES> {}
// SAFETY: nobody waits in it while it is moved, because who waits borrows it.
unsafe impl<S: Send, const LINES: usize> Send for Monitor<S, LINES> {}

impl<S: Default, const LINES: usize> Default for Monitor<S, LINES> {
    fn default() -> Self {
        Monitor::new(S::default())
    }
}

impl<S, const LINES: usize> fmt::Debug for Monitor<S, LINES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").finish_non_exhaustive()
    }
}

/// How a visit ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step<R> {
    /// With this result.
    Done(R),
    /// The caller waits until somebody answers it.
    Wait {
        /// In which line.
        line: usize,
        /// What for, in the words of the monitor's maker.
        ask: u64,
        /// For whom: that thread is lent the caller's urgency.
        holder: Option<Who>,
    },
}

impl<R> Step<R> {
    /// The caller waits in a line, and lends nothing.
    pub const fn wait(line: usize, ask: u64) -> Step<R> {
        Step::Wait {
            line,
            ask,
            holder: None,
        }
    }
}

/// What a visit led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visit<R> {
    /// It was [`Step::Done`].
    Done(R),
    /// It waited, and this is the answer.
    Answered(u64),
}

/// Why a visit failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum VisitError {
    /// The caller is on no light thread of a run, or inside another visit.
    NoRun,
    /// It belongs to another CPU, or to a run that is over.
    OtherCpu,
    /// Nobody answered in time.
    TimedOut,
    /// To wait would be to wait for oneself, along a chain of holders.
    Deadlock,
    /// Somebody else waits for it, and only one may.
    Taken,
    /// The run is over.
    Over,
}

impl<S, const LINES: usize> Monitor<S, LINES> {
    /// State that belongs to the CPU of its first visitor.
    pub const fn new(state: S) -> Self {
        Monitor::belonging_to(0, state)
    }

    pub(crate) const fn belonging_to(home: u64, state: S) -> Self {
        Monitor {
            home: AtomicU64::new(home),
            turn: Turn::of(AtomicU32::new(0), AtomicU32::new(0)),
            state: UnsafeCell::new(state),
            lines: [const { Line::new() }; LINES],
        }
    }

    /// The state, of which nobody else knows.
    pub fn get_mut(&mut self) -> &mut S {
        self.state.get_mut()
    }

    /// The state, taken out.
    pub fn into_inner(self) -> S {
        self.state.into_inner()
    }

    /// Looks at the state and changes it, alone; waits if the visitor says so, until `until` at
    /// most. The visitor must be short, and is not preempted. A scheduling point when somebody goes
    /// on or waits; none else. O(1) beside the visitor and the scheduler.
    ///
    /// # Errors
    /// See [`VisitError`]. After [`VisitError::TimedOut`] the caller waits no more.
    #[inline(always)]
    pub fn visit<R>(
        &self,
        until: Option<Instant>,
        visitor: impl FnOnce(&mut S, &mut Desk<'_>) -> Step<R>,
    ) -> Result<Visit<R>, VisitError> {
        let light = current_light().ok_or(VisitError::NoRun)?;
        // SAFETY: the host outlives its threads; only its cells and atomics are used.
        let host = unsafe { &*light.host() };
        if self.home.load(Ordering::Relaxed) != host.pool.home.get() {
            if self.is_between_cpus() {
                return self.visit_between(light, host, until, visitor);
            }
            self.settle(host)?;
        }
        if host.gate.is_closed() {
            return Err(match light.quit.get() {
                true => VisitError::Over,
                false => VisitError::NoRun,
            });
        }
        host.gate.close();
        let mut desk = Desk::new(host, light, &self.lines, false);
        let step = {
            let opened = OpenOnPanic(host);
            // SAFETY: the gate is closed on the CPU that the state belongs to, so nobody else
            // borrows it (INV-M1); the borrow ends with this call.
            let step = visitor(unsafe { &mut *self.state.get() }, &mut desk);
            core::mem::forget(opened);
            step
        };
        let After {
            also,
            handed,
            lowered,
            ..
        } = desk.close();
        match step {
            Step::Done(result) => {
                if also.is_null() && handed.is_none() && !lowered {
                    open_gate(host);
                } else {
                    self.let_go(light, also, handed);
                }
                Ok(Visit::Done(result))
            }
            Step::Wait { line, ask, holder } => {
                host.pool.waking.set(also);
                self.wait(light, (line, ask, holder), until)
            }
        }
    }

    /// Looks at the state and changes it, alone, when nobody goes on and nobody waits for that.
    ///
    /// # Errors
    /// As for [`Monitor::visit`].
    #[inline]
    pub fn look<R>(&self, look: impl FnOnce(&mut S) -> R) -> Result<R, VisitError> {
        match self.visit(None, |state, _| Step::Done(look(state)))? {
            Visit::Done(result) => Ok(result),
            // Nobody answers who does not wait.
            Visit::Answered(_) => Err(VisitError::Over),
        }
    }

    /// Gives the monitor its CPU, once.
    #[cold]
    fn settle(&self, host: &Host) -> Result<(), VisitError> {
        let home = host.pool.home.get();
        let order = Ordering::Relaxed;
        match self.home.compare_exchange(0, home, order, order) {
            Ok(_) => Ok(()),
            Err(other) if other == home => Ok(()),
            Err(_) => Err(VisitError::OtherCpu),
        }
    }

    /// What stands for this monitor in the core: nobody else has it while somebody waits here.
    fn key(&self) -> u32 {
        let address = core::ptr::from_ref(self).addr() >> 3;
        u32::try_from(address & 0xFFFF_FFFF).unwrap_or(0)
    }

    /// Lets those go on that were answered. Gate: closed on entry, open on return.
    #[inline(never)]
    pub(crate) fn let_go(&self, light: &Light, also: *const Light, handed: Option<&Light>) {
        let host = light.host();
        // SAFETY: records outlive the run (INV-L1 of `light`).
        let (event, also) = match (handed, unsafe { also.as_ref() }) {
            (Some(to), _) => {
                let (key, from, to) = (self.key(), light.id(), to.id());
                (Event::HandOver { key, from, to }, also)
            }
            // Most visits let one go on, and that is the event: nothing else needs attention.
            (None, Some(first)) => {
                let others = first.seat.also.replace(core::ptr::null());
                (Event::Wake(first.id()), others)
            }
            (None, None) => (Event::Tick, also),
        };
        // SAFETY: the host outlives its threads.
        unsafe { (*host).pool.waking.set(also) };
        enter(light, event);
        if !light.quit.get() {
            open_gate(host);
        }
    }

    /// Gate: closed on entry, open on return.
    #[inline(never)]
    fn wait<R>(
        &self,
        light: &Light,
        (line, ask, mut holder): (usize, u64, Option<Who>),
        until: Option<Instant>,
    ) -> Result<Visit<R>, VisitError> {
        self.lines[line].join(light, ask);
        let mut result = Err(VisitError::TimedOut);
        // One that goes on after it was told to end (C) does not wait again.
        while !is_to_end(light) {
            if until.is_some_and(|until| until <= light.now()) {
                break;
            }
            let refused = self.block(light, holder, until);
            if let Some(answer) = light.seat.answer.take() {
                result = Ok(Visit::Answered(answer));
                break;
            }
            if light.quit.get() {
                light.seat.leave();
                return end_or(Err(VisitError::Over));
            }
            match refused {
                Some(Refusal::Deadlock(_)) => {
                    result = Err(VisitError::Deadlock);
                    break;
                }
                // A holder that has ended cannot be lent anything.
                Some(_) => holder = None,
                None => {}
            }
        }
        light.seat.leave();
        let ends = light.seat.cancelled.get() && result.is_err();
        if light.quit.get() {
            return result;
        }
        open_gate(light.host());
        if ends {
            return end_or(result);
        }
        result
    }

    /// Blocks until something happens; why the core refused. Gate closed, before and after.
    fn block(&self, light: &Light, holder: Option<Who>, until: Option<Instant>) -> Option<Refusal> {
        // SAFETY: the host outlives its threads.
        let host = unsafe { &*light.host() };
        let event = match holder.and_then(|who| who.light(host)) {
            Some(holder) => Event::BlockOn {
                holder: holder.id(),
                key: self.key(),
                until,
            },
            None => Event::Block { until },
        };
        light.phase.set(Phase::Resting);
        let refused = enter(light, event);
        light.phase.set(Phase::Inside);
        light.refused.get().filter(|_| refused)
    }
}

/// Ends the calling thread by unwinding, unless it is doing so already, or executes the destructors
/// of its thread-locals.
pub(crate) fn end_or<R>(result: Result<R, VisitError>) -> Result<R, VisitError> {
    let ending = |light: &Light| light.pooled.ending.get();
    if std::thread::panicking() || current_light().is_some_and(ending) {
        return result;
    }
    resume_unwind(Box::new(StopJob));
}

/// Waits once, in a way that ends the thread when it is to end. Gate: closed on entry and, unless
/// this fails, on return.
pub(crate) fn rest_closed(light: &Light, event: Event) -> Result<(), VisitError> {
    if is_to_end(light) {
        open_gate(light.host());
        return end_or(Err(VisitError::Over));
    }
    light.phase.set(Phase::Resting);
    let _ = enter(light, event);
    light.phase.set(Phase::Inside);
    if light.quit.get() {
        return end_or(Err(VisitError::Over));
    }
    if is_to_end(light) {
        open_gate(light.host());
        return end_or(Err(VisitError::Over));
    }
    Ok(())
}

/// Whether the calling thread was cancelled and is not ending yet.
pub(crate) fn is_to_end(light: &Light) -> bool {
    light.seat.cancelled.get() && !std::thread::panicking()
}

/// A visitor that panics must not leave the gate closed.
pub(crate) struct OpenOnPanic<'a>(pub(crate) &'a Host);

impl Drop for OpenOnPanic<'_> {
    fn drop(&mut self) {
        open_gate(self.0);
    }
}
