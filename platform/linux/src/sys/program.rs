//! What it takes to let programs of the kernel run in place of a light thread.

use core::ffi::c_int;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::{Tid, address, block_signals_except, call, word};

/// In which of three ways a thread competes for its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// SCHED_FIFO with this priority; children start as ordinary threads.
    Fifo(i32),
    /// As everybody.
    Ordinary,
    /// Only when nobody else wants the CPU.
    Idle,
}

/// Sets the standing of a thread; `false`: refused, or there is no such thread. No `errno`.
pub(crate) fn set_standing(thread: Tid, standing: Standing) -> bool {
    let (policy, priority) = match standing {
        Standing::Fifo(priority) => (libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority),
        Standing::Ordinary => (libc::SCHED_OTHER, 0),
        Standing::Idle => (libc::SCHED_IDLE, 0),
    };
    let parameter = libc::sched_param {
        sched_priority: priority,
    };
    let set = |policy| {
        let arguments = [word(thread.0), word(policy), address(&raw const parameter)];
        // SAFETY: the structure outlives the call.
        unsafe { call(libc::SYS_sched_setscheduler, arguments) == 0 }
    };
    // Who has SCHED_FIFO by a limit only may not take the flag away.
    set(policy) || (priority == 0 && set(policy | libc::SCHED_RESET_ON_FORK))
}

/// Blocks every signal on the calling thread but those that a fault raises; returns the mask
/// before.
pub(crate) fn hold_signals() -> u64 {
    block_signals_except(libc::SIGSEGV)
}

/// Sleeps in the kernel until a signal comes that `mask` lets through (which is in force
/// meanwhile) or the other end of a pipe is closed, at most `ns`.
pub(crate) fn nap(ns: u64, pipe: Option<c_int>, mask: u64) {
    let time = super::timespec(ns);
    let closed = libc::pollfd {
        fd: pipe.unwrap_or(-1),
        events: 0,
        revents: 0,
    };
    let (list, time) = (address(&raw const closed), address(&raw const time));
    let mask = address(&raw const mask);
    // SAFETY: the list of one, the time and the mask of 8 bytes outlive the call; a negative
    // descriptor is passed over.
    unsafe { call(libc::SYS_ppoll, [list, 1, time, mask, 8]) };
}

/// The number of a thread.
pub(crate) fn number(thread: Tid) -> i32 {
    thread.0
}

/// The SCHED_FIFO priority of the calling kernel thread; 0: it has none.
pub(crate) fn own_priority() -> i32 {
    let mut parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the structure outlives the call.
    unsafe { call(libc::SYS_sched_getparam, [0, address(&raw mut parameter)]) };
    parameter.sched_priority
}

/// A thread by its number in `/proc`.
pub(crate) fn thread(number: i32) -> Tid {
    Tid(number)
}

/// Makes what a command starts run on one CPU, last of all if it is to be idle, in a process
/// group of its own, and end when the starting thread does.
pub(crate) fn confine(command: &mut Command, cpu: u32, idle: bool) {
    let prepare = move || {
        let result = |code: c_int| match code {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        };
        // SAFETY: no memory is involved.
        result(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) })?;
        super::pin(None, &[cpu])?;
        if !idle {
            return Ok(());
        }
        let parameter = libc::sched_param { sched_priority: 0 };
        // SAFETY: the structure is valid for the call.
        result(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameter) })
    };
    // SAFETY: the closure runs between fork and exec: it allocates nothing and takes no lock.
    unsafe { command.pre_exec(prepare) };
    command.process_group(0);
}

/// Ends a process group at once.
pub(crate) fn kill_group(leader: u32) {
    if let Ok(group) = c_int::try_from(leader)
        && group > 1
    {
        // SAFETY: no memory is involved; the group was made by [`confine`].
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}
