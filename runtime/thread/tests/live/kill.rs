//! A thread that never looks whether it is to end is ended from outside.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{FIXED, alone, free, ms, runtime, us};
use punctual_linux::job;
use punctual_model::Span;
use punctual_thread::sync::Mutex;
use punctual_thread::thread::JoinError;
use punctual_thread::{Constraint, Guarantee, thread};

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

/// The room for a reservation, once it is there; `None`: it does not become free.
fn room_of(constraint: Constraint) -> Option<Guarantee> {
    for _ in 0..4_000 {
        match Guarantee::ask(constraint) {
            Ok(room) => return Some(room),
            Err(_) => thread::sleep(ms(5)),
        }
    }
    None
}

#[test]
fn what_a_cancelled_thread_gives_back_is_free_though_others_are_asking() {
    let _alone = alone();
    let finished = runtime(FIXED).start(|| {
        let beside = Constraint::reservation(ms(10), us(100)).priority(8);
        let beside = thread::spawn("beside", beside, thread::block).expect("there is room");
        // Admission is mostly this one's, in the middle of a question that is answered by no.
        let asks = thread::spawn("asks", free(2), || {
            while !job::should_stop() {
                let all = Constraint::reservation(ms(10), us(10_000)).priority(9);
                let _ = Guarantee::ask(all).map(drop);
            }
        });
        let mut given_back = 0;
        for round in 0..30 {
            // It notices by itself that it is to end, and is not unwound when it gives back.
            let begun = Arc::new(AtomicU64::new(0));
            let tells = Arc::clone(&begun);
            let gives = thread::spawn("gives", free(3), move || {
                let large = Constraint::reservation(ms(4), us(1_200)).priority(5);
                let mut room = room_of(large)?;
                room.begin(thread::now()?).ok()?;
                tells.store(1, Ordering::SeqCst);
                while !job::should_stop() {
                    core::hint::spin_loop();
                }
                Some(())
            });
            let gives = gives.expect("no guarantee yet");
            while begun.load(Ordering::SeqCst) == 0 && !gives.is_finished() {
                thread::sleep(ms(1));
            }
            thread::sleep(Span::from_us(1_000 + 130 * round));
            gives.cancel();
            if gives.join() != Ok(Some(())) {
                break;
            }
            given_back += 1;
        }
        for other in asks.into_iter().chain([beside]) {
            other.cancel();
            let _: Result<(), _> = other.join();
        }
        given_back
    });
    assert_eq!(finished.expect("a run").result, 30);
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

#[test]
fn who_waits_for_the_kernel_or_for_a_lock_of_the_program_is_not_abandoned() {
    let _alone = alone();
    let (read, write) = std::io::pipe().expect("a pipe");
    // Without a ring of the kernel the reader stops its CPU: it is helped out in the end.
    let helper = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_secs(20));
        drop(write);
    });
    drop(helper);
    let finished = runtime(FIXED).start(move || {
        let mut read = read;
        let begun = Arc::new(AtomicU64::new(0));
        let begins = Arc::clone(&begun);
        let reader = thread::spawn("reads", free(60), move || {
            begins.fetch_add(1, Ordering::SeqCst);
            read.read(&mut [0; 8]).map_err(|error| error.raw_os_error())
        });
        let lock = Arc::new(std::sync::Mutex::new(()));
        let locks = Arc::clone(&lock);
        let begins = Arc::clone(&begun);
        let held = lock.lock().expect("nobody panics with it");
        let locker = thread::spawn("locks", free(60), move || {
            begins.fetch_add(1, Ordering::SeqCst);
            drop(locks.lock());
            5
        });
        while begun.load(Ordering::SeqCst) < 2 {
            thread::sleep(ms(1));
        }
        let reader = reader.expect("there is room").kill_within(ms(0));
        let reader = match reader {
            Err((JoinError::TimedOut, Some(thread))) => thread.join(),
            other => other.map_err(|(why, _)| why),
        };
        let locker = locker.expect("there is room").kill_within(ms(2));
        drop(held);
        let locker = locker.map_err(|(why, thread)| (why, thread.map(thread::Thread::join)));
        (reader, locker)
    });
    let finished = finished.expect("a run");
    let (reader, locker) = finished.result;
    let cancelled = 125;
    if !finished
        .outcome
        .lost
        .iter()
        .any(|loss| loss.what == "io_uring")
    {
        assert_eq!(reader, Ok(Err(Some(cancelled))), "ECANCELED");
    }
    assert_eq!(locker, Err((JoinError::TimedOut, Some(Ok(5)))));
    assert_eq!(finished.outcome.cpus[0].abandoned, 0);
}

#[test]
fn who_waits_for_the_end_of_a_thread_learns_that_it_was_abandoned() {
    let _alone = alone();
    let finished = runtime(FIXED).start(|| {
        let begun = Arc::new(AtomicU64::new(0));
        let begins = || {
            let begun = Arc::clone(&begun);
            move || begun.fetch_add(1, Ordering::SeqCst)
        };
        let until = |count| {
            while begun.load(Ordering::SeqCst) < count {
                thread::sleep(ms(1));
            }
        };
        let begin = begins();
        let spins = thread::spawn("spins", free(1), move || {
            begin();
            loop {
                std::hint::spin_loop();
            }
        });
        let spins: Arc<thread::Thread<()>> = Arc::new(spins.expect("there is room"));
        until(1);
        let (begin, awaited) = (begins(), Arc::clone(&spins));
        // More urgent than who abandons: it waits when that one goes on, and takes over when told.
        let waits = thread::spawn("waits", free(60), move || {
            begin();
            awaited.wait_end(punctual_model::Span::MAX)
        });
        until(2);
        let abandoned = spins.abandon();
        let told = waits.expect("there is room").join_within(ms(5_000));
        (abandoned, told.map_err(|(why, _)| why))
    });
    let finished = finished.expect("a run");
    assert_eq!(finished.result, (true, Ok(Err(JoinError::Abandoned))));
    assert_eq!(finished.outcome.cpus[0].abandoned, 1);
}
