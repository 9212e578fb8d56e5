//! A model of the locks of OpenMP programs: one at a time has it, and nobody waits for ever.

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use crate::atomic::{AtomicU32, Place};
use crate::check::{Model, in_every_order};
use crate::wish::{Wish, let_go};

/// The models.
pub const MODELS: [Model; 1] = [Model {
    property: "a lock of a program has one holder at a time, and everybody who waits gets it",
    run: || in_every_order(two) + in_every_order(three),
}];

/// A lock, and what it protects.
struct Locked {
    word: AtomicU32,
    content: Place<u32>,
    waiters: Mutex<Vec<usize>>,
    /// By waiter: whether it was told. Loom notices one that is told by nobody.
    told: Vec<(Mutex<bool>, Condvar)>,
}

impl Locked {
    fn new(members: usize) -> Arc<Locked> {
        let locked = Locked {
            word: AtomicU32::new(0),
            content: Place::empty(),
            waiters: Mutex::new(Vec::new()),
            told: (0..members)
                .map(|_| (Mutex::new(false), Condvar::new()))
                .collect(),
        };
        // SAFETY: nobody else knows it yet.
        unsafe { locked.content.put(0) };
        Arc::new(locked)
    }

    fn lock(&self, me: usize) {
        let wish = Wish::new();
        while !wish.take(&self.word) {
            let mut waiters = self.waiters.lock().unwrap();
            if wish.wait(&self.word) {
                return;
            }
            waiters.push(me);
            drop(waiters);
            let (told, changed) = &self.told[me];
            let mut told = told.lock().unwrap();
            while !core::mem::take(&mut *told) {
                told = changed.wait(told).unwrap();
            }
        }
    }

    fn unlock(&self) {
        if !let_go(&self.word) {
            return;
        }
        let mut waiters = self.waiters.lock().unwrap();
        if waiters.is_empty() {
            return;
        }
        let first = waiters.remove(0);
        drop(waiters);
        let (told, changed) = &self.told[first];
        *told.lock().unwrap() = true;
        changed.notify_one();
    }

    fn add(&self, me: usize) {
        self.lock(me);
        // SAFETY: the lock is held; else the model checker finds two here.
        unsafe { self.content.put(self.content.get() + 1) };
        self.unlock();
    }
}

fn among(members: usize) {
    let locked = Locked::new(members);
    let others: Vec<_> = (1..members)
        .map(|me| {
            let locked = Arc::clone(&locked);
            thread::spawn(move || locked.add(me))
        })
        .collect();
    locked.add(0);
    others.into_iter().for_each(|other| other.join().unwrap());
    locked.lock(0);
    // SAFETY: the lock is held.
    let content = unsafe { locked.content.get() };
    assert_eq!(usize::try_from(content), Ok(members));
}

fn two() {
    among(2);
}

fn three() {
    among(3);
}
