//! Two CPUs share queues, permits, flags and a spinning mutex.
//!
//! Nothing is lost and nothing is done twice, whoever runs, sleeps or leaves meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{FIXED, allowed_cpus, alone, free, ms, runtime};
use punctual_thread::sync::{Barrier, Flags, Queue, Semaphore, SpinMutex, WaitError, Want};
use punctual_thread::{Finished, thread};

/// Runs `there` on one CPU beside `here` on another, and returns what both found; `None`: there is
/// one CPU only. At ordinary priority: a test must not take both CPUs from the machine.
fn on_both<A: Send + 'static, B: Send + 'static>(
    there: impl FnOnce() -> A + Send + 'static,
    here: impl FnOnce() -> B + Send + 'static,
) -> Option<(A, Finished<B>)> {
    let [.., other, _last] = allowed_cpus()[..] else {
        println!("skipped: needs two CPUs");
        return None;
    };
    let _alone = alone();
    let found = Arc::new(std::sync::Mutex::new(None));
    let (done, ends) = (Arc::new(Semaphore::cross_cpu(0)), Arc::clone(&found));
    let signs = Arc::clone(&done);
    let runtime = runtime(FIXED).real_time(false).and(other, FIXED, move || {
        let result = there();
        *ends.lock().expect("nobody panicked") = Some(result);
        signs.release().expect("in the run");
    });
    let finished = runtime.start(move || {
        let result = here();
        done.acquire().expect("the other one ends");
        result
    });
    let finished = finished.expect("a run");
    assert_eq!(finished.outcome.offsets.len(), 2);
    let there = found.lock().expect("nobody panicked").take();
    Some((there.expect("it has ended"), finished))
}

#[test]
fn messages_between_cpus_arrive_once_and_in_the_order_of_each_sender() {
    const EACH: u64 = 300;
    let queue = Arc::new(Queue::cross_cpu(4));
    let ours = Arc::clone(&queue);
    let both = on_both(
        move || {
            let send = |sender: u64| {
                let queue = Arc::clone(&queue);
                let name = format!("sender {sender}");
                thread::spawn(&name, free(60), move || {
                    for n in 0..EACH {
                        queue.send((sender, n)).expect("in the run");
                    }
                })
            };
            let senders = [0, 1].map(|sender| send(sender).expect("there is room"));
            senders.into_iter().all(|sender| sender.join().is_ok())
        },
        move || {
            let mut next = [0; 2];
            for _ in 0..2 * EACH {
                let (sender, n) = ours.receive().expect("in the run");
                let expected = &mut next[usize::try_from(sender).expect("two senders")];
                assert_eq!(n, *expected, "of sender {sender}");
                *expected += 1;
            }
            (next, ours.len())
        },
    );
    let Some((sent, finished)) = both else { return };
    assert!(sent);
    assert_eq!(finished.result, ([EACH; 2], Some(0)));
}

#[test]
fn permits_between_cpus_are_neither_lost_nor_doubled_when_waits_time_out() {
    let permits = Arc::new(Semaphore::cross_cpu(0));
    let given = Arc::new(AtomicU64::new(0));
    let (ours, done) = (Arc::clone(&permits), Arc::new(AtomicBool::new(false)));
    let (gives, ends) = (Arc::clone(&given), Arc::clone(&done));
    let both = on_both(
        move || {
            for n in 0..400 {
                permits.release().expect("in the run");
                gives.fetch_add(1, Ordering::SeqCst);
                if n % 5 == 0 {
                    thread::sleep(punctual_model::Span::from_us(150));
                }
            }
            ends.store(true, Ordering::SeqCst);
        },
        move || {
            let mut taken = 0;
            loop {
                let last = done.load(Ordering::SeqCst);
                let took = ours.acquire_within(punctual_model::Span::from_us(50));
                taken += u64::from(took.is_ok());
                if last && took.is_err() {
                    return (taken, ours.permits());
                }
            }
        },
    );
    let Some(((), finished)) = both else { return };
    assert_eq!(finished.result, (given.load(Ordering::SeqCst), Some(0)));
}

#[test]
fn flags_and_barriers_bring_cpus_together() {
    let flags = Arc::new(Flags::cross_cpu());
    let barrier = Arc::new(Barrier::cross_cpu(2));
    let both = {
        let (flags, barrier) = (Arc::clone(&flags), Arc::clone(&barrier));
        let (theirs, meets) = (Arc::clone(&flags), Arc::clone(&barrier));
        on_both(
            move || {
                let mut last = 0;
                for _ in 0..100 {
                    theirs.wait(Want::all(0b11).take()).expect("in the run");
                    last += u64::from(meets.wait().expect("in the run"));
                }
                last
            },
            move || {
                let mut last = 0;
                for _ in 0..100 {
                    flags.raise(0b01).expect("in the run");
                    flags.raise(0b10).expect("in the run");
                    last += u64::from(barrier.wait().expect("in the run"));
                }
                last
            },
        )
    };
    let Some((theirs, finished)) = both else {
        return;
    };
    // One of the two comes last, every time.
    assert_eq!(theirs + finished.result, 100);
    assert_eq!(flags.raised(), None, "the run is over");
}

#[test]
fn a_spinning_mutex_excludes_between_cpus_and_lets_nobody_wait_inside() {
    let pair = Arc::new(SpinMutex::new((0_u64, 0_u64)));
    let count = |pair: &SpinMutex<(u64, u64)>| {
        (0..2_000).all(|_| {
            let step = pair.with(|(a, b)| {
                let whole = *a == *b;
                *a += 1;
                *b += 1;
                whole
            });
            step == Ok(true)
        })
    };
    let ours = Arc::clone(&pair);
    let theirs = Arc::clone(&pair);
    let both = on_both(
        move || count(&theirs),
        move || {
            let nested = ours.with(|_| {
                let permit = Semaphore::new(0);
                (permit.acquire(), ours.with(|_| ()))
            });
            (count(&ours), nested)
        },
    );
    let Some((theirs, finished)) = both else {
        return;
    };
    let refused = Err(WaitError::NoRun);
    assert_eq!(finished.result, (true, Ok((refused, refused))));
    assert!(theirs);
    let pair = Arc::into_inner(pair).map(SpinMutex::into_inner);
    assert_eq!(pair, Some((4_000, 4_000)));
}

#[test]
fn a_panic_in_a_use_lets_the_others_in() {
    let value = Arc::new(SpinMutex::new(1));
    let (ours, theirs) = (Arc::clone(&value), value);
    let both = on_both(
        move || {
            let dies = Arc::clone(&theirs);
            let dies = thread::spawn("dies", free(60), move || {
                dies.with(|_| panic!("inside a use")).is_ok()
            });
            let died = dies.expect("there is room").join().is_err();
            died && theirs.with(|value| *value += 1).is_ok()
        },
        move || {
            while ours.with(|value| *value) != Ok(2) {
                thread::sleep(ms(1));
            }
        },
    );
    let Some((died, finished)) = both else {
        return;
    };
    assert!(died);
    assert_eq!(finished.outcome.panics.len(), 1);
}

#[test]
fn who_is_ended_or_cancelled_leaves_the_line_of_another_cpu() {
    let permits = Arc::new(Semaphore::cross_cpu(0));
    let gone = Arc::new(Flags::cross_cpu());
    let (ours, theirs) = (Arc::clone(&permits), permits);
    let (hears, tells) = (Arc::clone(&gone), gone);
    let both = on_both(
        move || {
            let waits = |name: &str| {
                let permits = Arc::clone(&theirs);
                let waits = thread::spawn(name, free(60), move || permits.acquire());
                waits.expect("there is room")
            };
            let first = waits("is cancelled");
            let second = waits("takes what the first one left");
            waits("waits until the run is over").detach();
            let cancelled = (first.cancel(), first.join());
            tells.raise(1).expect("in the run");
            (cancelled, second.join())
        },
        move || hears.wait(Want::any(1)).and_then(|_| ours.release()),
    );
    let Some(((cancelled, second), finished)) = both else {
        return;
    };
    assert_eq!(cancelled, (true, Err(thread::JoinError::Cancelled)));
    assert_eq!((second, finished.result), (Ok(Ok(())), Ok(())));
    assert!(finished.outcome.cpus.iter().all(|cpu| cpu.abandoned == 0));
}

#[test]
fn a_cpu_that_is_kicked_all_the_time_is_interrupted_so_often_only() {
    let permits = Arc::new(Semaphore::cross_cpu(0));
    let (ours, theirs) = (Arc::clone(&permits), permits);
    const GIVEN: u64 = 3_000;
    let both = on_both(
        move || {
            for _ in 0..GIVEN {
                theirs.release().expect("in the run");
                punctual_linux::job::burn_ns(2_000);
            }
        },
        move || {
            // Somebody takes them at once, on a CPU that executes somebody else.
            let takes = Arc::clone(&ours);
            let taker = thread::spawn("taker", free(60), move || {
                (0..GIVEN).all(|_| takes.acquire().is_ok())
            });
            let taker = taker.expect("there is room");
            while !taker.is_finished() {
                punctual_linux::job::burn_ns(5_000);
            }
            let kept = thread::now().map_or(0, |now| now.as_ns());
            (taker.join(), kept)
        },
    );
    let Some(((), finished)) = both else {
        return;
    };
    let (taken, ns) = finished.result;
    assert_eq!(taken, Ok(true));
    // Sixteen per millisecond begun, whatever the machine did meanwhile.
    let most = 16 * (ns / 1_000_000 + 2);
    let kicks = finished.outcome.cpus[0].counters.kicks;
    assert!(kicks <= most, "{kicks} kicks in {ns} ns");
}
