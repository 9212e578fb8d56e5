//! The engine of an application that is not real-time: tasks run to completion

use alloc::vec;
use alloc::vec::Vec;

use crate::fifos::Fifos;
use crate::scheduler::{TaskScheduler, Tasks};
use crate::state::{Call, Observer, State};

/// Tasks of any code, which change only where a FIFO blocks one or it ends (CompOSe §4.2.3,
/// Fig. 6). Two that wait for each other keep no third from going on.
///
/// ```text
///  Idle -> Run -> Finished      Run <-> PreemptRun
/// ```
///
/// A task that waits for a FIFO stays in `Run`; the call that blocks it is told to the observer.
#[derive(Clone, Debug)]
pub struct Plain<S> {
    tasks: Vec<Task>,
    scheduler: S,
    current: Option<usize>,
    last: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    state: State,
    preempted: bool,
    /// The call that blocks it.
    waits: Option<Call>,
    rounds: u64,
}

struct View<'a, F> {
    tasks: &'a [Task],
    fifos: &'a F,
    last: Option<usize>,
}

impl<F: Fifos> Tasks for View<'_, F> {
    fn count(&self) -> usize {
        self.tasks.len()
    }

    fn check_firing_rules(&self, task: usize) -> bool {
        let going = |task: &Task| {
            let waits = task.waits;
            task.state != State::Finished && waits.is_none_or(|call| call.may_go_on(self.fifos))
        };
        self.tasks.get(task).is_some_and(going)
    }

    fn task_id(&self) -> Option<usize> {
        self.last
    }
}

impl<S: TaskScheduler> Plain<S> {
    /// So many tasks, all idle.
    pub fn new(tasks: usize, scheduler: S) -> Plain<S> {
        Plain {
            tasks: vec![Task::default(); tasks],
            scheduler,
            current: None,
            last: None,
        }
    }

    /// The task that runs next: at the start, after a [`Plain::call`] that blocks, and after
    /// [`Plain::ends`]. `None`: nobody can go on now, or the task scheduler says so. O(the
    /// decision).
    pub fn next(&mut self, fifos: &impl Fifos, observer: &mut impl Observer) -> Option<usize> {
        let view = View {
            tasks: &self.tasks,
            fifos,
            last: self.last,
        };
        let answer = self.scheduler.next(&view)?;
        if !view.check_firing_rules(answer) {
            observer.refused(answer);
            return None;
        }
        (self.current, self.last) = (Some(answer), Some(answer));
        let task = &mut self.tasks[answer];
        if task.state == State::Idle {
            self.enter(answer, State::Run, false, observer);
        }
        Some(answer)
    }

    /// The running task calls a FIFO. `true`: its tokens or its space are there, and it takes them
    /// now. `false`: it waits and another task is next; when it runs again, it calls again. O(1).
    pub fn call(&mut self, call: Call, fifos: &impl Fifos, observer: &mut impl Observer) -> bool {
        let Some(place) = self.current else {
            return false;
        };
        let goes_on = call.may_go_on(fifos);
        let task = &mut self.tasks[place];
        // One that was asked again in vain has told its reason before.
        let is_news = goes_on || task.waits != Some(call);
        task.waits = (!goes_on).then_some(call);
        if is_news {
            observer.called(place, task.rounds, call, goes_on);
        }
        if !goes_on {
            self.current = None;
        }
        goes_on
    }

    /// The running task has ended a round, and begins another.
    pub fn goes_on(&mut self, observer: &mut impl Observer) {
        if let Some(task) = self.current {
            self.tasks[task].rounds += 1;
            self.enter(task, State::Run, false, observer);
        }
    }

    /// The running task has ended, and with it its last round.
    pub fn ends(&mut self, observer: &mut impl Observer) {
        if let Some(task) = self.current.take() {
            self.tasks[task].rounds += 1;
            self.enter(task, State::Finished, false, observer);
        }
    }

    /// The slot ends.
    pub fn preempted(&mut self, observer: &mut impl Observer) {
        if let Some(task) = self.current {
            self.enter(task, State::Run, true, observer);
        }
    }

    /// The slot begins: the interrupted task goes on.
    pub fn resumed(&mut self, observer: &mut impl Observer) -> Option<usize> {
        let task = self.current?;
        if self.tasks[task].preempted {
            self.enter(task, State::Run, false, observer);
        }
        Some(task)
    }

    fn enter(&mut self, at: usize, state: State, preempted: bool, observer: &mut impl Observer) {
        let task = &mut self.tasks[at];
        (task.state, task.preempted) = (state, preempted);
        observer.moved(at, task.rounds, state, preempted);
    }

    /// The task that runs, or is preempted while it runs.
    pub fn running(&self) -> Option<usize> {
        self.current
    }

    /// The state of a task, and whether it is preempted in it.
    pub fn state(&self, task: usize) -> Option<(State, bool)> {
        let task = self.tasks.get(task)?;
        Some((task.state, task.preempted))
    }

    /// The call that blocks a task.
    pub fn waits(&self, task: usize) -> Option<Call> {
        self.tasks.get(task)?.waits
    }

    /// The rounds of a task that have ended.
    pub fn rounds(&self, task: usize) -> u64 {
        self.tasks.get(task).map_or(0, |task| task.rounds)
    }

    /// Whether all have ended.
    pub fn is_finished(&self) -> bool {
        let mut tasks = self.tasks.iter();
        tasks.all(|task| task.state == State::Finished)
    }
}
