//! The ready queue of a policy: a run of threads in order, and a heap of those who came between.
//!
//! ```text
//!   run    3 - 5 - 5 - 8    a thread that belongs behind or before all of the run: O(1)
//!   heap   4, 6             all others: O(log n)
//! ```
//!
//! Threads that go to the end again and again (they yield, or their turn is over) are rotated in
//! the run; and a thread that is woken ahead of a thousand that wait goes to its front, and leaves
//! from there. The order of threads does not depend on which of the two holds one.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::ThreadId;

use crate::capacity::Capacity;
use crate::heap::{self, ABSENT, Entry, Heap, to_u32};

/// The ready threads of a policy, smallest key first. O(log n) per change, O(1) to look, and O(1)
/// to put a thread behind all others.
///
/// The key is the policy's own order. Let it end in the order of the file (or a sequence number),
/// so that two threads never tie: determinism depends on it.
#[derive(Debug)]
pub struct ReadyQueue<K> {
    run: Run<K>,
    heap: Heap<K>,
    /// By index: nowhere ([`ABSENT`]), a place of the heap, or a link of the run with [`IN_RUN`].
    place: Box<[u32]>,
}

/// The link of an entry of the run is a place with this.
const IN_RUN: u32 = 1 << 31;

/// No link.
const END: u32 = u32::MAX;

/// A place of the heap is none of the run, also in a queue of all threads and all nodes.
const _: () = assert!(heap::last_place(Capacity::MOST_ENTITIES) < IN_RUN as usize);

impl<K: Ord + Copy> ReadyQueue<K> {
    /// A queue for threads with an index below `capacity`, of which there are fewer than 2^31;
    /// nothing is allocated later.
    pub fn new(capacity: usize) -> Self {
        ReadyQueue {
            run: Run::new(capacity),
            heap: Heap::new(capacity),
            place: vec![ABSENT; capacity].into_boxed_slice(),
        }
    }

    /// Inserts a thread, or moves it to its new key.
    #[inline]
    pub fn insert(&mut self, thread: ThreadId, key: K) {
        let (id, tag) = (to_u32(thread.index()), thread.generation());
        let entry = Entry { key, id, tag };
        match self.place.get(thread.index()) {
            None => {}
            Some(&ABSENT) => self.place(entry),
            Some(&at) if at >= IN_RUN => {
                self.run.unlink(at - IN_RUN);
                self.place(entry);
            }
            Some(&at) => self.heap.renew(&mut self.place, at, entry),
        }
    }

    /// Gives the first thread a new key. O(1) if nobody's is greater.
    #[inline]
    pub fn defer_first(&mut self, key: K) {
        if self.run_is_first() {
            if self.run.last_key().is_some_and(|last| last <= key) {
                let _ = self.run.rotate(key);
                return;
            }
            if let Some(&first) = self.run.head() {
                self.run.unlink(self.run.first);
                self.place(Entry { key, ..first });
            }
        } else if let Some(&first) = self.heap.head() {
            self.remove(first.thread());
            self.place(Entry { key, ..first });
        }
    }

    /// Gives a thread that is there a new key, made from its old one. As `defer_first` for the
    /// first, else O(log n).
    #[inline]
    pub fn defer(&mut self, thread: ThreadId, key: impl FnOnce(K) -> K) {
        match self.first() {
            Some((first, old)) if first == thread => self.defer_first(key(old)),
            _ => {
                if let Some(old) = self.key_of(thread) {
                    self.insert(thread, key(old));
                }
            }
        }
    }

    /// Gives `thread`, the first of several, a new key, if it goes to the end with it and no heap
    /// has to be looked at, as among equals that yield in turn. `key` makes it from the old one and
    /// from that of the last thread, which must not be greater; `None`: it does not go there. The
    /// thread that is first then; `None`: nothing has changed. O(1).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn rotate(
        &mut self,
        thread: ThreadId,
        key: impl FnOnce(K, K) -> Option<K>,
    ) -> Option<ThreadId> {
        if !self.heap.is_empty() {
            return None;
        }
        self.run.rotate_as(thread, key)
    }

    /// Inserts a thread that is not there, if it goes before all others, as one that is woken ahead
    /// of those that wait; `false`: nothing has changed. O(1).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn insert_first(&mut self, thread: ThreadId, key: K) -> bool {
        debug_assert!(!self.contains(thread), "not there");
        let goes_first = |head: Option<&Entry<K>>| head.is_none_or(|head| key < head.key);
        let (id, tag) = (to_u32(thread.index()), thread.generation());
        let Some(place) = self.place.get_mut(thread.index()) else {
            return false;
        };
        if !goes_first(self.run.head()) || !goes_first(self.heap.head()) {
            return false;
        }
        *place = IN_RUN | self.run.prepend_fast(Entry { key, id, tag });
        true
    }

    /// Removes `thread`, the first of several, if it is in order. The thread that is first then;
    /// `None`: nothing has changed. O(1).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn remove_first(&mut self, thread: ThreadId) -> Option<ThreadId> {
        let head = self.run.links.get(self.run.first as usize)?;
        if head.entry.thread() != thread {
            return None;
        }
        let second = self.run.links.get(head.next as usize);
        let next = match (second.map(|link| &link.entry), self.heap.head()) {
            (Some(run), Some(heap)) if heap.key < run.key => heap,
            (Some(one), _) | (None, Some(one)) => one,
            (None, None) => return None,
        };
        let next = next.thread();
        self.run.unlink_first(&mut self.place);
        Some(next)
    }

    /// Removes `thread`, the first, if it is in order and has `key`, which nobody else has, and
    /// gives its place and key to another thread that is there; `false`: nothing has changed. O(1)
    /// if that one is in order, else O(log n).
    #[inline]
    pub fn inherit_first(&mut self, thread: ThreadId, key: K, to: ThreadId) -> bool {
        let is_first = self.run.head().is_some_and(|head| {
            let is_first = self.heap.head().is_none_or(|heap| key < heap.key);
            head.thread() == thread && head.key == key && is_first
        }) && self.run.is_before_second(key);
        if !is_first || !self.contains(to) || to == thread {
            return false;
        }
        self.remove(to);
        self.rename_first(thread, to, key);
        true
    }

    /// Gives the place of `thread`, the first, to one that is not there and whose key is not
    /// greater, and nobody else's. `thread` is inserted with a key that is greater. `false`: it is
    /// not like that, and nothing has changed. O(1) if `thread` belongs behind all others or before
    /// them, else O(log n).
    #[inline]
    pub fn hand_first(&mut self, thread: ThreadId, behind: K, to: ThreadId, key: K) -> bool {
        debug_assert!(!self.contains(to), "not there");
        let is_first = self.run.head().is_some_and(|head| {
            let is_first = self.heap.head().is_none_or(|heap| key < heap.key);
            head.thread() == thread && key <= head.key && is_first
        }) && self.run.is_before_second(key);
        if !is_first || behind <= key || to.index() >= self.place.len() {
            return false;
        }
        self.rename_first(thread, to, key);
        let (id, tag) = (to_u32(thread.index()), thread.generation());
        let entry = Entry {
            key: behind,
            id,
            tag,
        };
        match self.run.is_before_second(behind) {
            true => self.place[id as usize] = IN_RUN | self.run.insert_second(entry),
            false => self.place(entry),
        }
        true
    }

    /// The first of the run leaves its place to a thread that is nowhere, with a key that belongs
    /// there.
    #[inline]
    fn rename_first(&mut self, first: ThreadId, to: ThreadId, key: K) {
        let (id, tag) = (to_u32(to.index()), to.generation());
        self.run.links[self.run.first as usize].entry = Entry { key, id, tag };
        self.place[first.index()] = ABSENT;
        self.place[to.index()] = IN_RUN | self.run.first;
    }

    /// The key of a thread that is there.
    #[cold]
    fn key_of(&self, thread: ThreadId) -> Option<K> {
        let entry = match *self.place.get(thread.index())? {
            ABSENT => return None,
            at if at >= IN_RUN => &self.run.links.get((at - IN_RUN) as usize)?.entry,
            at => self.heap.get(at)?,
        };
        (entry.tag == thread.generation()).then_some(entry.key)
    }

    /// Puts an entry that is nowhere where it belongs.
    #[inline]
    fn place(&mut self, entry: Entry<K>) {
        let link = if self.run.last_key().is_none_or(|last| last <= entry.key) {
            self.run.append(entry)
        } else if self.run.head().is_some_and(|first| entry.key < first.key) {
            self.run.prepend(entry)
        } else {
            return self.heap.insert(&mut self.place, entry);
        };
        self.place[entry.id as usize] = IN_RUN | link;
    }

    /// Removes a thread if it is there.
    #[inline]
    pub fn remove(&mut self, thread: ThreadId) {
        let Some(place) = self.place.get_mut(thread.index()) else {
            return;
        };
        let at = core::mem::replace(place, ABSENT);
        if at >= IN_RUN {
            self.run.unlink(at - IN_RUN);
        } else if at != ABSENT {
            self.heap.remove_at(&mut self.place, at);
        }
    }

    /// Whether a thread is there.
    #[inline]
    pub fn contains(&self, thread: ThreadId) -> bool {
        let place = self.place.get(thread.index());
        place.is_some_and(|&place| place != ABSENT)
    }

    /// The thread with the smallest key, and that key.
    #[inline]
    pub fn first(&self) -> Option<(ThreadId, K)> {
        let entry = match (self.run.head(), self.heap.head()) {
            (Some(run), Some(heap)) if heap.key < run.key => heap,
            (Some(one), _) | (None, Some(one)) => one,
            (None, None) => return None,
        };
        Some((entry.thread(), entry.key))
    }

    #[inline]
    fn run_is_first(&self) -> bool {
        match (self.run.head(), self.heap.head()) {
            (Some(run), Some(heap)) => run.key <= heap.key,
            (run, _) => run.is_some(),
        }
    }

    /// How many threads are there.
    pub fn len(&self) -> usize {
        self.run.len + self.heap.len()
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Entries in ascending order, linked. Its owner has the table of places.
#[derive(Debug)]
struct Run<K> {
    /// Links, taken from the free ones, or made (within the capacity) when none is free.
    links: Vec<Link<K>>,
    first: u32,
    last: u32,
    free: u32,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Link<K> {
    entry: Entry<K>,
    /// The next free one, in a free link.
    next: u32,
    previous: u32,
}

impl<K: Ord + Copy> Run<K> {
    fn new(capacity: usize) -> Self {
        Run {
            links: Vec::with_capacity(capacity),
            first: END,
            last: END,
            free: END,
            len: 0,
        }
    }

    #[inline]
    fn head(&self) -> Option<&Entry<K>> {
        self.links.get(self.first as usize).map(|link| &link.entry)
    }

    /// Whether a key is smaller than those of all but the first: it belongs to the first place.
    #[inline]
    fn is_before_second(&self, key: K) -> bool {
        let next = self.links.get(self.first as usize).map(|head| head.next);
        let second = next.and_then(|next| self.links.get(next as usize));
        second.is_none_or(|second| key < second.entry.key)
    }

    #[inline]
    fn last_key(&self) -> Option<K> {
        let last = self.links.get(self.last as usize)?;
        Some(last.entry.key)
    }

    /// An entry whose key is not smaller than the last: its link.
    #[inline]
    fn append(&mut self, entry: Entry<K>) -> u32 {
        let at = self.link(Link {
            entry,
            next: END,
            previous: self.last,
        });
        match self.links.get_mut(self.last as usize) {
            Some(last) => last.next = at,
            None => self.first = at,
        }
        self.last = at;
        at
    }

    /// [`Run::prepend`], inlined; also to an empty run.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn prepend_fast(&mut self, entry: Entry<K>) -> u32 {
        let (at, first) = (self.free, self.first);
        let Some(link) = self.links.get_mut(at as usize) else {
            return match self.len {
                0 => self.append(entry),
                _ => self.prepend(entry),
            };
        };
        self.free = link.next;
        *link = Link {
            entry,
            next: first,
            previous: END,
        };
        match self.links.get_mut(first as usize) {
            Some(after) => after.previous = at,
            None => self.last = at,
        }
        self.first = at;
        self.len += 1;
        at
    }

    /// An entry whose key is smaller than the first, which there is: its link.
    #[inline]
    fn prepend(&mut self, entry: Entry<K>) -> u32 {
        let at = self.link(Link {
            entry,
            next: self.first,
            previous: END,
        });
        self.links[self.first as usize].previous = at;
        self.first = at;
        at
    }

    /// Puts a link into a free place.
    #[inline]
    fn link(&mut self, link: Link<K>) -> u32 {
        self.len += 1;
        match self.links.get_mut(self.free as usize) {
            Some(free) => {
                let at = self.free;
                self.free = free.next;
                *free = link;
                at
            }
            None => {
                self.links.push(link);
                to_u32(self.links.len() - 1)
            }
        }
    }

    /// The first goes to the end, with a key that is not smaller than the last: the thread that is
    /// first then.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn rotate(&mut self, key: K) -> ThreadId {
        let (first, last) = (self.first, self.last);
        let links = self.links.as_mut_slice();
        let link = &mut links[first as usize];
        link.entry.key = key;
        if first == last {
            return link.entry.thread();
        }
        let next = link.next;
        (link.next, link.previous) = (END, last);
        links[last as usize].next = first;
        (self.first, self.last) = (next, first);
        let head = &mut links[next as usize];
        head.previous = END;
        head.entry.thread()
    }

    /// [`Run::rotate`] of `thread`, if it is the first of several and has a new key that is not
    /// smaller than the last.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn rotate_as(
        &mut self,
        thread: ThreadId,
        key: impl FnOnce(K, K) -> Option<K>,
    ) -> Option<ThreadId> {
        let (first, last) = (self.first, self.last);
        let links = self.links.as_mut_slice();
        let Ok([head, tail]) = links.get_disjoint_mut([first as usize, last as usize]) else {
            return None;
        };
        if head.entry.thread() != thread {
            return None;
        }
        let key = key(head.entry.key, tail.entry.key)?;
        debug_assert!(tail.entry.key <= key, "behind all others");
        let next = head.next;
        head.entry.key = key;
        (head.next, head.previous) = (END, last);
        tail.next = first;
        (self.first, self.last) = (next, first);
        let head = links.get_mut(next as usize)?;
        head.previous = END;
        Some(head.entry.thread())
    }

    /// The first leaves; there is one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn unlink_first(&mut self, places: &mut [u32]) {
        let at = self.first;
        let Some(link) = self.links.get_mut(at as usize) else {
            return;
        };
        let (id, next) = (link.entry.id, link.next);
        link.next = self.free;
        (self.free, self.first) = (at, next);
        match self.links.get_mut(next as usize) {
            Some(after) => after.previous = END,
            None => self.last = END,
        }
        if let Some(place) = places.get_mut(id as usize) {
            *place = ABSENT;
        }
        self.len -= 1;
    }

    /// An entry whose key belongs right behind the first, which there is: its link.
    #[inline]
    fn insert_second(&mut self, entry: Entry<K>) -> u32 {
        let first = self.first;
        let next = self.links[first as usize].next;
        let at = self.link(Link {
            entry,
            next,
            previous: first,
        });
        self.links[first as usize].next = at;
        match self.links.get_mut(next as usize) {
            Some(after) => after.previous = at,
            None => self.last = at,
        }
        at
    }

    /// A link leaves.
    #[inline]
    fn unlink(&mut self, at: u32) {
        let Link { next, previous, .. } = self.links[at as usize];
        match self.links.get_mut(previous as usize) {
            Some(before) => before.next = next,
            None => self.first = next,
        }
        match self.links.get_mut(next as usize) {
            Some(after) => after.previous = previous,
            None => self.last = previous,
        }
        self.links[at as usize].next = self.free;
        self.free = at;
        self.len -= 1;
    }
}
