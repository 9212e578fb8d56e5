//! Loaded before a command (`LD_PRELOAD`): a process of its own for each input, under limits.
//!
//! The loader calls `begin` when the command is loaded and linked, and before its `main`. From
//! there each byte on standard input asks for one more child. The child goes on into `main`, with
//! the arguments that all of them have, under limits of its own; loading and linking the command is
//! paid once. When it has ended, its status, its processor time and its peak of memory go to
//! standard output as three words, and the next byte is awaited.

use core::ffi::c_int;
use core::mem::MaybeUninit;

/// The limits, by which the loader's call knows that it is meant: address space in KiB, processor
/// time and time on the wall in seconds, with commas between them.
const LIMITS: &str = "PUNCTUAL_FEED";
/// Programs that a command starts are not meant.
const PRELOAD: &str = "LD_PRELOAD";

/// Called by the loader, as the functions of every object that are to be called first.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// The limits of a child.
#[derive(Clone, Copy)]
struct Limits {
    kib: u64,
    seconds: u64,
    wall: u32,
}

impl Limits {
    fn parsed(text: &str) -> Option<Limits> {
        let mut numbers = text.split(',').map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        Some(Limits {
            kib: next()?,
            seconds: next()?,
            wall: u32::try_from(next()?).ok()?,
        })
    }

    /// Puts the calling process under them.
    fn hold(self) {
        let limits = [
            (libc::RLIMIT_AS, self.kib << 10),
            (libc::RLIMIT_CPU, self.seconds),
            (libc::RLIMIT_CORE, 0),
        ];
        for (resource, most) in limits {
            let limit = libc::rlimit {
                rlim_cur: most,
                // The difference is that of a signal with a name and of one without.
                rlim_max: most.saturating_add(1),
            };
            // SAFETY: the kernel reads the limit during the call.
            unsafe { libc::setrlimit(resource, &raw const limit) };
        }
        // SAFETY: its signal ends this process, which has no handler for it.
        unsafe { libc::alarm(self.wall) };
    }
}

/// Serves until nobody asks any more. It returns in children alone, and where it is not meant.
extern "C" fn begin() {
    let Some(limits) = std::env::var(LIMITS)
        .ok()
        .and_then(|text| Limits::parsed(&text))
    else {
        return;
    };
    for name in [LIMITS, PRELOAD] {
        // SAFETY: before `main` this process has one thread.
        unsafe { std::env::remove_var(name) };
    }
    while asked() {
        // SAFETY: this process has one thread, so its copy has no lock that another one holds.
        match unsafe { libc::fork() } {
            0 => {
                limits.hold();
                return silence();
            }
            child if child > 0 => report(ended(child)),
            _ => break,
        }
    }
    // SAFETY: nothing of this process is to be kept.
    unsafe { libc::_exit(0) }
}

/// Waits until somebody asks; `false`: the pipe was closed.
fn asked() -> bool {
    let mut byte = 0_u8;
    // SAFETY: the kernel writes at most one byte, which outlives the call.
    unsafe { libc::read(libc::STDIN_FILENO, (&raw mut byte).cast(), 1) == 1 }
}

/// Gives a child nothing to read, and nobody to print to.
fn silence() {
    // SAFETY: the path ends with a zero, and the numbers are those of open files.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        libc::dup2(null, libc::STDIN_FILENO);
        libc::dup2(null, libc::STDOUT_FILENO);
        libc::close(null);
    }
}

/// Waits for the end of a child: its status, its processor time in microseconds, its peak in KiB.
fn ended(child: c_int) -> [u64; 3] {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the kernel writes both, which outlive the call; zeros are a usage, too.
    let usage = unsafe {
        libc::wait4(child, &raw mut status, 0, usage.as_mut_ptr());
        usage.assume_init()
    };
    let micros = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    let words = [
        status.into(),
        micros(usage.ru_utime) + micros(usage.ru_stime),
        usage.ru_maxrss,
    ];
    words.map(|word| u64::try_from(word).unwrap_or(u64::MAX))
}

/// Tells how a child has ended. Where nobody listens any more, nobody asks any more.
fn report(words: [u64; 3]) {
    let bytes = words.map(u64::to_ne_bytes).concat();
    // SAFETY: the kernel reads the bytes during the call.
    let _: isize = unsafe { libc::write(libc::STDOUT_FILENO, bytes.as_ptr().cast(), bytes.len()) };
}
