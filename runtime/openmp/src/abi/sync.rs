//! `barrier`, `single`, `critical`, `atomic` and the locks of programs.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};

use crate::carry::beat;
use crate::locks;
use crate::me::me;
use crate::region;

/// A barrier.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_barrier() {
    region::barrier();
}

/// A barrier of a region that can be cancelled: nobody cancels it.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_barrier_cancel() -> bool {
    region::barrier();
    false
}

/// Whether the construct is cancelled: never, for `omp_get_cancellation` says that it cannot be.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_cancel(_which: c_int, _condition: bool) -> bool {
    false
}

/// The same, asked by one that does not cancel it.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_cancellation_point(_which: c_int) -> bool {
    false
}

/// Whether the caller is the one that executes the region.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_single_start() -> bool {
    let identity = me();
    let member = identity.hat();
    beat(identity);
    let number = member.singles.get();
    member.singles.set(number + 1);
    let singles = &member.team.singles;
    // Members pass their `single`s in one order, so the word is never behind `number`.
    let order = (Ordering::Relaxed, Ordering::Relaxed);
    singles.load(Ordering::Relaxed) == number
        && singles
            .compare_exchange(number, number + 1, order.0, order.1)
            .is_ok()
}

/// The same with `copyprivate`: null for the one that executes, the data of that one for others.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_single_copy_start() -> *mut u8 {
    if GOMP_single_start() {
        return core::ptr::null_mut();
    }
    region::barrier();
    me().hat().team.copied.load(Ordering::Relaxed)
}

/// The one that has executed gives its data to the others.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_single_copy_end(data: *mut u8) {
    me().hat().team.copied.store(data, Ordering::Relaxed);
    region::barrier();
}

static CRITICAL: AtomicU32 = AtomicU32::new(0);
static ATOMIC: AtomicU32 = AtomicU32::new(0);

/// `critical` without a name.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_critical_start() {
    locks::lock(&CRITICAL);
}

/// Its end.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_critical_end() {
    locks::unlock(&CRITICAL);
}

/// An `atomic` that the processor has no instruction for.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_atomic_start() {
    locks::lock(&ATOMIC);
}

/// Its end.
#[unsafe(no_mangle)]
pub extern "C" fn GOMP_atomic_end() {
    locks::unlock(&ATOMIC);
}

/// A word of the program that is a lock.
///
/// # Safety
/// The program gives the address of one that it has.
unsafe fn word<'a>(place: *mut u32) -> &'a AtomicU32 {
    // SAFETY: as the caller vouches; all accesses are those of the lock.
    unsafe { AtomicU32::from_ptr(place) }
}

macro_rules! lock_functions {
    ($($(#[$doc:meta])* $name:ident($place:ident) $(-> $result:ty)? { $($body:tt)* })*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The address is that of a lock of the program.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($place: *mut u32) $(-> $result)? { $($body)* }
    )*};
}

lock_functions! {
    /// `critical` with a name: the compiler has a word for each.
    GOMP_critical_name_start(place) {
        // SAFETY: as the caller vouches.
        locks::lock(unsafe { word(place) });
    }
    /// Its end.
    GOMP_critical_name_end(place) {
        // SAFETY: as the caller vouches.
        locks::unlock(unsafe { word(place) });
    }
    /// A free lock.
    omp_init_lock(place) {
        // SAFETY: as the caller vouches.
        unsafe { word(place) }.store(0, Ordering::Relaxed);
    }
    /// Nothing is left to do.
    omp_destroy_lock(_place) {}
    /// Waits for a lock.
    omp_set_lock(place) {
        // SAFETY: as the caller vouches.
        locks::lock(unsafe { word(place) });
    }
    /// Lets it go.
    omp_unset_lock(place) {
        // SAFETY: as the caller vouches.
        locks::unlock(unsafe { word(place) });
    }
    /// Takes it if nobody has it: 1, else 0.
    omp_test_lock(place) -> c_int {
        // SAFETY: as the caller vouches.
        c_int::from(locks::try_lock(unsafe { word(place) }))
    }
}

/// A free lock; the hint changes nothing.
///
/// # Safety
/// The address is that of a lock of the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn omp_init_lock_with_hint(place: *mut u32, _hint: c_int) {
    // SAFETY: as the caller vouches.
    unsafe { omp_init_lock(place) };
}

/// A lock that its owner may take again: sixteen bytes of the program.
#[repr(C)]
#[derive(Debug)]
pub struct NestLock {
    word: AtomicU32,
    /// By the owner.
    count: AtomicI32,
    /// The item that has it. Others may look.
    owner: AtomicUsize,
}

fn running_item() -> usize {
    me().item
        .get()
        .map_or(0, |item| core::ptr::from_ref(item).addr())
}

/// A lock of the program.
///
/// # Safety
/// The address is that of a nested lock that lives as long as anybody uses it.
unsafe fn nest<'a>(lock: *mut NestLock) -> &'a NestLock {
    // SAFETY: as the caller vouches; all fields are atomic.
    unsafe { &*lock }
}

impl NestLock {
    /// Only the running item writes its own address there.
    fn is_mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == running_item()
    }

    /// Once more, by the item that has it.
    fn count_up(&self) -> c_int {
        self.owner.store(running_item(), Ordering::Relaxed);
        let count = self.count.load(Ordering::Relaxed) + 1;
        self.count.store(count, Ordering::Relaxed);
        count
    }
}

/// A free lock.
///
/// # Safety
/// The address is that of a nested lock of the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn omp_init_nest_lock(lock: *mut NestLock) {
    let free = NestLock {
        word: AtomicU32::new(0),
        count: AtomicI32::new(0),
        owner: AtomicUsize::new(0),
    };
    // SAFETY: as the caller vouches.
    unsafe { lock.write(free) };
}

/// A free lock; the hint changes nothing.
///
/// # Safety
/// The address is that of a nested lock of the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn omp_init_nest_lock_with_hint(lock: *mut NestLock, _hint: c_int) {
    // SAFETY: as the caller vouches.
    unsafe { omp_init_nest_lock(lock) };
}

/// Nothing is left to do.
#[unsafe(no_mangle)]
pub extern "C" fn omp_destroy_nest_lock(_lock: *mut NestLock) {}

/// Waits for a lock, or takes it once more.
///
/// # Safety
/// The address is that of a nested lock of the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn omp_set_nest_lock(lock: *mut NestLock) {
    // SAFETY: as the caller vouches.
    let lock = unsafe { nest(lock) };
    if !lock.is_mine() {
        locks::lock(&lock.word);
    }
    lock.count_up();
}

/// Takes a lock if nobody else has it: how often it is held, else 0.
///
/// # Safety
/// The address is that of a nested lock of the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn omp_test_nest_lock(lock: *mut NestLock) -> c_int {
    // SAFETY: as the caller vouches.
    let lock = unsafe { nest(lock) };
    if !lock.is_mine() && !locks::try_lock(&lock.word) {
        return 0;
    }
    lock.count_up()
}

/// Lets a lock go as often as it was taken.
///
/// # Safety
/// The address is that of a nested lock of the program; the running item has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn omp_unset_nest_lock(lock: *mut NestLock) {
    // SAFETY: as the caller vouches.
    let lock = unsafe { nest(lock) };
    let count = lock.count.load(Ordering::Relaxed) - 1;
    lock.count.store(count, Ordering::Relaxed);
    if count == 0 {
        lock.owner.store(0, Ordering::Relaxed);
        locks::unlock(&lock.word);
    }
}
