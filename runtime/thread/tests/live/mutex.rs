//! Mutexes: one at a time, priority is inherited, nobody waits for ever.

use std::sync::Arc;

use crate::common::{done, free, ms};
use punctual_linux::job;
use punctual_thread::sync::{Ceiling, Mutex, WaitError};
use punctual_thread::thread;

#[test]
fn what_is_changed_under_a_mutex_is_changed_by_one_thread_at_a_time() {
    let count = done(|| {
        let value = Arc::new(Mutex::new(0_u64));
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let value = Arc::clone(&value);
                let adder = move || {
                    for _ in 0..2_000 {
                        let mut value = value.lock().expect("in a run");
                        let before = *value;
                        if before % 16 == n {
                            thread::yield_now();
                        }
                        *value = before + 1;
                    }
                };
                thread::spawn("adder", free(1), adder).expect("a thread")
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        value.lock().map(|value| *value)
    });
    assert_eq!(count, Ok(16_000));
}

#[test]
fn a_holder_is_as_urgent_as_who_waits_so_the_middle_waits_too() {
    let order = done(|| {
        let lock = Arc::new(Mutex::new(Vec::new()));
        let holds = Arc::clone(&lock);
        let low = thread::spawn("low", free(51), move || {
            let mut order = holds.lock().expect("free");
            order.push("low locks");
            // Both others are created here, and preempt as far as they may.
            let waits = Arc::clone(&holds);
            let high = thread::spawn("high", free(53), move || {
                waits.lock().expect("handed over").push("high has it");
            });
            let middle = thread::spawn("middle", free(52), thread::now);
            job::burn_ns(200_000);
            order.push("low unlocks");
            let unlocked = thread::now();
            drop(order);
            high.expect("a thread").join().expect("no panic");
            let ran = middle.expect("a thread").join().expect("no panic");
            (unlocked, ran)
        });
        let (unlocked, middle) = low.expect("a thread").join().expect("no panic");
        assert!(middle > unlocked, "the middle did not come between");
        lock.lock().map(|order| order.clone())
    });
    assert_eq!(order, Ok(vec!["low locks", "low unlocks", "high has it"]));
}

#[test]
fn misuse_is_an_error_value() {
    let lock = Arc::new(Mutex::new(1));
    assert_eq!(lock.lock().err(), Some(WaitError::NoRun));
    let inside = Arc::clone(&lock);
    let errors = done(move || {
        let held = inside.lock().expect("free");
        let again = inside.lock().err();
        let other = Arc::clone(&inside);
        let child = thread::spawn("other", free(60), move || {
            let at_once = other.try_lock().err();
            let late = other.lock_within(ms(1)).err();
            let until = other.lock_until(thread::now().expect("in a run")).err();
            (at_once, late, until)
        });
        let errors = child.expect("a thread").join().expect("no panic");
        drop(held);
        (again, errors, inside.lock().map(|value| *value))
    });
    let late = Some(WaitError::TimedOut);
    assert_eq!(errors.0, Some(WaitError::AlreadyHeld));
    assert_eq!(errors.1, (late, late, late));
    assert_eq!(errors.2, Ok(1));
    let next_run = done(move || lock.lock().err());
    assert_eq!(next_run, Some(WaitError::OtherCpu), "of the run before");
}

#[test]
fn a_circle_of_waiters_is_refused_to_who_would_close_it() {
    let errors = done(|| {
        let (a, b) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
        let (a2, b2) = (Arc::clone(&a), Arc::clone(&b));
        let first = a.lock().expect("free");
        let child = thread::spawn("other way round", free(60), move || {
            let _b = b2.lock().expect("free");
            a2.lock().err()
        });
        let closes = b.lock().err();
        drop(first);
        (closes, child.expect("a thread").join().expect("no panic"))
    });
    assert_eq!(errors, (Some(WaitError::Deadlock), None));
}

#[test]
fn a_holder_that_ends_early_unlocks() {
    let (panicked, cancelled) = done(|| {
        let lock = Arc::new(Mutex::new(0));
        let one = Arc::clone(&lock);
        let clumsy = thread::spawn("clumsy", free(60), move || {
            let _held = one.lock();
            panic!("while it holds the lock");
        });
        let _: Result<(), _> = clumsy.expect("a thread").join();
        let panicked = lock.try_lock().map(|value| *value);
        let two = Arc::clone(&lock);
        let endless = thread::spawn("endless", free(60), move || {
            let _held = two.lock();
            thread::block();
        });
        let endless = endless.expect("a thread");
        assert!(lock.try_lock().is_err() && endless.cancel());
        let cancelled = lock.lock_within(ms(1_000)).map(|value| *value);
        // It may have unlocked and not have come to its end yet.
        let _: Result<(), _> = endless.join();
        (panicked, cancelled)
    });
    assert_eq!((panicked, cancelled), (Ok(0), Ok(0)));
}

#[test]
fn a_lock_of_a_thread_that_is_gone_is_not_that_of_the_next_in_its_place() {
    let errors = done(|| {
        let lock = Arc::new(Mutex::new(()));
        let (first, second) = (Arc::clone(&lock), Arc::clone(&lock));
        let forgets = move || first.lock().map(core::mem::forget);
        let gone = thread::spawn("gone", free(60), forgets);
        let left = gone.expect("a thread").join().expect("no panic");
        // The pool gives it the place that came free last.
        let next = thread::spawn("next", free(60), move || {
            (second.try_lock().err(), second.lock_within(ms(1)).err())
        });
        (left, next.expect("a thread").join().expect("no panic"))
    });
    let late = Some(WaitError::TimedOut);
    assert_eq!(errors, (Ok(()), (late, late)));
}

#[test]
fn a_ceiling_keeps_everybody_up_to_it_away_from_the_first_instruction_on() {
    let order = done(|| {
        let lock = Arc::new(Mutex::with_ceiling(Vec::new(), Ceiling::Background(60)));
        let mut order = lock.lock().expect("free");
        let (one, two) = (Arc::clone(&lock), Arc::clone(&lock));
        let user = thread::spawn("user", free(60), move || {
            two.lock().expect("free").push("user");
        });
        order.push("first");
        let above = thread::spawn("above", free(61), move || one.try_lock().is_err());
        assert!(
            above.expect("a thread").join().expect("no panic"),
            "it preempts"
        );
        order.push("still first");
        drop(order);
        user.expect("a thread").join().expect("no panic");
        lock.lock().map(|order| order.clone())
    });
    assert_eq!(order, Ok(vec!["first", "still first", "user"]));
}

#[test]
fn inner_ceilings_do_not_lower_outer_ones_and_the_end_of_all_is_the_own_urgency() {
    let ran = done(|| {
        let outer = Mutex::with_ceiling((), Ceiling::Background(60));
        let inner = Mutex::with_ceiling((), Ceiling::Background(52));
        let held = outer.lock().expect("free");
        drop(inner.lock().expect("free"));
        let child = thread::spawn("below the outer", free(59), || ()).expect("a thread");
        let kept_away = !child.is_finished();
        drop(held);
        (kept_away, child.is_finished())
    });
    assert_eq!(ran, (true, true));
}
