//! Features of single tasks: how they arrive, wait, and keep others waiting.

use punctual_model::{
    Arrivals, Class, CpuId, Late, Ns, OnOverrun, Priority, Span, System, Task, TaskId, Work,
    WorkSource,
};

use super::base::Scale;
use crate::random::Random;

/// The period, wcet and deadline of a periodic task.
fn periodic(task: &Task) -> Option<(Span<Ns>, Work<Ns>, Span<Ns>)> {
    match task.class {
        Class::Periodic {
            period,
            wcet,
            relative_deadline,
        } => Some((period, wcet, relative_deadline)),
        _ => None,
    }
}

pub(super) fn phases(random: &mut Random, _: Scale, system: &mut System) {
    for task in &mut system.tasks {
        if let Some((period, ..)) = periodic(task)
            && random.happens(500)
        {
            task.phase = Span::from_ns(random.below(period.as_ns()));
        }
    }
}

pub(super) fn sporadic(random: &mut Random, _: Scale, system: &mut System) {
    for task in &mut system.tasks {
        let Some((min_separation, wcet, relative_deadline)) = periodic(task) else {
            continue;
        };
        if random.happens(500) {
            task.class = Class::Sporadic {
                min_separation,
                wcet,
                relative_deadline,
            };
            task.arrivals = Arrivals::Every(min_separation);
        }
    }
}

pub(super) fn reservation(random: &mut Random, _: Scale, system: &mut System) {
    for task in &mut system.tasks {
        if let Some((period, slice, _)) = periodic(task)
            && random.happens(300)
        {
            task.class = Class::Reservation { period, slice };
        }
    }
}

pub(super) fn once(random: &mut Random, _: Scale, system: &mut System) {
    for task in &mut system.tasks {
        let Some((period, size, _)) = periodic(task) else {
            continue;
        };
        if random.happens(300) {
            task.class = Class::Once {
                size,
                relative_deadline: period,
            };
            task.work = Some(WorkSource::Burn(size));
        }
    }
}

/// One or two tasks more, endless or not, on any CPU or in any node.
pub(super) fn aperiodic(random: &mut Random, scale: Scale, system: &mut System) {
    for index in 0..random.within(1, 2) {
        let model = system.tasks[random.index(system.tasks.len())].clone();
        let mut task = Task::new(format!("background{index}"), model.cpu, Class::Aperiodic);
        task.scheduler = model.scheduler;
        task.slots = model.slots;
        task.priority = Priority::new(u32::try_from(random.below(6)).unwrap_or(0));
        if random.happens(500) {
            let work = scale.short(random, 30);
            task.work = Some(WorkSource::Burn(Work::from_ns(work)));
            if random.happens(400) {
                let section = scale.short(random, 2).min(work);
                task.non_preemptive = Work::from_ns(section);
            }
        }
        system.tasks.push(task);
    }
}

/// Of tasks by the clock: a sporadic deadline counts from the release, so jitter there is another
/// model.
pub(super) fn jitter(random: &mut Random, _: Scale, system: &mut System) {
    for task in &mut system.tasks {
        if let Some((period, ..)) = periodic(task)
            && random.happens(400)
        {
            let most = if random.happens(200) {
                period.as_ns() * 3 / 2
            } else {
                period.as_ns() / 3
            };
            task.jitter = Span::from_ns(random.within(1, most.max(1)));
        }
    }
}

pub(super) fn suspension(random: &mut Random, scale: Scale, system: &mut System) {
    for task in &mut system.tasks {
        let called = matches!(task.class, Class::Periodic { .. } | Class::Sporadic { .. });
        if called && random.happens(400) {
            task.max_suspension = Span::from_ns(scale.short(random, 3));
            task.suspensions = u32::try_from(random.within(1, 3)).unwrap_or(1);
        }
    }
}

pub(super) fn section(random: &mut Random, _: Scale, system: &mut System) {
    for task in &mut system.tasks {
        let called = matches!(task.class, Class::Periodic { .. } | Class::Sporadic { .. });
        if let (true, Some(wcet), true) = (called, task.class.budget(), random.happens(500)) {
            task.non_preemptive = Work::from_ns(random.within(1, wcet.as_ns()));
        }
    }
}

/// Only on earlier tasks, so that nobody waits for himself; half of the successors take the period
/// of their predecessor.
pub(super) fn precedence(random: &mut Random, _: Scale, system: &mut System) {
    for index in 1..system.tasks.len() {
        let before = random.index(index);
        let (earlier, later) = system.tasks.split_at_mut(index);
        let (predecessor, task) = (&earlier[before], &mut later[0]);
        let (Some((period, ..)), Some((_, wcet, _))) = (periodic(predecessor), periodic(task))
        else {
            continue;
        };
        if !random.happens(400) {
            continue;
        }
        if random.happens(500) && wcet.as_span() <= period {
            task.class = Class::Periodic {
                period,
                wcet,
                relative_deadline: period,
            };
            task.phase = predecessor.phase;
        }
        let id = TaskId(u32::try_from(before).unwrap_or(0));
        if random.happens(300) {
            task.follows.push(id);
        } else {
            task.after.push(id);
        }
    }
}

pub(super) fn late(random: &mut Random, _: Scale, system: &mut System) {
    for task in &mut system.tasks {
        task.late = match random.below(4) {
            0 => Late::Skip,
            1 => Late::Queue {
                backlog: u32::try_from(random.within(1, 3)).unwrap_or(1),
            },
            _ => continue,
        };
    }
}

pub(super) fn overrun_rules(random: &mut Random, _: Scale, system: &mut System) {
    const RULES: [OnOverrun; 3] = [OnOverrun::Demote, OnOverrun::Stop, OnOverrun::Signal];
    for task in &mut system.tasks {
        if task.class.runs_per_job() && random.happens(600) {
            task.on_overrun = random.pick(&RULES).copied().unwrap_or_default();
        }
    }
}

/// Whether a task is on this CPU's own policy.
pub(super) fn is_at_root(task: &Task, cpu: CpuId) -> bool {
    task.cpu == cpu && task.scheduler.is_none()
}
