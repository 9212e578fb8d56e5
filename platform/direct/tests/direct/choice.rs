//! The order of direct threads in place of turns.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use punctual_direct::{self as direct, Choice, DirectId, HelpingLock, Scheduler};
use punctual_linux::job::executed;
use punctual_model::Instant;

use super::{STACK, beside_another};

#[test]
fn with_a_choice_a_preempted_thread_goes_on_and_one_that_ends_names_the_next() {
    let ((report, order), _) = beside_another(|| {
        let mut scheduler = Scheduler::try_new(3, STACK).expect("a light thread");
        let choice = Arc::new(Choice::new());
        scheduler.choose_by(Arc::clone(&choice));
        let (order, ids) = (
            Arc::new(Mutex::new(Vec::new())),
            Arc::new(Mutex::new(Vec::new())),
        );
        let ended = Arc::new(AtomicU64::new(0));
        for me in 0..3_usize {
            let (order, all, choice) = (order.clone(), Arc::clone(&ids), Arc::clone(&choice));
            let ended = Arc::clone(&ended);
            let body = move || {
                let next: Vec<DirectId> = all.lock().expect("one at a time").clone();
                choice.set_next(next[(me + 2) % 3]);
                let before = ended.load(Relaxed);
                // Many turns of the light thread long: by turns, another would come to its end.
                for _ in 0..2_000 {
                    (0..1_000).for_each(|_| std::hint::spin_loop());
                    assert_eq!(ended.load(Relaxed), before, "another went on");
                }
                ended.fetch_add(1, Relaxed);
                order.lock().expect("one at a time").push(me);
            };
            let id = scheduler.spawn(body).expect("room");
            ids.lock().expect("one at a time").push(id);
        }
        choice.set_next(ids.lock().expect("one at a time")[1]);
        let report = scheduler.run();
        let order: Vec<usize> = order.lock().expect("one at a time").clone();
        (report, order)
    });
    assert_eq!((report.ended, report.refused), (3, 0), "{report:?}");
    assert_eq!(report.panics, []);
    assert!(report.preemptions > 3, "{report:?}");
    assert_eq!(order, [1, 0, 2]);
}

#[test]
fn with_a_choice_one_that_decides_comes_first_from_the_instant_that_it_said() {
    const ROUNDS: usize = 40;
    let now = || executed().expect("a light thread").0;
    let ((report, early), _) = beside_another(move || {
        let mut scheduler = Scheduler::try_new(3, STACK).expect("a light thread");
        let choice = Arc::new(Choice::new());
        scheduler.choose_by(Arc::clone(&choice));
        let counts: Arc<[AtomicU64; 2]> = Arc::default();
        let (over, early) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let workers: Vec<DirectId> = (0..2)
            .map(|me: usize| {
                let (counts, over) = (Arc::clone(&counts), Arc::clone(&over));
                let body = move || {
                    while !over.load(Relaxed) {
                        counts[me].fetch_add(1, Relaxed);
                    }
                };
                scheduler.spawn(body).expect("room")
            })
            .collect();
        let (decides, seen) = (Arc::clone(&choice), Arc::clone(&early));
        let leader = move || {
            for round in 0..ROUNDS {
                let turn = round % 2;
                let before = counts[1 - turn].load(Relaxed);
                let from = Instant::from_ticks(now().ticks() + 1_000_000);
                decides.set_from(from);
                assert!(direct::yield_to(workers[turn]));
                decides.set_from(Instant::MAX);
                seen.fetch_add(u64::from(now() < from), Relaxed);
                assert_eq!(counts[1 - turn].load(Relaxed), before, "not its turn");
            }
            over.store(true, Relaxed);
        };
        let leader = scheduler.spawn(leader).expect("room");
        choice.set_next(leader);
        (scheduler.run(), early.load(Relaxed))
    });
    assert_eq!((report.ended, report.refused), (3, 0), "{report:?}");
    assert_eq!(report.panics, []);
    assert_eq!(early, 0, "a worker was interrupted before");
}

/// It was preempted between its look at the clock and its hand-over, say: the instant has passed.
#[test]
fn with_a_choice_nobody_is_handed_over_to_behind_the_instant() {
    let now = || executed().expect("a light thread").0;
    let ((report, counts), _) = beside_another(move || {
        let mut scheduler = Scheduler::try_new(2, STACK).expect("a light thread");
        let choice = Arc::new(Choice::new());
        scheduler.choose_by(Arc::clone(&choice));
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&count);
        let worker = move || {
            counted.fetch_add(1, Relaxed);
        };
        let worker = scheduler.spawn(worker).expect("room");
        let (decides, seen) = (Arc::clone(&choice), Arc::clone(&count));
        let leader = move || {
            let mut counts = [0; 2];
            decides.set_from(now());
            assert!(direct::yield_to(worker));
            counts[0] = seen.load(Relaxed);
            decides.set_from(Instant::MAX);
            assert!(direct::yield_to(worker));
            counts[1] = seen.load(Relaxed);
            counts
        };
        let told = Arc::new(std::sync::OnceLock::new());
        let tells = Arc::clone(&told);
        let leader = scheduler.spawn(move || {
            assert!(tells.set(leader()).is_ok());
        });
        choice.set_next(leader.expect("room"));
        (scheduler.run(), told.get().copied())
    });
    assert_eq!((report.ended, report.refused), (2, 0), "{report:?}");
    assert_eq!(counts, Some([0, 1]));
}

#[test]
fn with_a_choice_one_that_decides_is_helped_to_a_lock_behind_the_instant() {
    let (report, _) = beside_another(|| {
        let mut scheduler = Scheduler::try_new(2, STACK).expect("a light thread");
        let choice = Arc::new(Choice::new());
        scheduler.choose_by(Arc::clone(&choice));
        let lock = Arc::new(HelpingLock::new(0));
        let held = Arc::clone(&lock);
        let holder = move || {
            let mut held = held.lock().expect("it is free");
            // To the leader, in the midst of the section.
            direct::yield_now();
            *held += 1;
        };
        let holder = scheduler.spawn(holder).expect("room");
        let decides = Arc::clone(&choice);
        let leader = move || {
            direct::yield_to(holder);
            decides.set_from(executed().expect("a light thread").0);
            let held = lock.lock_within(50_000_000).map(|held| *held);
            assert_eq!(held, Ok(1));
        };
        choice.set_next(scheduler.spawn(leader).expect("room"));
        scheduler.run()
    });
    assert_eq!(report.panics, []);
    assert_eq!((report.ended, report.refused), (2, 0), "{report:?}");
}
