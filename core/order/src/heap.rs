//! Indexed 4-ary heaps with a fixed capacity: the timeline, and most of a ready queue.
//!
//! The place of each id is kept, so any entry can be removed or moved in O(log n). Four children
//! per node: half the depth of a binary heap, and the children share a cache line or two.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::ThreadId;

const ARITY: usize = 4;

/// The place of an id that is not there. All are so at first, and a table of them is in memory only
/// as far as it is used: the system hands out zeros.
pub(crate) const ABSENT: u32 = 0;

/// Where the smallest key is: no place in a heap is [`ABSENT`].
pub(crate) const ROOT: usize = ARITY - 1;

/// A heap of ids in 0..capacity, each at most once, smallest key first. Keys must be distinct
/// where the order of equals matters to the caller.
#[derive(Debug)]
pub struct IndexedHeap<K> {
    heap: Heap<K>,
    place: Box<[u32]>,
}

/// The entries of a heap. Its owner has the table of places, by id.
///
/// ```text
///   places    0 to 2: copies that nobody reads    3: root    4 to 7: children of the root
///   children of place p: from (p - 2) · 4         8 to 11: children of place 4 ...
/// ```
#[derive(Debug)]
pub(crate) struct Heap<K> {
    entries: Vec<Entry<K>>,
}

/// An id with its key, and what else the owner of the heap wants to find with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<K> {
    pub(crate) key: K,
    // In this order, the two are one word, that of a thread's id.
    pub(crate) tag: u32,
    pub(crate) id: u32,
}

impl<K> Entry<K> {
    /// Whose it is in a queue of threads, where the tag is the generation.
    #[inline]
    pub(crate) fn thread(&self) -> ThreadId {
        ThreadId::new(self.id, self.tag)
    }
}

/// The last place in a heap of so many.
pub(crate) const fn last_place(entries: usize) -> usize {
    ROOT + entries - 1
}

#[inline]
pub(crate) fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl<K: Ord + Copy> IndexedHeap<K> {
    /// Room for ids below `capacity`; nothing is allocated later.
    pub fn new(capacity: usize) -> Self {
        IndexedHeap {
            heap: Heap::new(capacity),
            place: vec![ABSENT; capacity].into_boxed_slice(),
        }
    }

    /// The smallest key, with its id.
    #[inline]
    pub fn first(&self) -> Option<(K, u32)> {
        self.heap.head().map(|entry| (entry.key, entry.id))
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether an id is there.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        self.place.get(id as usize).is_some_and(|&p| p != ABSENT)
    }

    /// Inserts `id`, or moves it to its new key. An id beyond the capacity is ignored (debug:
    /// caught).
    #[inline]
    pub fn set(&mut self, id: u32, key: K) {
        debug_assert!((id as usize) < self.place.len(), "id beyond the capacity");
        let entry = Entry { key, id, tag: 0 };
        match self.place.get(id as usize) {
            None => {}
            Some(&ABSENT) => self.heap.insert(&mut self.place, entry),
            Some(&at) => self.heap.renew(&mut self.place, at, entry),
        }
    }

    /// Removes an id, if it is there.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        let Some(place) = self.place.get_mut(id as usize) else {
            return;
        };
        let at = core::mem::replace(place, ABSENT);
        if at != ABSENT {
            self.heap.remove_at(&mut self.place, at);
        }
    }
}

impl<K: Ord + Copy> Heap<K> {
    pub(crate) fn new(capacity: usize) -> Self {
        Heap {
            entries: Vec::with_capacity(capacity + ROOT),
        }
    }

    /// The entry with the smallest key.
    #[inline]
    pub(crate) fn head(&self) -> Option<&Entry<K>> {
        self.entries.get(ROOT)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.len() <= ROOT
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len().saturating_sub(ROOT)
    }

    /// The entry at a place.
    pub(crate) fn get(&self, at: u32) -> Option<&Entry<K>> {
        self.entries.get(at as usize)
    }

    /// An entry whose id is not there, and is below the capacity.
    #[inline]
    pub(crate) fn insert(&mut self, places: &mut [u32], entry: Entry<K>) {
        while self.entries.len() < ROOT {
            self.entries.push(entry);
        }
        self.entries.push(entry);
        self.up(places, self.entries.len() - 1, entry);
    }

    /// The entry at a place has another key.
    #[inline]
    pub(crate) fn renew(&mut self, places: &mut [u32], at: u32, entry: Entry<K>) {
        let at = at as usize;
        if entry.key < self.entries[at].key {
            self.up(places, at, entry);
        } else {
            self.down(places, at, entry);
        }
    }

    /// The entry at a place leaves; its id is absent already.
    pub(crate) fn remove_at(&mut self, places: &mut [u32], at: u32) {
        let at = at as usize;
        let Some(last) = self.entries.pop() else {
            return;
        };
        if at == self.entries.len() {
            return;
        }
        if at > ROOT && last.key < self.entries[at / ARITY + 2].key {
            self.up(places, at, last);
        } else {
            self.down(places, at, last);
        }
    }

    #[inline]
    fn put(&mut self, places: &mut [u32], at: usize, entry: Entry<K>) {
        self.entries[at] = entry;
        places[entry.id as usize] = to_u32(at);
    }

    #[inline]
    fn up(&mut self, places: &mut [u32], mut at: usize, entry: Entry<K>) {
        while at > ROOT {
            let parent = at / ARITY + 2;
            if self.entries[parent].key <= entry.key {
                break;
            }
            self.put(places, at, self.entries[parent]);
            at = parent;
        }
        self.put(places, at, entry);
    }

    #[inline]
    fn down(&mut self, places: &mut [u32], mut at: usize, entry: Entry<K>) {
        while let Some((child, least)) = self.least_child(at) {
            if entry.key <= least.key {
                break;
            }
            self.put(places, at, least);
            at = child;
        }
        self.put(places, at, entry);
    }

    /// Written without jumps between the children: which of them is the least is anybody's guess,
    /// and a wrong one costs more than looking at all four. Their places are compared, not their
    /// entries moved.
    #[inline]
    fn least_child(&self, at: usize) -> Option<(usize, Entry<K>)> {
        let first = (at - 2) * ARITY;
        let rest = self.entries.get(first..)?;
        let least = match rest.first_chunk::<ARITY>() {
            Some(all) => {
                let one = usize::from(all[1].key < all[0].key);
                let other = 2 + usize::from(all[3].key < all[2].key);
                if all[other].key < all[one].key {
                    other
                } else {
                    one
                }
            }
            None => {
                let (mut least, mut key) = (0, rest.first()?.key);
                for (place, entry) in rest.iter().enumerate().skip(1) {
                    if entry.key < key {
                        (least, key) = (place, entry.key);
                    }
                }
                least
            }
        };
        Some((first + least, *rest.get(least)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seeded mix of all operations, checked against a sorted list.
    #[test]
    fn agrees_with_a_sorted_list_under_any_operations() {
        let mut heap = IndexedHeap::new(50);
        let mut list: Vec<(u64, u32)> = Vec::new();
        let mut x = 1_u64;
        // An interpreter (`cargo xtask miri`) takes a thousand times as long.
        let rounds = if cfg!(miri) { 200 } else { 20_000 };
        for _ in 0..rounds {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let id = u32::try_from((x >> 33) % 50).expect("below 50");
            list.retain(|e| e.1 != id);
            if (x >> 20).is_multiple_of(3) {
                heap.remove(id);
            } else {
                let key = (x >> 40) % 97 * 64 + u64::from(id);
                heap.set(id, key);
                list.push((key, id));
            }
            list.sort_unstable();
            assert_eq!(heap.first(), list.first().copied());
            assert_eq!(heap.len(), list.len());
            assert_eq!(heap.contains(id), list.iter().any(|e| e.1 == id));
        }
    }
}
