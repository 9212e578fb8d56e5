//! A thread that never looks whether it is to end is ended from outside.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{FIXED, alone, free, ms, runtime, us};
use punctual_thread::sync::Mutex;
use punctual_thread::thread::JoinError;
use punctual_thread::{Constraint, thread};

#[test]
fn a_loop_that_never_looks_is_abandoned_and_what_it_was_granted_is_free_again() {
    let _alone = alone();
    // More urgent than the loop, which on a loaded machine takes all that there is.
    let main = Constraint::reservation(ms(10), us(3_000)).priority(9);
    let finished = runtime(FIXED).main(main).start(|| {
        let rounds = Arc::new(AtomicU64::new(0));
        let counts = Arc::clone(&rounds);
        let most = || Constraint::reservation(ms(10), us(6_000)).priority(1);
        let spins = thread::spawn("spins", most(), move || {
            loop {
                counts.fetch_add(1, Ordering::Relaxed);
            }
        });
        let spins = spins.expect("there is room");
        while rounds.load(Ordering::Relaxed) == 0 {
            thread::sleep(ms(1));
        }
        let full = thread::spawn("full", most(), || ()).is_err();
        let killed: Result<(), _> = spins.kill_within(ms(5));
        let why = killed.err().map(|(why, thread)| (why, thread.is_some()));
        let last = rounds.load(Ordering::Relaxed);
        thread::sleep(ms(30));
        let still = rounds.load(Ordering::Relaxed) == last;
        let again = thread::spawn("again", most(), || 7).map(thread::Thread::join);
        (full, why, still, again)
    });
    let finished = finished.expect("a run");
    let (full, why, still, again) = finished.result;
    assert!(full, "half of the processor and more is taken");
    assert_eq!(why, Some((JoinError::Abandoned, false)));
    assert!(still, "it executes nothing any more");
    assert_eq!(again, Ok(Ok(7)), "its share is free");
    assert_eq!(finished.outcome.cpus[0].abandoned, 1);
}

#[test]
fn who_looks_ends_itself_and_unlocks_and_who_does_not_keeps_its_lock() {
    let _alone = alone();
    let finished = runtime(FIXED).start(|| {
        let ends = |looks: bool| {
            let lock = Arc::new(Mutex::new(()));
            let held = Arc::clone(&lock);
            let begun = Arc::new(AtomicU64::new(0));
            let begins = Arc::clone(&begun);
            let holder = thread::spawn("holder", free(1), move || {
                let _held = held.lock().expect("nobody else has it");
                begins.store(1, Ordering::SeqCst);
                loop {
                    if looks {
                        thread::yield_now();
                    }
                    begins.fetch_add(1, Ordering::Relaxed);
                }
            });
            let holder = holder.expect("there is room");
            while begun.load(Ordering::SeqCst) == 0 {
                thread::sleep(ms(1));
            }
            let killed: Result<(), _> = holder.kill_within(ms(if looks { 10_000 } else { 2 }));
            let locked = lock.lock_within(ms(1)).is_err();
            (killed.err().map(|(why, _)| why), locked)
        };
        (ends(true), ends(false))
    });
    let (looked, did_not) = finished.expect("a run").result;
    assert_eq!(looked, (Some(JoinError::Cancelled), false));
    assert_eq!(did_not, (Some(JoinError::Abandoned), true));
}

#[test]
fn who_waits_or_has_not_begun_is_not_abandoned() {
    let _alone = alone();
    let finished = runtime(FIXED).start(|| {
        let end = |killed: Result<u32, (JoinError, Option<thread::Thread<u32>>)>| match killed {
            Err((JoinError::TimedOut, Some(thread))) => thread.join(),
            Err((why, _)) => Err(why),
            Ok(result) => Ok(result),
        };
        // Less urgent than the caller, which does not wait: it does not even begin.
        let idle = thread::spawn("has not begun", free(1), || 3).expect("there is room");
        let idle = end(idle.kill_within(ms(0)));
        let waits = thread::spawn("waits", free(60), || {
            thread::block();
            4
        });
        let waits = end(waits.expect("there is room").kill_within(ms(0)));
        (idle, waits)
    });
    let finished = finished.expect("a run");
    let (idle, waits) = finished.result;
    let begun_in_time = Ok(3);
    assert!(
        idle == Err(JoinError::Cancelled) || idle == begun_in_time,
        "{idle:?}"
    );
    assert_eq!(waits, Err(JoinError::Cancelled));
    assert_eq!(finished.outcome.cpus[0].abandoned, 0);
}
