//! Threads of the kernel where they are wanted: pinned, and in real time if that is permitted.

use std::mem::zeroed;
use std::thread::{Builder, JoinHandle};

use crate::call::check;

/// Where a rival runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The CPU.
    pub cpu: usize,
    /// Another one, where two are needed.
    pub other: Option<usize>,
    /// Whether to ask for SCHED_FIFO. What is refused is left as it is.
    pub real_time: bool,
}

/// The priority that rivals get: that of a run.
const PRIORITY: i32 = 50;

/// The calling thread becomes more urgent than other rivals, or less.
///
/// # Errors
/// When real time was not asked for, or is not permitted: then no thread has an order.
pub(crate) fn stand_out(place: Place, by: i32) -> Result<(), String> {
    match place.real_time {
        true => fifo(PRIORITY + by),
        false => Err("not asked for".into()),
    }
}

/// Starts a thread on a CPU.
pub(crate) fn start<T: Send + 'static>(
    place: Place,
    cpu: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, String> {
    let name = Builder::new().name("punctual/rival".into());
    let started = name.spawn(move || {
        let _pinned = pin(cpu);
        if place.real_time {
            let _permitted = fifo(PRIORITY);
        }
        work()
    });
    started.map_err(|error| error.to_string())
}

/// Runs `work` on a thread of its own on the first CPU of the place, in its class.
///
/// # Errors
/// Those of `work`, and when no thread can be started.
pub fn on<T: Send + 'static>(
    place: Place,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    finish(start(place, place.cpu, work)?)?
}

/// What a thread comes to.
pub(crate) fn finish<T>(thread: JoinHandle<T>) -> Result<T, String> {
    thread.join().map_err(|_| "a thread ended early".into())
}

pub(crate) fn pin(cpu: usize) -> Result<(), String> {
    // SAFETY: a set of CPUs is plain numbers, for which zero is empty.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err("no such CPU".into());
    }
    // SAFETY: the number is within the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is as long as it says.
    let pinned = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    check("sched_setaffinity", pinned).map(drop)
}

/// The calling thread becomes one of SCHED_FIFO, if it should and may.
pub(crate) fn fifo_if(should: bool) {
    if should {
        let _permitted = fifo(PRIORITY);
    }
}

fn fifo(priority: i32) -> Result<(), String> {
    let parameter = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the parameter lives during the call; it changes the calling thread alone.
    let changed = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) };
    check("SCHED_FIFO", changed).map(drop)
}

/// The calling thread gives up the class of its maker.
pub(crate) fn ordinary_class() -> Result<(), String> {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter lives during the call; it changes the calling thread alone.
    let changed = unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameter) };
    check("an ordinary class", changed).map(drop)
}

/// The argument of `sched_setattr`.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The number of SCHED_DEADLINE.
const DEADLINE: u32 = 6;

/// Puts the calling thread under SCHED_DEADLINE, all in nanoseconds.
///
/// # Errors
/// When the kernel refuses: to ordinary users, to threads that may not run everywhere, and when it
/// has promised too much to others.
pub(crate) fn deadline_class(runtime: u64, deadline: u64, period: u64) -> Result<(), String> {
    let attributes = Attributes {
        size: u32::try_from(size_of::<Attributes>()).unwrap_or(0),
        policy: DEADLINE,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime,
        deadline,
        period,
    };
    // SAFETY: the attributes live during the call; it changes the calling thread alone.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    check("SCHED_DEADLINE", set).map(drop)
}
