//! Threads of the pool, typed: created with a closure, joined for its result.

use core::fmt;
use core::marker::PhantomData;

use punctual_kern::{Constraint, Event, NodeId};
use punctual_model::{Instant, Ns, ThreadId};

use crate::entry::request::{enter, open_gate};
use crate::record::light::{Light, Phase};
use crate::record::local::current_light;
use crate::record::per_cpu::PerCpu;
use crate::record::pool::{Kind, OnFault, Pooled, Room, Stage, discard};
use crate::run::dropped::{self, Dropped};
use crate::run::pool::{SpawnError, create};
use crate::wait::monitor::{MonitorError, rest_closed, rested};
use crate::wait::period::arrive;
use crate::wait::who::Who;

/// The key under which a thread inherits priority without any lock.
const YIELDED: u32 = u32::MAX;

/// A thread of the pool, to be joined for its result, or let go of by being dropped.
pub struct Child<T> {
    light: *const Light,
    generation: u64,
    home: u64,
    result: PhantomData<T>,
}

// SAFETY: the record is looked at on its own CPU only, which is checked at every use; the result
// goes from one thread of that CPU to another.
unsafe impl<T: Send> Send for Child<T> {}
// SAFETY: as above; every use goes through the gate of that CPU.
unsafe impl<T: Send> Sync for Child<T> {}

impl<T> fmt::Debug for Child<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("generation", &self.generation)
            .finish()
    }
}

/// Why a thread has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum JoinError {
    /// It panicked, and this is what it said.
    Panicked(String),
    /// It was ended by a wish, or by its overrun rule.
    Cancelled,
    /// It has not ended in time.
    TimedOut,
    /// The processor was taken from it.
    Abandoned,
    /// Somebody else waits for it.
    Taken,
    /// It waits for itself.
    Itself,
    /// The caller is on another CPU, on no light thread, or the run is over.
    NotHere,
}

/// Creates a thread that executes `body` under a constraint in nanoseconds, whose phase counts from
/// now, in the care of the caller's scheduler. Nothing is asked of the analysis here. O(log n),
/// without a system call; without allocation unless `body` or its result takes more than 256 bytes.
///
/// # Errors
/// See [`SpawnError`].
pub fn spawn<T, F>(name: &str, constraint: Constraint<Ns>, body: F) -> Result<Child<T>, SpawnError>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    spawn_with(name, constraint, (OnFault::EndThread, None), body)
}

/// As [`spawn`], with a rule for what happens when the thread panics, in the care of a scheduler
/// (`None`: the caller's). Nobody asks here whether the caller may name it.
///
/// # Errors
/// See [`SpawnError`].
pub fn spawn_with<T, F>(
    name: &str,
    constraint: Constraint<Ns>,
    (on_fault, scheduler): (OnFault, Option<NodeId>),
    body: F,
) -> Result<Child<T>, SpawnError>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let light = current_light().ok_or(SpawnError::NoRun)?;
    // SAFETY: the host outlives its threads; only its cells and atomics are used.
    let host = unsafe { &*light.host() };
    if !host.gate.is_closed() {
        let_go_of_dropped(host);
    }
    let (frequency, home) = (host.clock().frequency(), host.pool.home.get());
    let constraint = constraint.in_ticks(frequency);
    let mut body = Some(body);
    let put = |pooled: &Pooled| {
        pooled.on_fault.set(on_fault);
        pooled.call.set(Some(call::<T, F>));
        pooled.discard.set(Some(drop_in_room::<F>));
        pooled.discard_result.set(Some(drop_in_room::<T>));
        if let Some(body) = body.take() {
            // SAFETY: the record has just been taken off the free list: its room is empty.
            unsafe { pooled.room.put(body) };
        }
    };
    let created = create(light, (name, scheduler), constraint, put);
    let (light, generation) = created?;
    Ok(Child {
        light,
        generation,
        home,
        result: PhantomData,
    })
}

/// # Safety
/// The room holds an `F`.
unsafe fn call<T, F: FnOnce() -> T>(room: &Room) {
    // SAFETY: as the caller vouches.
    let body: F = unsafe { room.take() };
    let result = body();
    // SAFETY: the closure has been taken out.
    unsafe { room.put(result) };
}

/// # Safety
/// The room holds a `T`.
unsafe fn drop_in_room<T>(room: &Room) {
    // SAFETY: as the caller vouches.
    drop(unsafe { room.take::<T>() });
}

impl<T> Child<T> {
    /// The record, with its gate closed, if the caller may look at it.
    fn enter(&self) -> Option<(&'static Light, &'static Light)> {
        let me = current_light()?;
        // SAFETY: the host outlives its threads.
        let host = unsafe { &*me.host() };
        if host.pool.home.get() != self.home || host.gate.is_closed() {
            return None;
        }
        host.gate.close();
        // SAFETY: a record of this CPU in this run, which outlives it (INV-L1).
        Some((me, unsafe { &*self.light }))
    }

    /// Whether the caller is of its CPU, in its run: elsewhere it can be let go of, no more.
    pub fn is_here(&self) -> bool {
        // SAFETY: the host outlives its threads.
        let home = |light: &Light| unsafe { (*light.host()).pool.home.get() };
        current_light().is_some_and(|light| home(light) == self.home)
    }

    /// Its id in the core; `None` on another CPU, or after the run.
    pub fn id(&self) -> Option<ThreadId> {
        let (me, light) = self.enter()?;
        let id = light.id();
        open_gate(me.host());
        Some(id)
    }

    /// Who it is to monitors; `None` as for [`Child::id`].
    pub fn who(&self) -> Option<Who> {
        let (me, light) = self.enter()?;
        let who = Who::of(light);
        open_gate(me.host());
        Some(who)
    }

    /// Bytes of its stack that were ever used, by it or by threads before it in its place of the
    /// pool, and how many there are; `None` as for [`Child::id`].
    pub fn stack_used(&self) -> Option<(usize, usize)> {
        let (me, light) = self.enter()?;
        open_gate(me.host());
        Some((light.stack().high_water(), light.stack().bytes()))
    }

    /// Whether it has ended. False where that cannot be seen.
    pub fn is_finished(&self) -> bool {
        self.enter().is_some_and(|(me, light)| {
            let over = light.pooled.is_over();
            open_gate(me.host());
            over
        })
    }

    /// Ends its next wait or the present one ([`crate::block`]); other waits look again and go on
    /// waiting. `false` when it has ended or cannot be reached.
    pub fn wake(&self) -> bool {
        self.poke(|light| light.wait_node.token.set(true))
    }

    /// Waits like [`crate::block`], until `until` at most; the thread inherits the caller's
    /// priority meanwhile. Whether the caller was woken. `false` at once when it has ended, cannot
    /// be reached, or waits for the caller itself.
    pub fn yield_to(&self, until: Option<Instant>) -> bool {
        let Some((me, light)) = self.enter() else {
            return false;
        };
        let mut can_inherit = light.pooled.stage.get() == Stage::Working;
        let is_late = || until.is_some_and(|until| until <= me.now());
        let mut woken = me.wait_node.token.take();
        while !woken && can_inherit && !is_late() {
            let event = Event::BlockOn {
                holder: light.id(),
                key: YIELDED,
                until,
            };
            if rest_closed(me, event).is_err() {
                return false;
            }
            woken = me.wait_node.token.take();
            can_inherit = !light.pooled.is_over() && me.refused.get().is_none();
        }
        open_gate(me.host());
        woken
    }

    /// Has it end at its next scheduling point, by unwinding; it lets go of all that it holds.
    /// `false` when it has ended or cannot be reached.
    pub fn cancel(&self) -> bool {
        self.poke(Light::cancel)
    }

    fn poke(&self, mark: impl FnOnce(&Light)) -> bool {
        let Some((me, light)) = self.enter() else {
            return false;
        };
        let alive = light.pooled.stage.get() == Stage::Working;
        if alive {
            mark(light);
            let _ = enter(me, Event::Wake(light.id()));
        }
        if !me.quit.get() {
            open_gate(me.host());
        }
        alive
    }

    /// Takes the processor from it for good, wherever it executes. Its stack, its place in the
    /// pool and all that it holds stay as they are until the process ends, because others may know
    /// of them; the core forgets it. Who waits for its end is told ([`JoinError::Abandoned`]).
    /// `false` when that cannot be: it has ended, has not begun, asks for admission, waits (then
    /// [`Child::cancel`] ends it as soon as it runs), carries a scheduler or a program, or is
    /// the caller, or on another CPU.
    pub fn abandon(&self) -> bool {
        let Some((me, light)) = self.enter() else {
            return false;
        };
        let executes = light.phase.get() == Phase::Inside && !core::ptr::eq(me, light);
        let executes = executes && !light.is_held_alive() && !light.waits_inside();
        let carries = light.direct().is_some() || light.group().is_some();
        let works = light.pooled.stage.get() == Stage::Working;
        let mut done = executes && works && !carries;
        if done {
            let refused = enter(me, Event::Kill(light.id()));
            done = !(refused && me.refused.get().is_some());
        }
        if done {
            light.pooled.stage.set(Stage::Abandoned);
            let joiner = light.pooled.joiner.get();
            if !joiner.is_null() && !me.quit.get() {
                // Not with the event above: woken by that one it could find the old stage and wait
                // on, and nobody would wake it again.
                // SAFETY: the host outlives its threads.
                unsafe { (*me.host()).wake_also(joiner) };
                let _ = enter(me, Event::Tick);
            }
        }
        if !me.quit.get() {
            open_gate(me.host());
        }
        done
    }

    /// A job of it arrives now, if it is sporadic.
    ///
    /// # Errors
    /// The core's refusal, or [`SpawnError::NoRun`] where it cannot be reached.
    pub fn release(&self) -> Result<(), SpawnError> {
        let (me, light) = self.enter().ok_or(SpawnError::NoRun)?;
        arrive(me, light.id()).map_err(SpawnError::Refused)
    }

    /// Asks the core to change its constraint (nanoseconds), from its next zero-lag instant on.
    /// Nothing is asked of the analysis here.
    ///
    /// # Errors
    /// The core's refusal, or [`SpawnError::NoRun`] where it cannot be reached.
    pub fn change(&self, constraint: Constraint<Ns>) -> Result<(), SpawnError> {
        let (me, light) = self.enter().ok_or(SpawnError::NoRun)?;
        // SAFETY: the host outlives its threads.
        let frequency = unsafe { (*me.host()).clock().frequency() };
        let constraint = punctual_kern::Constraint {
            // Its place among those that arrive with it stays its own.
            order: light.pooled.order.get(),
            ..constraint.in_ticks(frequency)
        };
        let event = Event::Change {
            thread: light.id(),
            constraint,
        };
        let refused = enter(me, event);
        let reason = me.refused.get().filter(|_| refused);
        if reason.is_none() {
            light.pooled.kind.set(Kind::of(&constraint.class));
            light
                .pooled
                .is_under(&constraint.class, constraint.priority);
        }
        if !me.quit.get() {
            open_gate(me.host());
        }
        reason.map_or(Ok(()), |reason| Err(SpawnError::Refused(reason)))
    }

    /// Waits for its end, until `until` at most, and takes its result.
    ///
    /// # Errors
    /// See [`JoinError`]; after [`JoinError::TimedOut`] the handle is given back.
    pub fn join(self, until: Option<Instant>) -> Result<T, (JoinError, Option<Child<T>>)> {
        let (me, light) = match self.end(until) {
            Ok(both) => both,
            // There is no other place to take the result to.
            Err(JoinError::NotHere) => return Err((JoinError::NotHere, None)),
            Err(why) => return Err((why, Some(self))),
        };
        let pooled = &light.pooled;
        let stage = pooled.stage.get();
        if stage == Stage::Abandoned {
            // Dropped, it stays what it is.
            return Err((JoinError::Abandoned, None));
        }
        // SAFETY: the thread is over and has left its result, which only this handle takes.
        let result = (stage == Stage::Returned).then(|| unsafe { pooled.room.take::<T>() });
        let said = (stage == Stage::Panicked).then(|| light.take_panic().unwrap_or_default());
        self.give_back(me, light);
        match (result, said) {
            (Some(result), _) => Ok(result),
            (None, Some(said)) => Err((JoinError::Panicked(said), None)),
            (None, None) => Err((JoinError::Cancelled, None)),
        }
    }

    /// Waits for its end, until `until` at most, and leaves its result where it is.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub fn wait_end(&self, until: Option<Instant>) -> Result<(), JoinError> {
        let (_, light) = self.end(until)?;
        match light.pooled.stage.get() {
            Stage::Abandoned => Err(JoinError::Abandoned),
            _ => Ok(()),
        }
    }

    /// Waits for its end; the calling thread and the record. Gate open, before and after.
    fn end(&self, until: Option<Instant>) -> Result<(&'static Light, &'static Light), JoinError> {
        let (me, light) = self.enter().ok_or(JoinError::NotHere)?;
        let pooled = &light.pooled;
        if core::ptr::eq(me, light) || !pooled.joiner.get().is_null() {
            open_gate(me.host());
            return Err(match core::ptr::eq(me, light) {
                true => JoinError::Itself,
                false => JoinError::Taken,
            });
        }
        pooled.joiner.set(me);
        let waiting = Waiting(pooled);
        let waited = wait_for(me, until, || pooled.is_over());
        drop(waiting);
        match waited {
            Ok(()) => Ok((me, light)),
            Err(MonitorError::TimedOut) => Err(JoinError::TimedOut),
            Err(_) => Err(JoinError::NotHere),
        }
    }

    /// The record goes back to the pool. Gate open.
    fn give_back(self, me: &Light, light: &Light) {
        // SAFETY: the host outlives its threads.
        let host = unsafe { &*me.host() };
        host.gate.close();
        light.pooled.discard.set(None);
        host.pool.put(light);
        core::mem::forget(self);
        open_gate(host);
    }
}

/// Somebody waits for the end of a thread: no longer, however it goes on.
struct Waiting<'a>(&'a Pooled);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.joiner.set(core::ptr::null());
    }
}

/// Waits until `is_over`, as told by a wake-up. Gate: closed on entry, open on return.
fn wait_for(
    me: &Light,
    until: Option<Instant>,
    is_over: impl Fn() -> bool,
) -> Result<(), MonitorError> {
    let mut result = Ok(());
    while !is_over() {
        if until.is_some_and(|until| until <= me.now()) {
            result = Err(MonitorError::TimedOut);
            break;
        }
        rest_closed(me, Event::Block { until })?;
    }
    open_gate(me.host());
    result
}

impl<T> Drop for Child<T> {
    /// Lets the thread go on alone; nobody will ask for its result.
    fn drop(&mut self) {
        match self.enter() {
            // SAFETY: the host outlives its threads.
            Some((me, light)) => let_go(unsafe { &*me.host() }, light),
            // Its own CPU does it.
            None => dropped::note(Dropped {
                light: self.light,
                generation: self.generation,
                home: self.home,
            }),
        }
    }
}

/// Nobody will ask for the result of a thread. Gate: closed on entry, open on return.
fn let_go(host: &PerCpu, light: &Light) {
    if light.pooled.stage.get() == Stage::Abandoned {
        // Its record is of no use any more.
        return open_gate(host);
    }
    let over = light.pooled.is_over();
    light.pooled.detached.set(true);
    light.pooled.joiner.set(core::ptr::null());
    open_gate(host);
    if over {
        if light.pooled.stage.get() == Stage::Returned {
            discard(&light.pooled);
        }
        host.gate.close();
        host.pool.put(light);
        open_gate(host);
    }
}

/// Lets go of the threads of this CPU whose handles were dropped elsewhere. Gate: open.
fn let_go_of_dropped(host: &PerCpu) {
    while let Some(Dropped {
        light, generation, ..
    }) = dropped::take(host)
    {
        host.gate.close();
        // SAFETY: a record of this CPU in this run, which outlives it (INV-L1).
        let light = unsafe { &*light };
        // A handle is dropped once, and its record is nobody else's before that.
        debug_assert_eq!(light.pooled.generation.get(), generation);
        let_go(host, light);
    }
}

/// Waits for [`Child::wake`], also for one that has come before, until `until` at most; whether it
/// was woken. A scheduling point.
pub fn block(until: Option<Instant>) -> bool {
    let Some(me) = current_light() else {
        return false;
    };
    // SAFETY: the host outlives its threads.
    let gate = unsafe { &(*me.host()).gate };
    if gate.is_closed() {
        return false;
    }
    gate.close();
    // Nearly all waits: nothing has come, and nobody has to end.
    if until.is_none() && !me.may_end.get() && !me.wait_node.token.get() {
        me.phase.set(Phase::Resting);
        let _ = enter(me, Event::Block { until: None });
        me.phase.set(Phase::Inside);
        if me.may_end.get() && rested(me).is_err() {
            return false;
        }
    }
    if me.wait_node.token.take() {
        open_gate(me.host());
        return true;
    }
    block_on(me, until)
}

/// The same where that has not come yet. Gate: closed on entry, open on return.
#[inline(never)]
fn block_on(me: &Light, until: Option<Instant>) -> bool {
    wait_for(me, until, || me.wait_node.token.take()).is_ok()
}
