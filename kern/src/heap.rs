//! Indexed 4-ary heaps with a fixed capacity: ready queues and the timeline.
//!
//! The place of each id is kept, so any entry can be removed or moved in O(log n). Four children
//! per node: half the depth of a binary heap, and the children share a cache line or two.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::ThreadId;

const ARITY: usize = 4;
const ABSENT: u32 = u32::MAX;

/// A heap of ids in 0..capacity, each at most once, smallest key first. Keys must be distinct
/// where the order of equals matters to the caller.
#[derive(Debug)]
pub(crate) struct IndexedHeap<K> {
    entries: Vec<(K, u32)>,
    place: Box<[u32]>,
}

fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(ABSENT)
}

impl<K: Ord + Copy> IndexedHeap<K> {
    pub(crate) fn new(capacity: usize) -> Self {
        IndexedHeap {
            entries: Vec::with_capacity(capacity),
            place: vec![ABSENT; capacity].into_boxed_slice(),
        }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<(K, u32)> {
        self.entries.first().copied()
    }

    #[inline]
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.place.get(id as usize).is_some_and(|&p| p != ABSENT)
    }

    /// Inserts `id`, or moves it to its new key. An id beyond the capacity is ignored (debug:
    /// caught).
    #[inline]
    pub(crate) fn set(&mut self, id: u32, key: K) {
        debug_assert!(
            (id as usize) < self.place.len(),
            "id beyond the heap's capacity"
        );
        let Some(&place) = self.place.get(id as usize) else {
            return;
        };
        if place == ABSENT {
            self.entries.push((key, id));
            self.up(self.entries.len() - 1, (key, id));
        } else {
            let at = place as usize;
            if key < self.entries[at].0 {
                self.up(at, (key, id));
            } else {
                self.down(at, (key, id));
            }
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: u32) {
        let Some(&place) = self.place.get(id as usize) else {
            return;
        };
        if place == ABSENT {
            return;
        }
        self.place[id as usize] = ABSENT;
        let at = place as usize;
        let Some(last) = self.entries.pop() else {
            return;
        };
        if at == self.entries.len() {
            return;
        }
        if at > 0 && last.0 < self.entries[(at - 1) / ARITY].0 {
            self.up(at, last);
        } else {
            self.down(at, last);
        }
    }

    #[inline]
    fn put(&mut self, at: usize, entry: (K, u32)) {
        self.entries[at] = entry;
        self.place[entry.1 as usize] = to_u32(at);
    }

    #[inline]
    fn up(&mut self, mut at: usize, entry: (K, u32)) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.entries[parent].0 <= entry.0 {
                break;
            }
            self.put(at, self.entries[parent]);
            at = parent;
        }
        self.put(at, entry);
    }

    #[inline]
    fn down(&mut self, mut at: usize, entry: (K, u32)) {
        loop {
            let first = at * ARITY + 1;
            let end = (first + ARITY).min(self.entries.len());
            let mut child = first;
            if first >= end {
                break;
            }
            for other in first + 1..end {
                if self.entries[other].0 < self.entries[child].0 {
                    child = other;
                }
            }
            if entry.0 <= self.entries[child].0 {
                break;
            }
            self.put(at, self.entries[child]);
            at = child;
        }
        self.put(at, entry);
    }
}

/// The ready threads of a policy, smallest key first. O(log n) per change, O(1) to look.
///
/// The key is the policy's own order. Let it end in the order of the file (or a sequence number),
/// so that two threads never tie: determinism depends on it.
#[derive(Debug)]
pub struct ReadyQueue<K> {
    heap: IndexedHeap<K>,
    generation: Box<[u32]>,
}

impl<K: Ord + Copy> ReadyQueue<K> {
    /// A queue for threads with an index below `capacity`; nothing is allocated later.
    pub fn new(capacity: usize) -> Self {
        ReadyQueue {
            heap: IndexedHeap::new(capacity),
            generation: vec![0; capacity].into_boxed_slice(),
        }
    }

    /// Inserts a thread, or moves it to its new key.
    #[inline]
    pub fn insert(&mut self, thread: ThreadId, key: K) {
        if let Some(generation) = self.generation.get_mut(thread.index()) {
            *generation = thread.generation();
            self.heap.set(to_u32(thread.index()), key);
        }
    }

    /// Removes a thread if it is there.
    #[inline]
    pub fn remove(&mut self, thread: ThreadId) {
        self.heap.remove(to_u32(thread.index()));
    }

    /// Whether a thread is there.
    #[inline]
    pub fn contains(&self, thread: ThreadId) -> bool {
        self.heap.contains(to_u32(thread.index()))
    }

    /// The thread with the smallest key, and that key.
    #[inline]
    pub fn first(&self) -> Option<(ThreadId, K)> {
        let (key, id) = self.heap.first()?;
        let generation = self.generation.get(id as usize)?;
        Some((ThreadId::new(id, *generation), key))
    }

    /// How many threads are there.
    pub fn len(&self) -> usize {
        self.heap.entries.len()
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.heap.entries.is_empty()
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
        for _ in 0..20_000 {
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
