//! Counted entries: while a thread is inside one, its preemption waits.

use core::cell::Cell;
use core::ffi::c_char;
use core::sync::atomic::{Ordering, compiler_fence};

use crate::caller::current;

/// The words of one thread: plain cells without destructors, so reading one is one load.
struct Words {
    /// How deep the thread is in code that must not be preempted. Changed by the thread alone.
    depth: Cell<u32>,
    /// A preemption waits for the depth to return to zero. Set by the signal, which reads the
    /// depth: two words, because one that both change would need an atomic addition.
    wanted: Cell<bool>,
    /// Where `strtok` goes on in this thread.
    rest_of_text: Cell<*mut c_char>,
}

thread_local! {
    static WORDS: Words = const {
        Words {
            depth: Cell::new(0),
            wanted: Cell::new(false),
            rest_of_text: Cell::new(core::ptr::null_mut()),
        }
    };
}

/// Whether the calling thread is inside a counted entry, also as a signal handler finds it.
#[inline(always)]
pub fn is_inside() -> bool {
    WORDS.with(|words| words.depth.get()) > 0
}

/// Whether the calling thread is to be preempted when it leaves the last counted entry. Set by the
/// handler of the preemption signal, and taken back when the preemption is taken.
#[inline(always)]
pub fn set_wanted(wanted: bool) {
    WORDS.with(|words| words.wanted.set(wanted));
}

/// The calling thread is another one from now on, outside of every counted entry: it has not
/// called `strtok` yet.
pub fn begin_thread() {
    WORDS.with(|words| words.rest_of_text.set(core::ptr::null_mut()));
}

/// Where `strtok` goes on in the calling thread.
pub(crate) fn rest_of_text() -> *mut *mut c_char {
    WORDS.with(|words| words.rest_of_text.as_ptr())
}

/// Marks the calling thread as inside a counted entry while it lives.
pub(crate) struct Inside {
    /// Where the entry returns to.
    returns_to: usize,
}

impl Inside {
    #[inline(always)]
    pub(crate) fn enter(returns_to: usize) -> Inside {
        WORDS.with(|words| words.depth.set(words.depth.get() + 1));
        compiler_fence(Ordering::SeqCst);
        Inside { returns_to }
    }
}

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        // A signal before the store sees the depth and sets `wanted`, which is read below; a signal
        // after it sees depth zero, preempts at once and clears `wanted`. Nothing is lost.
        let wanted = WORDS.with(|words| {
            let depth = words.depth.get() - 1;
            words.depth.set(depth);
            compiler_fence(Ordering::SeqCst);
            depth == 0 && words.wanted.get()
        });
        if wanted {
            take_preemption(self.returns_to);
        }
    }
}

#[cold]
fn take_preemption(returns_to: usize) {
    set_wanted(false);
    if let Some(caller) = current() {
        caller.preempt(returns_to);
    }
}

/// The calling thread is inside from now on, until [`end_undisturbed`].
pub(crate) fn begin_undisturbed() {
    // Nobody's address: a caller that is not the library.
    core::mem::forget(Inside::enter(0));
}

/// The end of [`begin_undisturbed`]; takes the preemption that was wanted meanwhile.
pub(crate) fn end_undisturbed() {
    drop(Inside { returns_to: 0 });
}

/// The same in a process in which nobody preempts.
pub(crate) fn forget_undisturbed() {
    WORDS.with(|words| {
        words.depth.set(words.depth.get() - 1);
        words.wanted.set(false);
    });
}

/// Calls `call` with preemption put off to its end, as in the allocator. For a few instructions
/// that hold a lock of the host: somebody may want it after the run, when a thread that was
/// preempted in between never goes on. Outside of a run it only calls.
pub fn undisturbed<R>(call: impl FnOnce() -> R) -> R {
    // Nobody's address: a caller that is not the library.
    let _inside = Inside::enter(0);
    call()
}
