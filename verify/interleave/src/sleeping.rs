//! Models of carriers and members that sleep: nobody sleeps over what it could do.

use loom::sync::atomic::AtomicUsize;
use loom::sync::{Arc, Mutex};
use loom::thread;

use crate::asleep::{Asleep, Bell};
use crate::atomic::{self, AtomicPtr, Ordering, Place, pause};
use crate::barrier::{self, Barrier};
use crate::check::{Model, in_every_order};
use crate::deque::{Deque, Stolen};
use crate::standing::{Linked, Standing};

/// The models.
pub const MODELS: [Model; 4] = [
    Model {
        property: "a thread that becomes ready is carried, whoever lets its identity go meanwhile",
        run: || in_every_order(ready),
    },
    Model {
        property: "an identity that is queued is carried by one who sees what it did before",
        run: || in_every_order(queued),
    },
    Model {
        property: "no carrier sleeps while an item waits unstarted",
        run: || in_every_order(asleep) + in_every_order(asleep_twice) + in_every_order(home),
    },
    Model {
        property: "members pass a barrier when all have come, asleep or not",
        run: || in_every_order(barriers),
    },
];

#[derive(Debug)]
struct Thread {
    link: AtomicPtr<Thread>,
    made: Place<u32>,
}

impl Linked for Thread {
    fn link(&self) -> &AtomicPtr<Thread> {
        &self.link
    }
}

fn forever(number: u32) -> &'static Thread {
    let thread = Thread {
        link: AtomicPtr::new(core::ptr::null_mut()),
        made: Place::empty(),
    };
    // SAFETY: nobody knows it yet.
    unsafe { thread.made.put(number) };
    Box::leak(Box::new(thread))
}

/// An identity, and its own memory, which one carrier at a time may touch.
struct Identity {
    standing: Standing<Thread>,
    own: Place<u32>,
    ran: AtomicUsize,
    queue: Mutex<bool>,
}

impl Identity {
    fn new() -> Arc<Identity> {
        let identity = Identity {
            standing: Standing::new(),
            own: Place::empty(),
            ran: AtomicUsize::new(0),
            queue: Mutex::new(false),
        };
        // SAFETY: nobody else is here yet.
        unsafe { identity.own.put(0) };
        Arc::new(identity)
    }

    /// Runs what is on the list.
    fn run_ready(&self) {
        let mut at = self.standing.take_ready();
        // SAFETY: threads of the model are never unmade.
        while let Some(thread) = unsafe { at.as_ref() } {
            at = thread.link.load(Ordering::Relaxed);
            // SAFETY: the carrier alone is here; else the model checker finds another.
            unsafe { self.own.put(self.own.get() + thread.made.get()) };
            self.ran.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Runs what is ready until nothing is, and lets go.
    fn carry(&self) {
        loop {
            self.run_ready();
            self.standing.let_go();
            if !(self.standing.has_ready() && self.standing.take()) {
                return;
            }
        }
    }

    fn make_ready(&self, number: u32) {
        if self.standing.make_ready(forever(number)) {
            *self.queue.lock().unwrap() = true;
            self.dequeue();
        }
    }

    /// Carries it when it is in the queue.
    fn dequeue(&self) {
        if core::mem::take(&mut *self.queue.lock().unwrap()) {
            self.carry();
        }
    }

    fn check(&self, threads: usize, sum: u32) {
        assert!(self.standing.waits(), "nobody has it at the end");
        assert_eq!(self.ran.load(Ordering::Relaxed), threads, "none forgotten");
        // SAFETY: all have ended.
        assert_eq!(unsafe { self.own.get() }, sum);
    }
}

fn ready() {
    let identity = Identity::new();
    let makers = [1, 2].map(|number| {
        let identity = Arc::clone(&identity);
        thread::spawn(move || identity.make_ready(number))
    });
    identity.carry();
    makers.into_iter().for_each(|maker| maker.join().unwrap());
    identity.check(2, 3);
}

/// A thread yields: its identity goes to the end of the queue, from which another carrier takes it.
fn queued() {
    let identity = Identity::new();
    let maker = {
        let identity = Arc::clone(&identity);
        thread::spawn(move || {
            identity.make_ready(1);
            identity.dequeue();
        })
    };
    // SAFETY: carried here.
    unsafe { identity.own.put(4) };
    *identity.queue.lock().unwrap() = true;
    identity.dequeue();
    maker.join().unwrap();
    identity.dequeue();
    identity.check(1, 5);
}

/// A carrier of the pool, and an item that another one offers.
struct Pool {
    deque: Deque<Place<u32>, 2>,
    items: [Place<u32>; 2],
    /// Members that nobody carries.
    waiting: Asleep,
    idle: Asleep,
    bell: Bell,
    /// The list of sleepers has one place.
    listed: Mutex<bool>,
}

impl Pool {
    fn new() -> Arc<Pool> {
        Arc::new(Pool {
            deque: Deque::new(),
            items: [Place::empty(), Place::empty()],
            waiting: Asleep(atomic::AtomicUsize::new(0)),
            idle: Asleep(atomic::AtomicUsize::new(0)),
            bell: Bell::new(),
            listed: Mutex::new(false),
        })
    }

    fn offer(&self, number: usize) {
        // SAFETY: nobody knows it yet.
        unsafe { self.items[number].put(5) };
        let item = core::ptr::from_ref(&self.items[number]).cast_mut();
        assert!(self.deque.push(item).is_ok());
        if self.waiting.has_some() && self.idle.count() != 0 {
            self.unlist();
        }
    }

    fn list(&self) {
        let mut listed = self.listed.lock().unwrap();
        assert!(!*listed, "it left its last sleep through the list");
        // The bell of the last sleep is heard no more.
        self.bell.silence();
        *listed = true;
        self.idle.add();
    }

    /// Takes the carrier out of the list, and rings its bell before the list is another's.
    fn unlist(&self) {
        let mut listed = self.listed.lock().unwrap();
        if core::mem::take(&mut *listed) {
            self.bell.ring();
            self.idle.sub();
        }
    }

    /// One look around: as the engine does, first without a fence.
    fn look(&self) -> Option<u32> {
        if self.deque.len() == 0 {
            return None;
        }
        match self.deque.steal() {
            // SAFETY: it was put there before it was offered.
            Stolen::One(item) => Some(unsafe { (*item).get() }),
            Stolen::Nothing | Stolen::Lost => None,
        }
    }

    /// The item that the carrier begins next. It sleeps until there is one.
    fn next(&self) -> u32 {
        loop {
            self.list();
            if let Some(value) = self.look() {
                self.unlist();
                return value;
            }
            while !self.bell.has_rung() {
                pause();
            }
            // It may have been woken for an item that it has found by itself before.
            if let Some(value) = self.look() {
                return value;
            }
        }
    }
}

fn asleep() {
    let pool = Pool::new();
    let carrier = {
        let pool = Arc::clone(&pool);
        thread::spawn(move || {
            pool.waiting.add_before_a_fence();
            pool.next()
        })
    };
    pool.offer(0);
    assert_eq!(carrier.join().unwrap(), 5);
    assert_eq!(pool.idle.count(), 0);
}

/// The second sleep begins with a silent bell.
fn asleep_twice() {
    let pool = Pool::new();
    let carrier = {
        let pool = Arc::clone(&pool);
        thread::spawn(move || {
            pool.waiting.add_before_a_fence();
            let first = pool.next();
            first + pool.next()
        })
    };
    pool.offer(0);
    pool.offer(1);
    assert_eq!(carrier.join().unwrap(), 10);
}

/// A carrier is woken for an identity that it alone may carry: no fence, but the lock of the list.
fn home() {
    let pool = Pool::new();
    let pinned = Arc::new(AtomicUsize::new(0));
    let carrier = {
        let (pool, pinned) = (Arc::clone(&pool), Arc::clone(&pinned));
        thread::spawn(move || {
            pool.list();
            if pinned.load(Ordering::Relaxed) == 0 {
                while !pool.bell.has_rung() {
                    pause();
                }
            }
            pinned.load(Ordering::Relaxed)
        })
    };
    pinned.store(1, Ordering::Relaxed);
    pool.unlist();
    assert_eq!(carrier.join().unwrap(), 1, "it sees what it was woken for");
}

/// A member of a party, and whether its thread was told.
struct Member {
    place: barrier::Place<Sleeper>,
    sleeper: Sleeper,
    wrote: Place<u32>,
}

struct Sleeper {
    content: Place<u32>,
    told: atomic::AtomicU32,
}

struct Party {
    barrier: Barrier,
    members: [Member; 2],
}

impl Party {
    fn arrive(&self) {
        if !self.barrier.arrive(2) {
            return;
        }
        for member in &self.members {
            // SAFETY: members live as long as the model.
            if let Some(sleeper) = unsafe { self.barrier.unpark(&member.place).as_ref() } {
                // SAFETY: it sleeps; else the model checker finds two here.
                unsafe { sleeper.content.put(1) };
                sleeper.told.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// A member passes the barrier.
    fn pass(&self, me: usize) {
        let member = &self.members[me];
        let passed = self.barrier.generation();
        self.arrive();
        // One who is late with the last generation may wake a thread that sleeps for the next.
        while self.barrier.generation() == passed {
            let sleeper = &member.sleeper;
            // SAFETY: nobody knows that it is about to sleep.
            unsafe { sleeper.content.put(0) };
            let before = sleeper.told.load(Ordering::Relaxed);
            let address = core::ptr::from_ref(sleeper).cast_mut();
            if self.barrier.park(&member.place, address, passed) {
                while sleeper.told.load(Ordering::Acquire) == before {
                    pause();
                }
            }
            // SAFETY: it was told, or took itself out.
            unsafe { sleeper.content.put(2) };
        }
    }

    fn rounds(&self, me: usize, rounds: u32) {
        for round in 1..=rounds {
            // SAFETY: others read it between the barriers.
            unsafe { self.members[me].wrote.put(round) };
            self.pass(me);
            for member in &self.members {
                // SAFETY: all have written before the barrier.
                assert_eq!(unsafe { member.wrote.get() }, round);
            }
            self.pass(me);
        }
    }
}

fn barriers() {
    let member = || Member {
        place: barrier::Place::new(),
        sleeper: Sleeper {
            content: Place::empty(),
            told: atomic::AtomicU32::new(0),
        },
        wrote: Place::empty(),
    };
    let party = Arc::new(Party {
        barrier: Barrier::new(),
        members: [member(), member()],
    });
    let other = {
        let party = Arc::clone(&party);
        thread::spawn(move || party.rounds(1, 2))
    };
    party.rounds(0, 2);
    other.join().unwrap();
}
