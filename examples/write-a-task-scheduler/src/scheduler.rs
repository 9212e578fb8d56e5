//! Task schedulers: one that is right, and three that are wrong

use punctual::graph::{TaskScheduler, Tasks};

/// The last actor of the row that may fire: tokens leave as soon as they can.
#[derive(Debug)]
pub struct Downstream;

impl TaskScheduler for Downstream {
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        let mut tasks_from_the_end = (0..tasks.count()).rev();
        tasks_from_the_end.find(|&task| tasks.check_firing_rules(task))
    }
}

/// Always the second actor, whether it may fire or not.
#[derive(Debug)]
pub struct Stubborn;

impl TaskScheduler for Stubborn {
    fn next(&mut self, _: &dyn Tasks) -> Option<usize> {
        Some(1)
    }
}

/// Never answers.
#[derive(Debug)]
pub struct Endless;

impl TaskScheduler for Endless {
    fn next(&mut self, _: &dyn Tasks) -> Option<usize> {
        loop {
            std::hint::spin_loop();
        }
    }
}

/// Gives up at the hundredth question.
#[derive(Debug, Default)]
pub struct Moody(u32);

impl TaskScheduler for Moody {
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        self.0 += 1;
        assert!(self.0 < 100, "out of patience");
        Downstream.next(tasks)
    }
}
