//! Entries of the C library that are entered through here: preemption waits until they are left.
//!
//! The executable defines these names, so the dynamic linker binds every caller to them, the C
//! library's own calls included. Each counts the depth, calls the library's function by its other
//! name, and takes a preemption that was wanted meanwhile when the depth returns to zero.
//!
//! The allocator is entered here because its locks are awaited inside the kernel, where one light
//! thread would stop all; `dl_iterate_phdr` because it calls back with the loader's lock held;
//! `syscall` because the standard library waits on its locks through it.
//!
//! On threads that are not light the cost is the counter (some 2 ns).

use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{AtomicPtr, Ordering, compiler_fence};

use crate::local::local;
use crate::sys::{self, ObjectCallback};
use crate::{light, wait};

/// Marks the calling thread as inside foreign code while it lives.
struct Inside;

impl Inside {
    #[inline(always)]
    fn enter() -> Inside {
        local(|l| l.foreign.set(l.foreign.get() + 1));
        compiler_fence(Ordering::SeqCst);
        Inside
    }
}

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        // A signal before the store sees the depth and sets `wanted`, which is read below; a signal
        // after it sees depth zero, preempts at once and clears `wanted`. Nothing is lost.
        let wanted = local(|l| {
            let depth = l.foreign.get() - 1;
            l.foreign.set(depth);
            compiler_fence(Ordering::SeqCst);
            depth == 0 && l.wanted.get()
        });
        if wanted {
            light::take_wanted_preemption();
        }
    }
}

/// `malloc(3)`.
#[unsafe(no_mangle)]
extern "C" fn malloc(size: usize) -> *mut c_void {
    let _inside = Inside::enter();
    // SAFETY: any size is allowed.
    unsafe { sys::__libc_malloc(size) }
}

/// `calloc(3)`.
#[unsafe(no_mangle)]
extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let _inside = Inside::enter();
    // SAFETY: any numbers are allowed; the library checks the product.
    unsafe { sys::__libc_calloc(count, size) }
}

/// `realloc(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    let _inside = Inside::enter();
    // SAFETY: the caller keeps the contract of realloc(3), which is passed on unchanged.
    unsafe { sys::__libc_realloc(block, size) }
}

/// `free(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(block: *mut c_void) {
    let _inside = Inside::enter();
    // SAFETY: the caller keeps the contract of free(3), which is passed on unchanged.
    unsafe { sys::__libc_free(block) };
}

/// `memalign(3)`.
#[unsafe(no_mangle)]
extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    let _inside = Inside::enter();
    // SAFETY: any numbers are allowed; the library checks the alignment.
    unsafe { sys::__libc_memalign(alignment, size) }
}

/// `aligned_alloc(3)`.
#[unsafe(no_mangle)]
extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    memalign(alignment, size)
}

/// `posix_memalign(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(
    block: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<*mut c_void>()) {
        return sys::EINVAL;
    }
    let found = memalign(alignment, size);
    if found.is_null() {
        return sys::ENOMEM;
    }
    // SAFETY: the caller gives a place for the result, as posix_memalign(3) demands.
    unsafe { *block = found };
    0
}

type Iterate = unsafe extern "C" fn(Option<ObjectCallback>, *mut c_void) -> c_int;

/// `dl_iterate_phdr(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn dl_iterate_phdr(callback: Option<ObjectCallback>, data: *mut c_void) -> c_int {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
    let _inside = Inside::enter();
    let mut next = NEXT.load(Ordering::Relaxed);
    if next.is_null() {
        next = sys::next_symbol(c"dl_iterate_phdr");
        NEXT.store(next, Ordering::Relaxed);
    }
    if next.is_null() {
        return 0;
    }
    // SAFETY: the symbol behind ours is the library's function of this type.
    let iterate = unsafe { core::mem::transmute::<*mut c_void, Iterate>(next) };
    // SAFETY: the caller's arguments are passed on unchanged.
    unsafe { iterate(callback, data) }
}

/// `syscall(2)`. The C prototype is variadic; integer arguments travel the same way.
#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(
    number: c_long,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
) -> c_long {
    let arguments = [a, b, c, d, e, f];
    if number == sys::FUTEX_CALL {
        // SAFETY: the caller keeps the contract of futex(2).
        if let Some(result) = unsafe { wait::futex(arguments) } {
            return result;
        }
    }
    // SAFETY: the caller keeps the contract of the call it makes.
    unsafe { sys::forward(number, arguments) }
}
