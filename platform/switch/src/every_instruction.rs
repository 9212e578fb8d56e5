//! The protocol preempted at each of its instructions, and at others drawn by chance inside.
//!
//! Three threads pass a turn round (`main`, A, B) and a fresh one starts and ends in every round.
//! The processor stops after each instruction (trap flag); at the first one that has not been
//! interrupted yet the test sends the preemption signal, so that it arrives exactly there. Its
//! handler plays the kernel of Slite: recovers, checks every invariant, posts an event, advances
//! the epoch, and goes on with the interrupted thread or with `main`. This repeats until a round
//! meets no new instruction; then all that the assembler listed must have been interrupted.
//!
//! A broken invariant ends the process at once, with its name: nothing can be trusted afterwards.

mod restartable;
mod variants;

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::Mutex;

use crate::instructions::read_thread_pointer;
use crate::{
    Control, DispatchRecord, Dispatched, PreemptionEvent, RecordCell, Recovered, SchedulerRecord,
    SignalFrame, abandon_to, dispatch_by_system_call, dispatch_call, is_entry,
    protocol_instructions, recover, stepping, system_call,
};
use variants::{clears_before_it_takes, commits_before_it_publishes, dispatches_to_own};

type Switch = unsafe extern "C" fn(
    *const SchedulerRecord,
    *mut DispatchRecord,
    *mut DispatchRecord,
    u64,
) -> Dispatched;

const THREADS: usize = 4;
const MAIN: usize = 0;
const A: usize = 1;
const B: usize = 2;
const FRESH: usize = 3;
/// Not a thread: its record says that it runs.
const NOBODY: usize = 4;

const PREEMPTION: i32 = 44;
const STACK: usize = 256 * 1024;

/// With whom the handler goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum After {
    /// With whom it interrupted.
    Same,
    /// With `main`: the scheduler's thread.
    Scheduler,
    /// With somebody who was preempted before, if there is one, else with `main`.
    Preempted,
}

/// Everything that the threads and the two handlers share; all on one kernel thread.
struct World {
    records: [RecordCell; THREADS + 1],
    scheduler: SchedulerRecord,
    switch: Switch,
    after: After,
    stacks: [core::ops::Range<u64>; THREADS],
    turn: AtomicUsize,
    counts: [AtomicU64; THREADS],
    posted: AtomicU64,
    taken: AtomicU64,
    /// Whether the fresh thread has a record that counts.
    fresh_lives: AtomicBool,
}

static WORLD: AtomicUsize = AtomicUsize::new(0);

fn world() -> &'static World {
    // SAFETY: set before the handlers and threads that ask; alive until the test is over.
    unsafe { &*(WORLD.load(Relaxed) as *const World) }
}

// --- The part of the kernel --------------------------------------------------------------------

/// Says what broke and ends the process: threads may have lost their stacks.
fn broken(what: &str) -> ! {
    // SAFETY: write and exit_group; the text outlives the call.
    unsafe {
        system_call(1, [2, what.as_ptr() as u64, what.len() as u64, 0, 0, 0]);
        system_call(231, [3, 0, 0, 0, 0, 0]);
    }
    unreachable!()
}

unsafe extern "C" fn on_preemption(_: i32, _: *mut u8, context: *mut u8) {
    stepping::enter_handler();
    // SAFETY: the kernel's third argument.
    let frame = unsafe { SignalFrame::new(context) };
    let world = world();
    // SAFETY: only this test's dispatches write `current`, always one of its records.
    let recovered = unsafe { recover(&world.scheduler, frame) };
    check(world, recovered, frame);
    let current = recovered.current();
    // SAFETY: a record of this world.
    let tag = unsafe { (*current).tag() };
    world.posted.fetch_add(1, Relaxed);
    world
        .scheduler
        .events
        .post(PreemptionEvent { tag, executed: 1 });
    world.scheduler.advance();
    let main = world.records[MAIN].get();
    let next = match world.after {
        After::Same => current,
        After::Scheduler => main,
        After::Preempted => preempted(world).unwrap_or(main),
    };
    if next != current && matches!(recovered, Recovered::Executing(_)) {
        // SAFETY: it was interrupted on its own stack, which nobody touches above this frame.
        unsafe { (*current).set_preempted(frame.address()) };
    }
    let returns = next == current && matches!(recovered, Recovered::Executing(_));
    if returns {
        stepping::leave_handler(false);
        return;
    }
    world.scheduler.set_current(next);
    stepping::leave_handler(true);
    // SAFETY: `next` is in store (checked), `current` says so, and this frame is dead or kept.
    unsafe { abandon_to(next) }
}

/// A thread that was preempted and has not run since.
fn preempted(world: &World) -> Option<*mut DispatchRecord> {
    let live = if world.fresh_lives.load(Relaxed) {
        THREADS
    } else {
        FRESH
    };
    let mut records = world.records[..live].iter().map(RecordCell::get);
    // SAFETY: records of this world, on this kernel thread.
    records.find(|&record| unsafe { (*record).is_preempted() })
}

/// INV-1 to INV-6 for every thread, in the instant after the recovery.
fn check(world: &World, recovered: Recovered, frame: SignalFrame) {
    let current = recovered.current();
    let at = frame.stack_pointer();
    let on_stack_of = world
        .stacks
        .iter()
        .position(|stack| (stack.start..=stack.end).contains(&at));
    for thread in 0..THREADS {
        let record = world.records[thread].get();
        // SAFETY: a record of this world, on this kernel thread.
        let (resumable, preempted, (instruction, stack)) = unsafe {
            (
                (*record).is_resumable(),
                (*record).is_preempted(),
                (*record).says(),
            )
        };
        if stack != 0 {
            if !is_entry(instruction) {
                broken("INV-2: a stack pointer without its instruction\n");
            }
            if thread != MAIN
                && !(world.stacks[thread].start..=world.stacks[thread].end).contains(&stack)
            {
                broken("INV-3: a stack pointer of another stack\n");
            }
        }
        if record == current {
            let executing = matches!(recovered, Recovered::Executing(_));
            if executing && (resumable || on_stack_of.unwrap_or(MAIN) != thread) {
                broken("INV-4: who executes is in store, or not on his own stack\n");
            }
        } else if thread != FRESH || world.fresh_lives.load(Relaxed) {
            if !resumable {
                broken("INV-6: a thread neither executes nor can be restored\n");
            }
            if preempted && stack != 0 {
                broken("INV-5: two ways to restore one thread\n");
            }
        }
    }
}

// --- The threads -------------------------------------------------------------------------------

fn take_events(world: &World) {
    while world.scheduler.events.take().is_some() {
        world.taken.fetch_add(1, Relaxed);
    }
    let overflow = world.scheduler.events.take_overflow();
    world.taken.fetch_add(overflow, Relaxed);
}

/// Gives the processor to whoever has the turn; returns when the caller has it again, or when the
/// decision has to be taken again.
fn pass(me: usize) {
    let world = world();
    let to = world.turn.load(Relaxed);
    let epoch = world.scheduler.epoch();
    if me == MAIN {
        // The others may be left in the middle of this at the end of a storm.
        take_events(world);
    }
    let (from, to) = (world.records[me].get(), world.records[to].get());
    // SAFETY: records of this world; the handler recovers them; nothing is borrowed that changes.
    let outcome = unsafe { (world.switch)(&raw const world.scheduler, from, to, epoch) };
    if outcome == Dispatched::Unavailable {
        broken("INV-5: a thread that waits for its turn cannot be restored\n");
    }
}

unsafe extern "C" fn body(argument: *mut u8) -> ! {
    let me = argument as usize;
    let world = world();
    loop {
        if world.turn.load(Relaxed) == me {
            world.counts[me].fetch_add(1, Relaxed);
            world.turn.store((me + 1) % THREADS, Relaxed);
        }
        if world.turn.load(Relaxed) != me {
            pass(me);
        }
    }
}

/// One round on the main thread, stepped from beginning to end.
fn round(world: &World, pointers: &[u64; THREADS], (at, second): (u64, u64)) {
    let before = world.counts.each_ref().map(|count| count.load(Relaxed));
    // SAFETY: the fresh thread has left its stack for good at the end of the last round.
    unsafe { *world.records[FRESH].get() = prepared(world, FRESH, pointers) };
    world.fresh_lives.store(true, Relaxed);
    world.turn.store(A, Relaxed);
    let nobody = world.records[NOBODY].get();
    // SAFETY: prepared; the dispatch to nobody is refused.
    unsafe {
        stepping::begin(at, second);
        let epoch = world.scheduler.epoch();
        let main = world.records[MAIN].get();
        let _ = (world.switch)(
            &raw const world.scheduler,
            main,
            nobody,
            epoch.wrapping_sub(1),
        );
        let posted = world.posted.load(Relaxed);
        let gone = (world.switch)(
            &raw const world.scheduler,
            main,
            nobody,
            world.scheduler.epoch(),
        );
        if gone == Dispatched::Away && posted == world.posted.load(Relaxed) {
            broken("INV-5: a dispatch to nobody came back\n");
        }
    }
    while world.turn.load(Relaxed) != MAIN {
        pass(MAIN);
    }
    stepping::end();
    // What is pending inside comes before this: the fresh thread is not asked for again.
    world.fresh_lives.store(false, Relaxed);
    for thread in [A, B, FRESH] {
        let count = world.counts[thread].load(Relaxed);
        assert_eq!(count, before[thread] + 1, "thread {thread}: once per round");
    }
}

fn prepared(world: &World, thread: usize, pointers: &[u64; THREADS]) -> DispatchRecord {
    let control = if thread == A {
        Control::Kept
    } else {
        Control::Default
    };
    let top = world.stacks[thread].end as *mut u8;
    let (pointer, argument) = (pointers[thread], thread as *mut u8);
    // SAFETY: the stacks and blocks live as long as the world; bodies use no thread-locals.
    let mut record = unsafe { DispatchRecord::prepare(top, pointer, control, body, argument) };
    record.set_tag(thread as u64);
    record
}

static ALONE: Mutex<()> = Mutex::new(());

/// What a storm through one variant of the dispatch did.
struct Storm {
    rounds: u64,
    sent: u64,
    seconds: u64,
}

/// Runs rounds on a world of its own. `rounds(n)` says where the n-th is interrupted (step, and
/// step of the recovery for a second signal); `None` ends the storm; `rounds` decides by
/// how often the last round was interrupted.
fn storm(
    switch: Switch,
    after: After,
    mut rounds: impl FnMut(u64, bool) -> Option<(u64, u64)>,
) -> Storm {
    let stacks: Vec<Vec<u8>> = (0..THREADS).map(|_| vec![0; STACK]).collect();
    let ranges: Vec<_> = stacks
        .iter()
        .map(|s| s.as_ptr() as u64..s.as_ptr() as u64 + STACK as u64 - 64)
        .collect();
    // Thread control blocks that are good for nothing but their own address.
    let blocks: Vec<Vec<u64>> = (0..THREADS).map(|_| vec![0; 64]).collect();
    let mut pointers = [read_thread_pointer(); THREADS];
    for thread in [B, FRESH] {
        let block = blocks[thread].as_ptr() as *mut u64;
        pointers[thread] = block as u64;
        // SAFETY: inside the block, which nobody else knows.
        unsafe {
            block.write(block as u64);
            block.add(2).write(block as u64);
        }
    }
    let record = || RecordCell::new(DispatchRecord::running(pointers[MAIN], Control::Default));
    let mut stacks_of: [_; THREADS] = core::array::from_fn(|thread| ranges[thread].clone());
    stacks_of[MAIN] = 0..0;
    let world = Box::new(World {
        records: core::array::from_fn(|_| record()),
        scheduler: SchedulerRecord::new(core::ptr::null_mut()),
        switch,
        after,
        stacks: stacks_of,
        turn: AtomicUsize::new(MAIN),
        counts: [const { AtomicU64::new(0) }; THREADS],
        posted: AtomicU64::new(0),
        taken: AtomicU64::new(0),
        fresh_lives: AtomicBool::new(false),
    });
    for thread in [A, B] {
        // SAFETY: nobody runs there yet.
        unsafe { *world.records[thread].get() = prepared(&world, thread, &pointers) };
    }
    world.scheduler.set_current(world.records[MAIN].get());
    WORLD.store(&raw const *world as usize, Relaxed);
    // SAFETY: the handler is fit for this world; one storm at a time uses the signals.
    let taken =
        unsafe { stepping::install(PREEMPTION, on_preemption, 0) && stepping::prepare(PREEMPTION) };
    assert!(taken);
    stepping::forget();
    let (mut count, mut interrupted) = (0, true);
    let (sent, seconds) = stepping::sent();
    while let Some(place) = rounds(count, interrupted) {
        let (before, _) = stepping::sent();
        round(&world, &pointers, place);
        interrupted = stepping::sent().0 > before;
        count += 1;
    }
    take_events(&world);
    // The ring has one writer: a handler that no other interrupts in the middle of a post.
    if stepping::sent().1 == seconds {
        let (taken, posted) = (world.taken.load(Relaxed), world.posted.load(Relaxed));
        assert_eq!(taken, posted, "no event is lost");
    }
    Storm {
        rounds: count,
        sent: stepping::sent().0 - sent,
        seconds: stepping::sent().1 - seconds,
    }
}

/// Interrupts at every instruction that a round meets, until there is no new one.
fn everywhere(switch: Switch, after: After) -> Storm {
    storm(switch, after, |_, interrupted| {
        interrupted.then_some((0, 0))
    })
}

#[test]
fn the_protocol_survives_a_preemption_at_every_instruction() {
    // INV-1 to INV-6, INV-9, INV-10: checked in the handler and at the end of every round.
    let _alone = ALONE.lock().expect("no test panics with the lock");
    let mut all: Vec<u64> = protocol_instructions().collect();
    let listed = all.len();
    for switch in [
        dispatch_call as Switch,
        dispatches_to_own,
        dispatch_by_system_call,
    ] {
        for after in [After::Same, After::Scheduler, After::Preempted] {
            let storm = everywhere(switch, after);
            all.retain(|&address| !stepping::is_covered(address));
            println!(
                "{} instructions interrupted in {} rounds (goes on with: {after:?})",
                storm.sent, storm.rounds,
            );
        }
    }
    println!(
        "{} of {listed} instructions of the protocol",
        listed - all.len()
    );
    assert_eq!(all, [], "every listed instruction was interrupted");
}

/// A small generator: the same numbers from the same seed.
fn draw(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn a_second_preemption_inside_the_recovery_changes_nothing() {
    let _alone = ALONE.lock().expect("no test panics with the lock");
    for seed in 1..=3_u64 {
        let mut state = seed;
        let after = [After::Same, After::Scheduler, After::Preempted][(seed % 3) as usize];
        let storm = storm(dispatch_call, after, |round, _| {
            let length = stepping::steps().max(200);
            (round < 150).then(|| (1 + draw(&mut state) % length, 1 + draw(&mut state) % 150))
        });
        println!(
            "seed {seed}: {} preemptions, {} inside another",
            storm.sent, storm.seconds
        );
        assert!(storm.seconds > 20, "second signals came");
    }
}

const VARIANT: &str = "PUNCTUAL_DISPATCH_VARIANT";

#[test]
fn the_variant_that_the_environment_names_survives() {
    let switch: Switch = match std::env::var(VARIANT).as_deref() {
        Ok("commits_before_it_publishes") => commits_before_it_publishes,
        Ok("clears_before_it_takes") => clears_before_it_takes,
        _ => return,
    };
    let _alone = ALONE.lock().expect("no test panics with the lock");
    everywhere(switch, After::Same);
    everywhere(switch, After::Scheduler);
}

#[test]
fn a_dispatch_with_two_stores_swapped_is_caught() {
    let this = std::env::current_exe().expect("this program");
    for (variant, invariant) in [
        ("commits_before_it_publishes", "INV-6"),
        ("clears_before_it_takes", "INV-4"),
    ] {
        let output = std::process::Command::new(&this)
            .args([
                "every_instruction::the_variant_that_the_environment_names_survives",
                "--exact",
            ])
            .arg("--nocapture")
            .env(VARIANT, variant)
            .output()
            .expect("the test runs itself");
        let said = String::from_utf8_lossy(&output.stderr);
        println!("{variant}: {:?}, {said}", output.status);
        assert_eq!(
            output.status.code(),
            Some(3),
            "{variant} was not noticed: {said}"
        );
        assert!(said.contains(invariant), "{variant}: {said}");
    }
}
