//! Task schedulers: which actor of a tile fires next

use alloc::vec::Vec;

use punctual_model::{ActorId, Graph, OrderRule, Tile};

/// The questions of a task scheduler (CompOSe §4.2.2). A task is an actor, by its place on its
/// tile.
pub trait Tasks {
    /// How many there are.
    fn count(&self) -> usize;

    /// Whether this one may go on: its firing rule holds, or it was preempted in a firing. O(its
    /// FIFOs).
    fn check_firing_rules(&self, task: usize) -> bool;

    /// The task that ran last; `None`: none has yet.
    fn task_id(&self) -> Option<usize>;
}

/// The order of the tasks of an application on one tile.
pub trait TaskScheduler {
    /// The next to fire. `None` is the idle task: the application asks again, or waits for its next
    /// slot. An answer that may not fire is refused and means the same.
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize>;
}

impl<S: TaskScheduler + ?Sized> TaskScheduler for alloc::boxed::Box<S> {
    #[inline]
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        (**self).next(tasks)
    }
}

/// In turns: the next that may fire, after the one that ran last. O(tasks).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoundRobin;

impl TaskScheduler for RoundRobin {
    #[inline]
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        let count = tasks.count();
        let first = tasks.task_id().map_or(0, |last| last + 1);
        let mut after = (first..count).chain(0..first.min(count));
        after.find(|&task| tasks.check_firing_rules(task))
    }
}

/// In a fixed order, again and again; all wait for the one whose turn it is. O(1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaticOrder {
    order: Vec<usize>,
    turn: usize,
}

impl StaticOrder {
    /// These, one after the other.
    pub fn new(order: Vec<usize>) -> StaticOrder {
        StaticOrder { order, turn: 0 }
    }
}

impl TaskScheduler for StaticOrder {
    #[inline]
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        let task = *self.order.get(self.turn)?;
        if !tasks.check_firing_rules(task) {
            return None;
        }
        self.turn = (self.turn + 1) % self.order.len();
        Some(task)
    }
}

/// Each decision belongs to one task, which fires or leaves it empty: not work-conserving (CompOSe
/// §5.2). O(1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tdm {
    owners: Vec<usize>,
    turn: usize,
}

impl Tdm {
    /// The owners of the decisions, one after the other.
    pub fn new(owners: Vec<usize>) -> Tdm {
        Tdm { owners, turn: 0 }
    }
}

impl TaskScheduler for Tdm {
    #[inline]
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        let task = *self.owners.get(self.turn)?;
        self.turn = (self.turn + 1) % self.owners.len();
        tasks.check_firing_rules(task).then_some(task)
    }
}

/// The order that a graph declares for a tile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Declared {
    /// In turns.
    RoundRobin(RoundRobin),
    /// In a fixed order.
    Static(StaticOrder),
    /// By owners of slots.
    Tdm(Tdm),
}

impl Declared {
    /// Round robin where the graph declares nothing. O(listed · actors).
    pub fn of(graph: &Graph, tile: Tile) -> Declared {
        let actors = (0..).map(ActorId).zip(&graph.actors);
        let here: Vec<ActorId> = actors
            .filter(|(_, a)| a.tile == tile)
            .map(|(id, _)| id)
            .collect();
        let places = |listed: &[ActorId]| -> Vec<usize> {
            let place = |id: &ActorId| here.iter().position(|actor| actor == id);
            listed.iter().filter_map(place).collect()
        };
        match graph.order_on(tile).map(|order| &order.by) {
            Some(OrderRule::Static(firings)) => Declared::Static(StaticOrder::new(places(firings))),
            Some(OrderRule::Tdm(owners)) => Declared::Tdm(Tdm::new(places(owners))),
            Some(OrderRule::RoundRobin) | None => Declared::RoundRobin(RoundRobin),
        }
    }
}

impl TaskScheduler for Declared {
    #[inline]
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        match self {
            Declared::RoundRobin(order) => order.next(tasks),
            Declared::Static(order) => order.next(tasks),
            Declared::Tdm(order) => order.next(tasks),
        }
    }
}
