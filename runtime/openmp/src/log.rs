//! The events of one carrier, and the order that all events of a process have.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Events of a carrier at most.
const ROOM: usize = 1 << 18;

static ON: AtomicBool = AtomicBool::new(false);
static ORDER: AtomicU64 = AtomicU64::new(1);

/// Kinds of events, with what their three values say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The carrier runs an item from now on: number, function, member.
    Runs,
    /// It has left for its hub.
    Hub,
    /// An item waits unstarted: number, team, members of the team.
    Offered,
    /// Somebody was woken for it, if anybody had to be: number, carriers woken.
    Announced,
    /// An item has been taken: number, the order before the look that found it.
    Taken,
    /// A look found no item: the order before it, the team; 0: all that the carrier may carry.
    Looked,
    /// The carrier is on the list of sleepers.
    Asleep,
    /// It has been taken from that list: the order before.
    Woken,
    /// An identity that nobody carries from now on: its address, its team, its number there.
    Free,
    /// The carrier is about to let an identity go: its address.
    Frees,
    /// The same one again: its address, the order before somebody took it.
    Carried,
}

/// An event, with its number in the order of all and its time stamp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    pub(crate) order: u64,
    pub(crate) time: u64,
    pub(crate) values: [u64; 3],
}

/// The events of one carrier.
#[derive(Debug)]
pub(crate) struct Log {
    events: Box<[UnsafeCell<MaybeUninit<Event>>]>,
    count: AtomicUsize,
    lost: AtomicU64,
}

/// Whether events are recorded.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// A number in the order of events; 0 while nothing is recorded.
#[inline]
pub(crate) fn order() -> u64 {
    if is_on() {
        ORDER.fetch_add(1, Ordering::SeqCst)
    } else {
        0
    }
}

/// Begins or ends the record.
pub(crate) fn switch_on(on: bool) {
    ON.store(on, Ordering::Relaxed);
}

impl Log {
    pub(crate) fn new() -> Log {
        let events = (0..ROOM).map(|_| UnsafeCell::new(MaybeUninit::uninit()));
        Log {
            events: events.collect(),
            count: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// One more event. By the carrier's own kernel thread.
    pub(crate) fn add(&self, kind: Kind, time: u64, values: [u64; 3]) {
        let number = self.count.load(Ordering::Relaxed);
        let Some(place) = self.events.get(number) else {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let event = Event {
            kind,
            order: order(),
            time,
            values,
        };
        // SAFETY: readers look at no place that the count does not cover, and one thread writes.
        unsafe { (*place.get()).write(event) };
        self.count.store(number + 1, Ordering::Release);
    }

    /// How many found no room.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// All so far.
    pub(crate) fn events(&self) -> impl Iterator<Item = Event> {
        let count = self.count.load(Ordering::Acquire);
        let places = self.events.iter().take(count);
        // SAFETY: the count covers it, so it is written and stays as it is.
        places.map(|place| unsafe { (*place.get()).assume_init() })
    }
}
