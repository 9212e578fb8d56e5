//! Wrong: a turn is so many entries of the core, and anybody can cause entries.

use punctual_conform::{Claims, Level, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId, Work};

use crate::{assert_caught, find};

/// Entries in one turn.
const TURN: u32 = 3;

/// In turn.
struct CountsEntries {
    queue: Vec<ThreadId>,
    entries: u32,
}

impl Policy for CountsEntries {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.queue.push(thread);
    }

    fn block(&mut self, thread: ThreadId) {
        self.queue.retain(|queued| *queued != thread);
    }

    fn update(&mut self, _: ThreadId, _: &Attributes) {}

    fn charge(&mut self, _: ThreadId, _: Work) {
        self.entries += 1;
        if self.entries >= TURN {
            self.entries = 0;
            let one = self.queue.len().min(1);
            self.queue.rotate_left(one);
        }
    }

    fn pick(&mut self, _: Instant) -> Pick {
        self.queue
            .first()
            .map_or(Pick::NOBODY, |&first| Pick::run(first))
    }
}

fn make(capacity: usize) -> CountsEntries {
    CountsEntries {
        queue: Vec::with_capacity(capacity),
        entries: 0,
    }
}

#[test]
fn a_policy_that_counts_entries_lets_a_child_take_from_others_by_its_answers() {
    assert_caught(&Claims::ANY_ORDER, make, Property::IllegalChildAnswer, 12);
}

#[test]
fn that_is_seen_beside_a_child_and_nowhere_else() {
    assert_eq!(find(&Claims::ANY_ORDER, make).level, Level::Tree);
}
