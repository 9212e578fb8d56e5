//! The engine of an application whose tasks fire

use alloc::vec::Vec;

use punctual_model::{ActorId, Graph, Preempted, Tile, When};

use crate::fifos::Fifos;
use crate::rule::Rule;
use crate::scheduler::{Declared, TaskScheduler, Tasks};
use crate::state::{Observer, State};

/// The activity of a tile until it asks again. Actors are named by their places on the tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// The input of a new firing is made local.
    Claim(usize),
    /// Its function executes.
    Compute(usize),
    /// Its output is sent to where the FIFOs are.
    Release(usize),
    /// Its firing rule is updated ([`Engine::set_rate`]).
    Reset(usize),
    /// It goes on where it was preempted.
    GoOn(usize),
    /// The idle task. In own time the platform asks again when tokens or space may have come;
    /// between slots the rest of the slot stays empty; inline the thread yields, and asks by
    /// [`Engine::resumed`] in its next turn.
    Idle,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Task {
    actor: ActorId,
    state: State,
    preempted: bool,
    /// Firings that have ended.
    firings: u64,
    rule: Rule,
}

impl Task {
    #[inline]
    fn enter(&mut self, place: usize, state: State, observer: &mut impl Observer) {
        (self.state, self.preempted) = (state, false);
        observer.moved(place, self.firings, state, false);
    }
}

/// The tasks of one application on one tile, one of which fires at a time.
#[derive(Clone, Debug)]
pub struct Engine<S> {
    tasks: Vec<Task>,
    when: When,
    scheduler: S,
    /// In a firing, and not preempted for another.
    current: Option<usize>,
    last: Option<usize>,
}

/// The view of a task scheduler.
struct View<'a, F> {
    tasks: &'a [Task],
    fifos: &'a F,
    last: Option<usize>,
}

impl<F: Fifos> Tasks for View<'_, F> {
    #[inline]
    fn count(&self) -> usize {
        self.tasks.len()
    }

    #[inline]
    fn check_firing_rules(&self, task: usize) -> bool {
        self.tasks
            .get(task)
            .is_some_and(|task| task.state != State::Idle || task.rule.holds(self.fifos))
    }

    #[inline]
    fn task_id(&self) -> Option<usize> {
        self.last
    }
}

impl Engine<Declared> {
    /// The actors of `graph` on `tile`, by the order that the graph declares for it. O(actors ·
    /// FIFOs).
    pub fn declared(graph: &Graph, tile: Tile) -> Engine<Declared> {
        Engine::new(graph, tile, graph.when_on(tile), Declared::of(graph, tile))
    }
}

impl<S: TaskScheduler> Engine<S> {
    /// The actors of `graph` on `tile`, in the order of the file, all idle. O(actors · FIFOs).
    pub fn new(graph: &Graph, tile: Tile, when: When, scheduler: S) -> Engine<S> {
        Engine::of(graph, graph.actors_on(tile), when, scheduler)
    }

    /// These actors of `graph`. O(actors · FIFOs).
    pub fn of(
        graph: &Graph,
        actors: impl Iterator<Item = ActorId>,
        when: When,
        scheduler: S,
    ) -> Engine<S> {
        let tasks = actors.map(|actor| Task {
            actor,
            state: State::Idle,
            preempted: false,
            firings: 0,
            rule: Rule::of(graph, actor),
        });
        Engine {
            tasks: tasks.collect(),
            when,
            scheduler,
            current: None,
            last: None,
        }
    }

    /// The activity under way is over: the next one. Never refuses to answer; after
    /// [`Activity::Idle`] it may be asked at any time. O(ports of the actor + the decision).
    #[inline]
    pub fn next(&mut self, fifos: &mut impl Fifos, observer: &mut impl Observer) -> Activity {
        let Some(place) = self.current else {
            return match self.when {
                When::OwnTime => self.decide(fifos, observer),
                When::BetweenSlots(_) | When::Inline => Activity::Idle,
            };
        };
        let task = &mut self.tasks[place];
        match task.state {
            State::Idle | State::Run | State::Finished => self.decide(fifos, observer),
            State::Claim => {
                task.enter(place, State::Compute, observer);
                Activity::Compute(place)
            }
            State::Compute => {
                task.enter(place, State::Release, observer);
                Activity::Release(place)
            }
            State::Release => {
                task.rule.release(fifos);
                task.rule.advance();
                task.enter(place, State::Reset, observer);
                Activity::Reset(place)
            }
            State::Reset => {
                task.firings += 1;
                task.enter(place, State::Idle, observer);
                self.current = None;
                match self.when {
                    When::OwnTime => self.decide(fifos, observer),
                    When::BetweenSlots(_) | When::Inline => Activity::Idle,
                }
            }
        }
    }

    /// The slot ends, or another thread gets the processor.
    pub fn preempted(&mut self, observer: &mut impl Observer) {
        // Without a firing the tile is in the scheduler, or in the idle task, which is that of the
        // last one between two of its firings.
        let Some(place) = self.current.or(self.last) else {
            return;
        };
        let task = &mut self.tasks[place];
        if !task.preempted {
            task.preempted = true;
            observer.moved(place, task.firings, task.state, true);
        }
    }

    /// The slot begins, or the processor is the application's again. O(the decision).
    pub fn resumed(&mut self, fifos: &mut impl Fifos, observer: &mut impl Observer) -> Activity {
        let continues = self.when != When::BetweenSlots(Preempted::PassedOver);
        match self.current {
            Some(place) if continues => self.go_on(place, observer),
            _ => {
                // Between two firings: its rule is looked at again.
                if let Some(place) = self.last.filter(|&last| self.is_between(last)) {
                    self.go_on(place, observer);
                }
                self.decide(fifos, observer)
            }
        }
    }

    /// No firing begins any more: the one under way goes on, or else another that was passed over.
    /// `None`: all have ended. O(tasks).
    pub fn finish(&mut self, observer: &mut impl Observer) -> Option<usize> {
        let under_way = |task: &Task| task.state != State::Idle;
        let place = self
            .current
            .or_else(|| self.tasks.iter().position(under_way))?;
        (self.current, self.last) = (Some(place), Some(place));
        self.go_on(place, observer);
        Some(place)
    }

    fn is_between(&self, place: usize) -> bool {
        let task = &self.tasks[place];
        task.preempted && task.state == State::Idle
    }

    fn go_on(&mut self, place: usize, observer: &mut impl Observer) -> Activity {
        let task = &mut self.tasks[place];
        if task.preempted {
            task.enter(place, task.state, observer);
        }
        Activity::GoOn(place)
    }

    /// Asks the task scheduler, and does not believe it.
    #[inline]
    fn decide(&mut self, fifos: &mut impl Fifos, observer: &mut impl Observer) -> Activity {
        let view = View {
            tasks: &self.tasks,
            fifos,
            last: self.last,
        };
        let answer = self.scheduler.next(&view);
        let accepted = answer.filter(|&task| view.check_firing_rules(task));
        let Some(place) = accepted else {
            self.current = None;
            if let Some(answer) = answer {
                observer.refused(answer);
            }
            return Activity::Idle;
        };
        (self.current, self.last) = (Some(place), Some(place));
        let task = &mut self.tasks[place];
        if task.state != State::Idle {
            return self.go_on(place, observer);
        }
        task.enter(place, State::Claim, observer);
        Activity::Claim(place)
    }

    /// The actor whose firing is under way and has not been passed over.
    pub fn current(&self) -> Option<usize> {
        self.current
    }

    /// The number of actors on this tile.
    pub fn actors(&self) -> usize {
        self.tasks.len()
    }

    /// The actor with this place on the tile, in the graph.
    pub fn actor(&self, place: usize) -> Option<ActorId> {
        self.tasks.get(place).map(|task| task.actor)
    }

    /// Its state, and whether it is preempted in it.
    pub fn state(&self, place: usize) -> Option<(State, bool)> {
        let task = self.tasks.get(place)?;
        Some((task.state, task.preempted))
    }

    /// Its firings that have ended.
    pub fn firings(&self, place: usize) -> Option<u64> {
        self.tasks.get(place).map(|task| task.firings)
    }

    /// The rule of the firing under way, or else of the next.
    pub fn rule(&self, place: usize) -> Option<&Rule> {
        self.tasks.get(place).map(|task| &task.rule)
    }

    /// Another number of tokens for the next firing of an actor, while it is in `Reset`: the port
    /// has this place among its inputs and then its outputs. `false`: there is no such port, a
    /// firing is under way, or the FIFO never holds so many. O(ports).
    pub fn set_rate(&mut self, place: usize, port: usize, rate: u32) -> bool {
        let task = self.tasks.get_mut(place);
        let task = task.filter(|task| matches!(task.state, State::Idle | State::Reset));
        task.is_some_and(|task| task.rule.set(port, rate))
    }
}
