//! A yield by the core and the dispatch alone: what of a switch is decision, and what is platform.
//!
//! Threads that share the storage of the calling kernel thread ask a shard who is next and dispatch
//! to it, outside of any run: clock, charge, policy, budget, record, epoch and event ring as in a
//! run, but no gate, no timer, and nobody who might interrupt.

use core::cell::{Cell, UnsafeCell};

use punctual_kern::{Event, Next, Policy, Shard, Sink};
use punctual_model::Instant;
use punctual_switch::instructions::{read_thread_pointer, read_time_stamp};
use punctual_switch::{Control, DispatchRecord, RecordCell, SchedulerRecord, dispatch};

use crate::storage::stack::Stack;

const STACK: usize = 64 * 1024;

/// What the threads share.
struct World<P, S> {
    scheduler: SchedulerRecord,
    records: Vec<RecordCell>,
    /// Borrowed between two dispatches only.
    core: UnsafeCell<(Shard<P>, S)>,
    origin: u64,
    /// Who runs, by its place in the shard.
    current: Cell<usize>,
    dispatches: Cell<u64>,
    // What the threads run on.
    _stacks: Vec<Stack>,
}

/// TSC cycles per yield, one figure per batch; empty: no memory, or a yield that did not switch.
/// The threads of `shard` are of equal urgency and released at its start; a batch has at least
/// `yields` yields, each thread's as many as the others'.
pub fn through_core<P: Policy, S: Sink>(
    batches: usize,
    yields: usize,
    shard: Shard<P>,
    sink: S,
) -> Vec<f64> {
    let Some(world) = World::new(shard, sink) else {
        return Vec::new();
    };
    let threads = world.records.len();
    let rounds = yields.div_ceil(threads);
    let mut samples = Vec::with_capacity(batches);
    // The first one touches everything for the first time.
    for sample in 0..=batches {
        let (before, dispatches) = (read_time_stamp(), world.dispatches.get());
        for _ in 0..rounds {
            pass(&world);
        }
        let cycles = read_time_stamp().wrapping_sub(before);
        let switched = world.dispatches.get() - dispatches;
        if switched != (rounds * threads) as u64 {
            return Vec::new();
        }
        if sample > 0 {
            samples.push(cycles as f64 / switched as f64);
        }
    }
    samples
}

impl<P: Policy, S: Sink> World<P, S> {
    fn new(mut shard: Shard<P>, mut sink: S) -> Option<Box<World<P, S>>> {
        let threads = shard.places();
        let mut next = Next::Idle;
        // An entry serves so many releases; the others come with the next.
        for tick in 0..=threads as u64 {
            next = shard
                .handle(Instant::from_ticks(tick), Event::Tick, &mut sink)
                .next;
        }
        let Next::Thread(first) = next else {
            return None;
        };
        let pointer = read_thread_pointer();
        let mut world = Box::new(World {
            scheduler: SchedulerRecord::new(core::ptr::null_mut()),
            records: Vec::new(),
            core: UnsafeCell::new((shard, sink)),
            origin: read_time_stamp().wrapping_sub(threads as u64),
            current: Cell::new(first.index()),
            dispatches: Cell::new(0),
            _stacks: Vec::new(),
        });
        let argument = (&raw mut *world).cast();
        for thread in 0..threads {
            let running = DispatchRecord::running(pointer, Control::Default);
            if thread == first.index() {
                world.records.push(RecordCell::new(running));
                continue;
            }
            let stack = Stack::try_new(STACK).ok()?;
            // SAFETY: the stack is fresh and lives as long as the world, which is what the thread
            // knows; the storage is that of the running thread, which goes on when it does not.
            let record = unsafe {
                let (top, default) = (stack.top(), Control::Default);
                DispatchRecord::prepare(top, pointer, default, turns::<P, S>, argument)
            };
            world.records.push(RecordCell::new(record));
            world._stacks.push(stack);
        }
        let current = world.records[first.index()].get();
        world.scheduler.set_current(current);
        Some(world)
    }
}

unsafe extern "C" fn turns<P: Policy, S: Sink>(argument: *mut u8) -> ! {
    // SAFETY: the argument is the world, which outlives its threads.
    let world = unsafe { &*argument.cast::<World<P, S>>() };
    loop {
        pass(world);
    }
}

#[inline(always)]
fn pass<P: Policy, S: Sink>(world: &World<P, S>) {
    let epoch = world.scheduler.epoch();
    if !world.scheduler.events.is_empty() {
        while world.scheduler.events.take().is_some() {}
    }
    let now = Instant::from_ticks(read_time_stamp().wrapping_sub(world.origin));
    // SAFETY: all threads are on one kernel thread, and the borrow ends before the dispatch.
    let (shard, sink) = unsafe { &mut *world.core.get() };
    let Next::Thread(next) = shard.handle(now, Event::Yield, sink).next else {
        return;
    };
    let from = world.current.replace(next.index());
    if from == next.index() {
        return;
    }
    world.dispatches.set(world.dispatches.get() + 1);
    let (from, to) = (world.records[from].get(), world.records[next.index()].get());
    // SAFETY: two records of one scheduler; outside of a run no signal recovers or hands over; what
    // is shared is in cells, and the borrow above has ended.
    let _ = unsafe { dispatch(&raw const world.scheduler, from, to, epoch) };
}
