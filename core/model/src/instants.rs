//! Common instants: which tasks precedence joins, and whose releases fall on those of another

use alloc::vec;
use alloc::vec::Vec;

use crate::id::TaskId;
use crate::system::System;
use crate::task::{Class, Task};
use crate::time::{Ns, Span};

impl System {
    /// By task, its *leader*: a task of its CPU on whose release instants all of its own fall, so
    /// that one timer entry serves both. `None`: it has none, or none is known.
    ///
    /// Both are periodic without jitter, the one period is a multiple of the other, and the phases
    /// are congruent. A task that precedence joins with others is led only by one of them: the
    /// tables keep instants equal among those, and between a leader and those that it leads. A
    /// leader is itself not led, and has the shortest period; the first in the file goes before its
    /// equals. O(n·l + n log n) for n tasks and l that are not led.
    pub fn leaders(&self) -> Vec<Option<TaskId>> {
        let mut leaders = vec![None; self.tasks.len()];
        if self.free_phases {
            return leaders;
        }
        let joined = self.joined_by_precedence();
        let mut members = vec![0_usize; self.tasks.len()];
        for &group in &joined {
            members[group] += 1;
        }
        let by_clock = self.tasks.iter().enumerate();
        let mut by_clock: Vec<(Span<Ns>, usize)> = by_clock
            .filter_map(|(index, task)| Some((period_by_clock(task)?, index)))
            .collect();
        by_clock.sort_unstable();
        let mut alone: Vec<(Span<Ns>, usize)> = Vec::new();
        for (period, own) in by_clock {
            let task = &self.tasks[own];
            let leads = |&&(step, other): &&(Span<Ns>, usize)| {
                let leader = &self.tasks[other];
                task.cpu == leader.cpu
                    && (period % step).is_zero()
                    && task.phase % step == leader.phase % step
                    && (members[joined[own]] == 1 || joined[own] == joined[other])
            };
            match alone.iter().find(leads) {
                Some(&(_, leader)) => leaders[own] = u32::try_from(leader).ok().map(TaskId),
                None => alone.push((period, own)),
            }
        }
        leaders
    }

    /// For each task, the smallest place of those that precedence joins it with, in any direction.
    pub fn joined_by_precedence(&self) -> Vec<usize> {
        let mut parent: Vec<usize> = (0..self.tasks.len()).collect();
        fn root(parent: &mut [usize], mut at: usize) -> usize {
            while parent[at] != at {
                parent[at] = parent[parent[at]];
                at = parent[at];
            }
            at
        }
        for (index, task) in self.tasks.iter().enumerate() {
            for from in task.after.iter().chain(&task.follows) {
                if from.index() < self.tasks.len() {
                    let (a, b) = (root(&mut parent, index), root(&mut parent, from.index()));
                    parent[a.max(b)] = a.min(b);
                }
            }
        }
        (0..self.tasks.len())
            .map(|index| root(&mut parent, index))
            .collect()
    }
}

/// The period of a task that is released exactly at phase + k·period.
fn period_by_clock(task: &Task) -> Option<Span<Ns>> {
    match task.class {
        Class::Periodic { period, .. } if task.jitter.is_zero() && !period.is_zero() => {
            Some(period)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::CpuId;
    use crate::time::Work;

    fn task(period: u64, phase: u64) -> Task {
        let class = Class::Periodic {
            period: Span::from_ns(period),
            wcet: Work::from_ns(1),
            relative_deadline: Span::from_ns(period),
        };
        let mut task = Task::new("t", CpuId(0), class);
        task.phase = Span::from_ns(phase);
        task
    }

    fn leaders(system: &System) -> Vec<Option<u32>> {
        let leaders = system.leaders().into_iter();
        leaders.map(|leader| leader.map(|c| c.0)).collect()
    }

    fn of(tasks: Vec<Task>) -> System {
        System {
            tasks,
            ..System::default()
        }
    }

    #[test]
    fn a_multiple_with_a_congruent_phase_is_led() {
        let tasks = vec![
            task(20, 3),
            task(10, 13),
            task(10, 3),
            task(40, 8),
            task(15, 3),
        ];
        let mut system = of(tasks);
        // 8 is not congruent to 3 modulo 10, nor is 15 a multiple of 10.
        assert_eq!(leaders(&system), [Some(1), None, Some(1), None, None]);
        system.free_phases = true;
        assert_eq!(leaders(&system), [None; 5]);
    }

    #[test]
    fn nothing_is_led_that_does_not_come_by_the_clock_of_its_cpu() {
        let mut system = of((0..5).map(|_| task(10, 0)).collect());
        system.tasks[1].cpu = CpuId(1);
        system.tasks[2].jitter = Span::from_ns(1);
        system.tasks[3].class = Class::Sporadic {
            min_separation: Span::from_ns(10),
            wcet: Work::from_ns(1),
            relative_deadline: Span::from_ns(10),
        };
        assert_eq!(leaders(&system), [None, None, None, None, Some(0)]);
    }

    #[test]
    fn tasks_joined_by_precedence_lead_each_other_and_those_without() {
        let mut system = of([10, 20, 20, 40].map(|t| task(t, 0)).into());
        system.tasks[1].after = vec![TaskId(2)];
        // 10 is of another grid than 1 and 2; 3 may be of any.
        assert_eq!(leaders(&system), [None, None, Some(1), Some(0)]);
        system.tasks[0].follows = vec![TaskId(1)];
        assert_eq!(leaders(&system), [None, Some(0), Some(0), Some(0)]);
    }

    /// Every release of a led task falls on the grid of its leader, for random systems.
    #[test]
    fn releases_of_the_led_are_on_the_grid() {
        let mut dice = 7_u64;
        let mut below = |n: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (dice >> 33) % n
        };
        for _ in 0..500 {
            let tasks = (0..6).map(|_| task((1 + below(12)) * 2, below(20)));
            let system = of(tasks.collect());
            for (own, leader) in system.leaders().into_iter().enumerate() {
                let Some(leader) = leader else { continue };
                let numbers = |index: usize| {
                    let task = &system.tasks[index];
                    let period = task.class.min_separation().map_or(0, Span::as_ns);
                    (task.phase.as_ns(), period)
                };
                let ((phase, period), (first, step)) = (numbers(own), numbers(leader.index()));
                let off = |k: &u64| (phase + k * period) % step != first % step;
                assert_eq!((0..30).find(off), None, "{system:?}");
            }
        }
    }
}
