//! Every call into the C library and the kernel that this platform makes.
//!
//! Calls that happen on a scheduling path (timer, futex, kick) use the system call instruction
//! itself: they run inside signal handlers on the stacks of preempted threads, so they must not
//! touch `errno` or anything else of the C library. The others run before and after a run.

use core::ffi::c_int;
use core::sync::atomic::AtomicU32;
use std::io;

use punctual_switch::Gate;

pub(crate) use punctual_linux_io::sys::{
    EAGAIN, EINTR, ETIMEDOUT, FUTEX_CALL, KernelClock, call, errno, fail, futex, read_clock,
    symbol, word,
};

use action::KernelAction;

mod account;
pub(crate) mod action;
mod counter;
pub(crate) mod exception;
pub(crate) mod locals;
pub(crate) mod memory;
pub(crate) mod program;
pub(crate) mod remark;
mod text;

pub(crate) use account::{Account, OwnAccount, account_of};
pub(crate) use counter::{SwitchLog, SwitchWatch, try_cycle_counter};
pub(crate) use memory::{
    available_bytes, lock_memory, lock_on_touch, lockable_bytes, most_mappings, unlock_memory,
};
pub(crate) use text::{function_range, is_stub, object_of, text_ranges};

/// An address as an argument of a system call.
fn address<T>(pointer: *const T) -> u64 {
    pointer.addr() as u64
}

fn check(result: i64) -> io::Result<i64> {
    if result < 0 {
        Err(io::Error::from_raw_os_error(
            i32::try_from(-result).unwrap_or(libc::EINVAL),
        ))
    } else {
        Ok(result)
    }
}

fn errno_check(result: c_int) -> io::Result<()> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

// --- Threads, CPUs and scheduling classes ---------------------------------------------------

/// A kernel thread of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tid(i32);

impl Tid {
    /// As the kernel counts them.
    pub(crate) fn number(self) -> u32 {
        self.0.unsigned_abs()
    }
}

/// The calling kernel thread.
pub(crate) fn current_thread() -> Tid {
    // SAFETY: no arguments, no effect.
    let tid = unsafe { call(libc::SYS_gettid, []) };
    Tid(i32::try_from(tid).unwrap_or(0))
}

/// Whether a kernel thread of this machine has a real-time class.
pub(crate) fn is_real_time(thread: u32) -> bool {
    // SAFETY: a look at its class by its number, with no effect.
    let class = unsafe { call(libc::SYS_sched_getscheduler, [u64::from(thread)]) };
    let real_time = [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE];
    // The highest bit tells what its children inherit.
    let class = class & !i64::from(libc::SCHED_RESET_ON_FORK);
    real_time.iter().any(|&of| i64::from(of) == class)
}

/// The CPUs that the calling thread may use.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    let mut set = core::mem::MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the kernel fills at most the size that it is told.
    errno_check(unsafe {
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr())
    })?;
    // SAFETY: zeroed is a valid empty set, and the kernel wrote a set.
    let set = unsafe { set.assume_init() };
    let limit = u32::try_from(libc::CPU_SETSIZE).unwrap_or(1_024);
    // SAFETY: the index is below the size of the set.
    Ok((0..limit)
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu as usize, &set) })
        .collect())
}

/// Pins a thread (`None`: the caller) to these CPUs.
pub(crate) fn pin(thread: Option<Tid>, cpus: &[u32]) -> io::Result<()> {
    // SAFETY: an all-zero set is a valid empty set.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    for &cpu in cpus
        .iter()
        .filter(|&&cpu| i64::from(cpu) < i64::from(libc::CPU_SETSIZE))
    {
        // SAFETY: the index is below the size of the set.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    }
    let tid = thread.map_or(0, |tid| tid.0);
    // SAFETY: the set is valid and of the size given.
    errno_check(unsafe { libc::sched_setaffinity(tid, size_of::<libc::cpu_set_t>(), &set) })
}

/// A scheduling class of the kernel with its priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HostClass {
    policy: c_int,
    priority: c_int,
}

impl HostClass {
    /// Everybody's class.
    pub(crate) const ORDINARY: HostClass = HostClass {
        policy: libc::SCHED_OTHER,
        priority: 0,
    };

    /// Only when nobody else wants the CPU.
    pub(crate) const IDLE: HostClass = HostClass {
        policy: libc::SCHED_IDLE,
        priority: 0,
    };

    /// SCHED_FIFO with this priority (1 to 99).
    pub(crate) const fn fifo(priority: i32) -> HostClass {
        HostClass {
            policy: libc::SCHED_FIFO,
            priority,
        }
    }
}

/// Sets the class of a thread (`None`: the caller); threads and processes that it makes are
/// ordinary ones.
pub(crate) fn set_host_class(thread: Option<Tid>, class: HostClass) -> io::Result<()> {
    let param = libc::sched_param {
        sched_priority: class.priority,
    };
    let policy = class.policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the structure is valid for the call.
    errno_check(unsafe { libc::sched_setscheduler(thread.map_or(0, |tid| tid.0), policy, &param) })
}

/// Lets the kernel wake this thread without the slack that it allows itself by default.
pub(crate) fn sharpen_sleep() {
    // SAFETY: no memory is involved. A failure only leaves sleeps less sharp, and is measured.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

// --- Memory ----------------------------------------------------------------------------------

/// Reserves `bytes` of address space without access (a multiple of the page size).
pub(crate) fn reserve(bytes: usize) -> io::Result<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    // SAFETY: a new mapping wherever the kernel likes; nothing existing is touched.
    let area = unsafe { libc::mmap(core::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if area == libc::MAP_FAILED {
        Err(io::Error::last_os_error())
    } else {
        Ok(area.cast())
    }
}

/// Opens part of a reservation for reading and writing.
///
/// # Safety
/// The range is page-aligned and lies in an area from [`reserve`].
pub(crate) unsafe fn open_memory(area: *mut u8, bytes: usize) -> io::Result<()> {
    // SAFETY: as the caller vouches.
    errno_check(unsafe { libc::mprotect(area.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) })
}

/// Gives an area back.
///
/// # Safety
/// The area came from [`reserve`] with this size and nobody uses it any more.
pub(crate) unsafe fn release(area: *mut u8, bytes: usize) {
    // SAFETY: as the caller vouches. A failure leaves the area mapped, which is only a leak.
    unsafe { libc::munmap(area.cast(), bytes) };
}

// --- Clocks and timers -----------------------------------------------------------------------

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000).cast_signed(),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
    }
}

/// A timer of the kernel that signals one kernel thread.
#[derive(Debug)]
pub(crate) struct Timer {
    id: c_int,
}

impl Timer {
    /// A disarmed timer that sends `signal` to the calling kernel thread.
    pub(crate) fn try_new(signal: i32) -> io::Result<Timer> {
        // SAFETY: an all-zero structure is valid; the fields that matter are set below.
        let mut event: libc::sigevent = unsafe { core::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = current_thread().0;
        let mut id: c_int = 0;
        let arguments = [
            word(libc::CLOCK_MONOTONIC),
            address(&raw const event),
            address(&raw mut id),
        ];
        // SAFETY: both structures outlive the call and have the kernel's layout.
        check(unsafe { call(libc::SYS_timer_create, arguments) })?;
        Ok(Timer { id })
    }

    /// Fires once, `ns` from now (at least 1).
    pub(crate) fn arm(&self, ns: u64) {
        self.set(ns.max(1));
    }

    /// Does not fire any more. A signal that is already on its way still arrives.
    pub(crate) fn disarm(&self) {
        self.set(0);
    }

    fn set(&self, ns: u64) {
        let value = libc::itimerspec {
            it_interval: timespec(0),
            it_value: timespec(ns),
        };
        let arguments = [word(self.id), 0, address(&raw const value)];
        // SAFETY: the structure outlives the call. It cannot fail for a timer that exists.
        unsafe { call(libc::SYS_timer_settime, arguments) };
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer exists; nobody uses it after this.
        unsafe { call(libc::SYS_timer_delete, [word(self.id)]) };
    }
}

// --- Futexes ---------------------------------------------------------------------------------

/// Sleeps while `*futex == value`, at most `ns`.
pub(crate) fn futex_wait(futex: &AtomicU32, value: u32, ns: u64) {
    let time = timespec(ns);
    let operation = word(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG);
    let arguments = [
        address(futex.as_ptr()),
        operation,
        u64::from(value),
        address(&raw const time),
    ];
    // SAFETY: the word and the time outlive the call.
    unsafe { call(libc::SYS_futex, arguments) };
}

/// Wakes everybody who sleeps on `futex`.
pub(crate) fn futex_wake(futex: &AtomicU32) {
    let operation = word(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG);
    let everybody = u64::from(i32::MAX.cast_unsigned());
    // SAFETY: the word outlives the call.
    unsafe {
        call(
            libc::SYS_futex,
            [address(futex.as_ptr()), operation, everybody],
        )
    };
}

// --- Signals ---------------------------------------------------------------------------------

/// Flags of an action: three arguments, nothing masked inside; interrupted calls go on.
pub(crate) const PREEMPTION_FLAGS: i32 = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_RESTART;
/// As above, on the alternate stack.
pub(crate) const FAULT_FLAGS: i32 = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;

/// Replaces the action of a signal and returns the one before; `None` only reads it.
pub(crate) fn set_action(signal: i32, new: Option<&KernelAction>) -> io::Result<KernelAction> {
    let mut old = KernelAction::DEFAULT;
    let new = new.map_or(core::ptr::null(), core::ptr::from_ref);
    let arguments = [word(signal), address(new), address(&raw mut old), 8];
    // SAFETY: both structures outlive the call; the handlers are functions of this program that
    // follow the rules for signal handlers.
    check(unsafe { call(libc::SYS_rt_sigaction, arguments) })?;
    Ok(old)
}

/// The real-time signals that the C library leaves to programs.
pub(crate) fn real_time_signals() -> core::ops::RangeInclusive<i32> {
    libc::SIGRTMIN()..=libc::SIGRTMAX()
}

/// Segmentation fault and its relatives, for which [`KernelAction::fault`] is installed.
pub(crate) const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// Blocks every signal on the calling thread but `allowed` and those that a fault raises; returns
/// the mask before.
pub(crate) fn block_signals_except(allowed: i32) -> u64 {
    let faults = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
    ];
    let open = faults
        .iter()
        .chain([&allowed])
        .fold(0_u64, |set, signal| set | 1 << (signal - 1));
    set_mask(!open)
}

/// Sets the signal mask of the calling thread; returns the one before.
pub(crate) fn set_mask(mask: u64) -> u64 {
    let mut old = 0_u64;
    let arguments = [
        word(libc::SIG_SETMASK),
        address(&raw const mask),
        address(&raw mut old),
        8,
    ];
    // SAFETY: both words outlive the call.
    unsafe { call(libc::SYS_rt_sigprocmask, arguments) };
    old
}

/// Whether a signal comes from a timer of this process, and not from a thread.
///
/// # Safety
/// `information` is what the kernel gave the handler of that signal.
pub(crate) unsafe fn is_of_timer(information: *const u8) -> bool {
    // SAFETY: as the caller vouches.
    unsafe { (*information.cast::<libc::siginfo_t>()).si_code == libc::SI_TIMER }
}

/// Sends a signal to one kernel thread of this process.
pub(crate) fn signal_thread(thread: Tid, signal: i32) {
    let process = u64::from(std::process::id());
    // SAFETY: no memory is involved. A thread that has ended meanwhile is an error without effect.
    unsafe { call(libc::SYS_tgkill, [process, word(thread.0), word(signal)]) };
}

/// The registers that say where a signal found its thread: rip, rax, rsi, rcx.
///
/// # Safety
/// `context` is the third argument of a `SA_SIGINFO` handler that has not returned.
pub(crate) unsafe fn registers(context: *const u8) -> [i64; 4] {
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the kernel built the structure; the indices are those of x86-64.
    let registers = unsafe { &(*context).uc_mcontext.gregs };
    [libc::REG_RIP, libc::REG_RAX, libc::REG_RSI, libc::REG_RCX]
        .map(|index| registers[usize::try_from(index).unwrap_or(0)])
}

/// Has the interrupted thread go on in a function, with this argument, on the stack below an
/// address of its own.
///
/// # Safety
/// `context` as for [`registers`]; nobody returns to a frame below `stack`, which is on the stack
/// of the thread, with room below it.
pub(crate) unsafe fn redirect(
    context: *mut u8,
    function: unsafe extern "C" fn(*mut u8) -> !,
    argument: *mut u8,
    stack: u64,
) {
    // What a function of the C ABI finds: a stack as after a call, and strings that go upwards.
    const DIRECTION: i64 = 1 << 10;
    const RED_ZONE: u64 = 256;
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: as the caller vouches; the indices are those of x86-64.
    let registers = unsafe { &mut (*context).uc_mcontext.gregs };
    let mut set = |index: i32, value: i64| {
        if let Some(register) = usize::try_from(index)
            .ok()
            .and_then(|at| registers.get_mut(at))
        {
            *register = value;
        }
    };
    let top = (stack.saturating_sub(RED_ZONE) & !15).saturating_sub(8);
    // Nobody returns from there: a walk over the stack ends here.
    if let Ok(top) = usize::try_from(top) {
        let caller = core::ptr::with_exposed_provenance_mut::<u64>(top);
        // SAFETY: below `stack` there is room, as the caller vouches, and nothing used again.
        unsafe { caller.write(0) };
    }
    set(libc::REG_RIP, (function as usize as u64).cast_signed());
    set(libc::REG_RDI, (argument as usize as u64).cast_signed());
    set(libc::REG_RSP, top.cast_signed());
    set(libc::REG_RBP, 0);
    let flags = usize::try_from(libc::REG_EFL).unwrap_or(0);
    registers[flags] &= !DIRECTION;
}

/// Whether the thread made this fault itself, and nobody sent the signal.
///
/// # Safety
/// As for [`fault_address`].
pub(crate) unsafe fn is_own_fault(information: *const u8) -> bool {
    // SAFETY: the kernel built the structure.
    unsafe { (*information.cast::<libc::siginfo_t>()).si_code > 0 }
}

/// A fault in words.
pub(crate) fn fault_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGFPE => "made an arithmetic error",
        libc::SIGILL => "executed no instruction",
        _ => "made an invalid access",
    }
}

/// The address that a fault was about.
///
/// # Safety
/// `information` is the second argument of a `SA_SIGINFO` handler that has not returned.
pub(crate) unsafe fn fault_address(information: *const u8) -> u64 {
    // SAFETY: the kernel built the structure, and the signal is a fault.
    unsafe { (*information.cast::<libc::siginfo_t>()).si_addr() as u64 }
}

/// An alternate signal stack as the kernel describes it.
pub(crate) type AlternateArea = libc::stack_t;

/// Runs the handlers of this thread's faults on `area`; returns what was in force before.
pub(crate) fn set_alternate_stack(area: *mut u8, bytes: usize) -> AlternateArea {
    let new = libc::stack_t {
        ss_sp: area.cast(),
        ss_flags: 0,
        ss_size: bytes,
    };
    let mut old = libc::stack_t {
        ss_sp: core::ptr::null_mut(),
        ss_flags: 0,
        ss_size: 0,
    };
    // SAFETY: the area is given to the kernel until the stack before is restored.
    unsafe { libc::sigaltstack(&new, &mut old) };
    old
}

/// Puts an alternate stack back.
pub(crate) fn restore_alternate_stack(old: &AlternateArea) {
    // SAFETY: it was in force before, so its owner still vouches for it.
    unsafe { libc::sigaltstack(old, core::ptr::null_mut()) };
}

/// Bytes that the kernel needs on a stack to deliver a signal on this processor.
pub(crate) fn signal_frame_bytes() -> usize {
    // SAFETY: reads a constant of the process.
    let bytes = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) };
    usize::try_from(bytes).unwrap_or(0).max(libc::MINSIGSTKSZ)
}

/// Whether user code may write the thread pointer (HWCAP2_FSGSBASE).
pub fn can_write_thread_pointer() -> bool {
    // SAFETY: reads a constant of the process.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & 2 != 0 }
}

/// Writes to standard error without any lock or buffer.
pub(crate) fn write_error(text: &[u8]) {
    // SAFETY: the text outlives the call. What cannot be written is lost.
    unsafe {
        call(
            libc::SYS_write,
            [2, address(text.as_ptr()), text.len() as u64],
        )
    };
}

/// Ends the process at once, without anything that is registered for its end.
pub(crate) fn end_process(code: c_int) -> ! {
    // SAFETY: it does not come back.
    unsafe { libc::_exit(code) }
}

/// The gate as the signal handler returns it.
pub(crate) const NO_GATE: *const Gate = core::ptr::null();
