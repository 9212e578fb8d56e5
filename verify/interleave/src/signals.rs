//! Models of what one kernel thread and its signals share: a signal at every place.
//!
//! A signal runs to its end before the code that it interrupted goes on, so all that is open is
//! where it comes: before which accesses, and how many. All such choices are gone through, the
//! first one varied last.

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::check::Model;
use crate::gate::Gate;
use crate::preemptions::{EventRing, PreemptionEvent, RING_SLOTS};

/// The models.
pub const MODELS: [Model; 2] = [
    Model {
        property: "no signal is forgotten, and the scheduler is not entered twice",
        run: || gate(Note::TakenFirst),
    },
    Model {
        property: "every preemption comes out of the ring once and in order, or is counted",
        run: ring,
    },
];

/// Signals in one run of a model.
const SIGNALS: u32 = 3;
/// A signal may interrupt a signal.
const DEPTH: u32 = 2;
/// A run with more accesses has no end.
const ACCESSES: usize = 1_000;

/// One run of a model.
struct Run {
    handler: Rc<dyn Fn()>,
    /// Before which accesses signals come.
    choices: Vec<bool>,
    accesses: usize,
    signals: u32,
    depth: u32,
}

thread_local! {
    static RUN: RefCell<Option<Run>> = const { RefCell::new(None) };
}

/// A signal may come here. Called before every access.
pub(crate) fn may_come() {
    let handler = RUN.with_borrow_mut(|run| {
        let run = run.as_mut()?;
        run.accesses += 1;
        assert!(run.accesses < ACCESSES, "it has no end");
        if run.signals == 0 || run.depth == DEPTH {
            return None;
        }
        let chosen = run.choices.get(run.accesses - 1).copied();
        if chosen.is_none() {
            // No choice at accesses at which none could come.
            run.choices.resize(run.accesses, false);
        }
        chosen.unwrap_or(false).then(|| {
            run.signals -= 1;
            run.depth += 1;
            Rc::clone(&run.handler)
        })
    });
    if let Some(handler) = handler {
        handler();
        RUN.with_borrow_mut(|run| run.as_mut().map(|run| run.depth -= 1));
    }
}

/// Runs a model with signals at every choice of places; how many there were. `model` makes, afresh,
/// what the signal does, what it interrupts, and the look at what has become of it.
fn at_every_place(model: impl Fn() -> (Rc<dyn Fn()>, Box<dyn Fn()>, Box<dyn Fn()>)) -> u64 {
    /// No run, however it ends.
    struct Over;
    impl Drop for Over {
        fn drop(&mut self) {
            RUN.take();
        }
    }
    let _over = Over;
    let mut choices = Vec::new();
    for runs in 1.. {
        let (handler, main, look) = model();
        RUN.set(Some(Run {
            handler,
            choices,
            accesses: 0,
            signals: SIGNALS,
            depth: 0,
        }));
        main();
        choices = RUN.take().map(|run| run.choices).unwrap_or_default();
        look();
        while choices.pop_if(|chosen| *chosen).is_some() {}
        match choices.last_mut() {
            Some(last) => *last = true,
            None => return runs,
        }
    }
    0
}

/// When an entry takes the note of a signal away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// Before it looks at the clock, as entries do.
    TakenFirst,
    /// After.
    TakenLast,
}

/// What the scheduler of one processor knows.
struct Scheduler {
    gate: Gate,
    note: Note,
    /// Signals so far: each says that something has become due.
    due: Cell<u32>,
    /// What an entry has seen of that.
    served: Cell<u32>,
    inside: Cell<bool>,
}

impl Scheduler {
    /// Gate closed.
    fn enter(&self) {
        assert!(!self.inside.replace(true), "INV-7: nobody enters twice");
        if self.note == Note::TakenFirst {
            self.gate.take_pending();
        }
        self.served.set(self.due.get());
        if self.note == Note::TakenLast {
            self.gate.take_pending();
        }
        self.inside.set(false);
    }

    /// As at every call of a thread, and at the end of a signal (INV-8).
    fn enter_and_leave(&self) {
        self.gate.close();
        self.enter();
        while self.gate.open() {
            self.gate.close();
            self.enter();
        }
    }

    fn on_signal(&self) {
        self.due.set(self.due.get() + 1);
        if self.gate.is_closed() {
            self.gate.note_pending();
        } else {
            self.enter_and_leave();
        }
    }
}

/// Signals beside two entries of a thread; how many places there were. Panics where one is lost.
pub fn gate(note: Note) -> u64 {
    at_every_place(|| {
        let scheduler = Rc::new(Scheduler {
            gate: Gate::new(),
            note,
            due: Cell::new(0),
            served: Cell::new(0),
            inside: Cell::new(false),
        });
        let (signal, look) = (Rc::clone(&scheduler), Rc::clone(&scheduler));
        let main = move || {
            scheduler.enter_and_leave();
            scheduler.enter_and_leave();
        };
        let look = move || {
            assert_eq!(look.served.get(), look.due.get(), "a signal was forgotten");
            assert!(!look.gate.is_closed() && !look.gate.has_pending());
        };
        (
            Rc::new(move || signal.on_signal()),
            Box::new(main),
            Box::new(look),
        )
    })
}

/// Preemptions that find the ring nearly full, while the scheduler reads it.
fn ring() -> u64 {
    at_every_place(|| {
        let ring = Rc::new(EventRing::new());
        let posted = Rc::new(Cell::new(0));
        let event = |tag| PreemptionEvent {
            tag,
            executed: !tag,
        };
        let post = {
            let (ring, posted, busy) = (Rc::clone(&ring), Rc::clone(&posted), Cell::new(false));
            move || {
                // The gate keeps a second one out.
                if !busy.replace(true) {
                    ring.post(event(posted.get()));
                    posted.set(posted.get() + 1);
                    busy.set(false);
                }
            }
        };
        for _ in 1..RING_SLOTS {
            post();
        }
        let (missed, taken) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
        let read = {
            let (ring, taken) = (Rc::clone(&ring), Rc::clone(&taken));
            move || {
                while let Some(found) = ring.take() {
                    assert_eq!(found, event(found.tag), "half an event");
                    taken.borrow_mut().push(found.tag);
                }
            }
        };
        let main = {
            let (ring, read, missed) = (Rc::clone(&ring), read.clone(), Rc::clone(&missed));
            move || {
                ring.is_empty();
                missed.set(missed.get() + ring.take_overflow());
                read();
            }
        };
        let look = move || {
            missed.set(missed.get() + ring.take_overflow());
            read();
            let taken = taken.borrow();
            assert!(taken.is_sorted_by(|a, b| a < b), "each once, in order");
            assert_eq!(taken.len() as u64 + missed.get(), posted.get(), "none lost");
            assert!(ring.is_empty());
        };
        (Rc::new(post), Box::new(main), Box::new(look))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inv_8_a_note_that_is_taken_after_the_look_at_the_clock_loses_a_signal() {
        assert!(gate(Note::TakenFirst) > 1_000);
        assert!(std::panic::catch_unwind(|| gate(Note::TakenLast)).is_err());
    }
}
