//! The engine of an application that is not real-time: tasks run to completion

use alloc::vec;
use alloc::vec::Vec;

use crate::fifos::Fifos;
use crate::scheduler::{TaskScheduler, Tasks};

/// The state of a task (CompOSe §4.3, Fig. 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PlainState {
    /// It has not begun.
    #[default]
    Idle,
    /// It has begun, and perhaps waits for a FIFO.
    Run,
    /// The end of a slot has interrupted it.
    PreemptRun,
    /// It has ended.
    Finished,
}

/// The reason for which a call of a FIFO waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// So many tokens in the FIFO with this place.
    Tokens(usize, u32),
    /// So much space.
    Space(usize, u32),
}

impl Wait {
    /// Whether the call may go on.
    pub fn is_over(self, fifos: &(impl Fifos + ?Sized)) -> bool {
        match self {
            Wait::Tokens(fifo, count) => fifos.tokens(fifo) >= count,
            Wait::Space(fifo, count) => fifos.space(fifo) >= count,
        }
    }
}

/// Tasks of any code, which change only where a FIFO blocks one or it ends (CompOSe §4.2.3). Two
/// that wait for each other keep no third from going on.
#[derive(Clone, Debug)]
pub struct Plain<S> {
    tasks: Vec<(PlainState, Option<Wait>)>,
    scheduler: S,
    current: Option<usize>,
    last: Option<usize>,
}

struct View<'a, F> {
    tasks: &'a [(PlainState, Option<Wait>)],
    fifos: &'a F,
    last: Option<usize>,
}

impl<F: Fifos> Tasks for View<'_, F> {
    fn count(&self) -> usize {
        self.tasks.len()
    }

    fn check_firing_rules(&self, task: usize) -> bool {
        let going = |&(state, wait): &(PlainState, Option<Wait>)| {
            state != PlainState::Finished && wait.is_none_or(|wait| wait.is_over(self.fifos))
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
            tasks: vec![(PlainState::Idle, None); tasks],
            scheduler,
            current: None,
            last: None,
        }
    }

    /// The task that runs next: at the start, and after [`Plain::blocks`] and [`Plain::ends`].
    /// `None`: nobody can go on now.
    pub fn next(&mut self, fifos: &impl Fifos) -> Option<usize> {
        let view = View {
            tasks: &self.tasks,
            fifos,
            last: self.last,
        };
        let answer = self.scheduler.next(&view);
        self.current = answer.filter(|&task| view.check_firing_rules(task));
        let task = self.current?;
        self.last = Some(task);
        self.tasks[task] = (PlainState::Run, None);
        Some(task)
    }

    /// The running task waits for a FIFO.
    pub fn blocks(&mut self, wait: Wait) {
        if let Some(task) = self.current.take() {
            self.tasks[task].1 = Some(wait);
        }
    }

    /// The running task has ended.
    pub fn ends(&mut self) {
        if let Some(task) = self.current.take() {
            self.tasks[task] = (PlainState::Finished, None);
        }
    }

    /// The slot ends.
    pub fn preempted(&mut self) {
        if let Some(task) = self.current {
            self.tasks[task].0 = PlainState::PreemptRun;
        }
    }

    /// The slot begins: the interrupted task goes on.
    pub fn resumed(&mut self) -> Option<usize> {
        let task = self.current?;
        self.tasks[task].0 = PlainState::Run;
        Some(task)
    }

    /// The state of a task.
    pub fn state(&self, task: usize) -> Option<PlainState> {
        self.tasks.get(task).map(|&(state, _)| state)
    }

    /// Whether all have ended.
    pub fn is_finished(&self) -> bool {
        let mut tasks = self.tasks.iter();
        tasks.all(|&(state, _)| state == PlainState::Finished)
    }
}
