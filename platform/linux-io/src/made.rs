//! Kernel threads and programs that a light thread starts: they become what the program's are.
//!
//! A new thread inherits from the carrier, so its first function gives it back what its creator did
//! not ask for ([`Origin`]). Meanwhile the carrier may be on every CPU of the program, and the
//! kernel places the newcomer on any of them. A program inherits from such a kernel thread, which
//! starts it while the light thread waits: the CPU goes on with others.

use core::ffi::{c_char, c_int, c_void};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use crate::caller::{Caller, current};
use crate::inside::{is_inside, undisturbed};
use crate::sys::origin::{Asked, Origin};
use crate::sys::{
    self, ENOMEM, KernelThread, Pid, SpawnActions, SpawnAttributes, Stream, ThreadAttributes,
    behind,
};

type First = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type CreateThread =
    unsafe extern "C" fn(*mut KernelThread, *const ThreadAttributes, First, *mut c_void) -> c_int;

/// Bytes of the stack of a kernel thread that makes one call.
const HELPER_STACK: usize = 256 * 1024;

/// Heritage and first function of a new kernel thread.
struct Beginning {
    origin: Origin,
    asked: Asked,
    first: First,
    argument: *mut c_void,
}

unsafe extern "C" fn begin(beginning: *mut c_void) -> *mut c_void {
    // SAFETY: the box that was made for this thread.
    let beginning = unsafe { Box::from_raw(beginning.cast::<Beginning>()) };
    let Beginning {
        origin,
        asked,
        first,
        argument,
    } = *beginning;
    origin.adopt(asked);
    drop(origin);
    // SAFETY: the creator keeps the contract of pthread_create(3).
    unsafe { first(argument) }
}

/// `pthread_create(3)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn pthread_create(
    thread: *mut KernelThread,
    attributes: *const ThreadAttributes,
    first: First,
    argument: *mut c_void,
) -> c_int {
    let Some(create) = behind!(c"pthread_create", CreateThread) else {
        return ENOMEM;
    };
    let Some(caller) = current() else {
        // SAFETY: the caller keeps the contract of pthread_create(3).
        return unsafe { create(thread, attributes, first, argument) };
    };
    // SAFETY: the caller gives null or initialised attributes.
    let asked = unsafe { Asked::of(attributes) };
    let beginning = Box::into_raw(Box::new(Beginning {
        origin: caller.origin().clone(),
        asked,
        first,
        argument,
    }));
    let created = undisturbed(|| {
        caller.origin().widen();
        // SAFETY: as above; the box is the new thread's.
        let created = unsafe { create(thread, attributes, begin, beginning.cast()) };
        caller.origin().narrow(caller.cpu());
        created
    });
    if created != 0 {
        // SAFETY: there is no thread that would take it.
        drop(unsafe { Box::from_raw(beginning) });
    }
    created
}

/// The arguments and the result of a call that another kernel thread makes.
struct Lent<T>(T);

// SAFETY: the maker of the call waits for its end, or stays where it is for good.
unsafe impl<T> Send for Lent<T> {}

/// Makes a call on a kernel thread of its own, if the caller is a light thread that may wait: its
/// result, and `errno` as it left it. Else makes it here.
fn elsewhere<R: 'static>(call: impl FnOnce() -> R + 'static) -> Option<R> {
    let may_wait = |caller: &dyn Caller| !is_inside() && caller.may_block();
    if !current().is_some_and(may_wait) {
        return Some(call());
    }
    let (answers, answer) = channel();
    let call = Arc::new(Mutex::new(Some(Lent(call))));
    let take = |call: &Mutex<Option<Lent<_>>>| {
        let mut call = call.lock().unwrap_or_else(PoisonError::into_inner);
        call.take()
    };
    let given = Arc::clone(&call);
    let helper = Builder::new().name("punctual/helper".to_owned());
    let started = helper.stack_size(HELPER_STACK).spawn(move || {
        if let Some(Lent(call)) = take(&given) {
            let result = call();
            // SAFETY: this thread's own variable.
            let error = unsafe { *sys::errno() };
            // Nobody listens when the maker was left behind at the end of its run.
            let _ = answers.send(Lent((result, error)));
        }
    });
    if started.is_err() {
        return take(&call).map(|Lent(call)| call());
    }
    let Lent((result, error)) = answer.recv().ok()?;
    // SAFETY: this thread's own variable.
    unsafe { *sys::errno() = error };
    Some(result)
}

type Spawn = unsafe extern "C" fn(
    *mut Pid,
    *const c_char,
    *const SpawnActions,
    *const SpawnAttributes,
    *const *mut c_char,
    *const *mut c_char,
) -> c_int;

/// `posix_spawn(3)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn posix_spawn(
    child: *mut Pid,
    path: *const c_char,
    actions: *const SpawnActions,
    attributes: *const SpawnAttributes,
    words: *const *mut c_char,
    environment: *const *mut c_char,
) -> c_int {
    let Some(spawn) = behind!(c"posix_spawn", Spawn) else {
        return ENOMEM;
    };
    // SAFETY: the caller keeps the contract of posix_spawn(3).
    let call = move || unsafe { spawn(child, path, actions, attributes, words, environment) };
    elsewhere(call).unwrap_or(ENOMEM)
}

/// `posix_spawnp(3)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn posix_spawnp(
    child: *mut Pid,
    file: *const c_char,
    actions: *const SpawnActions,
    attributes: *const SpawnAttributes,
    words: *const *mut c_char,
    environment: *const *mut c_char,
) -> c_int {
    let Some(spawn) = behind!(c"posix_spawnp", Spawn) else {
        return ENOMEM;
    };
    // SAFETY: the caller keeps the contract of posix_spawnp(3).
    let call = move || unsafe { spawn(child, file, actions, attributes, words, environment) };
    elsewhere(call).unwrap_or(ENOMEM)
}

/// `system(3)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn system(command: *const c_char) -> c_int {
    type System = unsafe extern "C" fn(*const c_char) -> c_int;
    let call = behind!(c"system", System).and_then(|system| {
        // SAFETY: the caller keeps the contract of system(3).
        elsewhere(move || unsafe { system(command) })
    });
    call.unwrap_or(-1)
}

/// `popen(3)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn popen(command: *const c_char, mode: *const c_char) -> *mut Stream {
    type Open = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut Stream;
    let call = behind!(c"popen", Open).and_then(|open| {
        // SAFETY: the caller keeps the contract of popen(3).
        elsewhere(move || unsafe { open(command, mode) })
    });
    call.unwrap_or(core::ptr::null_mut())
}
