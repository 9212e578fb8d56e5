//! Direct threads: the scheduler of a light thread that is preempted every 100 us.

mod choice;
#[path = "../../../linux/tests/common/mod.rs"]
mod common;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use common::{Log, alone, background, for_ms, input};
use punctual_direct::{
    self as direct, DirectError, DirectReport, HelpingError, HelpingLock, Scheduler,
};
use punctual_linux::job::yield_now;
use punctual_linux::{Ending, JobInfo, Outcome, RunOptions, run};

const STACK: usize = 64 * 1024;

/// Runs `body` once on a light thread beside another one that takes turns of 100 us with it.
fn beside_another<R: Send + 'static>(body: impl Fn() -> R + Send + 'static) -> (R, Outcome<Log>) {
    let _alone = alone();
    let options = RunOptions {
        duration_ns: Some(60_000_000_000),
        patience_ns: 1_000_000_000,
        ..for_ms(1)
    };
    let (stop, seen) = (Arc::clone(&options.stop), Arc::clone(&options.stop));
    let result = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&result);
    let specs = vec![
        background("carries", 0, move |_: &JobInfo| {
            *kept.lock().expect("one writer") = Some(body());
            stop.store(true, Relaxed);
        }),
        background("competes", 0, move |_: &JobInfo| {
            while !seen.load(Relaxed) {
                std::hint::spin_loop();
            }
        }),
    ];
    let outcome = run(vec![input(specs, 100, Log::default())], &options).expect("a run");
    assert_eq!(outcome.panics, []);
    assert_eq!(outcome.ending, Ending::Stopped);
    let result = result.lock().expect("one writer").take();
    (result.expect("it came to its end"), outcome)
}

#[test]
fn threads_that_yield_take_turns_and_lose_none() {
    const TURNS: u64 = 200_000;
    let (report, outcome) = beside_another(|| {
        let mut scheduler = Scheduler::try_new(4, STACK).expect("a light thread");
        let order = Arc::new(AtomicU64::new(0));
        for _ in 0..4 {
            let order = Arc::clone(&order);
            scheduler
                .spawn(move || {
                    for _ in 0..TURNS {
                        order.fetch_add(1, Relaxed);
                        direct::yield_now();
                    }
                })
                .expect("room");
        }
        let report = scheduler.run();
        assert_eq!(order.load(Relaxed), 4 * TURNS);
        report
    });
    assert_eq!((report.ended, report.blocked, report.refused), (4, 0, 0));
    assert_eq!(report.panics, []);
    assert!(report.dispatches >= 4 * TURNS, "{report:?}");
    assert!(report.preemptions > 0, "{report:?}");
    assert!(outcome.cpus[0].counters.preemptions > 0);
}

#[test]
fn a_preempted_thread_goes_on_with_all_of_its_registers_and_thread_locals() {
    thread_local! {
        static MINE: Cell<u64> = const { Cell::new(0) };
    }
    let (report, _) = beside_another(|| {
        let mut scheduler = Scheduler::try_new(3, STACK).expect("a light thread");
        for seed in 1..=3_u32 {
            scheduler
                .spawn(move || {
                    MINE.set(u64::from(seed));
                    for _ in 0..3_000_u32 {
                        let mut lanes = [seed, seed + 1, seed + 2, seed + 3].map(f64::from);
                        let mut whole = [seed, seed + 1, seed + 2, seed + 3];
                        for step in 0..300_u32 {
                            for (lane, whole) in lanes.iter_mut().zip(&mut whole) {
                                *lane += f64::from(step % 17);
                                *whole += step % 17;
                            }
                        }
                        assert_eq!(lanes, whole.map(f64::from));
                        let text: String = (0..5).map(|k| format!("{seed}-{k};")).collect();
                        assert_eq!(text.matches(';').count(), 5);
                        assert_eq!(MINE.get(), u64::from(seed));
                    }
                })
                .expect("room");
        }
        scheduler.run()
    });
    // They never yield: only preemption makes them take turns.
    assert_eq!((report.ended, report.refused), (3, 0), "{report:?}");
    assert_eq!(report.panics, []);
    assert!(report.preemptions > 10, "{report:?}");
    assert!(report.executed_ns.iter().all(|&ns| ns > 0), "{report:?}");
}

#[test]
fn a_light_thread_has_its_own_storage_again_when_its_direct_threads_have_ended() {
    thread_local! {
        static MINE: Cell<u64> = const { Cell::new(0) };
    }
    let (rounds, _) = beside_another(|| {
        MINE.set(7);
        let preempted = (1..=100_000).find(|_| {
            let mut scheduler = Scheduler::try_new(1, STACK).expect("a light thread");
            let body = || (0..10_000).for_each(|_| std::hint::spin_loop());
            scheduler.spawn(body).expect("room");
            let report = scheduler.run();
            // Another light thread runs, and this one comes back to what its record says.
            yield_now();
            assert_eq!(MINE.get(), 7);
            report.preemptions > 0
        });
        preempted.expect("a turn of 100 us ends in one of them")
    });
    assert!(rounds > 0);
}

#[test]
fn no_wake_up_is_lost_whether_it_comes_before_the_wait_or_after() {
    const ROUNDS: u64 = 100_000;
    let (report, _) = beside_another(|| {
        let mut scheduler = Scheduler::try_new(2, STACK).expect("a light thread");
        let served = Arc::new(AtomicU64::new(0));
        let (counted, seen) = (Arc::clone(&served), Arc::clone(&served));
        let server = scheduler
            .spawn(move || {
                for _ in 0..ROUNDS {
                    direct::block();
                    counted.fetch_add(1, Relaxed);
                }
            })
            .expect("room");
        scheduler
            .spawn(move || {
                for round in 0..ROUNDS {
                    direct::wake(server);
                    if round % 3 == 0 {
                        direct::yield_to(server);
                    }
                    while seen.load(Relaxed) <= round {
                        direct::yield_now();
                    }
                }
            })
            .expect("room");
        scheduler.run()
    });
    assert_eq!((report.ended, report.blocked), (2, 0), "{report:?}");
}

#[test]
fn waits_end_at_their_time_and_those_without_a_waker_are_counted() {
    let (report, _) = beside_another(|| {
        let mut scheduler = Scheduler::try_new(2, STACK).expect("a light thread");
        scheduler
            .spawn(|| {
                for _ in 0..20 {
                    assert!(!direct::block_within(200_000), "nobody wakes it");
                }
            })
            .expect("room");
        scheduler.spawn(direct::block).expect("room");
        assert!(matches!(scheduler.spawn(|| ()), Err(DirectError::Full)));
        scheduler.run()
    });
    assert_eq!((report.ended, report.blocked), (1, 1), "{report:?}");
    assert_eq!(report.panics, []);
}

#[test]
fn a_panic_ends_its_direct_thread_alone() {
    let (report, _): (DirectReport, _) = beside_another(|| {
        let mut scheduler = Scheduler::try_new(2, STACK).expect("a light thread");
        let failing = scheduler.spawn(|| panic!("as it must")).expect("room");
        scheduler.spawn(direct::yield_now).expect("room");
        let report = scheduler.run();
        assert_eq!(report.panics, [(failing, "as it must".to_owned())]);
        report
    });
    assert_eq!(report.ended, 2);
}

#[test]
fn outside_of_a_run_there_is_no_scheduler_and_its_calls_do_nothing() {
    assert!(matches!(
        Scheduler::try_new(1, STACK),
        Err(DirectError::NoRun)
    ));
    direct::yield_now();
    direct::block();
    assert!(!direct::block_within(1));
    assert_eq!(direct::current(), None);
}

#[test]
fn a_helping_lock_keeps_threads_apart_that_are_preempted_while_they_hold_it() {
    const ROUNDS: u64 = 20_000;
    static COUNT: HelpingLock<[u64; 2]> = HelpingLock::new([0; 2]);
    let (report, _) = beside_another(|| {
        let mut scheduler = Scheduler::try_new(4, STACK).expect("a light thread");
        for thread in 0..4_u64 {
            let body = move || {
                for round in 0..ROUNDS {
                    let mut both = COUNT.lock().expect("it comes free");
                    let before = both[0];
                    both[0] += 1;
                    if (round + thread) % 16 == 0 {
                        // The next one finds it taken, and helps.
                        direct::yield_now();
                    }
                    both[1] += 1;
                    assert_eq!(*both, [before + 1; 2], "nobody else was in here");
                }
            };
            scheduler.spawn(body).expect("room");
        }
        scheduler.run()
    });
    assert_eq!(report.panics, []);
    assert_eq!((report.ended, report.refused), (4, 0), "{report:?}");
    assert!(report.helped >= ROUNDS / 16, "{report:?}");
    assert!(report.preemptions > 0, "{report:?}");
}

/// What threads said, in their order.
type Said = Arc<Mutex<Vec<&'static str>>>;

fn say(said: &Said, word: &'static str) {
    said.lock().expect("nobody panics").push(word);
}

/// One round without a preemption: `spawn` gives the scheduler its threads.
fn undisturbed(mut spawn: impl FnMut(&mut Scheduler, &Said)) -> (DirectReport, Vec<&'static str>) {
    for _ in 0..1_000 {
        let mut scheduler = Scheduler::try_new(8, STACK).expect("a light thread");
        let said = Said::default();
        spawn(&mut scheduler, &said);
        let report = scheduler.run();
        if report.preemptions == 0 {
            let said = said.lock().expect("nobody panics").clone();
            return (report, said);
        }
    }
    panic!("every one of 1,000 rounds of some microseconds was preempted");
}

#[test]
fn a_contender_goes_on_as_soon_as_the_holder_unlocks() {
    let (report, _) = beside_another(|| {
        let (report, said) = undisturbed(|scheduler, said| {
            let lock = Arc::new(HelpingLock::new(()));
            let (theirs, holds) = (Arc::clone(&lock), Arc::clone(said));
            let holder = move || {
                let held = theirs.lock().expect("free");
                direct::yield_now();
                say(&holds, "the holder is helped");
                drop(held);
                say(&holds, "the holder goes on");
            };
            scheduler.spawn(holder).expect("room");
            let wants = Arc::clone(said);
            let contender = move || {
                let held = lock.lock().expect("it comes free");
                say(&wants, "the contender has it");
                drop(held);
            };
            scheduler.spawn(contender).expect("room");
            let other = Arc::clone(said);
            scheduler
                .spawn(move || say(&other, "another one"))
                .expect("room");
        });
        let order = [
            "the holder is helped",
            "the contender has it",
            "the holder goes on",
            "another one",
        ];
        assert_eq!(said, order);
        report
    });
    assert_eq!((report.ended, report.helped), (3, 1), "{report:?}");
}

#[test]
fn who_wants_what_a_contender_holds_helps_along_the_chain() {
    let (report, _) = beside_another(|| {
        let (report, said) = undisturbed(|scheduler, said| {
            let (inner, outer) = (
                Arc::new(HelpingLock::new(())),
                Arc::new(HelpingLock::new(())),
            );
            let (theirs, holds) = (Arc::clone(&inner), Arc::clone(said));
            let first = move || {
                let held = theirs.lock().expect("free");
                direct::yield_now();
                say(&holds, "first");
                drop(held);
            };
            scheduler.spawn(first).expect("room");
            let (theirs, both) = (Arc::clone(&outer), Arc::clone(said));
            let second = move || {
                let held = theirs.lock().expect("free");
                direct::yield_now();
                let nested = inner.lock().expect("it comes free");
                say(&both, "second");
                drop(nested);
                drop(held);
            };
            scheduler.spawn(second).expect("room");
            let last = Arc::clone(said);
            let third = move || {
                let held = outer.lock().expect("it comes free");
                say(&last, "third");
                drop(held);
            };
            scheduler.spawn(third).expect("room");
        });
        assert_eq!(said, ["first", "second", "third"]);
        report
    });
    assert_eq!(report.ended, 3, "{report:?}");
    assert!(report.helped >= 2, "{report:?}");
}

#[test]
fn helping_locks_name_what_can_never_come_free() {
    let (report, _) = beside_another(|| {
        let mut scheduler = Scheduler::try_new(4, STACK).expect("a light thread");
        let (a, b) = (
            Arc::new(HelpingLock::new(())),
            Arc::new(HelpingLock::new(())),
        );
        let (mine, theirs) = (Arc::clone(&a), Arc::clone(&b));
        let found = Arc::new(AtomicU64::new(0));
        let deadlocks = Arc::clone(&found);
        let first = move || {
            let _held = mine.lock().expect("free, or coming free");
            assert_eq!(mine.lock().err(), Some(HelpingError::AlreadyHeld));
            direct::yield_now();
            deadlocks.fetch_add(u64::from(theirs.lock().is_err()), Relaxed);
        };
        scheduler.spawn(first).expect("room");
        let deadlocks = Arc::clone(&found);
        let second = move || {
            let _held = b.lock().expect("free, or coming free");
            direct::yield_now();
            let refused = a.lock().err();
            assert!(matches!(refused, None | Some(HelpingError::Deadlock)));
            deadlocks.fetch_add(u64::from(refused.is_some()), Relaxed);
        };
        scheduler.spawn(second).expect("room");
        let lost = Arc::new(HelpingLock::new(()));
        let theirs = Arc::clone(&lost);
        let ends = move || std::mem::forget(theirs.lock().expect("free"));
        scheduler.spawn(ends).expect("room");
        let finds = move || {
            while lost.try_lock().is_ok() {
                direct::yield_now();
            }
            assert_eq!(lost.lock().err(), Some(HelpingError::HolderEnded));
        };
        scheduler.spawn(finds).expect("room");
        let report = scheduler.run();
        // At most one: who was refused unlocks, and the other one goes on.
        assert!(found.load(Relaxed) <= 1);
        report
    });
    assert_eq!(report.panics, []);
    assert_eq!((report.ended, report.blocked), (4, 0), "{report:?}");
}

#[test]
fn who_waits_for_a_holder_that_waits_hears_that_it_has_ended() {
    let (report, _) = beside_another(|| {
        let (report, said) = undisturbed(|scheduler, said| {
            let lost = Arc::new(HelpingLock::new(()));
            let theirs = Arc::clone(&lost);
            let holder = move || {
                std::mem::forget(theirs.lock());
                direct::block();
            };
            let holder = scheduler.spawn(holder).expect("room");
            for _ in 0..2 {
                let (wanted, tells) = (Arc::clone(&lost), Arc::clone(said));
                let contender = move || match wanted.lock().err() {
                    Some(HelpingError::HolderEnded) => say(&tells, "its holder has ended"),
                    _ => say(&tells, "the contender came before the holder"),
                };
                scheduler.spawn(contender).expect("room");
            }
            let last = Arc::clone(said);
            let wakes = move || {
                say(&last, "the holder is woken");
                direct::wake(holder);
            };
            scheduler.spawn(wakes).expect("room");
        });
        let hears = "its holder has ended";
        assert_eq!(said, ["the holder is woken", hears, hears]);
        report
    });
    assert_eq!((report.ended, report.blocked), (4, 0), "{report:?}");
}

#[test]
fn a_wait_for_a_helping_lock_ends_at_its_time_and_after_a_panic_of_the_holder() {
    static LOCK: HelpingLock<u64> = HelpingLock::new(0);
    assert_eq!(LOCK.lock().err(), Some(HelpingError::NoScheduler));
    let (report, _) = beside_another(|| {
        let mut scheduler = Scheduler::try_new(3, STACK).expect("a light thread");
        // 1: the holder has it; 2: the contender was answered.
        let stage = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&stage);
        let holder = move || {
            let _held = LOCK.lock().expect("free");
            seen.store(1, Relaxed);
            // It waits in its section until the other one has given up.
            while seen.load(Relaxed) == 1 {
                direct::block_within(50_000);
            }
            panic!("as it must");
        };
        scheduler.spawn(holder).expect("room");
        let contender = move || {
            // The holder may be preempted before it has it.
            while stage.load(Relaxed) == 0 {
                direct::yield_now();
            }
            let late = LOCK.lock_within(300_000).err();
            stage.store(2, Relaxed);
            assert_eq!(late, Some(HelpingError::TimedOut));
            *LOCK.lock().expect("the panic has unlocked it") += 1;
        };
        scheduler.spawn(contender).expect("room");
        scheduler.run()
    });
    assert_eq!((report.ended, report.blocked), (2, 0), "{report:?}");
    assert_eq!(report.panics.len(), 1, "{report:?}");
    let (report, _) = beside_another(|| {
        let mut scheduler = Scheduler::try_new(1, STACK).expect("a light thread");
        let foreign = || {
            let refused = LOCK.lock().err();
            assert_eq!(refused, Some(HelpingError::OtherScheduler));
        };
        scheduler.spawn(foreign).expect("room");
        scheduler.run()
    });
    assert_eq!(report.panics, []);
}
