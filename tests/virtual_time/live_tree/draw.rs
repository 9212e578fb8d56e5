//! Random trees with random changes.

use punctual_generate::Dice;
use punctual_model::{
    Arrivals, Change, Class, Cpu, CpuId, Instant, Ns, PolicyKind, Priority, Receiver, Scheduler,
    SchedulerId, Server, ServerKind, Span, Stage, Step, Supply, System, Task, TaskId, Terms, Trust,
    Work,
};

const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;
const FP: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

fn task(dice: &mut Dice, name: String, share: u64) -> Task {
    let period = [5, 6, 8, 10, 12, 15, 20, 30][dice.index(8)];
    let wcet = 1 + dice.below((period / share).max(1)).min(period / 2);
    let deadline = if dice.one_in(2) {
        period
    } else {
        wcet + dice.below(period - wcet + 1)
    };
    let (wcet, deadline) = (Work::from_ns(wcet), Span::from_ns(deadline));
    let period = Span::from_ns(period);
    let class = if dice.one_in(3) {
        Class::Sporadic {
            min_separation: period,
            wcet,
            relative_deadline: deadline,
        }
    } else {
        Class::Periodic {
            period,
            wcet,
            relative_deadline: deadline,
        }
    };
    let mut task = Task::new(name, CpuId(0), class);
    task.priority = Priority::new(1 + dice.small(4));
    task.arrivals = Arrivals::Every(period);
    task
}

fn server(dice: &mut Dice) -> Server<Ns> {
    let period = 6 + dice.below(15);
    Server {
        kind: ServerKind::ALL[dice.index(5)],
        budget: Work::from_ns(1 + dice.below(2 * period / 3)),
        period: Span::from_ns(period),
    }
}

fn scheduler(dice: &mut Dice, index: u16, below: Option<SchedulerId>) -> Scheduler {
    Scheduler {
        name: format!("s{index}"),
        cpu: CpuId(0),
        parent: below,
        policy: if dice.one_in(2) { EDF } else { FP },
        priority: Priority::new(1 + dice.small(4)),
        supply: Supply::Server(server(dice)),
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    }
}

fn policy(dice: &mut Dice) -> PolicyKind<Ns> {
    let timeslice = Span::from_ns(1 + dice.below(4));
    match dice.below(6) {
        0 | 1 => EDF,
        2 | 3 => FP,
        4 => PolicyKind::FixedPriority { preemptive: false },
        _ if dice.one_in(2) => PolicyKind::Fifo,
        _ => PolicyKind::RoundRobin { timeslice },
    }
}

fn step(dice: &mut Dice, system: &System, stage: &Stage<'_>) -> Option<Step> {
    let id = TaskId(dice.small(system.tasks.len() as u64));
    let node =
        SchedulerId(u16::try_from(dice.below(system.schedulers.len().max(1) as u64)).unwrap());
    let node = system.schedulers.get(node.index()).map(|_| node);
    Some(match (dice.below(9), stage.task(id)) {
        (0..5, None) => Step::Start(id),
        (0, Some(_)) => Step::Stop(id),
        (1..3, Some(now)) => {
            let other = task(dice, String::new(), system.tasks.len() as u64);
            if dice.one_in(2) {
                // Something that one constraint covers.
                let budget = now.class.budget()?.as_ns();
                let budget = Some(Work::from_ns(1 + dice.below(budget)));
                let terms = Terms {
                    budget,
                    ..Terms::default()
                };
                return Some(Step::Constrain(id, terms));
            }
            Step::Constrain(
                id,
                Terms {
                    separation: other.class.min_separation(),
                    budget: other.class.budget(),
                    relative_deadline: other.class.relative_deadline(),
                    priority: None,
                },
            )
        }
        (3..5, Some(_)) => Step::Move(id, node.filter(|_| dice.one_in(2))),
        (5, _) => Step::Supply(node?, server(dice)),
        (8, _) if dice.one_in(2) => Step::ReorderCpu(CpuId(0), policy(dice)),
        (8, _) => Step::Reorder(node?, policy(dice), None),
        _ => match stage.scheduler(node?) {
            None => Step::Join(node?),
            Some(_) => Step::Leave(node?),
        },
    })
}

/// A system with changes that make sense; `None`: not this time.
pub(super) fn draw(dice: &mut Dice) -> Option<System> {
    let cpu = Cpu {
        name: "0".into(),
        host: None,
        policy: if dice.one_in(2) { EDF } else { FP },
    };
    let mut system = System {
        cpus: vec![cpu],
        ..System::default()
    };
    for index in 0..u16::try_from(dice.below(3)).unwrap() {
        let below = (index > 0 && dice.one_in(3)).then_some(SchedulerId(0));
        system.schedulers.push(scheduler(dice, index, below));
    }
    let count = 2 + dice.below(4);
    // All in the care of one scheduler that has most of the time: what changes stays inside.
    let inside = dice.one_in(3);
    if let (true, Some(scheduler)) = (inside, system.schedulers.first_mut()) {
        scheduler.supply = Supply::Server(Server {
            kind: ServerKind::ALL[dice.index(5)],
            budget: Work::from_ns(4),
            period: Span::from_ns(5),
        });
        system.schedulers.truncate(1);
    }
    let lends = !inside && dice.one_in(2);
    if lends {
        system.schedulers = vec![giver(dice)];
    }
    for index in 0..count {
        let mut task = task(dice, format!("t{index}"), count);
        if lends {
            task.class = light(dice);
        }
        if !system.schedulers.is_empty() && (inside || dice.one_in(2)) {
            let home = match inside {
                true => 0,
                false => dice.below(system.schedulers.len() as u64),
            };
            task.scheduler = Some(SchedulerId(u16::try_from(home).unwrap()));
        }
        system.tasks.push(task);
    }
    let late = comes_later(dice, &system);
    let mut at = 10 + dice.below(60);
    if !late.is_empty() {
        system.changes.push(named(0, at, late));
    }
    for giver in (0..).map(SchedulerId).take(system.schedulers.len()) {
        if lends || dice.one_in(2) {
            at += 1 + dice.below(30);
            delegate(dice, &mut system, giver, at);
        }
    }
    for _ in 0..1 + dice.below(5) {
        let most = if dice.one_in(2) { 10 } else { 120 };
        at += 1 + dice.below(most);
        let stage = last_stage(&system)?;
        let wanted = 1 + dice.below(2);
        let steps = (0..wanted).filter_map(|_| step(dice, &system, &stage));
        let change = named(system.changes.len(), at, steps.collect());
        system.changes.push(change);
        if system.validate().is_err() {
            let _ = system.changes.pop();
        }
    }
    (!system.changes.is_empty() && system.validate().is_ok()).then_some(system)
}

/// A scheduler with most of the time, to delegate from.
fn giver(dice: &mut Dice) -> Scheduler {
    Scheduler {
        priority: Priority::new(9),
        supply: Supply::Server(Server {
            kind: ServerKind::ALL[dice.index(5)],
            budget: Work::from_ns(3 + dice.below(2)),
            period: Span::from_ns(5),
        }),
        ..scheduler(dice, 0, None)
    }
}

/// Little work, for which a slice is enough.
fn light(dice: &mut Dice) -> Class<Ns> {
    let period = Span::from_ns([20, 30, 40][dice.index(3)]);
    Class::Periodic {
        period,
        wcet: Work::from_ns(1 + dice.below(2)),
        relative_deadline: period,
    }
}

/// Some of it comes with the first change.
fn comes_later(dice: &mut Dice, system: &System) -> Vec<Step> {
    let mut late = Vec::new();
    for id in (0..).map(SchedulerId).take(system.schedulers.len()) {
        let parent = system.schedulers[id.index()].parent;
        if dice.one_in(3) || parent.is_some_and(|p| late.contains(&Step::Join(p))) {
            late.push(Step::Join(id));
        }
    }
    for (id, task) in (0..).map(TaskId).zip(&system.tasks) {
        let homeless = task
            .scheduler
            .is_some_and(|s| late.contains(&Step::Join(s)));
        if homeless || dice.one_in(4) {
            late.push(Step::Start(id));
        }
    }
    late
}

/// A slice of this scheduler's supply for a task or for another scheduler: from the start on, or by
/// a change at that instant.
fn delegate(dice: &mut Dice, system: &mut System, giver: SchedulerId, at: u64) {
    let Supply::Server(whole) = system.schedulers[giver.index()].supply else {
        return;
    };
    let before = system.clone();
    let period = whole.period.as_ns() * (1 + dice.below(3) / 2);
    let most = period * whole.budget.as_ns() / whole.period.as_ns();
    let task = &system.tasks[dice.index(system.tasks.len())];
    let home = task
        .scheduler
        .map(|home| system.schedulers[home.index()].name.clone());
    let alone = dice.one_in(2).then(|| task.name.clone());
    let policy = system.schedulers[giver.index()].policy;
    let id = SchedulerId(u16::try_from(system.schedulers.len()).unwrap());
    system.schedulers.push(Scheduler {
        name: format!("{}:{}", system.schedulers[giver.index()].name, id.0),
        parent: Some(giver),
        policy,
        priority: Priority::new(1 + dice.small(5)),
        supply: Supply::Server(Server {
            kind: ServerKind::Deferrable,
            budget: Work::from_ns(1 + most / 3 + dice.below(2 * most / 3 + 1)),
            period: Span::from_ns(period),
        }),
        receiver: Some(Receiver {
            scheduler: home.clone(),
            task: alone.clone(),
        }),
        ..system.schedulers[giver.index()].clone()
    });
    if dice.one_in(2) {
        let home = home.and_then(|home| before.scheduler_named(&home));
        let bound = |task: &&mut Task| {
            let its = alone.as_ref().is_none_or(|name| *name == task.name);
            task.scheduler == home && its
        };
        for task in system.tasks.iter_mut().filter(bound) {
            task.scheduler = Some(id);
        }
    } else {
        let change = named(system.changes.len(), at, vec![Step::Join(id)]);
        system.changes.push(change);
    }
    if system.validate().is_err() {
        *system = before;
    }
}

pub(crate) fn named(index: usize, at: u64, steps: Vec<Step>) -> Change {
    Change {
        name: format!("c{index}"),
        at: Instant::from_ns(at),
        steps,
    }
}

fn last_stage(system: &System) -> Option<Stage<'_>> {
    let mut stage = Stage::at_start(system);
    for change in &system.changes {
        stage.apply(change).ok()?;
    }
    Some(stage)
}
