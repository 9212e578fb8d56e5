//! The task scheduler of a tile, which may be wrong.

use punctual_firing::{Declared, TaskScheduler, Tasks};
use punctual_model::{Graph, Tile};

use crate::faults::{Faults, Misconduct};

/// The declared order of a tile, or what a wrong task scheduler says in its place.
pub(crate) struct Asked {
    declared: Declared,
    misconduct: Option<Misconduct>,
    lies: usize,
}

impl Asked {
    pub(crate) fn of(graph: &Graph, tile: Tile, faults: &Faults) -> Asked {
        let at_fault = faults.children.iter();
        let mut at_fault = at_fault.filter(|(child, _)| Some(*child) == tile.scheduler);
        Asked {
            declared: Declared::of(graph, tile),
            misconduct: at_fault.next().map(|(_, misconduct)| *misconduct),
            lies: 0,
        }
    }

    /// It never answers.
    pub(crate) fn loops(&self) -> bool {
        self.misconduct == Some(Misconduct::Loops)
    }
}

impl TaskScheduler for Asked {
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        match self.misconduct {
            None => self.declared.next(tasks),
            Some(Misconduct::Silent | Misconduct::Loops) => None,
            Some(Misconduct::Lies) => {
                self.lies += 1;
                let asleep = |&task: &usize| !tasks.check_firing_rules(task);
                let mut not_able = (0..tasks.count()).filter(asleep);
                // Some that may not fire, some that are not there, and now and then the truth.
                match self.lies % 3 {
                    0 => self.declared.next(tasks),
                    1 => not_able.next().or(Some(tasks.count())),
                    _ => Some(tasks.count() + self.lies),
                }
            }
        }
    }
}
