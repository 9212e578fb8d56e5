//! A policy that names a thread which cannot run: nobody runs in its place.

use std::cell::Cell;
use std::rc::Rc;

use punctual_kern::{
    Attributes, Capacity, Event, Grant, Next, NoSink, NodeId, Pick, Policy, Shard, State, Tree,
};
use punctual_model::{Instant, ThreadId};
use punctual_policy::FixedPriority;

use crate::driver::{id, periodic};
use crate::trees::terms;

/// Orders by priority, but names `named` where there is one.
struct Names {
    inner: FixedPriority,
    named: Rc<Cell<Option<ThreadId>>>,
}

impl Policy for Names {
    fn attach(&mut self, thread: ThreadId) {
        self.inner.attach(thread);
    }
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.inner.wake(thread, attributes);
    }
    fn block(&mut self, thread: ThreadId) {
        self.inner.block(thread);
    }
    fn yield_to_next(&mut self, _: ThreadId) -> Option<ThreadId> {
        self.named.get()
    }
    fn pick(&mut self, now: Instant) -> Pick {
        match self.named.get() {
            Some(named) => Pick::run(named),
            None => self.inner.pick(now),
        }
    }
}

/// Of three threads the first waits, the second has ended, the third runs. What the core decides
/// when the running thread yields or time passes, and the policy names `wrong`.
fn decides(wrong: ThreadId, event: Event) -> Next {
    let named = Rc::new(Cell::new(None));
    let capacity = Capacity::for_threads(4);
    let policy = Names {
        inner: FixedPriority::new(capacity.threads),
        named: Rc::clone(&named),
    };
    let mut shard = Shard::new(Tree::new(capacity, policy));
    for priority in [3, 2, 1] {
        let _ = shard.attach(periodic(20, 1_000, priority)).unwrap();
    }
    let at = |shard: &mut Shard<Names>, now, event| {
        shard
            .handle(Instant::from_ticks(now), event, &mut NoSink)
            .next
    };
    assert_eq!(at(&mut shard, 0, Event::Tick), Next::Thread(id(0)));
    let _ = at(&mut shard, 1, Event::Block { until: None });
    assert_eq!(at(&mut shard, 2, Event::Exit), Next::Thread(id(2)));
    named.set(Some(wrong));
    let next = at(&mut shard, 3, event);
    assert_ne!(shard.state(id(2)), State::Running);
    assert_eq!(shard.running(), None);
    named.set(None);
    assert_eq!(at(&mut shard, 4, Event::Tick), Next::Thread(id(2)));
    assert_eq!(shard.job(id(2)).unwrap().received.ticks(), 1, "it ran once");
    next
}

#[test]
fn nobody_runs_where_a_policy_names_a_thread_that_is_not_ready() {
    let (waits, ended, unknown) = (id(0), id(1), ThreadId::new(1_000, 0));
    for wrong in [waits, ended, ThreadId::new(2, 7), unknown] {
        for event in [Event::Tick, Event::Yield] {
            assert_eq!(decides(wrong, event), Next::Idle, "{wrong:?} at {event:?}");
        }
    }
}

/// In a tree, too, where the policy of the root names a scheduler that is none, that is the root
/// itself, or that has nothing ready.
#[test]
fn nobody_runs_where_a_policy_names_a_scheduler_that_is_not_ready_below_it() {
    let threads = 4;
    let policy = |named: &Rc<Cell<Option<ThreadId>>>| Names {
        inner: FixedPriority::new(8),
        named: Rc::clone(named),
    };
    for entity in [threads, threads + 1, threads + 2, 1_000, 100_000] {
        let (named, nobody) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(None)));
        let mut capacity = Capacity::for_threads(threads as usize);
        capacity.nodes = 2;
        let mut tree = Tree::new(capacity, policy(&named));
        let _ = tree.add(NodeId::ROOT, policy(&nobody), terms(Grant::Shared, 1));
        let mut shard = Shard::new(tree);
        let _ = shard.attach(periodic(20, 1_000, 1)).unwrap();
        let mut next = |now| {
            let now = Instant::from_ticks(now);
            shard.handle(now, Event::Tick, &mut NoSink).next
        };
        assert_eq!(next(0), Next::Thread(id(0)));
        named.set(Some(ThreadId::new(entity, 0)));
        assert_eq!(next(1), Next::Idle, "{entity}");
        named.set(None);
        assert_eq!(next(2), Next::Thread(id(0)));
    }
}

/// Nor where it names a thread that is ready, but in another scheduler: of a child the root's, or
/// the sibling's, and of the root a child's.
#[test]
fn nobody_runs_where_a_policy_names_a_ready_thread_of_another_scheduler() {
    for (wrong, named) in [(0, 1), (0, 2), (1, 0), (1, 2)] {
        let names: Vec<_> = (0..3).map(|_| Rc::new(Cell::new(None))).collect();
        let policy = |at: usize| Names {
            inner: FixedPriority::new(8),
            named: Rc::clone(&names[at]),
        };
        let mut capacity = Capacity::for_threads(4);
        capacity.nodes = 3;
        let mut tree = Tree::new(capacity, policy(0));
        let mut add = |at, priority| {
            tree.add(NodeId::ROOT, policy(at), terms(Grant::Shared, priority))
                .unwrap()
        };
        let homes = [NodeId::ROOT, add(1, 3), add(2, 2)];
        let mut shard = Shard::new(tree);
        for home in homes {
            let _ = shard.attach_to(home, periodic(20, 1_000, 1)).unwrap();
        }
        let mut next = |now| {
            let now = Instant::from_ticks(now);
            shard.handle(now, Event::Tick, &mut NoSink).next
        };
        assert_eq!(next(0), Next::Thread(id(1)), "the most urgent scheduler's");
        names[wrong].set(Some(id(named)));
        assert_eq!(next(1), Next::Idle, "{wrong} names {named}");
        names[wrong].set(None);
        assert_eq!(next(2), Next::Thread(id(1)));
    }
}
