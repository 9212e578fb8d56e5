//! Models of the lists of news: nothing is lost, taken twice, or seen before it was written.

use core::sync::atomic::Ordering;

use loom::sync::Arc;
use loom::thread;

use crate::atomic::{AtomicU32, Place};
use crate::check::{Model, in_every_order};
use crate::mailbox::Mailbox;
use crate::pending::{Link, Linked, PendingList};

/// The models.
pub const MODELS: [Model; 3] = [
    Model {
        property: "however often a bell is rung, whoever hears it hears all rings so far",
        run: || in_every_order(rings),
    },
    Model {
        property: "each of several things is taken off once, with what was written to it",
        run: || in_every_order(things),
    },
    Model {
        property: "a CPU whose flag says that something was put on its list finds it there",
        run: || in_every_order(flagged),
    },
];

/// A thing on a list.
struct Thing {
    link: Link<Thing>,
    content: Place<u32>,
}

impl Linked for Thing {
    fn link(&self) -> &Link<Thing> {
        &self.link
    }
}

impl Thing {
    fn new() -> Thing {
        Thing {
            link: Link::new(),
            content: Place::empty(),
        }
    }
}

/// A list and what may stand on it.
struct Cpu {
    news: PendingList<Thing>,
    things: [Thing; 2],
    /// Who has rung the first thing.
    rung: [AtomicU32; 2],
}

impl Cpu {
    fn new() -> Arc<Cpu> {
        Arc::new(Cpu {
            news: PendingList::new(),
            things: [Thing::new(), Thing::new()],
            rung: [AtomicU32::new(0), AtomicU32::new(0)],
        })
    }

    /// `true`: the CPU is to be kicked.
    fn announce(&self, which: usize) -> bool {
        let thing = &self.things[which];
        let is_first = thing.link.announce();
        if is_first {
            // SAFETY: it lives as long as the list.
            unsafe { self.news.put(thing) };
        }
        is_first
    }

    fn take(&self) -> Option<&Thing> {
        // SAFETY: as above.
        self.news.take().map(|thing| unsafe { &*thing })
    }
}

/// What a kick carries over, beside that there is one: what its sender did before.
pub(crate) struct Kicks(loom::sync::atomic::AtomicU32);

impl Kicks {
    pub(crate) fn new() -> Arc<Kicks> {
        Arc::new(Kicks(loom::sync::atomic::AtomicU32::new(0)))
    }

    pub(crate) fn send(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// Waits for some. Loom ends a wait for what never comes.
    pub(crate) fn wait(&self) {
        while self.0.swap(0, Ordering::Acquire) == 0 {
            thread::yield_now();
        }
    }
}

fn rings() {
    let cpu = Cpu::new();
    let kicks = Kicks::new();
    let ring = |from: usize| {
        let (cpu, kicks) = (Arc::clone(&cpu), Arc::clone(&kicks));
        thread::spawn(move || {
            // The exchanges of the link alone have to order this.
            cpu.rung[from].store(1, Ordering::Relaxed);
            if cpu.announce(0) {
                kicks.send();
            }
        })
    };
    let others = [ring(0), ring(1)];
    let mut heard = 0;
    while heard < 2 {
        kicks.wait();
        while cpu.take().is_some() {
            let rung = cpu.rung.iter().map(|word| word.load(Ordering::Relaxed));
            heard = rung.sum();
        }
    }
    others.into_iter().for_each(|other| other.join().unwrap());
    // It may stand there once more for a ring that was heard already.
    while cpu.take().is_some() {}
    assert!(cpu.news.is_empty());
}

fn things() {
    let cpu = Cpu::new();
    let kicks = Kicks::new();
    let bring = |which: usize| {
        let (cpu, kicks) = (Arc::clone(&cpu), Arc::clone(&kicks));
        thread::spawn(move || {
            // SAFETY: nobody looks before it is on the list.
            unsafe { cpu.things[which].content.put(7) };
            assert!(cpu.announce(which), "nobody else announces it");
            kicks.send();
        })
    };
    let others = [bring(0), bring(1)];
    let mut seen = 0;
    while seen < 2 {
        // Also before it is kicked: it may have an entry of its own.
        if seen == 1 {
            kicks.wait();
        }
        while let Some(thing) = cpu.take() {
            // SAFETY: it was put there before the thing was on the list.
            assert_eq!(unsafe { thing.content.get() }, 7);
            seen += 1;
        }
        if seen == 0 {
            kicks.wait();
        }
    }
    others.into_iter().for_each(|other| other.join().unwrap());
    assert!(cpu.take().is_none() && cpu.news.is_empty());
}

fn flagged() {
    let (cpu, mailbox) = (Cpu::new(), Arc::new(Mailbox::new()));
    let bring = |which: usize| {
        let (cpu, mailbox) = (Arc::clone(&cpu), Arc::clone(&mailbox));
        thread::spawn(move || {
            assert!(cpu.announce(which), "nobody else announces it");
            mailbox.note_listed();
        })
    };
    let others = [bring(0), bring(1)];
    let mut seen = 0;
    // Nothing else tells of the second: it is found with the first, or by a flag of its own.
    while seen < 2 {
        if !mailbox.has_news() {
            thread::yield_now();
            continue;
        }
        mailbox.hear_listed();
        seen += core::iter::from_fn(|| cpu.take()).count();
    }
    others.into_iter().for_each(|other| other.join().unwrap());
    assert!(cpu.take().is_none() && cpu.news.is_empty());
}
