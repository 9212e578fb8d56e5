//! A thread that cannot go on says so, and its rule says what becomes of the others.
//!
//! Frames of C cannot be unwound, so a thread says what went wrong and returns. From the end of its
//! body on it is what a Rust thread is that has panicked.

use core::cell::{Cell, RefCell};
use core::ffi::{c_char, c_void};
use std::panic::resume_unwind;

use punctual_linux::catching_call;
use punctual_thread::OnFault;

use crate::admission::forget_why;
use crate::edge::{answer, text};
use crate::firing::forget_within;
use crate::held::holds_something;
use crate::mutex::unlock_mine;
use crate::rwlock::leave_mine;
use crate::status::{punctual_status, punctual_status as Status};
use crate::time::not_in_a_use;

/// The rule for the other threads when one fails: the values of `on_fault` of
/// `punctual_thread_create_with`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum punctual_on_fault {
    /// They go on.
    PUNCTUAL_END_THREAD = 0,
    /// The run ends.
    PUNCTUAL_END_RUN = 1,
}

pub(crate) fn on_fault(rule: u32) -> Result<OnFault, Status> {
    match rule {
        0 => Ok(OnFault::EndThread),
        1 => Ok(OnFault::EndRun),
        _ => Err(Status::PUNCTUAL_INVALID),
    }
}

thread_local! {
    /// Whether the calling thread executes a body of C.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// What the body of the calling thread said when it failed.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

type Body = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// Executes a body of C: what it returned, or what it said when it failed. An exception of C++ that
/// leaves it is a failure. What it holds at its end is given back.
///
/// # Safety
/// The body may be called with this argument.
pub(crate) unsafe fn execute(body: Body, argument: *mut c_void) -> Result<*mut c_void, String> {
    forget_why();
    forget_within();
    SAID.take();
    INSIDE.set(true);
    // SAFETY: the two are called alike.
    let body =
        unsafe { core::mem::transmute::<Body, unsafe extern "C" fn(*mut u8) -> *mut u8>(body) };
    // SAFETY: as the caller vouches.
    let result = unsafe { catching_call(body, argument.cast()) };
    INSIDE.set(false);
    if holds_something() {
        unlock_mine();
        leave_mine();
    }
    match (SAID.take(), result) {
        (Some(said), _) | (None, Err(said)) => Err(said),
        (None, Ok(result)) => Ok(result.cast()),
    }
}

/// The calling thread is what one is that has panicked.
pub(crate) fn fail(said: String) -> ! {
    resume_unwind(Box::new(said))
}

/// Says that the calling thread cannot go on, and why; the text is copied, and the first one
/// counts. The thread then cleans up and returns from its body; what it returns is ignored. Who
/// joins it hears `PUNCTUAL_FAILED` and, from `punctual_why`, the text; `punctual_report` has it,
/// too. The run ends with it if its rule says so (`punctual_thread_create_with`), or if it is the
/// first thread of the run. On threads of a run, and of the kernel, whose body was given to this
/// library.
///
/// # Safety
/// `why` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_fail(why: *const c_char) -> punctual_status {
    answer(|| {
        // SAFETY: as the caller vouches.
        let why = unsafe { text(why) }?;
        not_in_a_use()?;
        if !INSIDE.get() {
            return Err(Status::PUNCTUAL_NO_RUN);
        }
        SAID.with_borrow_mut(|said| said.get_or_insert_with(|| why.into_owned()).len());
        Ok(())
    })
}
