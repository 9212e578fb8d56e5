//! Models of rings and of the ticket lock, and of a wait that ends by itself while it is answered.

use core::sync::atomic::Ordering;

use loom::sync::Arc;
use loom::thread;

use crate::atomic::{AtomicU32, Place, pause};
use crate::check::{Model, in_every_order};
use crate::listing::Kicks;
use crate::pending::{Link, Linked, PendingList};
use crate::ring::Ring;
use crate::ticket_lock::TicketLock;

/// The models.
pub const MODELS: [Model; 2] = [
    Model {
        property: "messages come out of a ring once, whole and in order, however full it is",
        run: || in_every_order(messages),
    },
    Model {
        property: "the ticket lock has one holder, which sees what earlier holders did",
        run: || in_every_order(ticket_locks),
    },
];

/// Of words that other models are about; last, because those notice mistakes in them sooner.
pub const WAITS: [Model; 1] = [Model {
    property: "a wait that is over when it is answered takes the answer or leaves it, once",
    run: || in_every_order(waits),
}];

fn messages() {
    const MESSAGES: u32 = 3;
    let ring = Arc::new(Ring::<u32, 2>::new());
    let sender = {
        let ring = Arc::clone(&ring);
        thread::spawn(move || {
            for message in 0..MESSAGES {
                while !ring.push(message) {
                    pause();
                }
            }
        })
    };
    for expected in 0..MESSAGES {
        let message = loop {
            match ring.pop() {
                Some(message) => break message,
                None => pause(),
            }
        };
        assert_eq!(message, expected);
    }
    sender.join().unwrap();
    assert!(ring.is_empty() && ring.pop().is_none());
}

fn ticket_locks() {
    let lock = TicketLock::of(AtomicU32::new(0), AtomicU32::new(0));
    let state = Arc::new((lock, Place::empty()));
    // SAFETY: nobody else is here yet.
    unsafe { state.1.put(0) };
    let visit = |state: &(TicketLock, Place<u32>)| {
        state.0.acquire();
        // SAFETY: this thread holds the lock.
        unsafe { state.1.put(state.1.get() + 1) };
        state.0.release();
    };
    let other = {
        let state = Arc::clone(&state);
        thread::spawn(move || visit(&state))
    };
    visit(&state);
    visit(&state);
    other.join().unwrap();
    state.0.acquire();
    // SAFETY: as above.
    assert_eq!(unsafe { state.1.get() }, 3);
}

/// What a monitor between CPUs knows, touched with the lock held only.
#[derive(Clone, Copy)]
struct State {
    /// Who waits stands in the line.
    stands: bool,
    answer: Option<u32>,
    /// For whom nobody waited.
    left: u32,
}

/// The list of those who are woken on the CPU of who waits, of whom there is one.
struct Waiter(Link<Waiter>);

impl Linked for Waiter {
    fn link(&self) -> &Link<Waiter> {
        &self.0
    }
}

struct Shared {
    lock: TicketLock,
    state: Place<State>,
    seat: Waiter,
    woken: PendingList<Waiter>,
    kicks: Arc<Kicks>,
    /// Its time is over; nobody waits for long.
    late: AtomicU32,
}

impl Shared {
    fn new() -> Arc<Shared> {
        let lock = TicketLock::of(AtomicU32::new(0), AtomicU32::new(0));
        let state = Place::empty();
        let nothing = State {
            stands: false,
            answer: None,
            left: 0,
        };
        // SAFETY: nobody else is here yet.
        unsafe { state.put(nothing) };
        Arc::new(Shared {
            lock,
            state,
            seat: Waiter(Link::new()),
            woken: PendingList::new(),
            kicks: Kicks::new(),
            late: AtomicU32::new(0),
        })
    }

    fn visit<R>(&self, look: impl FnOnce(&mut State) -> R) -> R {
        self.lock.acquire();
        // SAFETY: this thread holds the lock.
        let mut state = unsafe { self.state.get() };
        let result = look(&mut state);
        // SAFETY: as above.
        unsafe { self.state.put(state) };
        self.lock.release();
        result
    }

    /// As `visit_between` of a permit: to who waits, or left for the next.
    fn give(&self) {
        let woken = self.visit(|state| {
            let woken = state.stands;
            if woken {
                (state.stands, state.answer) = (false, Some(7));
            } else {
                state.left += 1;
            }
            // With the lock held, as `waiters` does: who is woken has not gone yet.
            woken && self.seat.0.announce() && {
                // SAFETY: it lives as long as the list.
                unsafe { self.woken.put(&self.seat) };
                true
            }
        });
        if woken {
            self.kicks.send();
        }
    }

    /// As `wait_between`: until it is answered, or its time is over.
    fn wait(&self) -> Option<u32> {
        loop {
            self.kicks.wait();
            while self.woken.take().is_some() {}
            let late = self.late.load(Ordering::Relaxed) == 1;
            let (answer, ends) = self.visit(|state| {
                let answer = state.answer.take();
                let ends = answer.is_none() && late;
                state.stands &= !ends;
                (answer, ends)
            });
            if answer.is_some() || ends {
                return answer;
            }
        }
    }
}

fn waits() {
    let shared = Shared::new();
    let found = shared.visit(|state| {
        state.stands = state.left == 0;
        !state.stands
    });
    assert!(!found, "nobody has given anything yet");
    let by = |act: fn(&Shared)| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || act(&shared))
    };
    let giver = by(Shared::give);
    let timer = by(|shared| {
        shared.late.store(1, Ordering::Relaxed);
        shared.kicks.send();
    });
    let answer = shared.wait();
    giver.join().unwrap();
    timer.join().unwrap();
    let (stands, left) = shared.visit(|state| (state.stands || state.answer.is_some(), state.left));
    assert!(!stands, "it waits no more, and nothing is kept for it");
    assert_eq!(
        u32::from(answer == Some(7)) + left,
        1,
        "given once, to somebody"
    );
    // Who was woken after it had gone is not woken for its next wait, or looks in vain.
    while shared.woken.take().is_some() {}
    assert!(shared.woken.is_empty());
}
