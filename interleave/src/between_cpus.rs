//! Models of rings and turns, and of a wait that ends by itself while it is answered.

use loom::sync::Arc;
use loom::thread;

use crate::atomic::{AtomicU32, Place, pause};
use crate::check::{Model, in_every_order};
use crate::ring::Ring;
use crate::turn::Turn;

/// The models.
pub const MODELS: [Model; 2] = [
    Model {
        property: "messages come out of a ring once, whole and in order, however full it is",
        run: || in_every_order(messages),
    },
    Model {
        property: "nobody is in another's turn, and each sees what was done in those before",
        run: || in_every_order(turns),
    },
];

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

fn turns() {
    let turn = Turn::of(AtomicU32::new(0), AtomicU32::new(0));
    let state = Arc::new((turn, Place::empty()));
    // SAFETY: nobody else is here yet.
    unsafe { state.1.put(0) };
    let visit = |state: &(Turn, Place<u32>)| {
        state.0.take();
        // SAFETY: it is this thread's turn.
        unsafe { state.1.put(state.1.get() + 1) };
        state.0.pass();
    };
    let other = {
        let state = Arc::clone(&state);
        thread::spawn(move || visit(&state))
    };
    visit(&state);
    visit(&state);
    other.join().unwrap();
    state.0.take();
    // SAFETY: as above.
    assert_eq!(unsafe { state.1.get() }, 3);
}
