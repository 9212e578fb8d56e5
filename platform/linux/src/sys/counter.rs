//! Counters of the kernel and of the processor, by `perf_event_open(2)`.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
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
    let anywhere = word(-1_i64);
    open_for(counter, (0, anywhere), (0, 0))
}

/// Opens a counter for a kernel thread on a CPU, which records `samples`, as `flags` say.
fn open_for(
    counter: Counter,
    (thread, cpu): (u64, u64),
    (samples, flags): (u64, u64),
) -> io::Result<i64> {
    const SIZE: u64 = 64; // PERF_ATTR_SIZE_VER0
    const EXCLUDE_KERNEL_AND_HYPERVISOR: u64 = 1 << 5 | 1 << 6;
    // type and size; config; period; sample type; read format; flags; the rest.
    let (kind, number) = (counter.kind | SIZE << 32, counter.number);
    let flags = flags | EXCLUDE_KERNEL_AND_HYPERVISOR;
    let attributes: [u64; 8] = [kind, number, 0, samples, 0, flags, 0, 0];
    let no_group = word(-1_i64);
    let arguments = [address(attributes.as_ptr()), thread, cpu, no_group];
    // SAFETY: the kernel reads SIZE bytes, which is the size of the array.
    check(unsafe { call(libc::SYS_perf_event_open, arguments) })
}

/// Maps so many bytes of a counter for reading, and closes its descriptor: the mapping keeps it.
fn map(descriptor: i64, length: usize) -> io::Result<*mut u8> {
    let (read, shared) = (word(libc::PROT_READ), word(libc::MAP_SHARED));
    let arguments = [0, length as u64, read, shared, word(descriptor), 0];
    // SAFETY: a new mapping where the kernel finds room, of a descriptor that the caller opened.
    let mapped = check(unsafe { call(libc::SYS_mmap, arguments) });
    close(descriptor);
    let at = usize::try_from(mapped?).map_err(io::Error::other)?;
    Ok(core::ptr::with_exposed_provenance_mut(at))
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
        let page = map(open(DUMMY)?, PAGE)?;
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

/// The kernel's record of the threads that one CPU had, for the one that it has now.
///
/// A ring of 32 bytes a record, written at each switch on that CPU, over the oldest.
/// It writes none while its reader runs there. Only privileged users may have it: it tells of the
/// threads of others.
#[derive(Debug)]
pub(crate) struct SwitchLog {
    /// A page of positions, then the ring; null: nothing is recorded.
    page: *mut u8,
    thread: u32,
}

/// One record of the kernel's (`PERF_RECORD_SWITCH_CPU_WIDE` with thread and time).
#[repr(C)]
#[derive(Clone, Copy)]
struct Switch {
    kind: u32,
    flags: u16,
    size: u16,
    other: [u32; 2],
    process: u32,
    thread: u32,
    time_ns: u64,
}

const RING: usize = 16 * PAGE;
const RECORD: u64 = size_of::<Switch>() as u64;

impl SwitchLog {
    /// Records nothing.
    pub(crate) fn of_nobody() -> SwitchLog {
        SwitchLog {
            page: core::ptr::null_mut(),
            thread: 0,
        }
    }

    /// Records the switches of `cpu`, on which the calling kernel thread runs.
    ///
    /// # Errors
    /// The kernel does not let this process have it.
    pub(crate) fn try_new(cpu: u32) -> io::Result<SwitchLog> {
        const THREAD_AND_TIME: u64 = 1 << 1 | 1 << 2;
        const ON_ALL_RECORDS: u64 = 1 << 18;
        const SWITCHES: u64 = 1 << 26;
        let everybody = word(-1_i64);
        let what = (THREAD_AND_TIME, ON_ALL_RECORDS | SWITCHES);
        let descriptor = open_for(DUMMY, (everybody, u64::from(cpu)), what)?;
        Ok(SwitchLog {
            page: map(descriptor, PAGE + RING)?,
            thread: super::current_thread().number(),
        })
    }

    /// Whether anything is recorded.
    pub(crate) fn is_on(&self) -> bool {
        !self.page.is_null()
    }

    /// The thread that ran longest here in place of the caller in the last `ns` that were not the
    /// caller's, and for how many of those nanoseconds. O(switches in that time), at most 64.
    #[cold]
    pub(crate) fn longest(&self, ns: u64) -> Option<(u32, u64)> {
        const MOST: u64 = 64;
        let head = self.head()?;
        let newest = self.record(head.checked_sub(RECORD)?)?;
        let first = head.saturating_sub(RING as u64 - RECORD);
        let places = (1..=MOST).map_while(|back| head.checked_sub(back * RECORD));
        let records = places.take_while(|at| *at >= first);
        let records = records.map_while(|at| self.record(at));
        let arrivals = records.filter(|switch| !switch.leaves());
        let arrivals = arrivals.map(|switch| (switch.thread, switch.time_ns));
        longest_of(self.thread, arrivals, newest.time_ns, ns)
    }

    /// How much was ever written into the ring.
    fn head(&self) -> Option<u64> {
        const HEAD: usize = 1_024; // `perf_event_mmap_page.data_head`
        let head: *const AtomicU64 = self.page.wrapping_add(HEAD).cast_const().cast();
        // SAFETY: a word of a page that is mapped as long as this lives.
        (!self.page.is_null()).then(|| unsafe { (*head).load(Ordering::Acquire) })
    }

    /// The record at a position, if it is one of ours.
    fn record(&self, at: u64) -> Option<Switch> {
        const OF_A_CPU: u32 = 15; // `PERF_RECORD_SWITCH_CPU_WIDE`
        let place = usize::try_from(at % RING as u64).ok()?;
        let record: *const Switch = self.page.wrapping_add(PAGE + place).cast_const().cast();
        // SAFETY: inside the mapping; its size is a multiple of that of a record, which is plain
        // numbers. The kernel writes only when this CPU goes to another thread.
        let record = unsafe { record.read_volatile() };
        (record.kind == OF_A_CPU && u64::from(record.size) == RECORD).then_some(record)
    }
}

/// [`SwitchLog::longest`] of those that came to a CPU (who, and when), the last first, up to
/// `until`. Nobody's time counts as that of others, and nobody is named.
fn longest_of(
    caller: u32,
    arrivals: impl Iterator<Item = (u32, u64)>,
    mut until: u64,
    mut ns: u64,
) -> Option<(u32, u64)> {
    const NOBODY: u32 = 0;
    let mut shares = [(NOBODY, 0_u64); 8];
    for (arrived, came) in arrivals {
        if ns == 0 {
            break;
        }
        let ran = until.saturating_sub(came).min(ns);
        until = came;
        if arrived == caller {
            continue;
        }
        ns -= ran;
        let mut all = shares.iter_mut();
        let place = all.find(|(thread, ns)| *thread == arrived || *ns == 0);
        if let Some(share) = place.filter(|_| arrived != NOBODY) {
            *share = (arrived, share.1 + ran);
        }
    }
    let longest = shares.into_iter().max_by_key(|(_, ns)| *ns)?;
    (longest.1 > 0).then_some(longest)
}

impl Switch {
    /// Whether it tells that its thread leaves the CPU.
    fn leaves(self) -> bool {
        const OUT: u16 = 1 << 13; // `PERF_RECORD_MISC_SWITCH_OUT`
        self.flags & OUT != 0
    }
}

impl Drop for SwitchLog {
    fn drop(&mut self) {
        if !self.page.is_null() {
            let arguments = [address(self.page.cast_const()), (PAGE + RING) as u64];
            // SAFETY: mapped by `try_new`, and nobody else knows the pages.
            unsafe { call(libc::SYS_munmap, arguments) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_ran_longest_is_looked_for_in_what_others_had_however_long_ago() {
        // The caller is 1: it came at 1,000, before that 7 for 10, the caller for 500, 8 for 90.
        let arrivals = [(1, 1_000), (7, 990), (1, 490), (8, 400), (9, 0)];
        let longest = |ns| longest_of(1, arrivals.into_iter(), 1_000, ns);
        assert_eq!(longest(0), None);
        assert_eq!(longest(10), Some((7, 10)));
        assert_eq!(longest(15), Some((7, 10)));
        assert_eq!(longest(100), Some((8, 90)));
        assert_eq!(longest(10_000), Some((9, 400)));
        let idle = [(1, 1_000), (0, 900), (9, 0)];
        assert_eq!(longest_of(1, idle.into_iter(), 1_000, 100), None);
    }

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
