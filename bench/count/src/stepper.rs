//! Steps through this process, one instruction at a time, and counts from mark to mark.
//!
//! From [`begin`] on the processor stops after every instruction of the calling kernel thread (trap
//! flag), and a signal handler counts. The stepped program sees a world that stands still:
//!
//! * the time stamp counter goes on by one per instruction,
//! * signals (of timers, of the machine) stay pending,
//! * counters of the kernel are refused, so that the thread cannot see that it was away.
//!
//! Where a scenario asks for it, the memory that each instruction touches is looked up in a model
//! of a cache of 1 MiB ([`crate::cache`]), and the lines that are not there are counted.
//!
//! So neither load nor neighbours change what it executes. Needs neither privileges nor counters of
//! the processor. The calls of the C library are those of a tool that steps through whatever it is
//! given: they are no part of any platform.

use core::ffi::{c_int, c_void};
use core::hint::black_box;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::fs;
use std::io;
use std::ops::Range;

use punctual_switch::instructions::{read_time_stamp, step_instructions};

use crate::cache::Cache;
use crate::operands::{LONGEST, accesses};

/// An operation of a scenario: the place of its row, from 0.
pub(crate) type Operation = u64;

/// The window that begins here belongs to no operation.
pub(crate) const NONE: Operation = Operation::MAX;

/// A window as it is told: its operation, instructions of the program, those of libraries. Then the
/// lines of the program's code that they are in, and the lines of data that the cache did not have.
pub(crate) type Told = [u64; 5];

const MOST_WINDOWS: usize = 256;
/// No window has begun.
const NOT_YET: u64 = u64::MAX;

/// How many windows are told, before the process ends.
static WANTED: AtomicU64 = AtomicU64::new(0);
/// How many there are.
static WINDOWS: AtomicU64 = AtomicU64::new(0);
static TOLD: [[AtomicU64; 5]; MOST_WINDOWS] =
    [const { [const { AtomicU64::new(0) }; 5] }; MOST_WINDOWS];
/// The operation of the window that has begun.
static OPERATION: AtomicU64 = AtomicU64::new(NONE);
static OWN: AtomicU64 = AtomicU64::new(NOT_YET);
static FOREIGN: AtomicU64 = AtomicU64::new(0);
/// Lines of the program's code in the window: 64 bytes each.
static LINES: AtomicU64 = AtomicU64::new(0);
/// By line, as far as there is room: the last window that touched it, from 1.
static TOUCHED: [AtomicU32; MOST_LINES] = [const { AtomicU32::new(0) }; MOST_LINES];
const LINE_BYTES: u64 = 64;
/// 1 MiB, what a processor has of its second level.
static CACHE: Cache<1_024> = Cache::new();
const LINES_OF_CACHE: u64 = Cache::<1_024>::LINES;
/// How many lines were not found in the window, and since stepping began; without a cache as many
/// as it has lines.
static MISSES: AtomicU64 = AtomicU64::new(0);
static MISSED: AtomicU64 = AtomicU64::new(LINES_OF_CACHE);
static HAS_CACHE: AtomicU64 = AtomicU64::new(0);
const MOST_LINES: usize = 1 << 18;
/// The signal that is let come; 0: none.
static SIGNAL: AtomicU32 = AtomicU32::new(0);
/// Whether the one that comes next was asked for.
static ASKED: AtomicU32 = AtomicU32::new(0);
/// How many windows have begun.
static BEGUN: AtomicU32 = AtomicU32::new(0);
/// Where the instructions of the program are.
static TEXT: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static TIME: AtomicU64 = AtomicU64::new(0);
/// Whether the last instruction was one that reads the time stamp counter: its result is replaced.
static READS_CLOCK: AtomicU64 = AtomicU64::new(0);

/// Begins a window, and ends the one before: instructions from a mark to the next belong to the
/// operation that the first of the two names.
#[inline(never)]
pub(crate) extern "C" fn mark(operation: Operation) {
    black_box(operation);
}

/// To be called before anything else by a process that is to tell so many windows.
pub(crate) fn prepare(windows: usize, has_cache: bool) -> io::Result<()> {
    HAS_CACHE.store(u64::from(has_cache), Relaxed);
    WANTED.store(windows.min(MOST_WINDOWS) as u64, Relaxed);
    let text = own_text()?;
    TEXT[0].store(text.start, Relaxed);
    TEXT[1].store(text.end, Relaxed);
    refuse_counters();
    // SAFETY: all zeros is an action without flags and with an empty mask.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_flags = libc::SA_SIGINFO;
    action.sa_sigaction = on_step as extern "C" fn(_, _, _) as usize;
    // SAFETY: the handler touches words of its own, and of the context that it is given.
    match unsafe { libc::sigaction(libc::SIGTRAP, &raw const action, core::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Where the instructions of this program are in memory.
fn own_text() -> io::Result<Range<u64>> {
    let here = mark as extern "C" fn(Operation) as usize as u64;
    let maps = fs::read_to_string("/proc/self/maps")?;
    let mut places = maps.lines().filter_map(|line| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        Some(number(start)?..number(end)?)
    });
    let text = places.find(|place| place.contains(&here));
    text.ok_or_else(|| io::Error::other("the program is not in its own memory"))
}

/// By a counter of the kernel the platform would notice that it is away at each step; where there
/// are no filters, those counters are refused as a rule.
fn refuse_counters() {
    let instruction = |code: u32, jump_false: u8, k: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap_or(0),
        jt: 0,
        jf: jump_false,
        k,
    };
    let refusal = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let counters = u32::try_from(libc::SYS_perf_event_open).unwrap_or(0);
    let mut filter = [
        // The number of the system call is the first word of what the filter sees.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, counters),
        instruction(libc::BPF_RET | libc::BPF_K, 0, refusal),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: 4,
        filter: filter.as_mut_ptr(),
    };
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: the kernel reads the program, whose instructions outlive the call.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program);
    }
}

/// From here on the calling kernel thread is stepped.
pub(crate) fn begin() {
    TIME.store(read_time_stamp(), Relaxed);
    if HAS_CACHE.load(Relaxed) != 0 {
        MISSED.store(0, Relaxed);
    }
    // SAFETY: `prepare` has installed a handler.
    unsafe { step_instructions(true) };
}

/// From here on it is not, until it begins again.
pub(crate) fn pause() {
    // SAFETY: as above.
    unsafe { step_instructions(false) };
}

/// Whether all that is in the cache has been touched since stepping began: so what was before does
/// not count. Always, where there is none.
pub(crate) fn cache_is_full() -> bool {
    MISSED.load(Relaxed) >= LINES_OF_CACHE
}

/// So many ticks pass, and the timer's signal comes. In a program that is stepped.
#[inline(never)]
pub(crate) extern "C" fn interrupt(ticks: u64) {
    // Unlike a mark: equal functions may become one.
    black_box((ticks, SIGNAL.load(Relaxed)));
}

/// From now on [`interrupt`] lets the signal of this number come.
pub(crate) fn lets_come(signal: u32) {
    SIGNAL.store(signal, Relaxed);
}

/// Whether the signal that has come was asked for. Once.
pub(crate) fn was_asked_for() -> bool {
    ASKED.swap(0, Relaxed) != 0
}

/// The place of a signal in a set.
pub(crate) fn signal_bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// Sends the signal to the calling kernel thread: the set that is to be let come.
fn send() -> u64 {
    let signal = SIGNAL.load(Relaxed);
    if signal == 0 {
        return 0;
    }
    ASKED.store(1, Relaxed);
    // SAFETY: all zeros is a valid structure.
    let mut information: libc::siginfo_t = unsafe { core::mem::zeroed() };
    information.si_code = libc::SI_TIMER;
    // SAFETY: calls that may be made in a handler; the structure outlives them.
    unsafe {
        let thread = libc::syscall(libc::SYS_gettid);
        let told = &raw const information;
        libc::syscall(
            libc::SYS_rt_tgsigqueueinfo,
            libc::getpid(),
            thread,
            signal,
            told,
        );
    }
    signal_bit(signal)
}

/// Called between any two instructions, with the state that the second one finds.
extern "C" fn on_step(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a context that is ours until the handler returns.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let registers = &mut context.uc_mcontext.gregs;
    let register = |index: c_int| registers[index as usize].cast_unsigned();
    let (at, argument) = (register(libc::REG_RIP), register(libc::REG_RDI));
    if at == mark as extern "C" fn(Operation) as usize as u64 {
        end_window();
        OPERATION.store(argument, Relaxed);
        OWN.store(0, Relaxed);
        FOREIGN.store(0, Relaxed);
        LINES.store(0, Relaxed);
        MISSES.store(0, Relaxed);
        BEGUN.store(BEGUN.load(Relaxed) + 1, Relaxed);
    }
    let is_own = (TEXT[0].load(Relaxed)..TEXT[1].load(Relaxed)).contains(&at);
    let count = if is_own { &OWN } else { &FOREIGN };
    if OWN.load(Relaxed) != NOT_YET {
        count.store(count.load(Relaxed) + 1, Relaxed);
        if is_own {
            touch(at);
        }
    }
    if HAS_CACHE.load(Relaxed) != 0 {
        look_up(at, registers);
    }
    let comes = at == interrupt as extern "C" fn(u64) as usize as u64;
    let passes = if comes { argument } else { 0 };
    let time = TIME.load(Relaxed) + 1 + passes;
    TIME.store(time, Relaxed);
    if READS_CLOCK.load(Relaxed) != 0 {
        registers[libc::REG_RAX as usize] = (time & u64::from(u32::MAX)).cast_signed();
        registers[libc::REG_RDX as usize] = (time >> 32).cast_signed();
    }
    READS_CLOCK.store(u64::from(reads_clock(at)), Relaxed);
    // Nothing else comes until the process ends; the kernel's mask is the first word.
    let mask = (&raw mut context.uc_sigmask).cast::<u64>();
    let lets = if comes { send() } else { 0 };
    // SAFETY: a word of the context.
    unsafe { *mask = !(1 << (libc::SIGTRAP - 1) | lets) };
}

/// By the number of instructions, where the context has a register.
const REGISTERS: [c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

/// The memory that the instruction at this address is about to touch is looked up in the cache. The
/// process ends if that is not known: nothing is left out in silence.
fn look_up(at: u64, registers: &[i64]) {
    let [start, end] = TEXT.each_ref().map(|word| word.load(Relaxed));
    let left = if (start..end).contains(&at) {
        end - at
    } else {
        0
    };
    let bytes = LONGEST.min(usize::try_from(left).unwrap_or(LONGEST));
    let code = core::ptr::with_exposed_provenance::<u8>(usize::try_from(at).unwrap_or(0));
    let code = match bytes {
        0 => &[],
        // SAFETY: so many bytes of the program's own instructions are there.
        _ => unsafe { core::slice::from_raw_parts(code, bytes) },
    };
    let register = |number: u8| {
        let index = REGISTERS[usize::from(number) % REGISTERS.len()];
        registers[index as usize].cast_unsigned()
    };
    let Some(touched) = accesses(code, at, register) else {
        give_up(code);
    };
    for access in touched.into_iter().flatten() {
        let missed = CACHE.touch(access.at, access.bytes);
        MISSES.store(MISSES.load(Relaxed) + missed, Relaxed);
        MISSED.store(MISSED.load(Relaxed) + missed, Relaxed);
    }
}

/// An instruction that is not known, or one of a library. Its bytes are said in hexadecimal digits.
#[cold]
fn give_up(code: &[u8]) -> ! {
    let mut text = *b"                                count: nobody knows what this touches\n";
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half & 15)];
    for (place, byte) in text.chunks_exact_mut(2).zip(code) {
        place.copy_from_slice(&[digit(byte >> 4), digit(*byte)]);
    }
    // SAFETY: both calls may be made in a handler; the text outlives them.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(4);
    }
}

/// The instruction at this address of the program is executed in the window.
fn touch(at: u64) {
    let line = at / LINE_BYTES - TEXT[0].load(Relaxed) / LINE_BYTES;
    let window = BEGUN.load(Relaxed);
    if let Some(last) = TOUCHED.get(usize::try_from(line).unwrap_or(usize::MAX))
        && last.swap(window, Relaxed) != window
    {
        LINES.store(LINES.load(Relaxed) + 1, Relaxed);
    }
}

/// Whether the instruction at this address, which is executed next, is `rdtsc` or `rdtscp`.
fn reads_clock(at: u64) -> bool {
    let code = core::ptr::with_exposed_provenance::<u8>(usize::try_from(at).unwrap_or(0));
    // SAFETY: an instruction that is executed next can be read; one that begins so has three bytes.
    unsafe {
        *code == 0x0f && (*code.add(1) == 0x31 || *code.add(1) == 0x01 && *code.add(2) == 0xf9)
    }
}

/// Keeps the window that a mark has ended; with the last one that is wanted the process tells all
/// of them on its standard output, and ends.
fn end_window() {
    let operation = OPERATION.load(Relaxed);
    if OWN.load(Relaxed) == NOT_YET || operation == NONE {
        return;
    }
    let count = WINDOWS.load(Relaxed);
    if let Some(told) = TOLD.get(usize::try_from(count).unwrap_or(usize::MAX)) {
        told[0].store(operation, Relaxed);
        told[1].store(OWN.load(Relaxed), Relaxed);
        told[2].store(FOREIGN.load(Relaxed), Relaxed);
        told[3].store(LINES.load(Relaxed), Relaxed);
        told[4].store(MISSES.load(Relaxed), Relaxed);
    }
    WINDOWS.store(count + 1, Relaxed);
    if count + 1 < WANTED.load(Relaxed) {
        return;
    }
    let bytes = (usize::try_from(count).unwrap_or(0) + 1) * size_of::<Told>();
    // SAFETY: the words were written above; both calls may be made in a handler.
    unsafe {
        libc::write(1, TOLD.as_ptr().cast(), bytes);
        libc::_exit(0);
    }
}
