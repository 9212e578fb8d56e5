//! Direct threads preempted at every instruction of what they do to each other.
//!
//! As the test of the same name in `platform/linux`, for a scheduler inside a light thread: they
//! yield, block, wake, time out and help each other, and the preemption signal of the run comes at
//! each instruction that has not been interrupted yet. A second preemption, inside the handler of
//! the first, is drawn by seed.

#[path = "../../linux/tests/common/mod.rs"]
mod common;
#[path = "../../linux/tests/common/stepped.rs"]
mod stepped;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use common::{Log, alone, for_ms, input_of, one_cpu};
use punctual_direct::{self as direct, HelpingLock, Scheduler};
use punctual_linux::{Body, Ending, GiveBack, JobInfo, RunOptions, run};
use punctual_model::{Class, CpuId, Span, Task};
use punctual_switch::{protocol_instructions, stepping};
use stepped::{Covered, Ends, Place, SAMPLED, drawn, everywhere};

const STACK: usize = 256 * 1024;

/// Runs `drive` on a light thread whose job never ends.
fn driven(drive: impl Fn() -> Covered + Send + 'static) -> Covered {
    let _alone = alone();
    let options = RunOptions {
        duration_ns: Some(120_000_000_000),
        give_back: GiveBack::Nothing,
        ..for_ms(1)
    };
    let stop = Arc::clone(&options.stop);
    let found = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&found);
    let drives: Body = Box::new(move |_: &JobInfo| {
        let _ends = Ends(Arc::clone(&stop));
        *kept.lock().expect("one writer") = Some(drive());
    });
    let endless = Span::from_ms(3_600_000);
    let class = Class::Periodic {
        period: endless,
        wcet: endless.as_work(),
        relative_deadline: endless,
    };
    let system = one_cpu(vec![Task::new("drives", CpuId(0), class)]);
    let input = input_of(&system, vec![drives], Vec::new(), Log::default());
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.panics, []);
    assert_eq!(outcome.ending, Ending::Stopped);
    let covered = found.lock().expect("one writer").take();
    covered.expect("it came to its end")
}

#[test]
fn direct_threads_survive_a_preemption_at_every_instruction_of_what_they_do() {
    let covered = driven(|| everywhere(30, |_, place| direct_round(place)));
    let copies = protocol_instructions();
    let met = copies
        .filter(|&address| stepping::is_covered(address))
        .count();
    println!("direct threads: {covered}, {met} of them in copies of the dispatch");
    // A debug build's entry takes longer than what it arms: its rounds are cut.
    let enough = if cfg!(debug_assertions) { 0 } else { 30 };
    assert!(
        covered.interrupted > 300 && met >= enough,
        "{covered}, {met}"
    );
}

#[test]
fn direct_threads_survive_a_second_preemption_inside_the_handler_of_the_first() {
    let covered = driven(|| drawn(9, SAMPLED, |_, place| direct_round(place)));
    println!("direct threads: {covered}");
    assert!(covered.seconds > 0, "{covered}");
}

#[test]
fn helping_locks_survive_a_preemption_at_every_instruction_of_a_contended_section() {
    let covered = driven(|| everywhere(30, |_, place| helping_round(place)));
    println!("helping locks: {covered}");
    assert!(covered.interrupted > 300, "{covered}");
}

/// Two direct threads count together: the first gives its turn away inside the section, so that
/// the other one finds the lock taken, helps, and is gone back to.
fn helping_round(place: Place) {
    let mut scheduler = Scheduler::try_new(2, STACK).expect("a light thread");
    let lock = Arc::new(HelpingLock::new([0_u64; 2]));
    for _ in 0..2 {
        let lock = Arc::clone(&lock);
        let body = move || {
            let mut both = lock.lock().expect("it comes free");
            let before = both[0];
            both[0] += 1;
            direct::yield_now();
            both[1] += 1;
            assert_eq!(*both, [before + 1; 2], "nobody else was in here");
        };
        scheduler.spawn(body).expect("room");
    }
    place.begin();
    let report = scheduler.run();
    place.end();
    let ends = (report.ended, report.blocked, report.refused);
    assert_eq!(ends, (2, 0, 0), "{report:?}");
    assert_eq!(report.panics, []);
    let lock = Arc::into_inner(lock).expect("both have ended");
    assert_eq!(lock.into_inner(), [2, 2]);
}

/// Three direct threads: one serves another twice, and one waits in vain.
fn direct_round(place: Place) {
    let mut scheduler = Scheduler::try_new(3, STACK).expect("a light thread");
    let served = Arc::new(AtomicU64::new(0));
    let (counted, seen) = (Arc::clone(&served), Arc::clone(&served));
    let server = scheduler
        .spawn(move || {
            for _ in 0..2 {
                direct::block();
                counted.fetch_add(1, Relaxed);
            }
        })
        .expect("room");
    let client = move || {
        for round in 0..2 {
            direct::wake(server);
            direct::yield_to(server);
            while seen.load(Relaxed) <= round {
                direct::yield_now();
            }
        }
    };
    scheduler.spawn(client).expect("room");
    let waits = || assert!(!direct::block_within(5_000), "nobody wakes it");
    scheduler.spawn(waits).expect("room");
    place.begin();
    let report = scheduler.run();
    place.end();
    let ends = (report.ended, report.blocked, report.refused);
    assert_eq!(ends, (3, 0, 0), "{report:?}");
    assert_eq!(report.panics, []);
    assert_eq!(served.load(Relaxed), 2, "each wake-up once");
}
