//! The words of `platform/linux`, of a model checker: the counterpart of its `atomic.rs`.

use core::mem::MaybeUninit;
use core::panic::Location;

use loom::cell::UnsafeCell;
use loom::sync::atomic as loom_atomic;

pub(crate) use core::sync::atomic::Ordering;

use crate::weaken::{Mistake, is_made};

#[track_caller]
fn order(order: Ordering) -> Ordering {
    let weaker = order != Ordering::Relaxed && is_made(Location::caller(), Mistake::Relaxed);
    if weaker { Ordering::Relaxed } else { order }
}

#[track_caller]
fn order_on_failure(order: Ordering) -> Ordering {
    let weaker =
        order != Ordering::Relaxed && is_made(Location::caller(), Mistake::RelaxedOnFailure);
    if weaker { Ordering::Relaxed } else { order }
}

#[track_caller]
fn is_left_out() -> bool {
    is_made(Location::caller(), Mistake::LeftOut)
}

/// A word of loom that reports where it is accessed.
macro_rules! word {
    ($name:ident, $of:ty) => {
        #[derive(Debug)]
        pub(crate) struct $name(loom_atomic::$name);

        impl $name {
            pub(crate) fn new(value: $of) -> $name {
                $name(loom_atomic::$name::new(value))
            }

            #[track_caller]
            pub(crate) fn load(&self, with: Ordering) -> $of {
                self.0.load(order(with))
            }
        }
    };
}

/// One that is stored to.
macro_rules! stored_word {
    ($name:ident, $of:ty) => {
        word!($name, $of);

        impl $name {
            #[track_caller]
            pub(crate) fn store(&self, value: $of, with: Ordering) {
                let with = order(with);
                if !is_left_out() {
                    self.0.store(value, with);
                }
            }
        }
    };
}

stored_word!(AtomicU32, u32);
stored_word!(AtomicU64, u64);
stored_word!(AtomicUsize, usize);

/// A flag that is only exchanged.
#[derive(Debug)]
pub(crate) struct AtomicBool(loom_atomic::AtomicBool);

impl AtomicBool {
    pub(crate) fn new(value: bool) -> AtomicBool {
        AtomicBool(loom_atomic::AtomicBool::new(value))
    }

    #[track_caller]
    pub(crate) fn swap(&self, value: bool, with: Ordering) -> bool {
        self.0.swap(value, order(with))
    }
}

/// Arithmetic that a word of loom does in one step.
macro_rules! arithmetic {
    ($name:ident, $of:ty: $($operation:ident),*) => {
        impl $name {
            $(#[track_caller]
            pub(crate) fn $operation(&self, value: $of, with: Ordering) -> $of {
                self.0.$operation(value, order(with))
            })*
        }
    };
}
arithmetic!(AtomicU32, u32: fetch_add, fetch_or, fetch_and, swap);
arithmetic!(AtomicU64, u64: fetch_add, fetch_sub, fetch_or, fetch_and);
arithmetic!(AtomicUsize, usize: fetch_add, fetch_sub);

/// A word that is exchanged if it has the expected value.
macro_rules! exchanged_word {
    ($name:ident, $of:ty) => {
        impl $name {
            #[track_caller]
            pub(crate) fn compare_exchange(
                &self,
                current: $of,
                new: $of,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$of, $of> {
                let (success, failure) = (order(success), order_on_failure(failure));
                self.0.compare_exchange(current, new, success, failure)
            }
        }
    };
}
exchanged_word!(AtomicU32, u32);
exchanged_word!(AtomicU64, u64);

/// A word with an address.
#[derive(Debug)]
pub(crate) struct AtomicPtr<T>(loom_atomic::AtomicPtr<T>);

impl<T> AtomicPtr<T> {
    pub(crate) fn new(value: *mut T) -> AtomicPtr<T> {
        AtomicPtr(loom_atomic::AtomicPtr::new(value))
    }

    #[track_caller]
    pub(crate) fn load(&self, with: Ordering) -> *mut T {
        self.0.load(order(with))
    }

    #[track_caller]
    pub(crate) fn store(&self, value: *mut T, with: Ordering) {
        let with = order(with);
        if !is_left_out() {
            self.0.store(value, with);
        }
    }

    #[track_caller]
    pub(crate) fn swap(&self, value: *mut T, with: Ordering) -> *mut T {
        self.0.swap(value, order(with))
    }

    #[track_caller]
    pub(crate) fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        let (success, failure) = (order(success), order_on_failure(failure));
        self.0.compare_exchange(current, new, success, failure)
    }
}

#[track_caller]
pub(crate) fn fence(with: Ordering) {
    if !is_left_out() {
        loom_atomic::fence(with);
    }
}

pub(crate) fn pause() {
    loom::hint::spin_loop();
}

/// A place whose content belongs to one CPU at a time: two at a time are found.
#[derive(Debug)]
pub(crate) struct Place<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: as in `platform/linux`; the model checker looks after it.
unsafe impl<T: Send> Sync for Place<T> {}

impl<T: Copy> Place<T> {
    pub(crate) fn empty() -> Place<T> {
        Place(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    /// Nobody else is at this place now.
    pub(crate) unsafe fn put(&self, value: T) {
        self.0.with_mut(|place| {
            // SAFETY: as the caller vouches; otherwise the model checker has panicked.
            unsafe { (*place).write(value) };
        });
    }

    /// # Safety
    /// Something was put here before, and nobody puts anything here now.
    pub(crate) unsafe fn get(&self) -> T {
        self.0.with(|place| {
            // SAFETY: as the caller vouches; otherwise the model checker has panicked.
            unsafe { (*place).assume_init() }
        })
    }
}

/// A word that belongs to one thread at a time: the counterpart of `Word` of `record/trace`.
#[derive(Debug)]
pub(crate) struct Word(UnsafeCell<u64>);

// SAFETY: the model checker looks after it: two threads at a time are found.
unsafe impl Sync for Word {}

impl Word {
    pub(crate) fn new(value: u64) -> Word {
        Word(UnsafeCell::new(value))
    }

    pub(crate) fn put(&self, value: u64) {
        // SAFETY: another thread that is here is found, and ends the model.
        self.0.with_mut(|word| unsafe { *word = value });
    }

    pub(crate) fn get(&self) -> u64 {
        // SAFETY: as above.
        self.0.with(|word| unsafe { *word })
    }

    pub(crate) fn into_inner(self) -> u64 {
        self.get()
    }
}

std::thread_local! {
    /// Whether a slot belongs to one at a time: see [`belonging_slots`].
    static BELONG: core::cell::Cell<bool> = const { core::cell::Cell::new(false) };
}

/// Runs a model in which nobody looks at a slot that he does not get. There, one who fills it
/// while another is still looking is found; loom lets no load see a store that comes later.
pub(crate) fn belonging_slots(run: impl FnOnce() -> u64) -> u64 {
    BELONG.set(true);
    let orders = run();
    BELONG.set(false);
    orders
}

/// A slot of a deque: the counterpart of `Slot` of `runtime/openmp`.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    address: AtomicPtr<T>,
    visit: UnsafeCell<()>,
}

// SAFETY: loom executes one thread at a time; the address is an atomic word.
unsafe impl<T> Sync for Slot<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Slot<T> {}

impl<T> Slot<T> {
    pub(crate) fn new() -> Slot<T> {
        Slot {
            address: AtomicPtr::new(core::ptr::null_mut()),
            visit: UnsafeCell::new(()),
        }
    }

    #[track_caller]
    pub(crate) fn put(&self, value: *mut T) {
        if BELONG.get() {
            self.visit.with_mut(|_| ());
        }
        self.address.store(value, Ordering::Relaxed);
    }

    #[track_caller]
    pub(crate) fn get(&self) -> *mut T {
        if BELONG.get() {
            self.visit.with(|_| ());
        }
        self.address.load(Ordering::Relaxed)
    }
}

/// Bytes that belong to one end at a time: the counterpart of `Bytes` of `runtime/dataflow/fifo`.
///
/// The bytes themselves are the processor's. Beside each stands a cell of loom that every slice
/// visits, so two ends at one byte are found.
#[derive(Debug)]
pub(crate) struct Bytes {
    bytes: Box<[core::cell::UnsafeCell<u8>]>,
    visits: Vec<UnsafeCell<()>>,
}

// SAFETY: loom executes one thread at a time; two that meet at a byte are found by its cell.
unsafe impl Sync for Bytes {}

impl Bytes {
    pub(crate) fn try_new(len: usize) -> Result<Bytes, std::collections::TryReserveError> {
        let bytes = (0..len).map(|_| core::cell::UnsafeCell::new(0));
        let visits = (0..len).map(|_| UnsafeCell::new(()));
        Ok(Bytes {
            bytes: bytes.collect(),
            visits: visits.collect(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// # Safety
    /// Nobody writes these bytes while the slice lives (found where it is made).
    pub(crate) unsafe fn read(&self, from: usize, len: usize) -> &[u8] {
        for visit in &self.visits[from..from + len] {
            visit.with(|_| ());
        }
        let bytes = &self.bytes[from..from + len];
        // SAFETY: initialised cells, which the caller vouches for.
        unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast(), len) }
    }

    /// # Safety
    /// Nobody else is at these bytes while the slice lives (found where it is made).
    #[expect(
        clippy::mut_from_ref,
        reason = "the caller vouches that nobody else is there"
    )]
    pub(crate) unsafe fn write(&self, from: usize, len: usize) -> &mut [u8] {
        for visit in &self.visits[from..from + len] {
            visit.with_mut(|_| ());
        }
        let bytes = &self.bytes[from..from + len];
        // SAFETY: as in `read`; they are in cells.
        unsafe { core::slice::from_raw_parts_mut(bytes.as_ptr().cast::<u8>().cast_mut(), len) }
    }
}
