//! The tree of a CPU as its manager knows it, and which answers that expects.
//!
//! A book of its own: it is kept from requests and their answers alone. Where it knows for certain
//! that a request is lawful, or that it is not, any other answer of the core is a mistake of one of
//! the two.

use punctual_kern::{NodeId, Request};
use punctual_model::{MAX_DEPTH, ThreadId};

/// A scheduler, or a slice of a scheduler's supply.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: NodeId,
    /// The scheduler above it; of a slice, its giver.
    pub(crate) parent: NodeId,
    /// The scheduler that holds the slice.
    pub(crate) receiver: Option<NodeId>,
    pub(crate) quota: bool,
    /// Decides on its own supply, at least until it falls back.
    pub(crate) decides: bool,
    /// It has a fallback for that.
    pub(crate) falls: bool,
    /// Divides its time by a table.
    pub(crate) divides: bool,
    /// There from the start, and to the end.
    pub(crate) stays: bool,
}

/// A thread that waits until a manager wakes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) by: NodeId,
    pub(crate) exclusive: bool,
    /// Its steps when it was blocked.
    pub(crate) steps: u64,
}

/// A thread in somebody's care.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) id: ThreadId,
    pub(crate) care: NodeId,
    /// The slice that it executes on.
    pub(crate) on: Option<NodeId>,
    pub(crate) held: Option<Held>,
    /// Some scheduler has blocked it for itself, which may be over.
    pub(crate) perhaps: bool,
}

/// The tree of a CPU.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    pub(crate) nodes: Vec<Entry>,
    pub(crate) threads: Vec<Kept>,
    /// Schedulers and slices that the tree has room for, the root included.
    pub(crate) room: usize,
}

impl Book {
    pub(crate) fn node(&self, id: NodeId) -> Option<&Entry> {
        self.nodes.iter().find(|node| node.id == id)
    }

    fn parent(&self, id: NodeId) -> Option<NodeId> {
        let parent = self.node(id)?.parent;
        (id != NodeId::ROOT).then_some(parent)
    }

    pub(crate) fn is_below(&self, id: NodeId, above: NodeId) -> bool {
        let mut at = Some(id);
        while let Some(node) = at.filter(|node| *node != above) {
            at = self.parent(node);
        }
        at.is_some()
    }

    /// The root has depth 0.
    fn depth(&self, id: NodeId) -> usize {
        let mut at = id;
        let mut depth = 0;
        while let Some(parent) = self.parent(at) {
            (at, depth) = (parent, depth + 1);
        }
        depth
    }

    /// Whether a quota stands on the way from `to` up to `by`.
    fn has_quota(&self, to: NodeId, by: NodeId) -> bool {
        let mut at = Some(to);
        while let Some(node) = at.filter(|node| *node != by) {
            if self.node(node).is_none_or(|entry| entry.quota) {
                return true;
            }
            at = self.parent(node);
        }
        false
    }

    /// Whether the core has to do what `by` asks for; `None`: either answer may be right.
    pub(crate) fn expects(&self, by: NodeId, request: &Request) -> Option<bool> {
        let asks = self.node(by)?;
        match *request {
            Request::Grant { thread, to } => {
                let (thread, to) = (self.thread(thread)?, self.node(to)?);
                let its_own = to.id != NodeId::ROOT && to.receiver.unwrap_or(to.parent) == by;
                if !its_own || thread.care != by {
                    return Some(false);
                }
                let free = to.receiver.is_some() || !self.has_quota(to.id, by);
                free.then_some(true)
            }
            Request::Revoke { thread } => {
                let thread = self.thread(thread)?;
                let home = thread.on.unwrap_or(thread.care);
                Some(home != by && self.is_below(thread.care, by))
            }
            Request::Promote(terms) => {
                let full = self.nodes.len() >= self.room;
                let deep = self.depth(by) >= MAX_DEPTH;
                if full || deep || asks.divides || terms.receiver == Some(by) {
                    return Some(false);
                }
                let plain = terms.receiver.is_none() && asks.receiver.is_none();
                (plain && !asks.decides).then_some(true)
            }
            Request::Demote(node) => Some(node != by && self.is_below(node, by)),
            Request::Supply { node, .. } => {
                let below = node != by && self.is_below(node, by);
                (!below).then_some(false)
            }
            Request::Lend { to, .. } => {
                let sibling = self.parent(by) == self.parent(to) && by != to;
                (!sibling).then_some(false)
            }
            Request::Block { thread, .. } => {
                (!self.may_command(by, self.thread(thread)?)?).then_some(false)
            }
            Request::Wake(thread) => self.may_command(by, self.thread(thread)?),
            _ => None,
        }
    }

    pub(crate) fn thread(&self, id: ThreadId) -> Option<&Kept> {
        self.threads.iter().find(|thread| thread.id == id)
    }

    /// Whether `by` may block and wake a thread.
    fn may_command(&self, by: NodeId, thread: &Kept) -> Option<bool> {
        let alone = thread.held.filter(|held| held.exclusive);
        let trusted = |blocker: NodeId| self.is_below(blocker, by);
        if !self.is_below(thread.care, by) || alone.is_some_and(|held| !trusted(held.by)) {
            return Some(false);
        }
        (!thread.perhaps || by == NodeId::ROOT).then_some(true)
    }

    /// Threads wake each other on behalf of the scheduler that has them: those in the care of their
    /// blocker, or of one above it, may go on.
    fn forget_blocks(&mut self) {
        for place in 0..self.threads.len() {
            let thread = &self.threads[place];
            let may = |held: &Held| self.is_below(held.by, thread.care);
            if let Some(held) = thread.held.filter(may) {
                let thread = &mut self.threads[place];
                thread.perhaps |= held.exclusive;
                let exclusive = false;
                thread.held = Some(Held { exclusive, ..held });
            }
        }
    }

    /// A request was done; a promotion has made `made`.
    pub(crate) fn note(&mut self, by: NodeId, request: &Request, made: Option<NodeId>) {
        match *request {
            Request::Grant { thread, to } => {
                let is_slice = self.node(to).is_some_and(|node| node.receiver.is_some());
                if let Some(kept) = self.threads.iter_mut().find(|kept| kept.id == thread) {
                    (kept.care, kept.on) = match is_slice {
                        true => (kept.care, Some(to)),
                        false => (to, None),
                    };
                }
            }
            Request::Revoke { thread } => {
                if let Some(kept) = self.threads.iter_mut().find(|kept| kept.id == thread) {
                    (kept.care, kept.on) = (by, None);
                }
            }
            Request::Promote(terms) => self.nodes.extend(made.map(|id| Entry {
                id,
                parent: by,
                receiver: terms.receiver,
                quota: terms.quota.is_some(),
                decides: false,
                falls: false,
                divides: false,
                stays: false,
            })),
            Request::Demote(node) => self.end(node),
            _ => {}
        }
        self.forget_blocks();
    }

    /// A scheduler ends with all below it and the slices that these hold, or a slice with what was
    /// delegated from it.
    fn end(&mut self, top: NodeId) {
        let mut gone = vec![top];
        loop {
            let before = gone.len();
            for node in &self.nodes {
                let falls = gone.contains(&node.parent) && node.id != NodeId::ROOT;
                let held = node.receiver.is_some_and(|holder| gone.contains(&holder));
                if (falls || held) && !gone.contains(&node.id) {
                    gone.push(node.id);
                }
            }
            if gone.len() == before {
                break;
            }
        }
        let heir = self.parent(top).unwrap_or(NodeId::ROOT);
        for thread in &mut self.threads {
            thread.on = thread.on.filter(|slice| !gone.contains(slice));
            if gone.contains(&thread.care) {
                (thread.care, thread.on) = (heir, None);
            }
            let follow = |by: NodeId| if gone.contains(&by) { heir } else { by };
            if let Some(held) = &mut thread.held {
                held.by = follow(held.by);
            }
        }
        self.nodes.retain(|node| !gone.contains(&node.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(place: u16) -> NodeId {
        NodeId::new(place, 0)
    }

    /// The root, 1 below it, 2 below that, and 3, a slice of the root's in the hands of 1. Thread 0
    /// is in the care of 2, thread 1 in that of 1, on the slice.
    fn book() -> Book {
        let entry = |place, parent, receiver: Option<u16>| Entry {
            id: node(place),
            parent: node(parent),
            receiver: receiver.map(node),
            quota: false,
            decides: false,
            falls: false,
            divides: false,
            stays: false,
        };
        let kept = |index, care, on: Option<u16>| Kept {
            id: ThreadId::new(index, 0),
            care: node(care),
            on: on.map(node),
            held: None,
            perhaps: false,
        };
        Book {
            nodes: vec![
                entry(0, 0, None),
                entry(1, 0, None),
                entry(2, 1, None),
                entry(3, 0, Some(1)),
            ],
            threads: vec![kept(0, 2, None), kept(1, 1, Some(3))],
            room: 5,
        }
    }

    #[test]
    fn a_scheduler_has_power_over_its_subtree_alone() {
        let book = book();
        let thread = |index| ThreadId::new(index, 0);
        let (revoke, wake) = (
            Request::Revoke { thread: thread(0) },
            Request::Wake(thread(0)),
        );
        for (by, expected) in [(0, true), (1, true), (2, false), (3, false)] {
            assert_eq!(book.expects(node(by), &revoke), Some(expected), "{by}");
        }
        for (by, expected) in [(0, true), (2, true), (3, false)] {
            assert_eq!(book.expects(node(by), &wake), Some(expected), "{by}");
        }
        let bind = |by, index| {
            let (thread, to) = (thread(index), node(3));
            book.expects(node(by), &Request::Grant { thread, to })
        };
        assert_eq!(bind(1, 1), Some(true), "it holds the slice");
        assert_eq!((bind(0, 1), bind(1, 0)), (Some(false), Some(false)));
    }

    #[test]
    fn what_ends_takes_along_what_it_has_and_holds() {
        let mut book = book();
        book.note(NodeId::ROOT, &Request::Demote(node(1)), None);
        assert_eq!(book.nodes.len(), 1);
        for thread in &book.threads {
            assert_eq!((thread.care, thread.on), (NodeId::ROOT, None));
        }
    }

    #[test]
    fn who_is_blocked_for_a_scheduler_alone_is_nobody_elses_to_wake() {
        let mut book = book();
        book.threads[0].held = Some(Held {
            by: node(1),
            exclusive: true,
            steps: 0,
        });
        let wake = Request::Wake(ThreadId::new(0, 0));
        assert_eq!(book.expects(node(2), &wake), Some(false));
        assert_eq!(book.expects(node(1), &wake), Some(true));
        book.note(node(1), &Request::Demote(node(2)), None);
        let held = book.threads[0].held.expect("held");
        assert!(!held.exclusive, "its own scheduler's threads may wake it");
    }
}
