//! Calls into the C library and the kernel, also those that the platform makes its own with.
//!
//! Code inside signal handlers or the scheduler uses the system call instruction itself and touches
//! neither `errno` nor anything else of the C library.

use core::ffi::{c_int, c_long, c_void};

use punctual_switch::system_call;

pub(crate) mod calls;
pub(crate) mod origin;
pub(crate) mod signals;

/// A signed argument as the register that the kernel reads.
pub fn word(value: impl Into<i64>) -> u64 {
    value.into().cast_unsigned()
}

/// Makes a system call with as many arguments as it has.
///
/// # Safety
/// As for the call.
pub unsafe fn call<const N: usize>(number: c_long, arguments: [u64; N]) -> i64 {
    let mut all = [0; 6];
    for (place, argument) in all.iter_mut().zip(arguments) {
        *place = argument;
    }
    // SAFETY: as the caller vouches.
    unsafe { system_call(number, all) }
}

/// Clocks of the kernel, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelClock {
    /// Steered by NTP; timers and sleeps use it.
    Monotonic,
    /// Not steered.
    Raw,
    /// Processor time of the calling kernel thread.
    Thread,
}

/// Reads a clock. 0 when it does not exist.
pub fn read_clock(clock: KernelClock) -> u64 {
    let id = match clock {
        KernelClock::Monotonic => libc::CLOCK_MONOTONIC,
        KernelClock::Raw => libc::CLOCK_MONOTONIC_RAW,
        KernelClock::Thread => libc::CLOCK_THREAD_CPUTIME_ID,
    };
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is ours. (Success does not touch errno.)
    if unsafe { libc::clock_gettime(id, &mut t) } != 0 {
        return 0;
    }
    t.tv_sec.cast_unsigned() * 1_000_000_000 + t.tv_nsec.cast_unsigned()
}

// Types of the calls that make threads and programs.
pub(crate) use libc::{
    FILE as Stream, pid_t as Pid, posix_spawn_file_actions_t as SpawnActions,
    posix_spawnattr_t as SpawnAttributes, pthread_attr_t as ThreadAttributes,
    pthread_t as KernelThread,
};

// glibc's allocator under its other names, below the entries of `interpose`.
unsafe extern "C" {
    pub(crate) fn __libc_malloc(size: usize) -> *mut c_void;
    pub(crate) fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    pub(crate) fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    pub(crate) fn __libc_free(block: *mut c_void);
    pub(crate) fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
}

// The lock of the library's list of streams; recursive, and its own name for it.
unsafe extern "C" {
    fn _IO_list_lock();
    fn _IO_list_unlock();
}

/// Takes the lock of the C library's list of streams.
pub(crate) fn lock_streams() {
    // SAFETY: as `fork` itself does.
    unsafe { _IO_list_lock() };
}

/// Gives it back.
pub(crate) fn unlock_streams() {
    // SAFETY: the calling thread has it.
    unsafe { _IO_list_unlock() };
}

/// `pthread_atfork(3)`.
pub(crate) fn at_fork(
    prepare: extern "C" fn(),
    in_parent: extern "C" fn(),
    in_child: extern "C" fn(),
) -> c_int {
    // SAFETY: the functions may be called around a fork, on every thread.
    unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) }
}

/// Where a stack lies.
#[derive(Clone, Copy, Debug)]
pub struct StackBounds {
    /// Its lowest byte.
    pub lowest: *mut u8,
    /// Its bytes.
    pub bytes: usize,
    /// Bytes below it that nobody may touch.
    pub guard: usize,
}

/// Initialises attributes as those of a thread with this stack.
///
/// # Safety
/// The attributes are to a place for some, which are not initialised.
pub(crate) unsafe fn describe_stack(
    attributes: *mut ThreadAttributes,
    stack: StackBounds,
) -> c_int {
    let StackBounds {
        lowest,
        bytes,
        guard,
    } = stack;
    // SAFETY: as the caller vouches.
    let made = unsafe { libc::pthread_attr_init(attributes) };
    if made != 0 {
        return made;
    }
    // SAFETY: initialised.
    let set = unsafe { libc::pthread_attr_setstack(attributes, lowest.cast(), bytes) };
    if set != 0 {
        return set;
    }
    // SAFETY: as above.
    unsafe { libc::pthread_attr_setguardsize(attributes, guard) }
}

/// `strtok(3)` with a place of the caller's; below the entry of `interpose`.
pub(crate) use libc::strtok_r;

/// Callback of `dl_iterate_phdr`.
pub(crate) type ObjectCallback =
    unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;

/// A symbol of the C library behind the ones of this program (`RTLD_NEXT`).
pub fn next_symbol(name: &core::ffi::CStr) -> *mut c_void {
    // SAFETY: the name is a C string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// A function of the C library behind the entry of the same name here; found at its first call.
macro_rules! behind {
    ($name:literal, $kind:ty) => {{
        static NEXT: ::core::sync::atomic::AtomicPtr<::core::ffi::c_void> =
            ::core::sync::atomic::AtomicPtr::new(core::ptr::null_mut());
        let mut next = NEXT.load(::core::sync::atomic::Ordering::Relaxed);
        if next.is_null() {
            next = $crate::sys::next_symbol($name);
            NEXT.store(next, ::core::sync::atomic::Ordering::Relaxed);
        }
        match next.is_null() {
            true => None,
            // SAFETY: the symbol behind ours is the library's function of this type.
            false => Some(unsafe { core::mem::transmute::<*mut ::core::ffi::c_void, $kind>(next) }),
        }
    }};
}
pub(crate) use behind;

/// A symbol of any loaded object.
pub fn symbol(name: &core::ffi::CStr) -> *mut c_void {
    // SAFETY: the name is a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// The error number of the calling thread, to be kept across a handler.
pub fn errno() -> *mut c_int {
    // SAFETY: no arguments; returns the address of a thread-local.
    unsafe { libc::__errno_location() }
}

/// A system call for a program that asked for it by number, as the C library's `syscall`.
///
/// # Safety
/// As for the call itself.
pub(crate) unsafe fn forward(number: c_long, arguments: [u64; 6]) -> c_long {
    // SAFETY: as the caller vouches.
    let result = unsafe { system_call(number, arguments) };
    if (-4_095..0).contains(&result) {
        fail(i32::try_from(-result).unwrap_or(0))
    } else {
        result
    }
}

/// Sets `errno` and returns -1.
pub fn fail(error: c_int) -> c_long {
    // SAFETY: the address is that of this thread's own variable.
    unsafe { *errno() = error };
    -1
}

/// Numbers that the interposed entries and the signal speak.
pub(crate) const EINVAL: c_int = libc::EINVAL;
pub(crate) const ENOMEM: c_int = libc::ENOMEM;
/// Nothing there yet.
pub const EAGAIN: c_int = libc::EAGAIN;
/// A signal ended the call.
pub const EINTR: c_int = libc::EINTR;
pub(crate) const EFAULT: c_int = libc::EFAULT;
pub(crate) const EINPROGRESS: c_int = libc::EINPROGRESS;
pub(crate) const EOPNOTSUPP: c_int = libc::EOPNOTSUPP;
pub(crate) const ENOSYS: c_int = libc::ENOSYS;
pub(crate) const EPERM: c_int = libc::EPERM;
pub(crate) const ECANCELED: c_int = libc::ECANCELED;
/// The time of a wait is over.
pub const ETIMEDOUT: c_int = libc::ETIMEDOUT;
/// The number of `futex(2)`.
pub const FUTEX_CALL: c_long = libc::SYS_futex;

/// Operations of `futex(2)` that light threads treat specially, and what may be added to them.
pub mod futex {
    /// Wait while the word has a value.
    pub const WAIT: i32 = libc::FUTEX_WAIT;
    /// The same until an instant, for some wakers only.
    pub const WAIT_BITSET: i32 = libc::FUTEX_WAIT_BITSET;
    pub(crate) const WAKE: i32 = libc::FUTEX_WAKE;
    pub(crate) const WAKE_BITSET: i32 = libc::FUTEX_WAKE_BITSET;
    pub(crate) const PRIVATE: i32 = libc::FUTEX_PRIVATE_FLAG;
    pub(crate) const WALL_CLOCK: i32 = libc::FUTEX_CLOCK_REALTIME;
}

/// The nanoseconds of a `struct timespec`; `None` for a null pointer.
///
/// # Safety
/// The address is zero or that of a valid structure.
pub(crate) unsafe fn timespec_at(address: u64) -> Option<u64> {
    let time = usize::try_from(address).ok()?;
    let time: *const libc::timespec = core::ptr::with_exposed_provenance(time);
    // SAFETY: as the caller vouches.
    let time = unsafe { time.as_ref() }?;
    let seconds = time.tv_sec.cast_unsigned().saturating_mul(1_000_000_000);
    Some(seconds.saturating_add(time.tv_nsec.cast_unsigned()))
}
