//! Two CPUs: rings are heard on the other one, and nothing else is shared.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::common::{FIXED, allowed_cpus, alone, free, ms, runtime};
use punctual_thread::sync::{Notify, Semaphore, WaitError};
use punctual_thread::{Constraint, Thread, thread};

/// What one first thread hands to the other before they ring.
type Handed<T> = Arc<Mutex<Option<T>>>;

fn put<T>(handed: &Handed<T>, value: T) {
    *handed.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
}

fn get<T: Clone>(handed: &Handed<T>) -> T {
    for _ in 0..60_000 {
        let found = handed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match found {
            Some(value) => return value,
            None => thread::sleep(ms(1)),
        }
    }
    panic!("the other CPU does not come to it");
}

#[test]
fn rings_from_another_cpu_are_all_heard() {
    let [.., other, _last] = allowed_cpus()[..] else {
        println!("skipped: one CPU only");
        return;
    };
    let _alone = alone();
    let (there, here) = (Handed::default(), Handed::default());
    let (ours, theirs) = (Arc::clone(&there), Arc::clone(&here));
    let all_heard = Handed::default();
    let says_so = Arc::clone(&all_heard);
    let runtime = runtime(FIXED).and(other, FIXED, move || {
        let notify = Notify::new().expect("in a run");
        put(&theirs, notify.clone());
        let back: Notify = get(&ours);
        let mut heard = 0;
        while heard < 500 {
            heard += notify.wait().expect("its own CPU");
            back.notify().expect("in a run");
        }
        put(&says_so, heard);
    });
    let finished = runtime.start(move || {
        let notify = Notify::new().expect("in a run");
        put(&there, notify.clone());
        let other: Notify = get(&here);
        let elsewhere = other.wait().err();
        let mut back = 0;
        for n in 0..500 {
            other.notify().expect("in a run");
            if n % 3 == 0 {
                back += notify.wait_within(ms(1)).unwrap_or(0);
            }
        }
        let heard = get(&all_heard);
        back += notify.wait_within(ms(1_000)).unwrap_or(0);
        (elsewhere, heard, back)
    });
    let (elsewhere, heard, back) = finished.expect("a run").result;
    assert_eq!(elsewhere, Some(WaitError::OtherCpu));
    assert_eq!(heard, 500);
    assert!((1..=500).contains(&back), "{back} answers");
}

#[test]
fn every_cpu_admits_for_itself_and_locks_belong_to_one() {
    let [.., other, _last] = allowed_cpus()[..] else {
        println!("skipped: one CPU only");
        return;
    };
    let _alone = alone();
    let permits = Arc::new(Semaphore::new(1));
    let (lent, result) = (Arc::clone(&permits), Handed::default());
    let (found, taken) = (Arc::clone(&result), Handed::default());
    let first_has_it = Arc::clone(&taken);
    let most = || Constraint::reservation(ms(10), crate::common::us(9_000));
    let runtime = runtime(FIXED).and(other, FIXED, move || {
        let mine = thread::spawn("most", most(), thread::block).is_ok();
        get(&first_has_it);
        put(&found, (mine, lent.acquire().err()));
    });
    let finished = runtime.start(move || {
        let held = permits.acquire();
        put(&taken, ());
        let mine = thread::spawn("most", most(), thread::block).is_ok();
        let more = thread::spawn("more", most(), thread::block).is_ok();
        let child = thread::spawn("child", free(60), || 1).map(thread::Thread::join);
        (held, (mine, more), get(&result), child)
    });
    let (held, own, theirs, child) = finished.expect("a run").result;
    assert!(theirs.0, "each CPU has room for one");
    assert_eq!(own, (true, false));
    assert_eq!(child, Ok(Ok(1)));
    // Whoever comes first has it.
    assert_eq!((held, theirs.1), (Ok(()), Some(WaitError::OtherCpu)));
}

#[test]
fn a_handle_that_is_dropped_on_another_cpu_gives_its_place_back() {
    const ROUNDS: usize = 20;
    let [.., other, _last] = allowed_cpus()[..] else {
        println!("skipped: one CPU only");
        return;
    };
    let _alone = alone();
    let (handed, dropped) = (Handed::default(), Arc::new(AtomicUsize::new(0)));
    let (taken, drops) = (Arc::clone(&handed), Arc::clone(&dropped));
    // Room for one thread beside the first.
    let runtime = runtime(FIXED).threads(1).and(other, FIXED, move || {
        while drops.load(Ordering::SeqCst) < ROUNDS {
            let thread: Option<Thread<Vec<u8>>> =
                taken.lock().unwrap_or_else(PoisonError::into_inner).take();
            drops.fetch_add(usize::from(thread.is_some()), Ordering::SeqCst);
            drop(thread);
            thread::sleep(ms(1));
        }
    });
    let finished = runtime.start(move || {
        let round = |round: usize| {
            // One has ended when its handle goes, the next has not.
            let ends_late = round % 2 == 1;
            let body = move || {
                if ends_late {
                    thread::block_within(ms(3));
                }
                vec![1]
            };
            let made = (0..20_000).find_map(|_| {
                let made = thread::spawn("one", free(60), body).ok();
                if made.is_none() {
                    thread::sleep(ms(1));
                }
                made
            });
            put(&handed, made?);
            while dropped.load(Ordering::SeqCst) == round {
                thread::sleep(ms(1));
            }
            Some(())
        };
        (0..ROUNDS).take_while(|&n| round(n).is_some()).count()
    });
    assert_eq!(finished.expect("a run").result, ROUNDS);
}
