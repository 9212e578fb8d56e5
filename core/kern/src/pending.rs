//! Jobs that wait behind an unfinished one: lists in a pool of fixed size.

use alloc::vec::Vec;

use punctual_model::Instant;

const END: u32 = u32::MAX;

/// A job that waits for its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PendingJob {
    pub(crate) index: u64,
    pub(crate) arrival: Instant,
    /// Which of the thread's budgets is this job's own (counted from 1).
    pub(crate) allotment: u64,
}

/// First in, first out; owned by one thread. Its nodes are a circle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct List {
    /// The last; the first is next to it.
    tail: u32,
    len: u32,
}

impl List {
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// All lists of one shard live here. INV-POOL: each node is in exactly one list or free.
#[derive(Debug)]
pub(crate) struct Pool {
    nodes: Vec<(PendingJob, u32)>,
    free: u32,
    capacity: usize,
}

impl Pool {
    /// How many jobs it has room for.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity as u64
    }

    pub(crate) fn new(capacity: usize) -> Self {
        Pool {
            nodes: Vec::with_capacity(capacity),
            free: END,
            capacity,
        }
    }

    /// Appends to `list`; `false` when the pool is full.
    pub(crate) fn push(&mut self, list: &mut List, job: PendingJob) -> bool {
        let node = if self.free != END {
            let node = self.free;
            self.free = self.nodes[node as usize].1;
            self.nodes[node as usize] = (job, END);
            node
        } else if self.nodes.len() < self.capacity {
            self.nodes.push((job, END));
            u32::try_from(self.nodes.len() - 1).unwrap_or(END)
        } else {
            return false;
        };
        if list.is_empty() {
            self.nodes[node as usize].1 = node;
        } else {
            let last = &mut self.nodes[list.tail as usize].1;
            let first = core::mem::replace(last, node);
            self.nodes[node as usize].1 = first;
        }
        list.tail = node;
        list.len += 1;
        true
    }

    pub(crate) fn pop(&mut self, list: &mut List) -> Option<PendingJob> {
        if list.is_empty() {
            return None;
        }
        let node = self.nodes[list.tail as usize].1;
        let (job, next) = self.nodes[node as usize];
        self.nodes[list.tail as usize].1 = next;
        list.len -= 1;
        self.nodes[node as usize].1 = self.free;
        self.free = node;
        Some(job)
    }

    pub(crate) fn first(&self, list: &List) -> Option<PendingJob> {
        let last = (!list.is_empty()).then_some(list.tail as usize)?;
        Some(self.nodes[self.nodes[last].1 as usize].0)
    }

    pub(crate) fn iter<'a>(&'a self, list: &List) -> impl Iterator<Item = PendingJob> + 'a {
        let mut at = list.tail;
        (0..list.len).map(move |_| {
            at = self.nodes[at as usize].1;
            self.nodes[at as usize].0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(index: u64) -> PendingJob {
        PendingJob {
            index,
            arrival: Instant::ZERO,
            allotment: index,
        }
    }

    #[test]
    fn lists_share_the_pool_and_give_back_their_nodes() {
        let mut pool = Pool::new(3);
        let (mut a, mut b) = (List::default(), List::default());
        assert!(pool.push(&mut a, job(1)));
        assert!(pool.push(&mut b, job(2)));
        assert!(pool.push(&mut a, job(3)));
        assert!(!pool.push(&mut b, job(4)), "the pool is full");
        assert_eq!(pool.iter(&a).map(|j| j.index).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(pool.pop(&mut a), Some(job(1)));
        assert!(pool.push(&mut b, job(4)));
        assert_eq!(pool.iter(&b).map(|j| j.index).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(pool.pop(&mut a), Some(job(3)));
        assert_eq!(pool.pop(&mut a), None);
        assert_eq!((a.len(), b.len()), (0, 2));
    }
}
