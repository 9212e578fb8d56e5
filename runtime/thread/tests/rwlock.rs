//! Reader-writer locks: whoever waits lends its urgency to those in its way, one after the other.

mod common;

use std::sync::{Arc, Mutex as Notes};

use common::{done, free, ms};
use punctual_linux::job;
use punctual_thread::sync::{RwLock, WaitError};
use punctual_thread::thread;

/// What threads said, in their order.
type Said = Arc<Notes<Vec<&'static str>>>;

type Reader = thread::Thread<()>;

fn say(said: &Said, what: &'static str) {
    said.lock().expect("nobody panics in here").push(what);
}

/// A thread more urgent than the readers and less than the writers wakes all readers, and goes on.
fn wakes_in_the_middle(readers: Vec<Reader>, said: &Said) -> Vec<Reader> {
    let notes = Arc::clone(said);
    let middle = thread::spawn("middle", free(55), move || {
        for reader in &readers {
            assert!(reader.wake());
        }
        say(&notes, "middle");
        readers
    });
    middle.expect("a thread").join().expect("no panic")
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
        let threads = wakes_in_the_middle(threads, &said);
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
        let readers = wakes_in_the_middle(readers, &said);
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
