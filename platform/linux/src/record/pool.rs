//! Records of threads that are created while a run goes on: the part of each, and the lists.

use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_model::{Class, Priority, ThreadId};

use super::light::Light;
use super::name::Name;

/// What a thread does when its job is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// It completes it, and waits for the next release.
    Job,
    /// It gives up the rest of its slice, and waits for the next period.
    Slice,
    /// There is no next one.
    Endless,
}

impl Kind {
    pub(crate) fn of(class: &Class) -> Kind {
        match class {
            Class::Periodic { .. } | Class::Sporadic { .. } => Kind::Job,
            Class::Reservation { .. } => Kind::Slice,
            Class::Once { .. } | Class::Aperiodic => Kind::Endless,
        }
    }
}

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
    NotPooled,
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
    pub(crate) generation: Cell<u64>,
    /// What comes after a job.
    pub(crate) kind: Cell<Kind>,
    /// Its place among threads that arrive together: that of its creation.
    pub(crate) order: Cell<u32>,
    /// The number that it had as background work last; until it has been that, of its creation.
    pub(crate) background: Cell<Priority>,
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
    /// Its constraint is another one from now on.
    pub(crate) fn is_under<U>(&self, class: &Class<U>, priority: Priority) {
        if matches!(class, Class::Aperiodic) {
            self.background.set(priority);
        }
    }

    pub(crate) const fn new(stage: Stage) -> Pooled {
        Pooled {
            stage: Cell::new(stage),
            generation: Cell::new(0),
            kind: Cell::new(Kind::Endless),
            order: Cell::new(0),
            background: Cell::new(Priority::LOWEST),
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

/// The pool of one CPU, and what its monitors need. Gate closed.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: Cell<*const Light>,
    /// The record that the next [`Event::Create`] is for.
    pub(crate) spawning: Cell<*const Light>,
    /// Those that go on after the next event.
    pub(crate) waking: Cell<*const Light>,
    /// Which CPU of which run this is; never 0.
    pub(crate) home: Cell<u64>,
    /// All of its threads are in the care of the CPU's own scheduler: there is room for no other.
    pub(crate) has_one_home: Cell<bool>,
    /// Threads created so far: the last tie-break between equals.
    pub(crate) created: Cell<u32>,
    /// The first of them by name, as many as there is room for.
    spawned: UnsafeCell<Vec<(ThreadId, Name)>>,
}

impl Pool {
    /// Before the run.
    pub(crate) fn set_up(&self, home: u64, has_one_home: bool, spawned: usize) {
        self.home.set(home);
        self.has_one_home.set(has_one_home);
        // Written once, so that the pages exist before the run.
        let mut room = vec![(ThreadId::new(u32::MAX, 1), Name::new("?")); spawned];
        room.clear();
        // SAFETY: nobody creates a thread before the run.
        unsafe { *self.spawned.get() = room };
    }

    /// Who was created, by name. After the run.
    pub(crate) fn spawned(&self) -> Vec<(ThreadId, String)> {
        // SAFETY: nobody creates a thread after the run.
        let spawned = unsafe { core::mem::take(&mut *self.spawned.get()) };
        let named = spawned.into_iter();
        named
            .map(|(id, name)| (id, name.as_str().to_owned()))
            .collect()
    }

    /// Keeps the name of a thread that has just been created, if there is room.
    fn record_spawned(&self, light: &Light) {
        // SAFETY: gate closed, and the borrow ends here.
        let spawned = unsafe { &mut *self.spawned.get() };
        if spawned.len() < spawned.capacity() {
            spawned.push((light.id(), Name::new(light.name())));
        }
    }

    /// Puts a record on the free list.
    pub(crate) fn put(&self, light: &Light) {
        light.pooled.stage.set(Stage::Free);
        light.pooled.next.set(self.free.replace(light));
    }

    /// Takes a record off the free list.
    pub(crate) fn take(&self) -> Option<&Light> {
        // SAFETY: records outlive the run (INV-L1).
        let light = unsafe { self.free.get().as_ref() }?;
        self.free.set(light.pooled.next.get());
        Some(light)
    }

    /// The record of the thread that has just been created with this id.
    pub(crate) fn bind(&self, id: ThreadId) -> Option<*const Light> {
        let light = self.spawning.replace(core::ptr::null());
        // SAFETY: records outlive the run (INV-L1).
        let record = unsafe { light.as_ref() }?;
        record.set_id(id);
        self.record_spawned(record);
        Some(light)
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
