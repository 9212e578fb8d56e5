//! Switches between contexts of one kernel thread, by the libraries that programs use for it.
//!
//! All of them are cooperative: nobody decides who is next, nothing is accounted for, and nobody
//! can be preempted. One unit is one switch, one way.

use std::ffi::c_void;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use corosensei::{Coroutine, CoroutineResult};
use libloading::Library;

use crate::Samples;
use crate::batch::batches;
use crate::call::check;
use crate::thread::{Place, on};

/// Round trips of one batch: each is two switches.
const ROUNDS: u32 = 500;
const STACK: usize = 64 * 1024;

/// `swapcontext` of the C library, which saves the mask of signals by a system call.
///
/// # Errors
/// When the C library refuses.
pub fn swapcontext(place: Place) -> Samples {
    on(place, || {
        // SAFETY: a context is plain numbers and pointers; it is filled in before it is used.
        let mut contexts: Box<[libc::ucontext_t; 2]> = Box::new(unsafe { zeroed() });
        let mut stack = vec![0_u8; STACK];
        let [main, other] = &mut *contexts;
        // SAFETY: the context lives in the box.
        check("getcontext", unsafe { libc::getcontext(other) })?;
        other.uc_stack.ss_sp = stack.as_mut_ptr().cast();
        other.uc_stack.ss_size = stack.len();
        other.uc_link = main;
        let both: [*mut libc::ucontext_t; 2] = [main, other];
        MAIN.store(both[0], Ordering::Relaxed);
        OTHER.store(both[1], Ordering::Relaxed);
        // SAFETY: the context has a stack, and the function takes no arguments.
        unsafe { libc::makecontext(both[1], swap_back, 0) };
        let samples = batches(2 * ROUNDS, || {
            for _ in 0..ROUNDS {
                // SAFETY: both contexts and the stack live until the end; the other one is in its
                // endless loop, or at its beginning.
                let _never_fails = unsafe { libc::swapcontext(both[0], both[1]) };
            }
        });
        Ok(samples)
    })
}

static MAIN: AtomicPtr<libc::ucontext_t> = AtomicPtr::new(null_mut());
static OTHER: AtomicPtr<libc::ucontext_t> = AtomicPtr::new(null_mut());

extern "C" fn swap_back() {
    loop {
        let (main, other) = (MAIN.load(Ordering::Relaxed), OTHER.load(Ordering::Relaxed));
        // SAFETY: both were stored before this context was entered, and outlive it.
        let _never_fails = unsafe { libc::swapcontext(other, main) };
    }
}

/// Names under which distributions have the library.
const BOOST: [&str; 9] = [
    "libboost_context.so",
    "libboost_context.so.1.90.0",
    "libboost_context.so.1.88.0",
    "libboost_context.so.1.83.0",
    "libboost_context.so.1.81.0",
    "libboost_context.so.1.80.0",
    "libboost_context.so.1.74.0",
    "libboost_context.so.1.71.0",
    "libboost_context.so.1.67.0",
];

/// What a jump hands over: the context that jumped, and a word.
#[repr(C)]
struct Transfer {
    from: *mut c_void,
    data: *mut c_void,
}

type Jump = unsafe extern "C" fn(*mut c_void, *mut c_void) -> Transfer;
type Make = unsafe extern "C" fn(*mut c_void, usize, extern "C" fn(Transfer)) -> *mut c_void;

/// `jump_fcontext` of Boost.Context, if the library is installed.
///
/// # Errors
/// When it is not.
pub fn boost(place: Place) -> Samples {
    on(place, || {
        // SAFETY: the initializers of this library are those of the C++ runtime.
        let open = |name: &&str| unsafe { Library::new(name) }.ok();
        let library = BOOST.iter().find_map(open).ok_or(
            "libboost_context is not installed (Debian: apt install libboost-context1.74.0)",
        )?;
        let missing = |error: libloading::Error| format!("libboost_context: {error}");
        // SAFETY: the types are those of boost/context/detail/fcontext.hpp since 1.61.
        let make = unsafe { library.get::<Make>(b"make_fcontext\0") }.map_err(missing)?;
        // SAFETY: as above.
        let jump = *unsafe { library.get::<Jump>(b"jump_fcontext\0") }.map_err(missing)?;
        JUMP.store(jump as *mut c_void, Ordering::Relaxed);
        let mut stack = vec![0_u128; STACK / size_of::<u128>()];
        let top = stack.as_mut_ptr_range().end;
        // SAFETY: the top of a stack that lives until the end, its length, and a function.
        let mut other = unsafe { make(top.cast(), STACK, jump_back) };
        Ok(batches(2 * ROUNDS, || {
            for _ in 0..ROUNDS {
                // SAFETY: the context is at its beginning, or in its endless loop since it jumped.
                other = unsafe { jump(other, null_mut()) }.from;
            }
        }))
    })
}

static JUMP: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

extern "C" fn jump_back(mut transfer: Transfer) {
    // SAFETY: what was stored is this function.
    let jump: Jump = unsafe { std::mem::transmute(JUMP.load(Ordering::Relaxed)) };
    loop {
        // SAFETY: who jumped here waits to be jumped to.
        transfer = unsafe { jump(transfer.from, transfer.data) };
    }
}

/// A coroutine of the crate corosensei, resumed and suspended: inlined, and it keeps no record of
/// who runs.
///
/// # Errors
/// None.
pub fn corosensei(place: Place) -> Samples {
    on(place, || {
        let mut coroutine = Coroutine::<(), (), ()>::new(|yielder, ()| {
            loop {
                yielder.suspend(());
            }
        });
        Ok(batches(2 * ROUNDS, || {
            for _ in 0..ROUNDS {
                let CoroutineResult::Yield(()) = coroutine.resume(()) else {
                    return;
                };
            }
        }))
    })
}
