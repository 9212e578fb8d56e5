//! Memory: areas that are reserved and opened, pages that stay in memory, and how much there is.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io;

use super::errno_check;

/// All pages are locked, those of later areas included.
static LOCKED: AtomicBool = AtomicBool::new(false);

/// Locks all pages of the process, present and future.
pub(crate) fn lock_memory() -> io::Result<()> {
    // SAFETY: changes no content.
    errno_check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) })?;
    LOCKED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Unlocks all pages.
pub(crate) fn unlock_memory() {
    LOCKED.store(false, Ordering::Relaxed);
    // SAFETY: changes no content; cannot fail.
    unsafe { libc::munlockall() };
}

/// In a process that locks its pages, those of an area from [`super::reserve`] come when they are
/// used, and stay then.
pub(crate) fn lock_on_touch(area: *mut u8, bytes: usize) {
    if LOCKED.load(Ordering::Relaxed) {
        // SAFETY: changes no content. Refused, all pages come at once.
        unsafe { libc::mlock2(area.cast(), bytes, libc::MLOCK_ONFAULT) };
    }
}

/// How many mappings a process may have; `None`: the kernel does not say.
pub(crate) fn most_mappings() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?;
    text.trim().parse().ok()
}

/// Bytes of memory that programs can still get; `None`: the kernel does not say.
pub(crate) fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib.saturating_mul(1024))
}

/// How many bytes the process may lock; `None`: no limit.
pub(crate) fn lockable_bytes() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is ours.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    if result == 0 && limit.rlim_cur == libc::RLIM_INFINITY {
        None
    } else {
        Some(limit.rlim_cur)
    }
}
