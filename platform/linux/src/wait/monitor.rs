//! State that the threads of one CPU share, and the queues in which they wait for it to change.
//!
//! ```text
//!   critical section:  close gate -> look at the state, change it, answer waiters
//!           -> enter the scheduler if a thread is to go on or the caller is to wait -> open gate
//! ```
//!
//! One kernel thread carries a CPU, so with the gate closed nobody else of that CPU executes: a
//! critical section is atomic without any atomic instruction, and without an entry of the scheduler
//! when nobody has to wait or to go on. A thread of another CPU is refused.
//!
//! A monitor of several CPUs has a ticket lock beside that: see `cross_cpu`.
//!
//! INV-M1: the state is borrowed only in a critical section, with the gate closed and, between
//! CPUs, in the lock held, and never across an entry of the scheduler.

use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::panic::resume_unwind;

use punctual_kern::{Event, Refusal};
use punctual_model::Instant;

use crate::entry::request::{enter, open_gate};
use crate::record::body::StopJob;
use crate::record::light::{Light, Phase};
use crate::record::local::current_light;
use crate::record::per_cpu::PerCpu;
use crate::record::wait_queue::WaitQueue;
use crate::shared::ticket_lock::TicketLock;
use crate::wait::waiters::{After, Waiters};
use crate::wait::who::Who;

/// The place of a home that is a whole run.
pub(crate) const EVERY_CPU: u64 = 0xFFFF;

/// The state `S`, with `QUEUES` queues of waiting threads.
pub struct Monitor<S, const QUEUES: usize> {
    /// Which CPU of which run it belongs to, or which run; 0: none yet.
    pub(crate) home: AtomicU64,
    /// Taken for each critical section, between CPUs.
    pub(crate) lock: TicketLock,
    pub(crate) state: UnsafeCell<S>,
    pub(crate) queues: [WaitQueue; QUEUES],
}

// SAFETY: one thread at a time has the state: those of one CPU with its gate closed, or those of
// several CPUs with the lock held (INV-M1). It may be made on one kernel thread and used on
// another.
unsafe impl<S: Send, const QUEUES: usize> Sync for Monitor<S, QUEUES> {}
// SAFETY: nobody waits in it while it is moved, because who waits borrows it.
unsafe impl<S: Send, const QUEUES: usize> Send for Monitor<S, QUEUES> {}

impl<S: Default, const QUEUES: usize> Default for Monitor<S, QUEUES> {
    fn default() -> Self {
        Monitor::new(S::default())
    }
}

impl<S, const QUEUES: usize> fmt::Debug for Monitor<S, QUEUES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").finish_non_exhaustive()
    }
}

/// What a critical section ends with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step<R> {
    /// With this result.
    Done(R),
    /// The caller waits until somebody answers it.
    Wait {
        /// In which queue.
        queue: usize,
        /// What for, in the words of the monitor's maker.
        ask: u64,
        /// For whom: that thread inherits the caller's urgency.
        holder: Option<Who>,
    },
}

impl<R> Step<R> {
    /// The caller waits in a queue, and nobody inherits from it.
    pub const fn wait(queue: usize, ask: u64) -> Step<R> {
        Step::Wait {
            queue,
            ask,
            holder: None,
        }
    }
}

/// How a critical section ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SectionEnd<R> {
    /// It was [`Step::Done`].
    Done(R),
    /// It waited, and this is the answer.
    Answered(u64),
}

/// Why a critical section failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MonitorError {
    /// The caller is on no light thread of a run, or in another critical section.
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

impl<S, const QUEUES: usize> Monitor<S, QUEUES> {
    /// State that belongs to the CPU of its first section.
    pub const fn new(state: S) -> Self {
        Monitor::belonging_to(0, state)
    }

    pub(crate) const fn belonging_to(home: u64, state: S) -> Self {
        Monitor {
            home: AtomicU64::new(home),
            lock: TicketLock::of(AtomicU32::new(0), AtomicU32::new(0)),
            state: UnsafeCell::new(state),
            queues: [const { WaitQueue::new() }; QUEUES],
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

    /// Looks at the state and changes it, alone; waits if the section says so, until `until` at
    /// most. The section must be short, and is not preempted. A scheduling point when somebody goes
    /// on or waits; none else. O(1) beside the section and the scheduler.
    ///
    /// # Errors
    /// See [`MonitorError`]. After [`MonitorError::TimedOut`] the caller waits no more.
    #[inline(always)]
    pub fn critical_section<R>(
        &self,
        until: Option<Instant>,
        section: impl FnOnce(&mut S, &mut Waiters<'_>) -> Step<R>,
    ) -> Result<SectionEnd<R>, MonitorError> {
        let light = current_light().ok_or(MonitorError::NoRun)?;
        // SAFETY: the host outlives its threads; only its cells and atomics are used.
        let host = unsafe { &*light.host() };
        let is_elsewhere = self.home.load(Ordering::Relaxed) != host.pool.home.get();
        let crosses = is_elsewhere && self.settle(host)?;
        if host.gate.is_closed() {
            return Err(match light.quit.get() {
                true => MonitorError::Over,
                false => MonitorError::NoRun,
            });
        }
        host.gate.close();
        if crosses {
            self.lock.acquire();
        }
        let mut waiters = Waiters::new(host, light, &self.queues, crosses);
        let left = LeaveOnPanic(host, crosses.then_some(&self.lock));
        // The only call: so the compiler has it in the place where a program calls this.
        // SAFETY: the gate is closed on the CPU that the state belongs to, and between CPUs the
        // lock is held, so nobody else borrows it (INV-M1); the borrow ends with this call.
        let step = section(unsafe { &mut *self.state.get() }, &mut waiters);
        core::mem::forget(left);
        let after = waiters.close();
        if crosses {
            return self.leave_across(light, host, until, (step, after));
        }
        let After {
            also,
            handed,
            lowered,
            ..
        } = after;
        match step {
            Step::Done(result) => {
                if handed.is_some() || lowered {
                    self.let_go(light, also, handed);
                } else {
                    let_go_on(light, also);
                }
                Ok(SectionEnd::Done(result))
            }
            Step::Wait { queue, ask, holder } => {
                host.wake_also(also);
                self.queues[queue].join(light, ask);
                let answer = match (until, holder) {
                    (None, None) => wait_once(light),
                    (None, Some(holder)) => self.wait_once_for(light, host, holder),
                    _ => None,
                };
                if let Some(answer) = answer {
                    return Ok(SectionEnd::Answered(answer));
                }
                self.wait(light, holder, until)
            }
        }
    }

    /// Looks at the state and changes it, alone, when nobody goes on and nobody waits for that.
    ///
    /// # Errors
    /// As for [`Monitor::critical_section`].
    #[inline]
    pub fn look<R>(&self, look: impl FnOnce(&mut S) -> R) -> Result<R, MonitorError> {
        match self.critical_section(None, |state, _| Step::Done(look(state)))? {
            SectionEnd::Done(result) => Ok(result),
            // Nobody answers who does not wait.
            SectionEnd::Answered(_) => Err(MonitorError::Over),
        }
    }

    /// Gives the monitor its CPU, once, or its run if it is one of several CPUs: whether it is.
    #[cold]
    #[inline(never)]
    fn settle(&self, host: &PerCpu) -> Result<bool, MonitorError> {
        let is_cross_cpu = self.is_cross_cpu();
        let (new, home) = match is_cross_cpu {
            true => (EVERY_CPU, host.pool.home.get() | EVERY_CPU),
            false => (0, host.pool.home.get()),
        };
        let order = Ordering::Relaxed;
        match self.home.compare_exchange(new, home, order, order) {
            Ok(_) => Ok(is_cross_cpu),
            Err(other) if other == home => Ok(is_cross_cpu),
            Err(_) => Err(MonitorError::OtherCpu),
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
                let others = first.wait_node.also.replace(core::ptr::null());
                (Event::Wake(first.id()), others)
            }
            (None, None) => (Event::Tick, also),
        };
        // SAFETY: the host outlives its threads.
        unsafe { (*host).wake_also(also) };
        enter(light, event);
        if !light.quit.get() {
            open_gate(host);
        }
    }

    /// [`wait_once`] for what `holder` has.
    #[inline(never)]
    fn wait_once_for(&self, light: &Light, host: &PerCpu, holder: Who) -> Option<u64> {
        let holder = holder.light(host)?.id();
        let (key, until) = (self.key(), None);
        wait_once_by(light, Event::BlockOn { holder, key, until })
    }

    /// In its queue already, and perhaps once woken. Gate: closed on entry, open on return.
    #[inline(never)]
    fn wait<R>(
        &self,
        light: &Light,
        mut holder: Option<Who>,
        until: Option<Instant>,
    ) -> Result<SectionEnd<R>, MonitorError> {
        if light.quit.get() {
            light.wait_node.leave();
            return end_or(Err(MonitorError::Over));
        }
        let mut error = MonitorError::TimedOut;
        // One that goes on after it was told to end (C) does not wait again.
        while !is_to_end(light) {
            if until.is_some_and(|until| until <= light.now()) {
                break;
            }
            let refused = self.block(light, holder, until);
            if let Some(answer) = light.wait_node.answer.take() {
                // Who answers has it leave the queue.
                if !light.quit.get() {
                    open_gate(light.host());
                }
                return Ok(SectionEnd::Answered(answer));
            }
            if light.quit.get() {
                light.wait_node.leave();
                return end_or(Err(MonitorError::Over));
            }
            match refused {
                Some(Refusal::Deadlock(_)) => {
                    error = MonitorError::Deadlock;
                    break;
                }
                // A holder that has ended inherits nothing.
                Some(_) => holder = None,
                None => {}
            }
        }
        light.wait_node.leave();
        let ends = is_to_end(light);
        if light.quit.get() {
            return Err(error);
        }
        open_gate(light.host());
        match ends {
            true => end_or(Err(error)),
            false => Err(error),
        }
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

/// Lets those go on that were answered: most sections let none go on, or one, whose wake-up is the
/// event; nothing else needs attention then. Gate: closed on entry, open on return.
#[inline(always)]
fn let_go_on(light: &Light, also: *const Light) {
    // SAFETY: records outlive the run (INV-L1 of `light`).
    if let Some(first) = unsafe { also.as_ref() } {
        let others = first.wait_node.also.replace(core::ptr::null());
        // SAFETY: the host outlives its threads.
        unsafe { (*light.host()).wake_also(others) };
        enter(light, Event::Wake(first.id()));
        if light.quit.get() {
            return;
        }
    }
    open_gate(light.host());
}

/// Ends the calling thread by unwinding, unless it is doing so already, or executes the destructors
/// of its thread-locals.
pub(crate) fn end_or<R>(result: Result<R, MonitorError>) -> Result<R, MonitorError> {
    let ending = |light: &Light| light.pooled.ending.get();
    if std::thread::panicking() || current_light().is_some_and(ending) {
        return result;
    }
    resume_unwind(Box::new(StopJob));
}

/// Waits once, in a way that ends the thread when it is to end. Gate: closed on entry and, unless
/// this fails, on return.
pub(crate) fn rest_closed(light: &Light, event: Event) -> Result<(), MonitorError> {
    if is_to_end(light) {
        open_gate(light.host());
        return end_or(Err(MonitorError::Over));
    }
    light.phase.set(Phase::Resting);
    let _ = enter(light, event);
    light.phase.set(Phase::Inside);
    rested(light)
}

/// The end of a wait, which ends the thread when it is to end. Gate: as for [`rest_closed`].
pub(crate) fn rested(light: &Light) -> Result<(), MonitorError> {
    if light.quit.get() {
        return end_or(Err(MonitorError::Over));
    }
    if is_to_end(light) {
        open_gate(light.host());
        return end_or(Err(MonitorError::Over));
    }
    Ok(())
}

/// Waits in its queue until it is woken: the answer. Gate: closed on entry, and open on return if
/// there is one.
#[inline(never)]
fn wait_once(light: &Light) -> Option<u64> {
    wait_once_by(light, Event::Block { until: None })
}

#[inline(always)]
fn wait_once_by(light: &Light, event: Event) -> Option<u64> {
    if is_to_end(light) {
        return None;
    }
    light.phase.set(Phase::Resting);
    let _ = enter(light, event);
    light.phase.set(Phase::Inside);
    let answer = light.wait_node.answer.take();
    // Who answers has it leave the queue.
    if answer.is_some() && !light.quit.get() {
        open_gate(light.host());
    }
    answer
}

/// Whether the calling thread was cancelled, is not ending yet, and is in no call that must not be
/// left half done ([`crate::held_alive`]).
#[inline]
pub(crate) fn is_to_end(light: &Light) -> bool {
    light.wait_node.cancelled.get() && !light.is_held_alive() && !std::thread::panicking()
}

/// A section that panics must not leave the gate closed, nor the lock held.
pub(crate) struct LeaveOnPanic<'a>(pub(crate) &'a PerCpu, pub(crate) Option<&'a TicketLock>);

impl Drop for LeaveOnPanic<'_> {
    fn drop(&mut self) {
        if let Some(lock) = self.1 {
            lock.release();
        }
        open_gate(self.0);
    }
}
