//! Threads that are ready before anybody asks for them.
//!
//! ```text
//!   Free --spawn--> Born --runs--> Working --returns, panics, is cancelled--> Over
//!    ^                                                                          |
//!    +-------------------- joined, or nobody will -------------------------------+
//!
//!   Working --abandoned--> out of use
//! ```
//!
//! Stacks and storages of the pool are made before the run, and every thread has run up to its
//! first wait. To create one is to take a record off a list, put the closure into its room, and one
//! entry of the core: nothing is allocated (unless a closure or its result is larger than the
//! room) and the system is not called. A record goes back to the list when its result has been
//! taken; its thread-locals are new then (`fresh`).

use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_kern::{Constraint, Event};
use punctual_model::ThreadId;

use crate::fresh;
use crate::host::Host;
use crate::job::{StopJob, promise};
use crate::light::{Light, Phase, describe, open_gate};
use crate::monitor::enter;
use crate::name::Name;
use crate::period::Kind;

/// Bytes of a closure or a result that need no allocation.
pub(crate) const ROOM: usize = 256;

/// A place for a closure, then for its result.
#[repr(C, align(16))]
pub(crate) struct Room(UnsafeCell<[MaybeUninit<u8>; ROOM]>);

impl Room {
    const fn holds<X>() -> bool {
        size_of::<X>() <= ROOM && align_of::<X>() <= 16
    }

    /// Puts a value in; a large one goes to the heap.
    ///
    /// # Safety
    /// The room is empty and nobody else uses it.
    pub(crate) unsafe fn put<X>(&self, value: X) {
        if Self::holds::<X>() {
            // SAFETY: large and aligned enough, and empty, as the caller vouches.
            unsafe { self.0.get().cast::<X>().write(value) };
        } else {
            // SAFETY: as above.
            unsafe { self.0.get().cast::<Box<X>>().write(Box::new(value)) };
        }
    }

    /// Takes the value out.
    ///
    /// # Safety
    /// It holds an `X` that was put in, and nobody else uses it.
    pub(crate) unsafe fn take<X>(&self) -> X {
        if Self::holds::<X>() {
            // SAFETY: as the caller vouches.
            unsafe { self.0.get().cast::<X>().read() }
        } else {
            // SAFETY: as above.
            *unsafe { self.0.get().cast::<Box<X>>().read() }
        }
    }
}

/// What a thread of the pool is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// No thread of a pool.
    Planned,
    Free,
    /// It has a closure to run, or runs it.
    Working,
    /// Its result is in the room.
    Returned,
    /// It panicked; the record of the light thread knows what it said.
    Panicked,
    /// It was ended by a wish.
    Cancelled,
    /// The processor was taken from it for good, wherever it was. Its record is not used again.
    Abandoned,
}

/// What happens when a thread panics. It ends in any case, and lets go of what it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnFault {
    /// The others go on.
    #[default]
    EndThread,
    /// The run ends.
    EndRun,
}

/// What a record of the pool has beside a light thread. Gate closed, unless said otherwise.
pub(crate) struct Pooled {
    pub(crate) stage: Cell<Stage>,
    /// Threads that have lived in this record. Read by anybody on this CPU.
    pub(crate) birth: Cell<u64>,
    /// What comes after a job.
    pub(crate) kind: Cell<Kind>,
    pub(crate) on_fault: Cell<OnFault>,
    /// Its closure has returned or was unwound: nothing ends it early any more.
    pub(crate) ending: Cell<bool>,
    /// Nobody will ask for the result.
    pub(crate) detached: Cell<bool>,
    /// Who waits for its end.
    pub(crate) joiner: Cell<*const Light>,
    /// The next of the free list.
    next: Cell<*const Light>,
    /// Executes the closure in the room and leaves the result there. The thread itself.
    pub(crate) call: Cell<Option<unsafe fn(&Room)>>,
    /// Drops what is in the room: a closure that has not begun, or a result.
    pub(crate) discard: Cell<Option<unsafe fn(&Room)>>,
    /// Drops a result.
    pub(crate) discard_result: Cell<Option<unsafe fn(&Room)>>,
    pub(crate) room: Room,
}

impl Pooled {
    pub(crate) const fn new(stage: Stage) -> Pooled {
        Pooled {
            stage: Cell::new(stage),
            birth: Cell::new(0),
            kind: Cell::new(Kind::Endless),
            on_fault: Cell::new(OnFault::EndThread),
            ending: Cell::new(false),
            detached: Cell::new(false),
            joiner: Cell::new(core::ptr::null()),
            next: Cell::new(core::ptr::null()),
            call: Cell::new(None),
            discard: Cell::new(None),
            discard_result: Cell::new(None),
            room: Room(UnsafeCell::new([MaybeUninit::uninit(); ROOM])),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(
            self.stage.get(),
            Stage::Returned | Stage::Panicked | Stage::Cancelled | Stage::Abandoned
        )
    }
}

type GoesBefore = unsafe fn(host: *const Host, a: ThreadId, b: ThreadId) -> bool;

/// The pool of one CPU, and what its monitors need. Gate closed.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: Cell<*const Light>,
    /// The record that the next [`Event::Create`] is for.
    newborn: Cell<*const Light>,
    /// Those that go on after the next event.
    pub(crate) waking: Cell<*const Light>,
    /// Which CPU of which run this is; never 0.
    pub(crate) home: Cell<u64>,
    goes_before: Cell<Option<GoesBefore>>,
    /// Threads created so far: the last tie-break between equals.
    created: Cell<u32>,
    /// The first of them by name, as many as there is room for.
    births: UnsafeCell<Vec<(ThreadId, Name)>>,
}

impl Pool {
    /// Before the run.
    pub(crate) fn set_up(&self, home: u64, goes_before: GoesBefore, births: usize) {
        self.home.set(home);
        self.goes_before.set(Some(goes_before));
        // Written once, so that the pages exist before the run.
        let mut room = vec![(ThreadId::new(u32::MAX, 1), Name::new("?")); births];
        room.clear();
        // SAFETY: nobody creates a thread before the run.
        unsafe { *self.births.get() = room };
    }

    /// Who was created, by name. After the run.
    pub(crate) fn births(&self) -> Vec<(ThreadId, String)> {
        // SAFETY: nobody creates a thread after the run.
        let births = unsafe { core::mem::take(&mut *self.births.get()) };
        let named = births.into_iter();
        named
            .map(|(id, name)| (id, name.as_str().to_owned()))
            .collect()
    }

    /// Keeps the name of a thread that has just been created, if there is room.
    fn note_birth(&self, light: &Light) {
        // SAFETY: gate closed, and the borrow ends here.
        let births = unsafe { &mut *self.births.get() };
        if births.len() < births.capacity() {
            births.push((light.id(), Name::new(light.name())));
        }
    }

    /// Whether one thread goes before another. O(1).
    pub(crate) fn goes_before(&self, host: &Host, a: ThreadId, b: ThreadId) -> bool {
        // SAFETY: set for this host's type before the run; the gate is closed by the caller.
        let ask = |goes_before: GoesBefore| unsafe { goes_before(host, a, b) };
        self.goes_before.get().is_some_and(ask)
    }

    /// Puts a record on the free list.
    pub(crate) fn put(&self, light: &Light) {
        light.pooled.stage.set(Stage::Free);
        light.pooled.next.set(self.free.replace(light));
    }

    /// Takes a record off the free list.
    fn take(&self) -> Option<&Light> {
        // SAFETY: records outlive the run (INV-L1).
        let light = unsafe { self.free.get().as_ref() }?;
        self.free.set(light.pooled.next.get());
        Some(light)
    }

    /// The record of the thread that has just been created with this id.
    pub(crate) fn adopt(&self, id: ThreadId) -> Option<*const Light> {
        let light = self.newborn.replace(core::ptr::null());
        // SAFETY: records outlive the run (INV-L1).
        let record = unsafe { light.as_ref() }?;
        record.set_id(id);
        self.note_birth(record);
        Some(light)
    }
}

/// Why there is no new thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// The caller is on no light thread of a run.
    NoRun,
    /// All threads of the pool are in use.
    PoolIsEmpty,
    /// The core refused the constraint.
    Refused(punctual_kern::Refusal),
}

/// Creates a thread in the name of the running one, whose closure is put into the room by `put`.
/// Gate: open before and after. O(log n).
pub(crate) fn create(
    light: &Light,
    name: &str,
    mut constraint: Constraint,
    put: impl FnOnce(&Pooled),
) -> Result<(*const Light, u64), SpawnError> {
    // SAFETY: the host outlives its threads; only its cells and atomics are used.
    let host = unsafe { &*light.host() };
    if host.gate.is_closed() {
        return Err(SpawnError::NoRun);
    }
    host.gate.close();
    let Some(child) = host.pool.take() else {
        open_gate(host);
        return Err(SpawnError::PoolIsEmpty);
    };
    let pooled = &child.pooled;
    pooled.stage.set(Stage::Working);
    pooled.birth.set(pooled.birth.get() + 1);
    pooled.kind.set(Kind::of(&constraint.class));
    pooled.ending.set(false);
    pooled.detached.set(false);
    pooled.joiner.set(core::ptr::null());
    child.set_name(name);
    child.seat.clear();
    put(pooled);
    let birth = pooled.birth.get();
    constraint.order = constraint.order.saturating_add(host.pool.created.get());
    host.pool.created.set(host.pool.created.get() + 1);
    host.pool.newborn.set(child);
    let refused = enter(light, Event::Create(constraint));
    if light.quit.get() {
        return Err(SpawnError::NoRun);
    }
    let reason = light.refused.get();
    open_gate(host);
    let Some(reason) = reason.filter(|_| refused) else {
        return Ok((child, birth));
    };
    discard(pooled);
    host.gate.close();
    host.pool.newborn.set(core::ptr::null());
    host.pool.put(child);
    open_gate(host);
    Err(SpawnError::Refused(reason))
}

/// The life of a record of the pool. Gate: closed on entry and on return, and the run is over then.
pub(crate) fn serve(light: &Light) {
    let pooled = &light.pooled;
    // SAFETY: the host outlives its threads; only its cells and atomics are used.
    let host = unsafe { &*light.host() };
    while !light.quit.get() {
        light.phase.set(Phase::Inside);
        open_gate(host);
        let call = pooled.call.take();
        pooled.discard.set(None);
        let result = catch_unwind(AssertUnwindSafe(|| {
            if let Some(call) = call {
                // SAFETY: the room holds the closure that this function was made for.
                unsafe { call(&pooled.room) };
            }
        }));
        let stage = match result {
            Ok(()) => {
                pooled.discard.set(pooled.discard_result.get());
                Stage::Returned
            }
            Err(payload) if payload.is::<StopJob>() => Stage::Cancelled,
            Err(payload) => {
                light.note_panic(describe(payload.as_ref()));
                host.shared.note_panic(host.index, light);
                if pooled.on_fault.get() == OnFault::EndRun {
                    host.shared.stop.store(true, Ordering::Relaxed);
                }
                Stage::Panicked
            }
        };
        if light.quit.get() {
            pooled.stage.set(stage);
            return;
        }
        let goes_on = let_go_of_locals(light, host);
        pooled.stage.set(stage);
        if !goes_on {
            return;
        }
        light.phase.set(Phase::Between);
        if pooled.detached.get() {
            host.pool.put(light);
        }
        host.pool.waking.set(pooled.joiner.get());
        let _ = enter(light, Event::Exit);
    }
}

/// Lets go of what the thread has beside its stack: its result, if nobody will take it, and its
/// thread-locals. These are destructors of the program: they may wait. Gate: open on entry; closed
/// on return, unless the run is over (`false`).
fn let_go_of_locals(light: &Light, host: &Host) -> bool {
    let pooled = &light.pooled;
    // A wish to end has come true; unwinding out of a destructor would end the process.
    pooled.ending.set(true);
    light.seat.cancelled.set(false);
    light.stop.store(false, Ordering::Relaxed);
    promise(light, 0);
    loop {
        if pooled.detached.get() {
            discard(pooled);
        }
        if fresh::renews() {
            light.library().end_thread();
        }
        if light.quit.get() {
            return false;
        }
        host.gate.close();
        let late = pooled.detached.get() && pooled.discard.get().is_some();
        if !late {
            // SAFETY: the destructors have run, and nothing of this thread but its service in the
            // pool goes on.
            unsafe { fresh::renew() };
            return true;
        }
        // Whoever would have taken the result has let go of it meanwhile.
        open_gate(host);
    }
}

/// Drops what nobody wants, which may panic like any code of a program.
pub(crate) fn discard(pooled: &Pooled) {
    if let Some(discard) = pooled.discard.take() {
        // SAFETY: the room holds what this drops; whoever calls has the record to itself.
        let drop = AssertUnwindSafe(|| unsafe { discard(&pooled.room) });
        let _ = catch_unwind(drop);
    }
}
