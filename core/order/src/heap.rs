//! Indexed 4-ary heaps with a fixed capacity: the timeline, and most of a ready queue.
//!
//! The place of each id is kept, so any entry can be removed or moved in O(log n). Four children
//! per node: half the depth of a binary heap, and the children share a cache line or two.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::ThreadId;

const ARITY: usize = 4;
pub(crate) const ABSENT: u32 = u32::MAX;

/// A heap of ids in 0..capacity, each at most once, smallest key first. Keys must be distinct
/// where the order of equals matters to the caller.
#[derive(Debug)]
pub struct IndexedHeap<K> {
    entries: Vec<Entry<K>>,
    place: Box<[u32]>,
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

#[inline]
pub(crate) fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(ABSENT)
}

impl<K: Ord + Copy> IndexedHeap<K> {
    /// Room for ids below `capacity`; nothing is allocated later.
    pub fn new(capacity: usize) -> Self {
        IndexedHeap {
            entries: Vec::with_capacity(capacity),
            place: vec![ABSENT; capacity].into_boxed_slice(),
        }
    }

    /// The smallest key, with its id.
    #[inline]
    pub fn first(&self) -> Option<(K, u32)> {
        self.entries.first().map(|entry| (entry.key, entry.id))
    }

    /// The first entry, whole.
    #[inline]
    pub(crate) fn head(&self) -> Option<&Entry<K>> {
        self.entries.first()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether an id is there.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        self.place.get(id as usize).is_some_and(|&p| p != ABSENT)
    }

    /// The entry of an id that is there.
    pub(crate) fn get(&self, id: u32) -> Option<&Entry<K>> {
        self.entries.get(*self.place.get(id as usize)? as usize)
    }

    /// Inserts `id`, or moves it to its new key. An id beyond the capacity is ignored (debug:
    /// caught).
    #[inline]
    pub fn set(&mut self, id: u32, key: K) {
        self.put_in(Entry { key, id, tag: 0 });
    }

    #[inline]
    pub(crate) fn put_in(&mut self, entry: Entry<K>) {
        debug_assert!(
            (entry.id as usize) < self.place.len(),
            "id beyond the heap's capacity"
        );
        let Some(&place) = self.place.get(entry.id as usize) else {
            return;
        };
        if place == ABSENT {
            self.entries.push(entry);
            self.up(self.entries.len() - 1, entry);
        } else {
            let at = place as usize;
            if entry.key < self.entries[at].key {
                self.up(at, entry);
            } else {
                self.down(at, entry);
            }
        }
    }

    /// Removes an id, if it is there.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        let Some(&place) = self.place.get(id as usize) else {
            return;
        };
        if place != ABSENT {
            self.remove_at(id, place as usize);
        }
    }

    fn remove_at(&mut self, id: u32, at: usize) {
        self.place[id as usize] = ABSENT;
        let Some(last) = self.entries.pop() else {
            return;
        };
        if at == self.entries.len() {
            return;
        }
        if at > 0 && last.key < self.entries[(at - 1) / ARITY].key {
            self.up(at, last);
        } else {
            self.down(at, last);
        }
    }

    #[inline]
    fn put(&mut self, at: usize, entry: Entry<K>) {
        self.entries[at] = entry;
        self.place[entry.id as usize] = to_u32(at);
    }

    #[inline]
    fn up(&mut self, mut at: usize, entry: Entry<K>) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.entries[parent].key <= entry.key {
                break;
            }
            self.put(at, self.entries[parent]);
            at = parent;
        }
        self.put(at, entry);
    }

    #[inline]
    fn down(&mut self, mut at: usize, entry: Entry<K>) {
        while let Some((child, least)) = self.least_child(at) {
            if entry.key <= least.key {
                break;
            }
            self.put(at, least);
            at = child;
        }
        self.put(at, entry);
    }

    /// Written without jumps between the children: which of them is the least is anybody's guess,
    /// and a wrong one costs more than looking at all four. Their places are compared, not their
    /// entries moved.
    #[inline]
    fn least_child(&self, at: usize) -> Option<(usize, Entry<K>)> {
        let first = at * ARITY + 1;
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
            assert_eq!(heap.entries.len(), list.len());
            assert_eq!(heap.contains(id), list.iter().any(|e| e.1 == id));
        }
    }
}
