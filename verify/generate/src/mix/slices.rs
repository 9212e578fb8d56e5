//! Slices of a scheduler's supply in other hands.

use punctual_model::{
    Class, CpuId, PolicyKind, Priority, Receiver, Scheduler, SchedulerId, Server, ServerKind, Span,
    Supply, System, Task, Trust, Work,
};

use super::base::Scale;
use super::hierarchy::{add, grants, scheduler, shrink};
use crate::random::Random;

/// Some schedulers with a server delegate a slice of it to a task of another home. In a third of
/// the systems a scheduler comes that has little else to do, so that more of them are admitted.
pub(super) fn slices(random: &mut Random, _: Scale, system: &mut System) {
    if random.happens(333) && light_giver(random, system).is_some() {
        return;
    }
    for index in 0..system.schedulers.len() {
        let Ok(giver) = u16::try_from(index).map(SchedulerId) else {
            return;
        };
        if random.happens(700) {
            delegate(random, system, giver);
        }
    }
}

/// A scheduler with a part of the CPU, above all others there. It delegates a slice to a task,
/// which needs several of them for each job. Beside the slice it has a light task, or none.
fn light_giver(random: &mut Random, system: &mut System) -> Option<()> {
    let own = SchedulerId(u16::try_from(system.schedulers.len()).ok()?);
    let free = |index: &usize| can_be_bound(system, &system.tasks[*index]);
    let tasks: Vec<usize> = (0..system.tasks.len()).filter(free).collect();
    let bound = *random.pick(&tasks)?;
    let cpu = system.tasks[bound].cpu;
    let class = system.tasks[bound].class;
    let within = class.relative_deadline()?.min(class.min_separation()?);
    let within = within.as_ns();
    let preemptive = PolicyKind::FixedPriority { preemptive: true };
    let period = (within / random.within(4, 16)).max(5);
    let budget = (period * random.within(20, 60) / 100).max(2);
    let times = random.within(1, 2);
    let part = (budget * times * random.within(30, 70) / 100).max(1);
    let server = |kind, budget, period| {
        Supply::Server(Server {
            kind,
            budget: Work::from_ns(budget),
            period: Span::from_ns(period),
        })
    };
    let kind = *random
        .pick(&ServerKind::ALL)
        .unwrap_or(&ServerKind::Deferrable);
    let giver = Scheduler {
        policy: preemptive,
        priority: Priority::new(7),
        ..scheduler(random, system, cpu, server(kind, budget, period))
    };
    let slice = Scheduler {
        name: format!("{}:{}", giver.name, system.tasks[bound].name),
        parent: Some(own),
        priority: Priority::new(3),
        supply: server(ServerKind::Deferrable, part, period * times),
        receiver: Some(Receiver {
            scheduler: None,
            task: Some(system.tasks[bound].name.clone()),
        }),
        ..giver.clone()
    };
    let _ = add(system, giver)?;
    let slice = add(system, slice)?;
    for other in system.tasks.iter_mut().filter(|t| t.cpu == cpu) {
        shrink(&mut other.class, 80 - 100 * budget / period);
    }
    beside(
        random,
        system,
        (cpu, own),
        (budget * times - part, period * times),
    );
    // The first may be a period late.
    let slices = (within / (period * times)).saturating_sub(2).max(1);
    let task = &mut system.tasks[bound];
    task.scheduler = Some(slice);
    if let Some(wcet) = task.class.budget_mut() {
        let whole = part * slices * random.within(20, 90) / 100;
        *wcet = Work::from_ns(whole.max(1));
    }
    Some(())
}

/// A task of the giver itself, on what is left beside the slice: more urgent than that, or less.
fn beside(
    random: &mut Random,
    system: &mut System,
    (cpu, own): (CpuId, SchedulerId),
    (rest, period): (u64, u64),
) {
    let times = random.within(1, 4);
    let wcet = rest * times * random.within(30, 90) / 100;
    if wcet == 0 || random.happens(300) {
        return;
    }
    let period = Span::from_ns(period * times);
    let class = Class::Periodic {
        period,
        wcet: Work::from_ns(wcet),
        relative_deadline: period,
    };
    let mut task = Task::new(format!("t{}", system.tasks.len()), cpu, class);
    task.scheduler = Some(own);
    task.priority = Priority::new(if random.happens(500) { 1 } else { 5 });
    system.tasks.push(task);
}

/// Whether a task of the CPU's own scheduler can execute on a slice.
fn can_be_bound(system: &System, task: &Task) -> bool {
    let waits = |t: &Task| !t.after.is_empty() || !t.follows.is_empty() || !t.uses.is_empty();
    let plain = matches!(task.class, Class::Periodic { .. } | Class::Sporadic { .. });
    let policy = system.cpus.get(task.cpu.index()).map(|cpu| cpu.policy);
    let none_waits = !system.tasks.iter().any(waits);
    let at_root = task.slots.is_empty() && task.scheduler.is_none();
    plain && none_waits && at_root && policy.is_some_and(grants)
}

fn delegate(random: &mut Random, system: &mut System, id: SchedulerId) {
    let giver = system.schedulers[id.index()].clone();
    let Supply::Server(whole) = giver.supply else {
        return;
    };
    if !grants(giver.policy) || giver.trust == Trust::OwnTime || giver.receiver.is_some() {
        return;
    }
    let is_slice = |home: SchedulerId| system.schedulers[home.index()].receiver.is_some();
    let elsewhere = |index: &usize| {
        let task = &system.tasks[*index];
        let free = task.slots.is_empty() && !task.scheduler.is_some_and(is_slice);
        free && task.cpu == giver.cpu && task.scheduler != Some(id)
    };
    let tasks: Vec<usize> = (0..system.tasks.len()).filter(elsewhere).collect();
    let Some(&task) = random.pick(&tasks) else {
        return;
    };
    let percent = random.within(10, 50);
    let times = random.within(1, 5);
    let period = whole.period.as_ns() * times;
    let budget = (whole.budget.as_ns() * times * percent / 100).max(1);
    let care = system.tasks[task].scheduler;
    let name = format!("{}:{}", giver.name, system.tasks[task].name);
    let receiver = Receiver {
        scheduler: care.map(|home| system.schedulers[home.index()].name.clone()),
        task: Some(system.tasks[task].name.clone()),
    };
    let supply = Supply::Server(Server {
        kind: ServerKind::Deferrable,
        budget: Work::from_ns(budget),
        period: Span::from_ns(period),
    });
    let slice = Scheduler {
        name,
        parent: Some(id),
        policy: PolicyKind::FixedPriority { preemptive: true },
        receiver: Some(receiver),
        ..scheduler(random, system, giver.cpu, supply)
    };
    let Some(slice) = add(system, slice) else {
        return;
    };
    for own in system.tasks.iter_mut().filter(|t| t.scheduler == Some(id)) {
        shrink(&mut own.class, (100 - percent) * 2 / 3);
    }
    let task = &mut system.tasks[task];
    task.scheduler = Some(slice);
    shrink(&mut task.class, budget * 40 / period.max(1));
}
