//! Threads made with attributes.
//!
//! A thread that inherits its class and its CPU never runs while its maker computes.

use std::mem::{MaybeUninit, zeroed};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread::Thread;

use libc::{c_int, c_void};

use super::worker::Worker;
use super::{Class, Seen};
use crate::call::{check, check_number};
use crate::thread::deadline_class;

/// The stack of a thread: memory that is locked is taken at once.
const STACK: usize = 512 << 10;

/// A thread that was started, and its result.
pub(super) struct Pthread {
    handle: libc::pthread_t,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    thread: Mutex<Option<Thread>>,
    seen: Mutex<Option<Seen>>,
    over: AtomicBool,
}

/// Handed over to a thread.
struct Start {
    worker: Worker,
    class: Class,
    ready: Sender<Result<(), String>>,
    shared: Arc<Shared>,
}

/// Starts a thread of a class. It answers once it has its class, and waits for the start.
pub(super) fn start(
    class: Class,
    worker: Worker,
    ready: Sender<Result<(), String>>,
) -> Result<Pthread, String> {
    let attributes = Attributes::of(class, &worker)?;
    let shared = Arc::new(Shared::default());
    let start = Box::new(Start {
        worker,
        class,
        ready,
        shared: Arc::clone(&shared),
    });
    let mut handle = MaybeUninit::<libc::pthread_t>::uninit();
    let given = Box::into_raw(start);
    // SAFETY: the attributes are initialised and live during the call, and `body` takes the box
    // over exactly once.
    let made = unsafe {
        libc::pthread_create(
            handle.as_mut_ptr(),
            &raw const attributes.0,
            body,
            given.cast(),
        )
    };
    if let Err(why) = check_number(&format!("pthread_create ({})", name(class)), made) {
        // SAFETY: no thread came about, so it is ours again.
        drop(unsafe { Box::from_raw(given) });
        return Err(why);
    }
    // SAFETY: the call has succeeded, so it wrote the handle.
    let handle = unsafe { handle.assume_init() };
    Ok(Pthread { handle, shared })
}

fn name(class: Class) -> &'static str {
    match class {
        Class::Fifo => "SCHED_FIFO",
        Class::Deadline => "SCHED_DEADLINE",
    }
}

/// The whole life of a thread.
extern "C" fn body(given: *mut c_void) -> *mut c_void {
    // SAFETY: it is the box that `start` gave away, to this thread alone.
    let start = unsafe { Box::from_raw(given.cast::<Start>()) };
    let Start {
        worker,
        class,
        ready,
        shared,
    } = *start;
    if let Ok(mut thread) = shared.thread.lock() {
        *thread = Some(std::thread::current());
    }
    let task = &worker.task;
    let in_class = match class {
        Class::Fifo => Ok(()),
        Class::Deadline => deadline_class(task.runtime, task.relative_deadline, task.period),
    };
    // Nobody listens any more when another thread was refused: then the run is over.
    let _told = ready.send(in_class);
    drop(ready);
    let seen = worker.work();
    if let Ok(mut place) = shared.seen.lock() {
        *place = Some(seen);
    }
    shared.over.store(true, Ordering::Release);
    null_mut()
}

impl Pthread {
    /// Tells it that the start is known.
    pub(super) fn wake(&self) {
        if let Ok(thread) = self.shared.thread.lock()
            && let Some(thread) = &*thread
        {
            thread.unpark();
        }
    }

    /// Whether it has done its work.
    pub(super) fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Acquire)
    }

    /// Its observations, once it has ended.
    pub(super) fn join(self) -> Seen {
        // SAFETY: the handle is of a thread that nobody has joined: this takes it.
        let _joined = unsafe { libc::pthread_join(self.handle, null_mut()) };
        let seen = self.shared.seen.lock();
        seen.ok()
            .and_then(|mut seen| seen.take())
            .unwrap_or_default()
    }
}

/// Attributes of a thread.
struct Attributes(libc::pthread_attr_t);

impl Attributes {
    fn of(class: Class, worker: &Worker) -> Result<Attributes, String> {
        let mut new = MaybeUninit::<libc::pthread_attr_t>::uninit();
        // SAFETY: the place is large enough and lives during the call.
        check_number("pthread_attr_init", unsafe {
            libc::pthread_attr_init(new.as_mut_ptr())
        })?;
        // SAFETY: the call has succeeded.
        let mut attributes = Attributes(unsafe { new.assume_init() });
        let attr = &raw mut attributes.0;
        // SAFETY: here and below the attributes are initialised and live.
        let sized = unsafe { libc::pthread_attr_setstacksize(attr, STACK) };
        check_number("pthread_attr_setstacksize", sized)?;
        // SAFETY: as above.
        let explicit =
            unsafe { libc::pthread_attr_setinheritsched(attr, libc::PTHREAD_EXPLICIT_SCHED) };
        check_number("pthread_attr_setinheritsched", explicit)?;
        // A thread becomes one of SCHED_DEADLINE by itself: attributes do not know that class.
        let (policy, priority): (c_int, c_int) = match class {
            Class::Fifo => (libc::SCHED_FIFO, worker.task.priority),
            Class::Deadline => (libc::SCHED_OTHER, 0),
        };
        // SAFETY: as above.
        let classed = unsafe { libc::pthread_attr_setschedpolicy(attr, policy) };
        check_number("pthread_attr_setschedpolicy", classed)?;
        let parameter = libc::sched_param {
            sched_priority: priority,
        };
        // SAFETY: as above; the parameter lives during the call.
        let urgent = unsafe { libc::pthread_attr_setschedparam(attr, &raw const parameter) };
        check_number("pthread_attr_setschedparam", urgent)?;
        if class == Class::Fifo {
            attributes.pin(worker.task.cpu)?;
        }
        Ok(attributes)
    }

    fn pin(&mut self, cpu: usize) -> Result<(), String> {
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(format!("there is no CPU {cpu}"));
        }
        // SAFETY: a set of CPUs is plain numbers, for which zero is empty.
        let mut set: libc::cpu_set_t = unsafe { zeroed() };
        // SAFETY: the number is within the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
        // SAFETY: the attributes are initialised, and the set is as long as it says.
        let pinned = unsafe {
            libc::pthread_attr_setaffinity_np(&raw mut self.0, size_of_val(&set), &raw const set)
        };
        check_number("pthread_attr_setaffinity_np", pinned)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: they are initialised, and nobody uses them any more.
        let _gone = unsafe { libc::pthread_attr_destroy(&raw mut self.0) };
    }
}

/// While this lives, the kernel ends the process when one of its threads computes under real-time
/// priority for longer, without a wait.
pub(super) struct LongestBurst(libc::rlimit);

impl LongestBurst {
    pub(super) fn limit(ns: u64) -> Result<LongestBurst, String> {
        let mut before = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the place lives during the call.
        let read = unsafe { libc::getrlimit(libc::RLIMIT_RTTIME, &raw mut before) };
        check("getrlimit", read)?;
        let limit = libc::rlimit {
            rlim_cur: (ns / 1_000).min(before.rlim_cur),
            rlim_max: before.rlim_max,
        };
        set(&limit)?;
        Ok(LongestBurst(before))
    }
}

impl Drop for LongestBurst {
    fn drop(&mut self) {
        // What was in force before may be set again.
        let _as_before = set(&self.0);
    }
}

fn set(limit: &libc::rlimit) -> Result<(), String> {
    // SAFETY: the limits live during the call.
    let done = unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, limit) };
    check("setrlimit", done).map(drop)
}
