//! Direct threads: a scheduler outside the core, in a light thread, preempted every 100 us.

mod common;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use common::{Log, alone, background, for_ms, plan};
use punctual_linux::direct::{self, DirectError, DirectReport, Scheduler};
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
    let outcome = run(vec![plan(specs, 100, Log::default())], &options).expect("a run");
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
