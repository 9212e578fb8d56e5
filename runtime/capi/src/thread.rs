//! Threads: created, joined, woken, changed and ended by each other.

use core::cell::Cell;
use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::OnceLock;

use ::punctual_thread::Thread;
use ::punctual_thread::thread::{self, Builder, Waker};
use ::punctual_thread::tree::Scheduler;
use punctual_linux::{JobInfo, this_cpu};
use punctual_model::Span;

use crate::admission::{Why, keep_why, refused};
use crate::application::note_end;
use crate::constraint::{constraint, punctual_constraint};
use crate::edge::{answer, give, is_place, is_place_or_null, offer, sized, text, write_text};
use crate::fault::{execute, fail, on_fault as rule_of, punctual_on_fault};
use crate::status::{Answer, punctual_status, punctual_status as Status};
use crate::table::{Reserved, Table, Used};
use crate::time::on_a_thread;

static THREADS: Table<Entry> = Table::new();

/// A thread. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_thread {
    /// The library's.
    pub id: u64,
}

/// What a thread executes, once. It returns; it may not be left by `longjmp`. An exception of C++
/// that leaves it is as `punctual_fail` with its type and `what()`.
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
pub(crate) struct Entry {
    /// Empty until the call that creates it comes back.
    thread: OnceLock<Thread<()>>,
    /// Of the first thread of a CPU, which nobody created: what wakes it, and which CPU.
    first: Option<(Waker, usize)>,
    pub(crate) returned: Returned,
    /// What it said when it failed.
    pub(crate) said: OnceLock<String>,
}

impl Entry {
    fn new(first: Option<(Waker, usize)>) -> Entry {
        Entry {
            thread: OnceLock::new(),
            first,
            returned: Returned::default(),
            said: OnceLock::new(),
        }
    }

    /// The thread, if somebody created it.
    pub(crate) fn created(&self) -> Result<&Thread<()>, Status> {
        if self.first.is_some() {
            let words = "the first thread of a CPU can be woken, and nothing else";
            keep_why(Why::Words(words.to_owned()));
            return Err(Status::PUNCTUAL_NOT_ALLOWED);
        }
        self.thread.get().ok_or(Status::PUNCTUAL_STALE)
    }
}

/// What a body returned, once it has.
#[derive(Default)]
pub(crate) struct Returned {
    result: AtomicPtr<c_void>,
    has_returned: AtomicBool,
}

impl Returned {
    pub(crate) fn keep(&self, result: *mut c_void) {
        self.result.store(result, Ordering::Relaxed);
        self.has_returned.store(true, Ordering::Release);
    }

    /// Offers it to C; `PUNCTUAL_NOTHING` when the body did not return.
    ///
    /// # Safety
    /// As for [`offer`].
    pub(crate) unsafe fn offer(&self, place: *mut *mut c_void) -> Answer {
        if !self.has_returned.load(Ordering::Acquire) {
            return Err(Status::PUNCTUAL_NOTHING);
        }
        // SAFETY: as the caller vouches.
        unsafe { offer(place, self.result.load(Ordering::Relaxed)) }
    }
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

/// What every thread that C created executes.
///
/// # Safety
/// The body may be called with this argument.
unsafe fn work(
    handle: u64,
    body: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: Carried,
) {
    SELF.set(handle);
    // SAFETY: as the caller vouches.
    let result = unsafe { execute(body, argument.pointer()) };
    SELF.set(0);
    let entry = THREADS.get(handle);
    match (result, entry) {
        (Ok(result), Ok(entry)) => {
            entry.returned.keep(result);
        }
        (Ok(_), Err(_)) => {}
        (Err(said), entry) => {
            if let Ok(entry) = entry {
                // Nobody else sets it.
                let _ = entry.said.set(said.clone());
            }
            fail(said)
        }
    }
}

/// What the first thread of a CPU executes.
///
/// # Safety
/// The body may be called with this argument.
pub(crate) unsafe fn first_work(
    body: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: Carried,
) -> Carried {
    let first = thread::waker().zip(this_cpu());
    // Without memory for one, it has no handle.
    let handle = THREADS.insert(Entry::new(first)).unwrap_or(0);
    SELF.set(handle);
    // SAFETY: as the caller vouches.
    let result = unsafe { execute(body, argument.pointer()) };
    if let Ok(entry) = THREADS.get(handle) {
        entry.retire();
    }
    note_end();
    Carried(result.unwrap_or_else(|said| fail(said)))
}

/// The run is over: its threads are gone.
pub(crate) fn forget_threads() {
    THREADS.each(|entry| {
        entry.retire();
    });
}

/// The entry of a thread.
pub(crate) fn find(handle: punctual_thread) -> Result<Used<'static, Entry>, Status> {
    on_a_thread()?;
    THREADS.get(handle.id)
}

/// Does something with a thread of the caller's CPU that was created.
pub(crate) fn with<R>(
    handle: punctual_thread,
    call: impl FnOnce(&Thread<()>) -> Result<R, Status>,
) -> Result<R, Status> {
    let entry = find(handle)?;
    let thread = entry.created()?;
    match thread.is_here() {
        true => call(thread),
        false => Err(Status::PUNCTUAL_OTHER_CPU),
    }
}

/// Keeps what a thread said when it failed.
pub(crate) fn keep_fault(said: &str) -> Status {
    keep_why(Why::Words(said.to_owned()));
    Status::PUNCTUAL_FAILED
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
    let rule = punctual_on_fault::PUNCTUAL_END_THREAD as u32;
    // SAFETY: as the caller vouches.
    unsafe { punctual_thread_create_with(thread, name, asks, rule, body, argument) }
}

/// `punctual_thread_create` with a rule for what becomes of the others when the thread fails
/// (`punctual_fail`): `on_fault` is one of `punctual_on_fault`.
///
/// # Safety
/// As for `punctual_thread_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_thread_create_with(
    thread: *mut punctual_thread,
    name: *const c_char,
    asks: *const punctual_constraint,
    on_fault: u32,
    body: punctual_body,
    argument: *mut c_void,
) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe { create(thread, (name, asks), (on_fault, body, argument), None) })
}

/// A thread of the caller's CPU, in the care of a scheduler (`None`: the caller's).
///
/// # Safety
/// As for [`punctual_thread_create`].
pub(crate) unsafe fn create(
    thread: *mut punctual_thread,
    (name, asks): (*const c_char, *const punctual_constraint),
    (on_fault, body, argument): (u32, punctual_body, *mut c_void),
    home: Option<&Scheduler>,
) -> Answer {
    is_place_or_null(thread)?;
    // SAFETY: as the caller vouches.
    let (name, asks) = unsafe { (text(name)?, sized(asks)?) };
    let builder = Builder::new(&name, constraint(&asks)?).on_fault(rule_of(on_fault)?);
    let body = body.ok_or(Status::PUNCTUAL_INVALID)?;
    on_a_thread()?;
    let id = THREADS.insert(Entry::new(None))?;
    let mut reserved = Reserved::of(THREADS.get(id)?);
    let argument = Carried(argument);
    // SAFETY: as the caller vouches.
    let work = move || unsafe { work(id, body, argument) };
    let made = match home {
        Some(home) => home.create(builder, work),
        None => builder.spawn(work),
    };
    // Nobody else sets it.
    let _ = reserved.entry().thread.set(made.map_err(refused)?);
    if thread.is_null() {
        // Nobody will ask: the entry goes, and with it the claim to a result.
        return Ok(());
    }
    reserved.keep();
    // SAFETY: as the caller vouches.
    unsafe { offer(thread, punctual_thread { id }) }
}

/// The handle of the calling thread. It names nothing once the thread is detached; that of the
/// first thread of a CPU can be woken, and nothing else (`PUNCTUAL_NOT_ALLOWED`). In offered work
/// `PUNCTUAL_NOTHING`: it has none. On threads of a run.
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
        let found = || thread::stack_used().ok_or(Status::PUNCTUAL_NO_RUN);
        // SAFETY: as the caller vouches.
        unsafe { offer_both(used, bytes, found) }
    })
}

/// `punctual_thread_stack` of another thread. On threads of its CPU.
///
/// # Safety
/// Each pointer is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_thread_stack_of(
    thread: punctual_thread,
    used: *mut usize,
    bytes: *mut usize,
) -> punctual_status {
    answer(|| {
        let of = |thread: &Thread<()>| thread.stack_used().ok_or(Status::PUNCTUAL_OTHER_CPU);
        // SAFETY: as the caller vouches.
        unsafe { offer_both(used, bytes, || with(thread, of)) }
    })
}

/// Ends the `punctual_block` or `punctual_yield_to` of a thread, the present or the next one.
/// `PUNCTUAL_NOTHING` when it has ended. A scheduling point when it is more urgent than the caller.
/// On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_thread_wake(thread: punctual_thread) -> punctual_status {
    answer(|| {
        let entry = find(thread)?;
        match entry.first {
            Some((waker, cpu)) if this_cpu() == Some(cpu) => if_alive(waker.wake()),
            Some(_) => Err(Status::PUNCTUAL_OTHER_CPU),
            None => with(thread, |thread| if_alive(thread.wake())),
        }
    })
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

/// Gives way to a thread in particular: waits until somebody wakes the caller, for `within_ns` at
/// most. The thread inherits the caller's priority meanwhile. `PUNCTUAL_TIMED_OUT` at once when
/// that thread has ended or waits for the caller. A scheduling point. On threads of its CPU.
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
        in_time(thread::block_within(Span::from_ns(within_ns)))
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

pub(crate) fn if_alive(alive: bool) -> Answer {
    match alive {
        true => Ok(()),
        false => Err(Status::PUNCTUAL_NOTHING),
    }
}

/// Offers two values that are found together.
///
/// # Safety
/// As for [`offer`], both.
unsafe fn offer_both<T>(
    one: *mut T,
    other: *mut T,
    find: impl FnOnce() -> Result<(T, T), Status>,
) -> Answer {
    is_place_or_null(one)?;
    is_place_or_null(other)?;
    let found = find()?;
    // SAFETY: as the caller vouches.
    unsafe { offer(one, found.0) }?;
    // SAFETY: as the caller vouches.
    unsafe { offer(other, found.1) }
}

fn in_time(woken: bool) -> Answer {
    match woken {
        true => Ok(()),
        false => Err(Status::PUNCTUAL_TIMED_OUT),
    }
}
