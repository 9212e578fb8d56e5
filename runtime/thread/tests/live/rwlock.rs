//! Reader-writer locks: those in the way of a waiter inherit its priority, one after the other.

use std::sync::{Arc, Mutex as Notes};

use crate::common::{done, free, ms};
use punctual_linux::job;
use punctual_thread::sync::{RwLock, WaitError};
use punctual_thread::thread;

/// What threads said, in their order.
type Said = Arc<Notes<Vec<&'static str>>>;

type Reader = thread::Thread<()>;
type Lock = Arc<RwLock<()>>;

fn say(said: &Said, what: &'static str) {
    said.lock().expect("nobody panics in here").push(what);
}

/// A thread more urgent than the readers and less than the writers wakes all readers, and goes on.
fn wakes_in_the_middle(urgency: u32, readers: Vec<Reader>, said: &Said) -> Vec<Reader> {
    let notes = Arc::clone(said);
    let middle = thread::spawn("middle", free(urgency), move || {
        for reader in &readers {
            assert!(reader.wake());
        }
        say(&notes, "middle");
        readers
    });
    middle.expect("a thread").join().expect("no panic")
}

/// A thread that reads at once, or as soon as it can, then blocks if it `waits`, and speaks.
fn reads(name: &'static str, urgency: u32, waits: bool, on: (&Lock, &Said)) -> Reader {
    let (lock, said) = (Arc::clone(on.0), Arc::clone(on.1));
    let body = move || {
        let held = lock.read().expect("it comes free");
        if waits {
            thread::block();
        }
        say(&said, name);
        drop(held);
    };
    thread::spawn(name, free(urgency), body).expect("a thread")
}

fn writes(urgency: u32, on: (&Lock, &Said)) -> Reader {
    let (lock, said) = (Arc::clone(on.0), Arc::clone(on.1));
    let body = move || {
        let held = lock.write().expect("the readers leave");
        say(&said, "the writer has it");
        drop(held);
    };
    thread::spawn("writer", free(urgency), body).expect("a thread")
}

#[test]
fn readers_in_the_way_of_a_writer_are_as_urgent_as_it_so_the_middle_waits() {
    let order = done(|| {
        let (lock, said) = (Arc::new(RwLock::new(())), Said::default());
        let mut threads = Vec::new();
        // Each reads, and is preempted by the next while it does.
        for (name, urgency) in [
            ("first reads", 51),
            ("second reads", 52),
            ("third reads", 53),
        ] {
            let (lock, said) = (Arc::clone(&lock), Arc::clone(&said));
            let reader = move || {
                let held = lock.read().expect("nobody writes");
                thread::block();
                job::burn_ns(100_000);
                say(&said, name);
                drop(held);
            };
            threads.push(thread::spawn(name, free(urgency), reader).expect("a thread"));
        }
        let (write, notes) = (Arc::clone(&lock), Arc::clone(&said));
        let writer = thread::spawn("writer", free(60), move || {
            let held = write.write().expect("the readers leave");
            say(&notes, "the writer has it");
            drop(held);
        });
        let threads = wakes_in_the_middle(55, threads, &said);
        for thread in threads {
            thread.join().expect("no panic");
        }
        writer.expect("a thread").join().expect("no panic");
        said.lock().expect("nobody panics in here").clone()
    });
    let expected = [
        "first reads",
        "second reads",
        "third reads",
        "the writer has it",
        "middle",
    ];
    assert_eq!(order, expected);
}

#[test]
fn a_writer_in_the_way_of_readers_is_as_urgent_as_they_are() {
    let order = done(|| {
        let (lock, said) = (Arc::new(RwLock::new(())), Said::default());
        let (write, notes) = (Arc::clone(&lock), Arc::clone(&said));
        let writer = thread::spawn("writer", free(51), move || {
            let held = write.write().expect("free");
            let (read, says) = (Arc::clone(&write), Arc::clone(&notes));
            let reader = thread::spawn("reader", free(53), move || {
                let held = read.read().expect("the writer leaves");
                say(&says, "the reader has it");
                drop(held);
            });
            let says = Arc::clone(&notes);
            let middle = thread::spawn("middle", free(52), move || say(&says, "middle"));
            say(&notes, "the writer leaves");
            drop(held);
            reader.expect("a thread").join().expect("no panic");
            middle.expect("a thread").join().expect("no panic");
        });
        writer.expect("a thread").join().expect("no panic");
        said.lock().expect("nobody panics in here").clone()
    });
    let expected = ["the writer leaves", "the reader has it", "middle"];
    assert_eq!(order, expected);
}

#[test]
fn what_was_lent_through_a_writer_that_gives_up_passes_on_to_the_next_in_line() {
    let order = done(|| {
        let (lock, said) = (Arc::new(RwLock::new(())), Said::default());
        let mut readers = Vec::new();
        for (name, urgency) in [("first reads", 51), ("second reads", 52)] {
            let (lock, said) = (Arc::clone(&lock), Arc::clone(&said));
            let reader = move || {
                let held = lock.read().expect("nobody writes");
                thread::block();
                say(&said, name);
                drop(held);
            };
            readers.push(thread::spawn(name, free(urgency), reader).expect("a thread"));
        }
        let write = Arc::clone(&lock);
        let gives_up = thread::spawn("gives up", free(60), move || {
            write.write_within(ms(20)).err()
        });
        let (write, notes) = (Arc::clone(&lock), Arc::clone(&said));
        let waits = thread::spawn("waits", free(59), move || {
            let held = write.write().expect("the readers leave");
            say(&notes, "the writer has it");
            drop(held);
        });
        let gives_up = gives_up.expect("a thread");
        // The first one leaves at once: who gives up has been woken, and waits for the second.
        assert!(readers[0].wake());
        assert_eq!(
            gives_up.join().expect("no panic"),
            Some(WaitError::TimedOut)
        );
        let first = readers.remove(0);
        let readers = wakes_in_the_middle(55, readers, &said);
        waits.expect("a thread").join().expect("no panic");
        first.join().expect("no panic");
        for thread in readers {
            thread.join().expect("no panic");
        }
        said.lock().expect("nobody panics in here").clone()
    });
    let expected = ["first reads", "second reads", "the writer has it", "middle"];
    assert_eq!(order, expected);
}

#[test]
fn what_was_lent_to_a_writer_that_gives_up_does_not_stay_on_a_reader_it_kept_out() {
    let order = done(|| {
        let (lock, said) = (Arc::new(RwLock::new(())), Said::default());
        let on = (&lock, &said);
        let first = reads("first reads", 51, true, on);
        let second = reads("second reads", 52, true, on);
        let write = Arc::clone(&lock);
        // Longer than a machine of others is away at a time: it keeps the third one out.
        let gives_up = thread::spawn("gives up", free(60), move || {
            write.write_within(ms(2_000)).err()
        });
        let kept_out = reads("third reads", 55, false, on);
        let writer = writes(54, on);
        // Who gives up is woken, and waits for the second; it inherits from the others.
        assert!(first.wake());
        let gave_up = gives_up.expect("a thread").join().expect("no panic");
        assert_eq!(gave_up, Some(WaitError::TimedOut));
        let mut threads = wakes_in_the_middle(53, vec![second], &said);
        threads.extend([first, kept_out, writer]);
        for thread in threads {
            thread.join().expect("no panic");
        }
        said.lock().expect("nobody panics in here").clone()
    });
    let expected = [
        "first reads",
        "third reads",
        "second reads",
        "the writer has it",
        "middle",
    ];
    assert_eq!(order, expected);
}

/// Sixteen read, and a writer waits; before it come `late` readers, of which the first blocks while
/// it reads if it `waits`. The first of the sixteen leaves, so the late ones come in and leave one
/// after the other; then a thread in the middle wakes the rest. What is said from then on.
fn said_after_late_readers(late: u32, waits: bool) -> Vec<&'static str> {
    done(move || {
        let (lock, said) = (Arc::new(RwLock::new(())), Said::default());
        let on = (&lock, &said);
        let mut early: Vec<_> = (0..16).map(|_| reads("early", 51, true, on)).collect();
        let late = (0..late).map(|place| reads("late", 60 - place, waits && place == 0, on));
        let late: Vec<_> = late.collect();
        let writer = writes(57, on);
        let first = early.remove(0);
        assert!(first.wake());
        if waits {
            assert!(late[0].wake());
        }
        assert_eq!(
            said.lock().expect("nobody panics in here").len(),
            late.len() + 1
        );
        let mut threads = wakes_in_the_middle(55, early, &said);
        threads.extend([first, writer]);
        threads.extend(late);
        for thread in threads {
            thread.join().expect("no panic");
        }
        let said = said.lock().expect("nobody panics in here");
        said.iter()
            .copied()
            .filter(|&what| what != "late")
            .collect()
    })
}

#[test]
fn a_late_reader_passes_on_what_is_lent_to_it_to_the_reader_that_came_first() {
    let mut expected = vec!["early"; 16];
    expected.extend(["the writer has it", "middle"]);
    // One is let in; another one looks again, and comes in by itself; a third is let in later.
    for (late, waits) in [(1, false), (2, false), (2, true)] {
        let order = said_after_late_readers(late, waits);
        assert_eq!(order, expected, "{late} late ones, waits: {waits}");
    }
}

#[test]
fn sixteen_read_at_a_time_and_the_next_comes_in_when_one_leaves() {
    let (inside, late) = done(|| {
        let lock = Arc::new(RwLock::new(3));
        let readers: Vec<_> = (0..17)
            .map(|_| {
                let lock = Arc::clone(&lock);
                let reader = move || {
                    let value = lock.read().expect("it comes free");
                    thread::block();
                    *value
                };
                thread::spawn("reader", free(60), reader).expect("a thread")
            })
            .collect();
        let other = Arc::clone(&lock);
        let late = thread::spawn("late", free(61), move || other.read_within(ms(1)).err());
        let late = late.expect("a thread").join().expect("no panic");
        let mut sum = 0;
        for reader in readers {
            assert!(reader.wake());
            sum += reader.join().expect("no panic");
        }
        (sum, late)
    });
    assert_eq!((inside, late), (17 * 3, Some(WaitError::TimedOut)));
}

#[test]
fn a_thread_that_is_in_already_is_told_so_and_stays_in() {
    let errors = done(|| {
        let lock = RwLock::new(0);
        let read = lock.read().expect("free");
        let errors = [lock.read().err(), lock.write().err()];
        assert!(lock.write_within(ms(1)).is_err(), "it still reads");
        drop(read);
        let written = lock.write().expect("free again");
        let again = lock.write().err();
        drop(written);
        assert!(lock.write().is_ok());
        (errors, again)
    });
    let held = Some(WaitError::AlreadyHeld);
    assert_eq!(errors, ([held, held], held));
}
