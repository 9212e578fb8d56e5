//! Threads: created, joined, woken, changed and ended by each other.

use core::cell::Cell;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::OnceLock;

use ::punctual_thread::Thread;
use ::punctual_thread::thread::{self, Builder};
use punctual_linux::JobInfo;
use punctual_model::Span;

use crate::admission::{forget_why, refused};
use crate::constraint::{constraint, punctual_constraint};
use crate::edge::{
    Within, answer, give, is_place, is_place_or_null, offer, sized, text, write_text,
};
use crate::mutex::let_go;
use crate::status::{Answer, punctual_status, punctual_status as Status};
use crate::table::{Table, Used};
use crate::time::on_a_thread;

static THREADS: Table<Entry> = Table::new();

/// A thread. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_thread {
    /// The library's.
    pub id: u64,
}

/// What a thread executes, once. It returns; it may not be left by `longjmp`, nor by an exception.
pub type punctual_body = Option<unsafe extern "C" fn(argument: *mut c_void) -> *mut c_void>;

/// A job of a thread.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_job {
    /// `sizeof(punctual_job)`, set by the caller.
    pub size: usize,
    /// Which one, from 0.
    pub index: u64,
    /// When it arrived, in nanoseconds of the run.
    pub arrival_ns: u64,
    /// When it is due; the largest number: never.
    pub deadline_ns: u64,
}

/// A thread and what it returned.
struct Entry {
    /// Empty until the call that creates it comes back.
    thread: OnceLock<Thread<()>>,
    result: AtomicPtr<c_void>,
    has_returned: AtomicBool,
}

/// A pointer that only C looks behind.
pub(crate) struct Carried(pub(crate) *mut c_void);

// SAFETY: it is not looked behind here.
unsafe impl Send for Carried {}

impl Carried {
    pub(crate) fn pointer(self) -> *mut c_void {
        self.0
    }
}

thread_local! {
    /// The handle of the calling thread.
    static SELF: Cell<u64> = const { Cell::new(0) };
}

/// An entry that goes unless there is a thread for it.
struct Reserved<'a>(Option<Used<'a, Entry>>);

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if let Some(entry) = &self.0 {
            entry.retire();
        }
    }
}

/// What every thread that C created executes.
///
/// # Safety
/// The body may be called with this argument.
pub(crate) unsafe fn work(
    handle: u64,
    body: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: Carried,
) -> Carried {
    SELF.set(handle);
    forget_why();
    // SAFETY: as the caller vouches.
    let result = unsafe { body(argument.pointer()) };
    let_go();
    if let Ok(entry) = THREADS.get(handle) {
        entry.result.store(result, Ordering::Relaxed);
        entry.has_returned.store(true, Ordering::Release);
    }
    Carried(result)
}

/// The run is over: its threads are gone.
pub(crate) fn forget_threads() {
    THREADS.each(|entry| {
        entry.retire();
    });
}

fn with<R>(
    handle: punctual_thread,
    call: impl FnOnce(&Thread<()>) -> Result<R, Status>,
) -> Result<R, Status> {
    on_a_thread()?;
    let entry = THREADS.get(handle.id)?;
    let thread = entry.thread.get().ok_or(Status::PUNCTUAL_STALE)?;
    match thread.is_here() {
        true => call(thread),
        false => Err(Status::PUNCTUAL_OTHER_CPU),
    }
}

/// Creates a thread on the caller's CPU that executes `body(argument)` under a constraint, if
/// admission agrees: with `PUNCTUAL_REFUSED`, `punctual_why` says why not. The name is copied, 63
/// bytes of it. `thread`, if not null, gets its handle, to be joined or detached once; a null
/// pointer detaches it at once. A more urgent thread may begin before the call returns. On threads
/// of a run.
///
/// # Safety
/// `thread` is null, or to a place for one; `name` is null or a string; `asks` is null or to a
/// constraint; `body` may be called with `argument` on another stack, as long as it likes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_thread_create(
    thread: *mut punctual_thread,
    name: *const c_char,
    asks: *const punctual_constraint,
    body: punctual_body,
    argument: *mut c_void,
) -> punctual_status {
    answer(|| {
        is_place_or_null(thread)?;
        // SAFETY: as the caller vouches.
        let (name, asks) = unsafe { (text(name)?, sized(asks)?) };
        let asks = constraint(&asks)?;
        let body = body.ok_or(Status::PUNCTUAL_INVALID)?;
        on_a_thread()?;
        let id = THREADS.insert(Entry {
            thread: OnceLock::new(),
            result: AtomicPtr::new(core::ptr::null_mut()),
            has_returned: AtomicBool::new(false),
        })?;
        let mut reserved = Reserved(Some(THREADS.get(id)?));
        let argument = Carried(argument);
        let execute = move || {
            // SAFETY: as the caller vouches.
            let _ = unsafe { work(id, body, argument) };
        };
        let made = Builder::new(&name, asks).spawn(execute).map_err(refused)?;
        if let Some(entry) = &reserved.0 {
            // Nobody else sets it.
            let _ = entry.thread.set(made);
        }
        if thread.is_null() {
            // Nobody will ask: the entry goes, and with it the claim to a result.
            return Ok(());
        }
        reserved.0 = None;
        // SAFETY: as the caller vouches.
        unsafe { offer(thread, punctual_thread { id }) }
    })
}

/// Waits for the end of a thread for `within_ns` at most, takes what it returned into `result`, if
/// that is not null, and ends the handle. `PUNCTUAL_NOTHING` when it ended before its body began;
/// the handle is at its end then, too. A scheduling point. On threads of its CPU.
///
/// # Safety
/// `result` is null, or to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_thread_join(
    thread: punctual_thread,
    within_ns: u64,
    result: *mut *mut c_void,
) -> punctual_status {
    answer(|| {
        is_place_or_null(result)?;
        on_a_thread()?;
        let entry = THREADS.get(thread.id)?;
        let made = entry.thread.get().ok_or(Status::PUNCTUAL_STALE)?;
        made.wait_end(Within::of(within_ns).span())?;
        if !entry.retire() {
            return Err(Status::PUNCTUAL_STALE);
        }
        if !entry.has_returned.load(Ordering::Acquire) {
            return Err(Status::PUNCTUAL_NOTHING);
        }
        // SAFETY: as the caller vouches.
        unsafe { offer(result, entry.result.load(Ordering::Relaxed)) }
    })
}

/// Ends the handle and lets the thread go on alone. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_thread_detach(thread: punctual_thread) -> punctual_status {
    answer(|| {
        on_a_thread()?;
        match THREADS.get(thread.id)?.retire() {
            true => Ok(()),
            false => Err(Status::PUNCTUAL_STALE),
        }
    })
}

/// The handle of the calling thread; `PUNCTUAL_NOTHING` on the first thread of a CPU, which has
/// none. It names nothing once the thread is detached. On threads of a run.
///
/// # Safety
/// `thread` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_thread_self(thread: *mut punctual_thread) -> punctual_status {
    answer(|| {
        is_place(thread)?;
        on_a_thread()?;
        match SELF.get() {
            0 => Err(Status::PUNCTUAL_NOTHING),
            // SAFETY: as the caller vouches.
            id => unsafe { give(thread, punctual_thread { id }) },
        }
    })
}

/// The name of the calling thread; see `punctual_why` for the buffer. On threads of a run.
///
/// # Safety
/// As for `punctual_why`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_thread_name(
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> punctual_status {
    answer(|| {
        let name = thread::current_name().ok_or(Status::PUNCTUAL_NO_RUN)?;
        // SAFETY: as the caller vouches.
        unsafe { write_text(&name, buffer, capacity, length) }
    })
}

/// Bytes of the calling thread's stack that were ever used, by it or by threads before it in its
/// place of the pool, and how many there are. On threads of a run.
///
/// # Safety
/// Each pointer is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_thread_stack(
    used: *mut usize,
    bytes: *mut usize,
) -> punctual_status {
    answer(|| {
        is_place_or_null(used)?;
        is_place_or_null(bytes)?;
        let found = thread::stack_used().ok_or(Status::PUNCTUAL_NO_RUN)?;
        // SAFETY: as the caller vouches.
        unsafe { offer(used, found.0) }?;
        // SAFETY: as the caller vouches.
        unsafe { offer(bytes, found.1) }
    })
}

/// Whether a thread has ended: `ended` gets 1 or 0. On threads of its CPU.
///
/// # Safety
/// `ended` is null, or to a place for an `int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_thread_has_ended(
    thread: punctual_thread,
    ended: *mut c_int,
) -> punctual_status {
    answer(|| {
        is_place(ended)?;
        let over = with(thread, |thread| Ok(thread.is_finished()))?;
        // SAFETY: as the caller vouches.
        unsafe { give(ended, c_int::from(over)) }
    })
}

/// Tells a thread to end: every call of it that waits, the present one included, answers
/// `PUNCTUAL_CANCELLED` from now on; so does `punctual_checkpoint`, for bodies that do not wait. A
/// `read`, `write` or `poll` of it that waits fails with `ECANCELED`. It cleans up and returns from
/// its body; nobody ends it otherwise. `PUNCTUAL_NOTHING` when it has ended. On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_thread_cancel(thread: punctual_thread) -> punctual_status {
    answer(|| with(thread, |thread| if_alive(thread.cancel())))
}

/// Ends the `punctual_block` of a thread, the present or the next one. `PUNCTUAL_NOTHING` when it
/// has ended. A scheduling point when it is more urgent than the caller. On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_thread_wake(thread: punctual_thread) -> punctual_status {
    answer(|| with(thread, |thread| if_alive(thread.wake())))
}

/// Releases a job of a sporadic thread; one that comes too early waits for its time. On threads of
/// its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_thread_release(thread: punctual_thread) -> punctual_status {
    answer(|| with(thread, |thread| thread.release().map_err(refused)))
}

/// Asks for another constraint for a thread, in force when its present job is finished. With
/// `PUNCTUAL_REFUSED`, `punctual_why` says why not, and the old one stays. A thread that was
/// created without a guarantee cannot get one later (`PUNCTUAL_INVALID`). On threads of its CPU.
///
/// # Safety
/// `asks` is null or to a constraint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_thread_change(
    thread: punctual_thread,
    asks: *const punctual_constraint,
) -> punctual_status {
    answer(|| {
        // SAFETY: as the caller vouches.
        let asks = unsafe { sized(asks) }?;
        let asks = constraint(&asks)?;
        with(thread, |thread| thread.change(asks).map_err(refused))
    })
}

/// Gives way to a thread in particular: waits, and lends it the caller's urgency meanwhile, until
/// somebody wakes the caller, for `within_ns` at most. `PUNCTUAL_TIMED_OUT` at once when that
/// thread has ended or waits for the caller. A scheduling point. On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_yield_to(thread: punctual_thread, within_ns: u64) -> punctual_status {
    answer(|| {
        let woken = with(thread, |thread| {
            Ok(thread.yield_to(Span::from_ns(within_ns)))
        })?;
        in_time(woken)
    })
}

/// Lets others of the same urgency go first; a reservation gives up the rest of its slice. A
/// scheduling point. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_yield() -> punctual_status {
    answer(|| {
        on_a_thread()?;
        thread::yield_now();
        Ok(())
    })
}

/// Waits until somebody wakes this thread (`punctual_thread_wake`), for `within_ns` at most; a
/// wake-up that has come since the last wait counts. A scheduling point. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_block(within_ns: u64) -> punctual_status {
    answer(|| {
        on_a_thread()?;
        match Within::of(within_ns).span() {
            Some(span) => in_time(thread::block_within(span)),
            None => {
                thread::block();
                Ok(())
            }
        }
    })
}

/// Ends the present job and returns with the next: the body of a periodic thread is a loop around
/// this call. A sporadic thread returns at its next release, a reservation in its next period.
/// `job`, if not null, gets the new job. A scheduling point. On threads of a run that were
/// created.
///
/// # Safety
/// `job` is null, or to a `punctual_job` whose size is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_wait_next_period(job: *mut punctual_job) -> punctual_status {
    answer(|| {
        // SAFETY: as the caller vouches.
        unsafe { is_job_or_null(job) }?;
        on_a_thread()?;
        let next = thread::wait_next_period().map_err(|_| Status::PUNCTUAL_NO_NEXT_JOB)?;
        // SAFETY: as the caller vouches.
        unsafe { offer(job, job_of(&next)) }
    })
}

/// The job that the calling thread works on. On threads of a run.
///
/// # Safety
/// `job` is null, or to a `punctual_job` whose size is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_current_job(job: *mut punctual_job) -> punctual_status {
    answer(|| {
        is_place(job)?;
        // SAFETY: as the caller vouches.
        unsafe { is_job_or_null(job) }?;
        let found = thread::current_job().ok_or(Status::PUNCTUAL_NO_RUN)?;
        // SAFETY: as the caller vouches.
        unsafe { give(job, job_of(&found)) }
    })
}

/// # Safety
/// `job` is null, or to a `punctual_job` whose size is set.
unsafe fn is_job_or_null(job: *const punctual_job) -> Answer {
    if !job.is_null() {
        // SAFETY: as the caller vouches.
        let _ = unsafe { sized(job) }?;
    }
    Ok(())
}

fn job_of(info: &JobInfo) -> punctual_job {
    punctual_job {
        size: size_of::<punctual_job>(),
        index: info.index,
        arrival_ns: info.arrival_ns,
        deadline_ns: info.absolute_deadline_ns.unwrap_or(u64::MAX),
    }
}

fn if_alive(alive: bool) -> Answer {
    match alive {
        true => Ok(()),
        false => Err(Status::PUNCTUAL_NOTHING),
    }
}

fn in_time(woken: bool) -> Answer {
    match woken {
        true => Ok(()),
        false => Err(Status::PUNCTUAL_TIMED_OUT),
    }
}
