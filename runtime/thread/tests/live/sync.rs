//! Conditions, semaphores, barriers, readers and writers, queues, flags.

use std::sync::Arc;

use crate::common::{FIXED, done, fly, free, ms, runtime};
use punctual_thread::sync::{
    Barrier, Condvar, Flags, Mutex, Queue, RwLock, Semaphore, WaitError, Want,
};
use punctual_thread::thread::{self, Thread};

/// A thread that does this.
fn go<T: Send + 'static>(priority: u32, body: impl FnOnce() -> T + Send + 'static) -> Thread<T> {
    thread::spawn("goes", free(priority), body).expect("a thread")
}

fn joined<T>(threads: Vec<Thread<T>>) -> Vec<T> {
    let all = threads.into_iter().map(|t| t.join().expect("no panic"));
    all.collect()
}

#[test]
fn who_waits_for_a_condition_is_told_and_nobody_misses_it() {
    let sums = done(|| {
        let shared = Arc::new((Mutex::new(0_u64), Condvar::new()));
        let waiters = (0..6).map(|n| {
            let shared = Arc::clone(&shared);
            go(40 + n, move || {
                let (value, changed) = &*shared;
                let mut guard = value.lock()?;
                while *guard < 3 {
                    guard = changed.wait(guard)?;
                }
                *guard += 1;
                Ok::<u64, WaitError>(*guard)
            })
        });
        let waiters: Vec<_> = waiters.collect();
        for _ in 0..3 {
            thread::sleep(ms(1));
            let (value, changed) = &*shared;
            *value.lock().expect("in a run") += 1;
            changed.notify_all().expect("in a run");
        }
        joined(waiters)
    });
    let mut sums: Vec<u64> = sums.into_iter().map(|sum| sum.expect("in a run")).collect();
    sums.sort_unstable();
    assert_eq!(sums, (4..10).collect::<Vec<_>>());
}

#[test]
fn one_notice_tells_the_most_urgent_and_a_wait_can_end_without() {
    let (first, late) = done(|| {
        let shared = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let wait = |priority| {
            let shared = Arc::clone(&shared);
            go(priority, move || {
                let guard = shared.0.lock().expect("in a run");
                shared.1.wait(guard).expect("in a run").push(priority);
            })
        };
        let waiters: Vec<_> = [60, 62, 61].map(wait).into();
        shared.1.notify_one().expect("in a run");
        let first = shared.0.lock().expect("in a run").clone();
        shared.1.notify_all().expect("in a run");
        let _: Vec<()> = joined(waiters);
        let guard = shared.0.lock().expect("in a run");
        let late = shared.1.wait_within(guard, ms(1));
        (first, late.map(|(guard, told)| (guard.len(), told)))
    });
    assert_eq!(first, [62]);
    assert_eq!(late, Ok((3, false)));
}

#[test]
fn never_more_permits_are_out_than_there_are() {
    let most = done(|| {
        let permits = Arc::new((Semaphore::new(3), Mutex::new((0_u32, 0_u32))));
        let users = (0..10).map(|n| {
            let permits = Arc::clone(&permits);
            go(40 + n % 3, move || {
                for round in 0..200 {
                    permits.0.acquire().expect("in a run");
                    let mut out = permits.1.lock().expect("in a run");
                    out.0 += 1;
                    out.1 = out.1.max(out.0);
                    drop(out);
                    if (round + n) % 7 == 0 {
                        thread::sleep(punctual_model::Span::from_us(20));
                    }
                    permits.1.lock().expect("in a run").0 -= 1;
                    permits.0.release().expect("in a run");
                }
            })
        });
        let users: Vec<_> = users.collect();
        let _: Vec<()> = joined(users);
        assert_eq!(permits.0.permits(), Some(3));
        let none = Semaphore::new(0);
        assert_eq!(none.try_acquire(), Err(WaitError::TimedOut));
        assert_eq!(none.acquire_within(ms(1)), Err(WaitError::TimedOut));
        permits.1.lock().expect("in a run").1
    });
    assert_eq!(most, 3);
}

#[test]
fn nobody_passes_a_barrier_before_all_have_come() {
    let (last, early) = done(|| {
        let shared = Arc::new((Barrier::new(5), Mutex::new([0_u32; 20])));
        let meet = |n: u32| {
            let shared = Arc::clone(&shared);
            go(40 + n, move || {
                let mut last = 0;
                for round in 0..20 {
                    shared.1.lock().expect("in a run")[round] += 1;
                    last += u32::from(shared.0.wait().expect("in a run"));
                    assert_eq!(shared.1.lock().expect("in a run")[round], 5);
                }
                last
            })
        };
        let last: u32 = joined((0..5).map(meet).collect()).into_iter().sum();
        let early = shared.0.wait_within(ms(1));
        let four: Vec<_> = (0..4)
            .map(|n| {
                let shared = Arc::clone(&shared);
                go(60 + n, move || shared.0.wait_within(ms(2)))
            })
            .collect();
        (last, (early, joined(four)))
    });
    assert_eq!(last, 20, "one is last in every round");
    let late = Err(WaitError::TimedOut);
    assert_eq!(
        early,
        (late, vec![late; 4]),
        "who left early does not count"
    );
}

#[test]
fn readers_share_writers_do_not_and_neither_starves() {
    let (seen, value) = done(|| {
        let lock = Arc::new(RwLock::new((0_u64, 0_u64)));
        let mut threads = Vec::new();
        for n in 0..8 {
            let lock = Arc::clone(&lock);
            threads.push(go(45 + n % 4, move || {
                let mut torn = 0;
                for round in 0..300 {
                    if (round + n) % 3 == 0 {
                        let mut both = lock.write().expect("in a run");
                        both.0 += 1;
                        if round % 16 == 0 {
                            thread::yield_now();
                            thread::sleep(punctual_model::Span::from_us(5));
                        }
                        both.1 += 1;
                    } else {
                        let both = lock.read().expect("in a run");
                        torn += u32::from(both.0 != both.1);
                    }
                }
                torn
            }));
        }
        let torn: u32 = joined(threads).into_iter().sum();
        let both = *lock.read().expect("in a run");
        (torn, both)
    });
    assert_eq!((seen, value), (0, (800, 800)));
}

#[test]
fn a_writer_that_gives_up_lets_the_readers_behind_it_in() {
    let (writer, reader) = done(|| {
        let lock = Arc::new(RwLock::new(7));
        let first = lock.read().expect("free");
        let write = Arc::clone(&lock);
        let writer = go(60, move || write.write_within(ms(100)).map(|_| ()));
        let read = Arc::clone(&lock);
        let reader = go(55, move || read.read().map(|value| *value));
        // Unless the machine was away for as long as that one waits.
        assert!(
            !reader.is_finished() || writer.is_finished(),
            "it waits behind the writer"
        );
        let ends = (
            writer.join().expect("no panic"),
            reader.join().expect("no panic"),
        );
        drop(first);
        ends
    });
    assert_eq!((writer, reader), (Err(WaitError::TimedOut), Ok(7)));
}

#[test]
fn every_message_arrives_once_and_each_sender_s_in_order() {
    for most in [0, 1, 7] {
        let received = done(move || {
            let queue = Arc::new(Queue::new(most));
            let senders = (0..5_u64).map(|n| {
                let queue = Arc::clone(&queue);
                let send = move || {
                    for k in 0..400 {
                        queue.send((n, k)).expect("in a run");
                        if k % 50 == n {
                            thread::sleep(punctual_model::Span::from_us(10));
                        }
                    }
                };
                go(45 + u32::try_from(n).unwrap_or(0), send)
            });
            let senders: Vec<_> = senders.collect();
            let receivers = (0..4).map(|n| {
                let queue = Arc::clone(&queue);
                go(44 + 2 * n, move || {
                    let all = (0..500).map(|_| queue.receive().expect("in a run"));
                    all.collect::<Vec<_>>()
                })
            });
            let receivers: Vec<_> = receivers.collect();
            let _: Vec<()> = joined(senders);
            joined(receivers)
        });
        let mut all: Vec<(u64, u64)> = received.iter().flatten().copied().collect();
        for received in &received {
            for n in 0..5 {
                let of_one = received.iter().filter(|m| m.0 == n).map(|m| m.1);
                assert!(of_one.is_sorted(), "of {n} with room for {most}");
            }
        }
        all.sort_unstable();
        let sent: Vec<_> = (0..5).flat_map(|n| (0..400).map(move |k| (n, k))).collect();
        assert_eq!(all, sent, "with room for {most}");
    }
}

#[test]
fn a_message_goes_straight_to_a_more_urgent_receiver() {
    let order = done(|| {
        let queue = Arc::new(Queue::new(4));
        let order = Arc::new(Mutex::new(Vec::new()));
        let (inbox, notes) = (Arc::clone(&queue), Arc::clone(&order));
        let receiver = go(60, move || {
            for _ in 0..2 {
                let message: &str = inbox.receive().expect("in a run");
                notes.lock().expect("in a run").push(message);
            }
        });
        for message in ["one", "two"] {
            queue.send(message).expect("in a run");
            assert_eq!(queue.is_empty(), Some(true));
            order.lock().expect("in a run").push("sent");
        }
        receiver.join().expect("no panic");
        order.lock().expect("in a run").clone()
    });
    assert_eq!(order, ["one", "sent", "two", "sent"]);
}

#[test]
fn a_full_queue_gives_the_message_back_and_an_empty_one_nothing() {
    let ends = done(|| {
        let queue = Queue::new(1);
        queue.try_send(Box::new(1)).expect("room");
        let full = queue.send_within(Box::new(2), ms(1));
        let full = full.err().map(|error| (*error.message, error.why));
        let first = queue.try_receive().map(|n| *n);
        let empty = queue.receive_within(ms(1)).err();
        (full, first, empty)
    });
    let late = WaitError::TimedOut;
    assert_eq!(ends, (Some((2, late)), Ok(1), Some(late)));
}

#[test]
fn a_sender_that_is_cancelled_takes_its_message_along() {
    let counted = Arc::new(());
    let kept = Arc::clone(&counted);
    let received = done(move || {
        let queue = Arc::new(Queue::new(0));
        let outbox = Arc::clone(&queue);
        let sender = go(60, move || outbox.send(kept).is_ok());
        assert!(sender.cancel());
        let _ = sender.join();
        queue.try_receive().err()
    });
    assert_eq!(received, Some(WaitError::TimedOut));
    assert_eq!(Arc::strong_count(&counted), 1);
}

#[test]
fn flags_wake_those_that_have_enough() {
    let (found, left) = done(|| {
        let flags = Arc::new(Flags::new());
        let wait = |priority: u32, want: Want| {
            let flags = Arc::clone(&flags);
            go(priority, move || flags.wait_within(want, ms(60_000)))
        };
        let all = wait(60, Want::all(0b11));
        let any = wait(61, Want::any(0b110));
        let takes = wait(62, Want::any(0b1000).take());
        let misses = wait(61, Want::all(0b1000).take());
        flags.raise(0b001).expect("in a run");
        assert!(!all.is_finished() && !any.is_finished());
        flags.raise(0b010).expect("in a run");
        assert!(all.is_finished() && any.is_finished());
        flags.raise(0b1000).expect("in a run");
        assert!(takes.is_finished() && !misses.is_finished());
        assert!(misses.cancel());
        let found = joined(vec![all, any, takes]);
        let late = flags.wait_within(Want::any(0b100), ms(1));
        flags.lower(0b1).expect("in a run");
        ((found, late), flags.raised())
    });
    assert_eq!(found.0, [Ok(0b11), Ok(0b10), Ok(0b1000)]);
    assert_eq!(found.1, Err(WaitError::TimedOut));
    assert_eq!(left, Some(0b10));
}

#[test]
fn nothing_waits_outside_of_a_run() {
    let none = Err(WaitError::NoRun);
    assert_eq!(Semaphore::new(1).acquire(), none);
    assert_eq!(Barrier::new(1).wait().map(|_| ()), none);
    assert_eq!(Flags::new().raise(1), none);
    assert_eq!(Queue::<()>::new(1).try_receive(), none);
    assert_eq!(RwLock::new(1).read().map(|_| ()), none);
    assert_eq!(Condvar::new().notify_one(), none);
}

#[test]
fn threads_that_wait_at_the_end_of_the_run_are_ended_and_drop_what_they_have() {
    let counted = Arc::new(());
    let kept = Arc::clone(&counted);
    let finished = fly(runtime(FIXED), move || {
        let queue = Arc::new(Queue::<u8>::new(1));
        let gate = Arc::new((Mutex::new(()), Condvar::new(), Semaphore::new(0)));
        for n in 0..9_u32 {
            let (kept, queue, gate) = (Arc::clone(&kept), Arc::clone(&queue), Arc::clone(&gate));
            let wait = move || {
                let _kept = kept;
                match n % 3 {
                    0 => drop(queue.receive()),
                    1 => drop(gate.2.acquire()),
                    _ => drop(gate.0.lock().map(|guard| gate.1.wait(guard).map(|_| ()))),
                }
            };
            go(60, wait).detach();
        }
    });
    assert_eq!(finished.outcome.panics, []);
    assert_eq!(Arc::strong_count(&counted), 1);
}
