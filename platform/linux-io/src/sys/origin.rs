//! Things that a kernel thread passes on to the threads and processes that it makes.
//!
//! A carrier has other ones than the program: CPUs, class, blocked signals, the slack of timers.

use core::ffi::{c_int, c_void};

use super::{call, word};

type CpuSet = libc::cpu_set_t;

/// As the thread was that started the run.
#[derive(Clone)]
pub struct Origin {
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
    pub fn of_caller(hosts: &[u32]) -> Origin {
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

    /// Whether the program's own threads block a signal (1 to 64).
    pub(crate) fn blocks(&self, signal: c_int) -> bool {
        self.mask >> (signal - 1) & 1 != 0
    }

    /// Lets the calling thread be on every CPU of the program: a process that it makes now is
    /// placed on any of them. The kernel leaves the caller where it is.
    pub fn widen(&self) {
        set_affinity(&self.cpus);
    }

    /// The end of [`Origin::widen`] on a CPU of the run.
    pub fn narrow(&self, index: usize) {
        if let Some(host) = self.hosts.get(index) {
            set_affinity(&only(*host));
        }
    }

    /// Makes the calling thread, which nobody schedules but the kernel, what the program's threads
    /// are, beside the CPUs of the run, but for what its creator asked for. Signals that were
    /// blocked come at once.
    pub fn adopt(&self, asked: Asked) {
        if !asked.cpus {
            set_affinity(&self.elsewhere);
        }
        if self.policy != libc::SCHED_OTHER && !asked.class {
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
        if !asked.mask {
            set_mask(self.mask);
        }
    }
}

/// Things that the creator of a kernel thread asked for: they are no heritage.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    cpus: bool,
    class: bool,
    mask: bool,
}

impl Asked {
    /// By the attributes that a thread is created with.
    ///
    /// # Safety
    /// They are null or initialised.
    pub(crate) unsafe fn of(attributes: *const libc::pthread_attr_t) -> Asked {
        type GetMask =
            unsafe extern "C" fn(*const libc::pthread_attr_t, *mut libc::sigset_t) -> c_int;
        if attributes.is_null() {
            return Asked::default();
        }
        // SAFETY: an all-zero set is a valid empty set.
        let mut set: CpuSet = unsafe { core::mem::zeroed() };
        let size = size_of::<CpuSet>();
        // SAFETY: as the caller vouches; the set is of the size given.
        let known = unsafe { libc::pthread_attr_getaffinity_np(attributes, size, &mut set) };
        // SAFETY: looks at a set. All CPUs that there could be: nobody asked.
        let count = unsafe { libc::CPU_COUNT(&set) };
        let mut inherits: c_int = 0;
        // SAFETY: as the caller vouches.
        unsafe { libc::pthread_attr_getinheritsched(attributes, &mut inherits) };
        let get_mask = super::symbol(c"pthread_attr_getsigmask_np");
        let mask = !get_mask.is_null() && {
            // SAFETY: an all-zero set is a valid one.
            let mut mask: libc::sigset_t = unsafe { core::mem::zeroed() };
            // SAFETY: the symbol is the library's function of this type.
            let get = unsafe { core::mem::transmute::<*mut c_void, GetMask>(get_mask) };
            // SAFETY: as the caller vouches. Else than 0: nobody asked.
            unsafe { get(attributes, &mut mask) == 0 }
        };
        Asked {
            cpus: known == 0 && count < libc::CPU_SETSIZE,
            class: inherits == libc::PTHREAD_EXPLICIT_SCHED,
            mask,
        }
    }
}

fn address<T>(pointer: *const T) -> u64 {
    pointer.addr() as u64
}

/// Sets the signal mask of the calling thread.
fn set_mask(mask: u64) {
    let arguments = [word(libc::SIG_SETMASK), address(&raw const mask), 0, 8];
    // SAFETY: the word outlives the call.
    unsafe { call(libc::SYS_rt_sigprocmask, arguments) };
}

/// A set of one CPU.
fn only(cpu: u32) -> CpuSet {
    // SAFETY: an all-zero set is a valid empty set.
    let mut set: CpuSet = unsafe { core::mem::zeroed() };
    if is_in_a_set(cpu) {
        // SAFETY: the index is below the size of the set.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    }
    set
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
