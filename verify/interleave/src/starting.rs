//! Models of items that wait unstarted: the deque, the count of children, and their waiter.

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;

use crate::atomic::{AtomicU32, Ordering, Place, belonging_slots, pause};
use crate::check::{Model, in_every_order};
use crate::deque::{Deque, Stolen};
use crate::pending_items::{CHILD, Pending, REFERENCE};

/// The models.
pub const MODELS: [Model; 5] = [
    Model {
        property: "an item is begun once, by its owner or by a thief, who sees what it holds",
        run: || in_every_order(one_thief) + in_every_order(two_thieves),
    },
    Model {
        property: "a slot of a deque is filled again when its thief is through with it",
        run: || belonging_slots(|| in_every_order(slots)),
    },
    Model {
        property: "the waiter for the last child is told once, and sees what the children wrote",
        run: || in_every_order(last_child),
    },
    Model {
        property: "an item below which nothing is left is seen to be alone",
        run: || in_every_order(alone),
    },
    Model {
        property: "the last reference to an item is the end of it, whoever gives it up",
        run: || in_every_order(last_reference),
    },
];

/// A deque, and items for it.
struct Items {
    deque: Deque<Place<u32>, 2>,
    places: [Place<u32>; 3],
}

impl Items {
    fn new() -> Arc<Items> {
        Arc::new(Items {
            deque: Deque::new(),
            places: core::array::from_fn(|_| Place::empty()),
        })
    }

    /// Pushes the item of this number, which holds a bit of its own.
    fn push(&self, number: usize) {
        // SAFETY: nobody knows this item yet.
        unsafe { self.places[number].put(1 << number) };
        let address = core::ptr::from_ref(&self.places[number]).cast_mut();
        assert!(self.deque.push(address).is_ok(), "there is room");
    }

    fn pop(&self) -> u32 {
        self.deque.pop().map_or(0, begin)
    }

    fn steal(&self) -> u32 {
        match self.deque.steal() {
            Stolen::One(item) => begin(item),
            Stolen::Nothing | Stolen::Lost => 0,
        }
    }
}

/// Begins an item and gives its value. Two at a time are found by the place.
fn begin(item: *mut Place<u32>) -> u32 {
    assert!(!item.is_null());
    // SAFETY: the items live as long as the model; something was put there before.
    unsafe {
        let value = (*item).get();
        (*item).put(0);
        value
    }
}

/// The owner also takes the only one, and goes around the end of the slots.
fn one_thief() {
    let items = Items::new();
    let thief = {
        let items = Arc::clone(&items);
        thread::spawn(move || items.steal() + items.steal())
    };
    items.push(0);
    let mut sum = items.pop();
    items.push(1);
    items.push(2);
    for _ in 0..3 {
        sum += items.pop();
    }
    sum += thief.join().unwrap();
    assert_eq!(sum, 0b111, "each once");
    assert_eq!(items.deque.len(), 0);
}

/// Two thieves at the same two items, and the owner.
fn two_thieves() {
    let items = Items::new();
    items.push(0);
    items.push(1);
    let thieves = [0, 1].map(|_| {
        let items = Arc::clone(&items);
        thread::spawn(move || items.steal())
    });
    let mut sum = items.pop();
    sum += thieves
        .map(|thief| thief.join().unwrap())
        .iter()
        .sum::<u32>();
    sum += items.pop();
    assert_eq!(sum, 0b11, "each once");
}

/// Only pushes and one thief: so a slot is nobody else's while the thief is at it.
fn slots() {
    let items = Items::new();
    let thief = {
        let items = Arc::clone(&items);
        thread::spawn(move || items.steal() + items.steal())
    };
    items.push(0);
    items.push(1);
    // SAFETY: nobody knows this item yet.
    unsafe { items.places[2].put(4) };
    let third = core::ptr::from_ref(&items.places[2]).cast_mut();
    let pushed = items.deque.push(third).is_ok();
    let mut sum = thief.join().unwrap();
    for _ in 0..3 {
        sum += items.pop();
    }
    assert_eq!(sum, if pushed { 0b111 } else { 0b011 });
}

/// An item, what its children write, and whether its waiter was told.
struct Family {
    pending: Pending<u32>,
    written: [Place<u32>; 2],
    told: AtomicU32,
}

impl Family {
    fn new() -> Arc<Family> {
        let family = Family {
            pending: Pending::new(),
            written: [Place::empty(), Place::empty()],
            told: AtomicU32::new(0),
        };
        family.pending.begin();
        family.pending.add(2 * (REFERENCE | CHILD));
        Arc::new(family)
    }

    /// A child writes and ends.
    fn child(&self, number: usize) {
        // SAFETY: each child has a place of its own.
        unsafe { self.written[number].put(1) };
        if let Some(waiter) = self.pending.sub(REFERENCE | CHILD).waiter {
            assert!(!waiter.is_null());
            self.told.fetch_add(1, Ordering::Release);
        }
    }

    fn sum(&self) -> u32 {
        let places = self.written.iter();
        // SAFETY: both children have written, and write no more; else the model checker finds it.
        places.map(|place| unsafe { place.get() }).sum()
    }
}

fn last_child() {
    let family = Family::new();
    let children = [0, 1].map(|number| {
        let family = Arc::clone(&family);
        thread::spawn(move || family.child(number))
    });
    let mut waiter = 7_u32;
    if !family.pending.is_childless() && family.pending.register(&raw mut waiter) {
        while family.told.load(Ordering::Acquire) == 0 {
            pause();
        }
    }
    assert_eq!(family.sum(), 2);
    assert!(family.pending.is_childless());
    children.into_iter().for_each(|child| child.join().unwrap());
    assert!(family.told.load(Ordering::Acquire) <= 1, "told once");
    assert!(family.pending.is_last());
}

fn alone() {
    let family = Family::new();
    let children = [0, 1].map(|number| {
        let family = Arc::clone(&family);
        thread::spawn(move || family.child(number))
    });
    while !family.pending.is_last() {
        pause();
    }
    assert_eq!(family.sum(), 2);
    children.into_iter().for_each(|child| child.join().unwrap());
    // The item is used again.
    family.pending.begin();
    assert!(family.pending.is_last() && family.pending.is_childless());
}

fn last_reference() {
    let family = Family::new();
    let ends = Arc::new(AtomicUsize::new(0));
    let end = |family: &Family| {
        // SAFETY: whoever ends the item is alone with it; else the model checker finds it.
        unsafe { family.written[0].put(family.sum()) };
    };
    let children = [0, 1].map(|number| {
        let (family, ends) = (Arc::clone(&family), Arc::clone(&ends));
        thread::spawn(move || {
            // SAFETY: each child has a place of its own.
            unsafe { family.written[number].put(1) };
            if family.pending.sub(REFERENCE | CHILD).is_over {
                ends.fetch_add(1, Ordering::Relaxed);
                end(&family);
            }
        })
    });
    if family.pending.sub(REFERENCE).is_over {
        ends.fetch_add(1, Ordering::Relaxed);
        end(&family);
    }
    children.into_iter().for_each(|child| child.join().unwrap());
    assert_eq!(ends.load(Ordering::Relaxed), 1, "it ends once");
    // SAFETY: all have ended.
    assert_eq!(unsafe { family.written[0].get() }, 2);
}
