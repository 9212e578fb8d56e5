//! Counters of the kernel and of the processor, by `perf_event_open(2)`.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;

use super::{address, call, check, word};

/// Kind and number of a counter, as the kernel calls them.
#[derive(Clone, Copy)]
struct Counter {
    kind: u64,
    number: u64,
}

const CYCLES: Counter = Counter { kind: 0, number: 0 };
/// A counter of the kernel's own that counts nothing.
const DUMMY: Counter = Counter { kind: 1, number: 9 };

/// Opens a counter for the calling thread, of what it does itself: any user may. The structure is
/// passed as its first words; the rest is zero.
fn open(counter: Counter) -> io::Result<i64> {
    const SIZE: u64 = 64; // PERF_ATTR_SIZE_VER0
    const EXCLUDE_KERNEL_AND_HYPERVISOR: u64 = 1 << 5 | 1 << 6;
    // type and size; config; period; sample type; read format; flags; the rest.
    let (kind, number) = (counter.kind | SIZE << 32, counter.number);
    let attributes: [u64; 8] = [kind, number, 0, 0, 0, EXCLUDE_KERNEL_AND_HYPERVISOR, 0, 0];
    let anywhere = word(-1_i64);
    let arguments = [address(attributes.as_ptr()), 0, anywhere, anywhere];
    // SAFETY: the kernel reads SIZE bytes, which is the size of the array.
    check(unsafe { call(libc::SYS_perf_event_open, arguments) })
}

fn close(descriptor: i64) {
    // SAFETY: opened by `open`, and used by nobody else.
    unsafe { call(libc::SYS_close, [word(descriptor)]) };
}

/// Whether the kernel would count executed cycles of the calling thread (the counter is closed
/// again).
pub(crate) fn try_cycle_counter() -> io::Result<()> {
    open(CYCLES).map(close)
}

const PAGE: usize = 4_096;
/// Where the page of a counter says how often it was written (`perf_event_mmap_page.lock`).
const TIMES_WRITTEN: usize = 8;

/// Tells by a look at memory whether a kernel thread has been away from its processor.
///
/// The page of a counter that follows a thread is written each time that the kernel lets the thread
/// on to a processor; that the counter counts nothing does not matter.
#[derive(Debug)]
pub(crate) struct SwitchWatch {
    /// The page; null: nothing is watched.
    page: *mut u8,
    written: *const AtomicU32,
    seen: Cell<u32>,
}

static NEVER_WRITTEN: AtomicU32 = AtomicU32::new(0);

impl SwitchWatch {
    /// Watches nothing, and never has news.
    pub(crate) fn of_nobody() -> SwitchWatch {
        SwitchWatch {
            page: core::ptr::null_mut(),
            written: &raw const NEVER_WRITTEN,
            seen: Cell::new(0),
        }
    }

    /// Watches the calling kernel thread.
    ///
    /// # Errors
    /// The kernel has no such counters, or does not let this process have one.
    pub(crate) fn try_new() -> io::Result<SwitchWatch> {
        let descriptor = open(DUMMY)?;
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        let arguments = [
            0,
            PAGE as u64,
            word(read),
            word(shared),
            word(descriptor),
            0,
        ];
        // SAFETY: a new mapping where the kernel finds room; the descriptor was opened above.
        let mapped = check(unsafe { call(libc::SYS_mmap, arguments) });
        // The mapping keeps the counter.
        close(descriptor);
        let at = usize::try_from(mapped?).map_err(io::Error::other)?;
        let page: *mut u8 = core::ptr::with_exposed_provenance_mut(at);
        let watch = SwitchWatch {
            page,
            written: page.wrapping_add(TIMES_WRITTEN).cast_const().cast(),
            seen: Cell::new(0),
        };
        watch.take_note();
        Ok(watch)
    }

    /// Whether anybody is watched.
    pub(crate) fn is_on(&self) -> bool {
        !self.page.is_null()
    }

    #[inline]
    fn count(&self) -> u32 {
        // SAFETY: a word of a page that is mapped as long as this lives, or of a static.
        unsafe { (*self.written).load(Ordering::Relaxed) }
    }

    /// Whether the thread has been away since [`SwitchWatch::take_note`]. Two loads.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.count() != self.seen.get()
    }

    /// What happened so far is no news any more.
    #[inline]
    pub(crate) fn take_note(&self) {
        self.seen.set(self.count());
    }

    /// As if the thread had been away.
    #[cfg(test)]
    pub(crate) fn pretend(&self) {
        self.seen.set(self.count().wrapping_sub(1));
    }
}

impl Drop for SwitchWatch {
    fn drop(&mut self) {
        if self.is_on() {
            let arguments = [address(self.page.cast_const()), PAGE as u64];
            // SAFETY: mapped by `try_new`, and nobody else knows the page.
            unsafe { call(libc::SYS_munmap, arguments) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sleeps_has_been_away() {
        let Ok(watch) = SwitchWatch::try_new() else {
            eprintln!("skipped: the kernel gives this process no counters");
            return;
        };
        assert!(watch.is_on());
        for _ in 0..3 {
            std::thread::sleep(core::time::Duration::from_millis(1));
            assert!(watch.has_news());
            watch.take_note();
        }
        // On a busy machine some of these loops are interrupted by others; not all.
        let undisturbed = (0..1_000).any(|_| {
            watch.take_note();
            (0..100).for_each(|_| core::hint::spin_loop());
            !watch.has_news()
        });
        assert!(undisturbed, "a look is no news");
    }

    #[test]
    fn nobody_has_no_news() {
        let watch = SwitchWatch::of_nobody();
        std::thread::sleep(core::time::Duration::from_millis(1));
        assert!(!watch.is_on() && !watch.has_news());
    }
}
