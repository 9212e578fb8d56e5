//! What a dispatch costs, for `punctual bench`: the protocol alone, and with all around it.
//!
//! Two threads dispatch to each other on the calling kernel thread, outside of any run: no timer,
//! no policy, no run queue. A figure is the mean of a batch, because the clock of some machines
//! steps in tens of cycles.

mod locks;
mod through_core;

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};

use punctual_switch::instructions::{read_thread_pointer, read_time_stamp};
use punctual_switch::{Control, DispatchRecord, RecordCell, SchedulerRecord, dispatch};

pub use through_core::through_core;

use crate::storage::stack::Stack;
use crate::storage::tls::{Library, Storage};
use crate::sys;

pub use locks::{Taking, take_and_give_back};

/// Round trips of one batch: two dispatches each.
const PAIRS: u32 = 50;
const TRACE_SLOTS: usize = 1_024;

/// Who shares thread-local storage with whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// Both threads have the same: the thread pointer is not written.
    Shared,
    /// Each has its own.
    Own,
}

/// What the two threads know.
struct Pair {
    scheduler: SchedulerRecord,
    records: [RecordCell; 2],
    /// Ticks that each has executed.
    executed: [AtomicU64; 2],
    since: AtomicU64,
    written: AtomicU64,
    trace: [UnsafeCell<(u64, u64)>; TRACE_SLOTS],
    // What the second thread runs on.
    _stack: Stack,
    _storage: Option<Storage>,
}

/// TSC cycles per dispatch, one figure per batch of a hundred: records, epoch and `current` only.
/// Empty: no memory, or this machine or C library does not allow it.
pub fn direct(batches: usize, sharing: Sharing) -> Vec<f64> {
    measure(batches, sharing, Control::Default, Kind::Bare)
}

/// As [`direct`], for threads that keep their floating-point control words.
pub fn direct_keeping_control(batches: usize, sharing: Sharing) -> Vec<f64> {
    measure(batches, sharing, Control::Kept, Kind::Bare)
}

/// As [`direct`], with what a scheduler does besides deciding: the event ring looked at, the clock
/// read, the thread charged, and an event traced.
pub fn direct_full(batches: usize, sharing: Sharing) -> Vec<f64> {
    measure(batches, sharing, Control::Default, Kind::Full)
}

fn measure(batches: usize, sharing: Sharing, control: Control, kind: Kind) -> Vec<f64> {
    let Some(pair) = Pair::new(sharing, control, kind) else {
        return Vec::new();
    };
    // The first batches touch everything for the first time.
    let warm_up = batches / 10 + 1;
    let all = (0..warm_up + batches).map(|_| batch(&pair, kind));
    all.skip(warm_up).collect()
}

fn batch(pair: &Pair, kind: Kind) -> f64 {
    let before = read_time_stamp();
    match kind {
        Kind::Bare => rounds(PAIRS, || pass(pair, 0)),
        Kind::Full => rounds(PAIRS, || pass_full(pair, 0)),
    }
    let cycles = read_time_stamp().wrapping_sub(before);
    // A batch of less than 2^32 cycles; a longer one was not executed in one piece.
    f64::from(u32::try_from(cycles).unwrap_or(u32::MAX)) / f64::from(2 * PAIRS)
}

#[inline(always)]
fn rounds(count: u32, mut each: impl FnMut()) {
    for _ in 0..count {
        each();
    }
}

/// What a thread does besides the dispatch.
#[derive(Clone, Copy)]
enum Kind {
    Bare,
    Full,
}

impl Pair {
    fn new(sharing: Sharing, control: Control, kind: Kind) -> Option<Box<Pair>> {
        let own = sharing == Sharing::Own;
        if own && !sys::can_write_thread_pointer() {
            return None;
        }
        let storage = own
            .then(|| Storage::try_new(Library::find().ok()?))
            .flatten();
        if own && storage.is_none() {
            return None;
        }
        let stack = Stack::try_new(64 * 1024).ok()?;
        let mine = read_thread_pointer();
        let theirs = storage.as_ref().map_or(mine, Storage::thread_pointer);
        let top = stack.top();
        let record = || RecordCell::new(DispatchRecord::running(mine, control));
        let pair = Box::new(Pair {
            scheduler: SchedulerRecord::new(core::ptr::null_mut()),
            records: [record(), record()],
            executed: [AtomicU64::new(0), AtomicU64::new(0)],
            since: AtomicU64::new(0),
            written: AtomicU64::new(0),
            trace: [const { UnsafeCell::new((0, 0)) }; TRACE_SLOTS],
            _stack: stack,
            _storage: storage,
        });
        let argument = (&raw const *pair).cast_mut().cast();
        let body = match kind {
            Kind::Bare => answer,
            Kind::Full => answer_full as unsafe extern "C" fn(*mut u8) -> !,
        };
        // SAFETY: stack, storage and pair live as long as each other; the body uses nothing else.
        let second = unsafe { DispatchRecord::prepare(top, theirs, control, body, argument) };
        // SAFETY: nobody runs by this record yet.
        unsafe { *pair.records[1].get() = second };
        pair.scheduler.set_current(pair.records[0].get());
        Some(pair)
    }
}

unsafe extern "C" fn answer(argument: *mut u8) -> ! {
    // SAFETY: the argument is the pair, which outlives its threads.
    let pair = unsafe { &*argument.cast::<Pair>() };
    loop {
        pass(pair, 1);
    }
}

unsafe extern "C" fn answer_full(argument: *mut u8) -> ! {
    // SAFETY: as above.
    let pair = unsafe { &*argument.cast::<Pair>() };
    loop {
        pass_full(pair, 1);
    }
}

#[inline(always)]
fn pass(pair: &Pair, me: usize) {
    let (from, to) = (pair.records[me].get(), pair.records[1 - me].get());
    let epoch = pair.scheduler.epoch();
    // SAFETY: two records of one scheduler; outside of a run no signal recovers or hands over; what
    // is shared is in cells and atomics.
    let _ = unsafe { dispatch(&raw const pair.scheduler, from, to, epoch) };
}

#[inline(always)]
fn pass_full(pair: &Pair, me: usize) {
    let epoch = pair.scheduler.epoch();
    let now = read_time_stamp();
    let since = pair.since.load(Ordering::Relaxed);
    pair.since.store(now, Ordering::Relaxed);
    let executed = pair.executed[me].load(Ordering::Relaxed) + now.wrapping_sub(since);
    pair.executed[me].store(executed, Ordering::Relaxed);
    let written = pair.written.load(Ordering::Relaxed);
    pair.written.store(written + 1, Ordering::Relaxed);
    // The remainder is below the number of slots.
    #[allow(clippy::cast_possible_truncation)]
    let slot = pair.trace[(written % TRACE_SLOTS as u64) as usize].get();
    // SAFETY: both threads are on one kernel thread, and this one executes.
    unsafe { *slot = (now, me as u64) };
    if !pair.scheduler.events.is_empty() {
        while pair.scheduler.events.take().is_some() {}
    }
    let (from, to) = (pair.records[me].get(), pair.records[1 - me].get());
    // SAFETY: as in `pass`.
    let _ = unsafe { dispatch(&raw const pair.scheduler, from, to, epoch) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_threads_of_a_measured_pair_execute_in_turn() {
        let pair = Pair::new(Sharing::Shared, Control::Default, Kind::Full).expect("memory");
        batch(&pair, Kind::Full);
        let written = pair.written.load(Ordering::Relaxed);
        assert_eq!(written, u64::from(2 * PAIRS), "one event per dispatch");
        for (number, slot) in (0..written).zip(&pair.trace) {
            // SAFETY: nobody writes any more.
            assert_eq!(unsafe { (*slot.get()).1 }, number % 2, "they take turns");
        }
    }

    #[test]
    fn every_way_of_a_dispatch_is_measured_where_the_machine_allows_it() {
        for measure in [direct, direct_keeping_control, direct_full] {
            assert_eq!(measure(20, Sharing::Shared).len(), 20);
            let own = measure(20, Sharing::Own);
            assert!(own.len() == 20 || !sys::can_write_thread_pointer());
            assert!(own.iter().all(|&cycles| cycles > 0.0));
        }
    }
}
