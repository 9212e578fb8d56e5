//! Calls into the C library and the kernel.
//!
//! A carrier that carries nobody runs with the thread pointer of the one it carried last, who may
//! run elsewhere by now. So what carriers call by themselves are system calls: these leave `errno`
//! and everything else behind the thread pointer alone.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::AtomicU32;

use punctual_switch::system_call;

/// A signed argument as the register that the kernel reads.
fn word(value: impl Into<i64>) -> u64 {
    value.into().cast_unsigned()
}

/// Sleeps until `word` is no longer `expected`, or for no reason at all. Returns whether somebody
/// woke the caller, which slept.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32) -> bool {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let address = word.as_ptr() as u64;
    let arguments = [address, self::word(operation), u64::from(expected), 0, 0, 0];
    // SAFETY: the word outlives the call; no time limit.
    unsafe { system_call(libc::SYS_futex, arguments) == 0 }
}

/// As [`futex_wait`], for so many nanoseconds at most.
pub(crate) fn futex_wait_for(word: &AtomicU32, expected: u32, nanoseconds: u32) {
    let limit = libc::timespec {
        tv_sec: i64::from(nanoseconds / 1_000_000_000),
        tv_nsec: i64::from(nanoseconds % 1_000_000_000),
    };
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let limit = &raw const limit as u64;
    let address = word.as_ptr() as u64;
    let arguments = [
        address,
        self::word(operation),
        u64::from(expected),
        limit,
        0,
        0,
    ];
    // SAFETY: the word and the limit outlive the call.
    unsafe { system_call(libc::SYS_futex, arguments) };
}

/// Wakes so many that sleep on `word`.
pub(crate) fn futex_wake(word: &AtomicU32, count: i32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    let arguments = [
        word.as_ptr() as u64,
        self::word(operation),
        self::word(count),
        0,
        0,
        0,
    ];
    // SAFETY: the kernel reads the address only to find sleepers.
    unsafe { system_call(libc::SYS_futex, arguments) };
}

/// The number of the calling kernel thread.
pub(crate) fn kernel_thread() -> u32 {
    // SAFETY: takes no argument and always succeeds.
    let number = unsafe { system_call(libc::SYS_gettid, [0; 6]) };
    u32::try_from(number).unwrap_or_default()
}

/// The value of a variable of the environment.
pub(crate) fn variable(name: &CStr) -> Option<&'static str> {
    // SAFETY: a C string; nobody else runs while the library is loaded.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a C string; programs do not take the variables back that they were started with.
    let value = unsafe { CStr::from_ptr(value) };
    value.to_str().ok()
}

/// How many CPUs the affinity mask of the caller names.
pub(crate) fn allowed_cpus() -> usize {
    let mut mask = [0_u64; 128];
    let bytes = size_of_val(&mask);
    // SAFETY: the kernel writes so many bytes at most.
    let written = unsafe { libc::sched_getaffinity(0, bytes, mask.as_mut_ptr().cast()) };
    let count: u32 = mask.iter().map(|word| word.count_ones()).sum();
    match written {
        0 if count > 0 => count as usize,
        _ => 1,
    }
}

/// Nanoseconds since some instant.
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the library writes the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Writes a line to the standard error.
pub(crate) fn say(line: &str) {
    let text = format!("{line}\n");
    let arguments = [2, text.as_ptr() as u64, text.len() as u64, 0, 0, 0];
    // SAFETY: so many bytes are there.
    unsafe { system_call(libc::SYS_write, arguments) };
}

/// Says a line and ends the program.
pub(crate) fn end_program(line: &str) -> ! {
    say(line);
    // SAFETY: the C library ends the process as `exit` of a program does.
    unsafe { libc::exit(1) }
}

/// The limit of the stack that threads of this process get by default, in bytes.
pub(crate) fn default_stack() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the library writes the structure.
    let got = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) };
    let is_sensible = got == 0 && limit.rlim_cur != libc::RLIM_INFINITY && limit.rlim_cur > 0;
    let bytes = if is_sensible { limit.rlim_cur } else { 8 << 20 };
    usize::try_from(bytes).unwrap_or(8 << 20)
}

/// Has `report` called when the program ends.
pub(crate) fn at_exit(report: extern "C" fn()) {
    // SAFETY: the function takes and gives nothing.
    unsafe { libc::atexit(report) };
}

/// Has functions called around a fork: before it, and after it in the parent and in the child.
pub(crate) fn around_fork(
    before: unsafe extern "C" fn(),
    parent: unsafe extern "C" fn(),
    child: unsafe extern "C" fn(),
) {
    // SAFETY: the functions take and give nothing.
    unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
}

/// Reserves memory for a stack, with so many bytes below it that nobody may touch.
pub(crate) fn map_stack(bytes: usize, guard: usize) -> Option<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let size = bytes as u64;
    let arguments = [0, size, word(protection), word(flags), word(-1), 0];
    // SAFETY: a new mapping, wherever the kernel likes.
    let area = unsafe { system_call(libc::SYS_mmap, arguments) };
    // An address of the upper half is the number of an error.
    let area = u64::try_from(area).ok()?;
    let arguments = [area, guard as u64, word(libc::PROT_NONE), 0, 0, 0];
    // SAFETY: the lowest pages of the mapping that was just made.
    unsafe { system_call(libc::SYS_mprotect, arguments) };
    Some(core::ptr::with_exposed_provenance_mut(
        usize::try_from(area).ok()?,
    ))
}

/// The address of a function of the process, if it is there.
pub(crate) fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Has the C library make a thread that nobody joins; whether it did.
pub(crate) fn start_thread(
    entry: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> bool {
    let mut thread = 0;
    // SAFETY: the function takes such an argument; default attributes.
    let made = unsafe { libc::pthread_create(&raw mut thread, core::ptr::null(), entry, argument) };
    if made != 0 {
        return false;
    }
    // SAFETY: the thread was just made, and it never ends by itself.
    unsafe { libc::pthread_detach(thread) };
    true
}

/// Has `end` called with the value that a thread gave to [`at_exit_of_thread`].
pub(crate) fn exit_key(end: unsafe extern "C" fn(*mut c_void)) -> Option<u32> {
    let mut key = 0;
    // SAFETY: the library writes the key.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(end)) };
    (made == 0).then_some(key)
}

/// Gives the calling thread a value for the function of the key.
pub(crate) fn at_exit_of_thread(key: u32, value: *mut c_void) {
    // SAFETY: a key of this library.
    unsafe { libc::pthread_setspecific(key, value) };
}

/// Whether programs may set the thread pointer by themselves (`AT_HWCAP2`, bit 1).
pub(crate) fn may_set_thread_pointer() -> bool {
    // SAFETY: reads what the kernel gave the process.
    let bits = unsafe { libc::getauxval(libc::AT_HWCAP2) };
    bits & 2 != 0
}

/// Calls a function of no arguments that gives an address, found by [`symbol`].
///
/// # Safety
/// It is such a function.
pub(crate) unsafe fn call_for_address(function: *mut c_void) -> *mut u8 {
    // SAFETY: as the caller vouches.
    let function: extern "C" fn() -> *mut u8 = unsafe { core::mem::transmute(function) };
    function()
}

/// Whether a thread of this process sleeps in the kernel.
pub(crate) fn sleeps(kernel_thread: u32) -> bool {
    let path = format!("/proc/self/task/{kernel_thread}/stat");
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|rest| rest.starts_with('S'))
}

/// The name of the function at an address, as far as the loader knows it.
pub(crate) fn name_of(address: *const c_void) -> Option<String> {
    let mut info = libc::Dl_info {
        dli_fname: core::ptr::null::<c_char>(),
        dli_fbase: core::ptr::null_mut(),
        dli_sname: core::ptr::null::<c_char>(),
        dli_saddr: core::ptr::null_mut(),
    };
    // SAFETY: the library writes the structure.
    let found: c_int = unsafe { libc::dladdr(address, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a C string of the loader.
    let file = unsafe { CStr::from_ptr(info.dli_fname) }
        .to_string_lossy()
        .into_owned();
    if info.dli_sname.is_null() {
        let offset = address.addr() - info.dli_fbase.addr();
        return Some(format!("{file}+{offset:#x}"));
    }
    // SAFETY: as above.
    let name = unsafe { CStr::from_ptr(info.dli_sname) }.to_string_lossy();
    Some(format!("{name} of {file}"))
}
