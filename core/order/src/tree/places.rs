//! Where threads belong, and in whose queues they stand.
//!
//! The table is zeros, and thus not in memory, where threads are at home at the root and no node
//! has a queue of its own: so all of it is where one policy alone orders the CPU.

use alloc::boxed::Box;
use alloc::vec;

use super::node::{NONE, ROOT};

// A thread that is not there is at home at the root, and stands in no queue.
const _: () = assert!(ROOT == 0 && counted(NONE) == 0);

/// Where a thread belongs, and in whose queue it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) home: u16,
    /// [`NONE`] while it is not ready.
    pub(super) at: u16,
    /// The scheduler that blocked it for itself, if any.
    pub(super) blocker: u16,
}

/// By the index of a thread: a [`Place`], of which the last two are counted from 1.
#[derive(Debug)]
pub(super) struct Places(Box<[Row]>);

type Row = [u16; 3];

const HOME: usize = 0;
const AT: usize = 1;
const BLOCKER: usize = 2;

/// A node, counted from 1: the last number stands for none, and is 0 there.
#[inline]
const fn counted(node: u16) -> u16 {
    node.wrapping_add(1)
}

#[inline]
const fn node(counted: u16) -> u16 {
    counted.wrapping_sub(1)
}

#[inline]
fn place(row: &Row) -> Place {
    Place {
        home: row[HOME],
        at: node(row[AT]),
        blocker: node(row[BLOCKER]),
    }
}

impl Places {
    pub(super) fn new(threads: usize) -> Places {
        Places(vec![[0; 3]; threads].into_boxed_slice())
    }

    /// The place of a thread; `None`: there is no such thread.
    #[inline]
    pub(super) fn get(&self, thread: usize) -> Option<Place> {
        self.0.get(thread).map(place)
    }

    /// In whose queue a thread stands; [`NONE`]: in nobody's.
    #[inline]
    pub(super) fn at(&self, thread: usize) -> u16 {
        node(self.0[thread][AT])
    }

    #[inline]
    pub(super) fn home(&self, thread: usize) -> u16 {
        self.0[thread][HOME]
    }

    #[inline]
    pub(super) fn set_home(&mut self, thread: usize, home: u16) {
        self.0[thread][HOME] = home;
    }

    #[inline]
    pub(super) fn set_blocker(&mut self, thread: usize, blocker: u16) {
        self.0[thread][BLOCKER] = counted(blocker);
    }

    /// A thread that stands in no queue is at home here, and nobody has blocked it. A row that says
    /// so is not written: that would bring it into memory.
    pub(super) fn settle(&mut self, thread: usize, home: u16) {
        let row = [home, 0, 0];
        if self.0[thread] != row {
            self.0[thread] = row;
        }
    }

    /// A thread stands in the queue of `at` from now on.
    #[inline]
    pub(super) fn enter(&mut self, thread: usize, at: u16) {
        let row = &mut self.0[thread];
        (row[AT], row[BLOCKER]) = (counted(at), 0);
    }

    /// A thread leaves the queue in which it stands.
    #[inline]
    pub(super) fn leave(&mut self, thread: usize) {
        self.0[thread][AT] = 0;
    }

    /// Threads that `old` has blocked count as blocked by `new`.
    pub(super) fn change_blocker(&mut self, old: u16, new: u16) {
        for row in &mut self.0 {
            if row[BLOCKER] == counted(old) {
                row[BLOCKER] = counted(new);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Place> + '_ {
        self.0.iter().map(place)
    }
}
