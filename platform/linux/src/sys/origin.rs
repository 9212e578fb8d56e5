//! Things that a kernel thread passes on to the threads and processes that it makes.
//!
//! A carrier has other ones than the program: CPUs, class, blocked signals, the slack of timers.

use core::ffi::c_int;

use super::{address, call, pin, set_mask, word};

type CpuSet = libc::cpu_set_t;

/// As the thread was that started the run.
pub(crate) struct Origin {
    /// The CPUs of the run, in its order.
    hosts: Vec<u32>,
    /// The CPUs of the program.
    cpus: CpuSet,
    /// The same without those of the run, if any are left.
    elsewhere: CpuSet,
    policy: c_int,
    priority: c_int,
    mask: u64,
    slack_ns: u64,
}

impl core::fmt::Debug for Origin {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Origin")
            .field("policy", &self.policy)
            .field("priority", &self.priority)
            .field("mask", &self.mask)
            .finish_non_exhaustive()
    }
}

impl Origin {
    /// The calling thread, which starts a run on these CPUs.
    pub(crate) fn of_caller(hosts: &[u32]) -> Origin {
        let cpus = affinity();
        let mut elsewhere = cpus;
        for &host in hosts.iter().filter(|&&host| is_in_a_set(host)) {
            // SAFETY: the index is below the size of the set.
            unsafe { libc::CPU_CLR(host as usize, &mut elsewhere) };
        }
        // SAFETY: looks at a set.
        if unsafe { libc::CPU_COUNT(&elsewhere) } == 0 {
            elsewhere = cpus;
        }
        let mut parameter = libc::sched_param { sched_priority: 0 };
        // SAFETY: the structure outlives the call.
        unsafe { call(libc::SYS_sched_getparam, [0, address(&raw mut parameter)]) };
        // SAFETY: no memory is involved.
        let policy = unsafe { call(libc::SYS_sched_getscheduler, [0]) };
        // SAFETY: as above.
        let slack = unsafe { call(libc::SYS_prctl, [word(libc::PR_GET_TIMERSLACK)]) };
        Origin {
            hosts: hosts.to_vec(),
            cpus,
            elsewhere,
            policy: c_int::try_from(policy).unwrap_or(libc::SCHED_OTHER),
            priority: parameter.sched_priority,
            mask: blocked_signals(),
            slack_ns: u64::try_from(slack).unwrap_or(0),
        }
    }

    /// Lets the calling thread be on every CPU of the program: a process that it makes now is
    /// placed on any of them. The kernel leaves the caller where it is.
    pub(crate) fn widen(&self) {
        set_affinity(&self.cpus);
    }

    /// The end of [`Origin::widen`] on a CPU of the run.
    pub(crate) fn narrow(&self, index: usize) {
        if let Some(host) = self.hosts.get(index) {
            // It could be pinned before.
            let _ = pin(None, &[*host]);
        }
    }

    /// Makes the calling thread, which nobody schedules but the kernel, what the program's threads
    /// are, beside the CPUs of the run. Signals that were blocked come at once.
    pub(crate) fn adopt(&self) {
        set_affinity(&self.elsewhere);
        if self.policy != libc::SCHED_OTHER {
            let parameter = libc::sched_param {
                sched_priority: self.priority,
            };
            let arguments = [0, word(self.policy), address(&raw const parameter)];
            // SAFETY: the structure outlives the call. Refused, it stays an ordinary thread.
            unsafe { call(libc::SYS_sched_setscheduler, arguments) };
        }
        let slack = [word(libc::PR_SET_TIMERSLACK), self.slack_ns];
        // SAFETY: no memory is involved.
        unsafe { call(libc::SYS_prctl, slack) };
        set_mask(self.mask);
    }
}

fn is_in_a_set(cpu: u32) -> bool {
    i64::from(cpu) < i64::from(libc::CPU_SETSIZE)
}

/// The CPUs that the calling thread may use; none if the kernel does not say.
fn affinity() -> CpuSet {
    // SAFETY: an all-zero set is a valid empty set.
    let mut set: CpuSet = unsafe { core::mem::zeroed() };
    let arguments = [0, size_of::<CpuSet>() as u64, address(&raw mut set)];
    // SAFETY: the kernel fills at most the size that it is told.
    unsafe { call(libc::SYS_sched_getaffinity, arguments) };
    set
}

fn set_affinity(set: &CpuSet) {
    let arguments = [0, size_of::<CpuSet>() as u64, address(set)];
    // SAFETY: the set is valid and of the size given. Refused, the thread stays where it is.
    unsafe { call(libc::SYS_sched_setaffinity, arguments) };
}

/// The signals that the calling thread blocks.
fn blocked_signals() -> u64 {
    let mut mask = 0_u64;
    let arguments = [word(libc::SIG_BLOCK), 0, address(&raw mut mask), 8];
    // SAFETY: the word outlives the call.
    unsafe { call(libc::SYS_rt_sigprocmask, arguments) };
    mask
}

/// Ends the process at once, without anything that is registered for its end.
pub(crate) fn end_process(code: c_int) -> ! {
    // SAFETY: it does not come back.
    unsafe { libc::_exit(code) }
}
