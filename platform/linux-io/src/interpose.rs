//! Entries of the C library that are entered through here: preemption waits until they are left.
//!
//! The executable defines these names, so the dynamic linker binds every caller to them, the C
//! library's own calls included. Each counts the depth, calls the library's function by its other
//! name, and takes a preemption that was wanted meanwhile when the depth returns to zero: unless
//! the caller is the library itself, which may hold a lock around the call (`setlocale` does).
//!
//! The allocator is entered here because its locks are awaited inside the kernel, where one light
//! thread would stop all; `dl_iterate_phdr` because it calls back with the loader's lock held;
//! `syscall` because the standard library waits on its locks through it. `strtok` is defined here
//! because the library keeps its place in one word for the whole process: here every thread has its
//! own.
//!
//! On threads that are not light the cost is the counter (some 2 ns).

use core::ffi::{c_char, c_int, c_long, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use punctual_switch::entry_with_caller;

use crate::caller::{current, is_installed};
use crate::futex::FutexRequest;
use crate::inside::{Inside, rest_of_text};
use crate::sys::{self, ObjectCallback};

entry_with_caller! {
    /// `malloc(3)`.
    malloc(size: usize) -> *mut c_void => malloc_for, "rsi"
}

extern "C" fn malloc_for(size: usize, returns_to: usize) -> *mut c_void {
    let _inside = Inside::enter(returns_to);
    // SAFETY: any size is allowed.
    unsafe { sys::__libc_malloc(size) }
}

entry_with_caller! {
    /// `calloc(3)`.
    calloc(count: usize, size: usize) -> *mut c_void => calloc_for, "rdx"
}

extern "C" fn calloc_for(count: usize, size: usize, returns_to: usize) -> *mut c_void {
    let _inside = Inside::enter(returns_to);
    // SAFETY: any numbers are allowed; the library checks the product.
    unsafe { sys::__libc_calloc(count, size) }
}

entry_with_caller! {
    /// `realloc(3)`.
    realloc(block: *mut c_void, size: usize) -> *mut c_void => realloc_for, "rdx"
}

unsafe extern "C" fn realloc_for(
    block: *mut c_void,
    size: usize,
    returns_to: usize,
) -> *mut c_void {
    let _inside = Inside::enter(returns_to);
    // SAFETY: the caller keeps the contract of realloc(3), which is passed on unchanged.
    unsafe { sys::__libc_realloc(block, size) }
}

entry_with_caller! {
    /// `free(3)`.
    free(block: *mut c_void) => free_for, "rsi"
}

unsafe extern "C" fn free_for(block: *mut c_void, returns_to: usize) {
    let _inside = Inside::enter(returns_to);
    // SAFETY: the caller keeps the contract of free(3), which is passed on unchanged.
    unsafe { sys::__libc_free(block) };
}

entry_with_caller! {
    /// `memalign(3)`.
    memalign(alignment: usize, size: usize) -> *mut c_void => memalign_for, "rdx"
}

entry_with_caller! {
    /// `aligned_alloc(3)`.
    aligned_alloc(alignment: usize, size: usize) -> *mut c_void => memalign_for, "rdx"
}

extern "C" fn memalign_for(alignment: usize, size: usize, returns_to: usize) -> *mut c_void {
    let _inside = Inside::enter(returns_to);
    // SAFETY: any numbers are allowed; the library checks the alignment.
    unsafe { sys::__libc_memalign(alignment, size) }
}

entry_with_caller! {
    /// `posix_memalign(3)`.
    posix_memalign(block: *mut *mut c_void, alignment: usize, size: usize) -> c_int
        => posix_memalign_for, "rcx"
}

unsafe extern "C" fn posix_memalign_for(
    block: *mut *mut c_void,
    alignment: usize,
    size: usize,
    returns_to: usize,
) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<*mut c_void>()) {
        return sys::EINVAL;
    }
    let found = memalign_for(alignment, size, returns_to);
    if found.is_null() {
        return sys::ENOMEM;
    }
    // SAFETY: the caller gives a place for the result, as posix_memalign(3) demands.
    unsafe { *block = found };
    0
}

type Iterate = unsafe extern "C" fn(Option<ObjectCallback>, *mut c_void) -> c_int;

entry_with_caller! {
    /// `dl_iterate_phdr(3)`.
    dl_iterate_phdr(callback: Option<ObjectCallback>, data: *mut c_void) -> c_int
        => dl_iterate_phdr_for, "rdx"
}

unsafe extern "C" fn dl_iterate_phdr_for(
    callback: Option<ObjectCallback>,
    data: *mut c_void,
    returns_to: usize,
) -> c_int {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
    let _inside = is_installed().then(|| Inside::enter(returns_to));
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

/// `strtok(3)`, with a place of the calling thread's own.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn strtok(text: *mut c_char, separators: *const c_char) -> *mut c_char {
    let place = rest_of_text();
    // SAFETY: the caller keeps the contract of strtok(3), which is that of strtok_r(3) with a place
    // that nobody else uses: this thread's own word, which lives as long as the thread.
    unsafe { sys::strtok_r(text, separators, place) }
}

/// `syscall(2)`. The C prototype is variadic; integer arguments travel the same way.
#[cfg_attr(not(miri), unsafe(no_mangle))]
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
    if number == sys::FUTEX_CALL
        && let Some(caller) = current()
        // SAFETY: the caller keeps the contract of futex(2).
        && let Some(request) = unsafe { FutexRequest::read(arguments) }
        // SAFETY: as above.
        && let Some(result) = unsafe { caller.futex(request) }
    {
        return result;
    }
    // SAFETY: the caller keeps the contract of the call it makes.
    unsafe { sys::forward(number, arguments) }
}
