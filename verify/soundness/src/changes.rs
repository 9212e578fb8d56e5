//! Random systems that change while they run: parts come, go, come again, move, get other terms.

mod transfer;

use punctual_generate::{Feature, Mix, Random, Scale};
use punctual_model::{
    Change, Class, CpuId, Instant, PolicyKind, Priority, Receiver, Scheduler, SchedulerId, Server,
    ServerKind, Span, Stage, Step, Supply, System, Task, TaskId, Terms, Trust, Work,
};

/// Features whose tasks may change, or stand beside those that do.
const FEATURES: [Feature; 16] = [
    Feature::SeveralCpus,
    Feature::Servers,
    Feature::Nesting,
    Feature::Slots,
    Feature::OwnTime,
    Feature::Slices,
    Feature::Sporadic,
    Feature::Reservation,
    Feature::Once,
    Feature::Aperiodic,
    Feature::Jitter,
    Feature::Suspension,
    Feature::Section,
    Feature::Late,
    Feature::MissingTime,
    Feature::OverrunRules,
];

/// A system that declares changes that mean something; `None`: none was found.
pub(crate) fn draw(random: &mut Random) -> Option<System> {
    let shape = random.below(10);
    let features = match shape {
        0..3 | 6 => &[Feature::Servers][..],
        3..5 => &[Feature::Sporadic, Feature::Late][..],
        5 => &[Feature::Servers, Feature::Slices, Feature::Aperiodic],
        _ => &FEATURES,
    };
    let mut mix = Mix::of(features);
    mix.scale = Scale::Ticks;
    mix.most_tasks = 4;
    let mut system = mix.draw(random).system;
    if shape == 3 {
        below_one_server(random, &mut system);
    }
    if shape == 5 {
        above_all(random, &mut system);
    }
    if shape == 6 {
        transfer::side_by_side(random, &mut system);
    }
    // Nobody knows how phases lie after a change; here nobody does before.
    system.free_phases = true;
    let late = comes_later(random, &system);
    let mut at = random.within(10, 60);
    if !late.is_empty() {
        let whole = system.clone();
        at_home(&mut system, &late);
        if !add(&mut system, at, late) {
            system = whole;
        }
    }
    for _ in 0..random.within(1, 5) {
        at += random.within(1, 60);
        let wanted = random.within(1, 2);
        let mut steps: Vec<Step> = (0..wanted).filter_map(|_| step(random, &system)).collect();
        transfer::alone(&mut steps);
        let _ = add(&mut system, at, steps);
    }
    (!system.changes.is_empty()).then_some(system)
}

/// A slice that comes later has no task before it does: those that are to execute on it are at home
/// with its receiver.
fn at_home(system: &mut System, late: &[Step]) {
    for index in 0..system.tasks.len() {
        let Some(home) = system.tasks[index].scheduler else {
            continue;
        };
        let is_slice = system.schedulers[home.index()].receiver.is_some();
        if is_slice && late.contains(&Step::Join(home)) {
            system.tasks[index].scheduler = system.care_of(&system.tasks[index]);
        }
    }
}

/// All tasks in the care of one scheduler that has most of the time: changes stay inside.
fn below_one_server(random: &mut Random, system: &mut System) {
    system.schedulers.push(Scheduler {
        name: "s0".into(),
        cpu: CpuId(0),
        parent: None,
        policy: system.cpus[0].policy,
        priority: Priority::new(1),
        supply: Supply::Server(Server {
            kind: *random
                .pick(&ServerKind::ALL)
                .unwrap_or(&ServerKind::Deferrable),
            budget: Work::from_ns(4),
            period: Span::from_ns(5),
        }),
        trust: Trust::Inline,
        quota: None,
        fallback: None,
        code: None,
        receiver: None,
    });
    system.cpus[0].policy = PolicyKind::FixedPriority { preemptive: true };
    for task in &mut system.tasks {
        task.scheduler = Some(SchedulerId(0));
    }
}

/// A scheduler with most of the time and little work, of which it delegates a slice.
fn above_all(random: &mut Random, system: &mut System) {
    if system.cpus[0].policy == PolicyKind::EarliestDeadlineFirst {
        system.cpus[0].policy = PolicyKind::FixedPriority { preemptive: true };
    }
    let own = u16::try_from(system.schedulers.len()).map(SchedulerId);
    let (Ok(own), Some(task)) = (own, random.pick(&system.tasks).cloned()) else {
        return;
    };
    let times = random.within(1, 2);
    let server = |budget, period| {
        Supply::Server(Server {
            kind: ServerKind::Deferrable,
            budget: Work::from_ns(budget),
            period: Span::from_ns(period),
        })
    };
    let kind = *random
        .pick(&ServerKind::ALL)
        .unwrap_or(&ServerKind::Deferrable);
    let home = task
        .scheduler
        .and_then(|id| system.schedulers.get(id.index()));
    if home.is_some_and(|home| home.receiver.is_some()) {
        return;
    }
    let alone = random.happens(600).then(|| task.name.clone());
    let receiver = Receiver {
        scheduler: home.map(|home| home.name.clone()),
        task: alone.clone(),
    };
    let giver = Scheduler {
        name: format!("s{}", own.0),
        cpu: task.cpu,
        parent: None,
        policy: PolicyKind::FixedPriority { preemptive: true },
        priority: Priority::new(7),
        supply: Supply::Server(Server {
            kind,
            budget: Work::from_ns(3),
            period: Span::from_ns(5),
        }),
        trust: Trust::Inline,
        quota: None,
        fallback: None,
        code: None,
        receiver: None,
    };
    let slice = Scheduler {
        name: format!("s{}:{}", own.0, own.0 + 1),
        parent: Some(own),
        supply: server(random.within(times, 3 * times), 5 * times),
        receiver: Some(receiver),
        ..giver.clone()
    };
    system.schedulers.extend([giver, slice]);
    let bound = |other: &Task| {
        let its = alone.as_ref().is_none_or(|name| *name == other.name);
        other.cpu == task.cpu && other.scheduler == task.scheduler && its
    };
    for bound in system.tasks.iter_mut().filter(|other| bound(other)) {
        bound.scheduler = Some(SchedulerId(own.0 + 1));
        let less = (bound.class.budget().map_or(1, Work::as_ns) / 3).max(1);
        if let Class::Periodic { wcet, .. } | Class::Sporadic { wcet, .. } = &mut bound.class {
            *wcet = Work::from_ns(less);
        }
    }
}

/// Adds a change if it means something; whether it did.
fn add(system: &mut System, at: u64, steps: Vec<Step>) -> bool {
    system.changes.push(Change {
        name: format!("c{}", system.changes.len()),
        at: Instant::from_ns(at),
        steps,
    });
    let means_something = system.validate().is_ok();
    if !means_something {
        let _ = system.changes.pop();
    }
    means_something
}

/// Parts that the first change starts, with all that is in their care.
fn comes_later(random: &mut Random, system: &System) -> Vec<Step> {
    let mut late = Vec::new();
    let joins = |late: &[Step], id: Option<SchedulerId>| {
        id.is_some_and(|id| late.contains(&Step::Join(id)))
    };
    for (id, scheduler) in (0..).map(SchedulerId).zip(&system.schedulers) {
        if random.happens(250) || joins(&late, scheduler.parent) {
            late.push(Step::Join(id));
        }
    }
    for (id, task) in (0..).map(TaskId).zip(&system.tasks) {
        let care = system.care_of(task);
        if random.happens(250) || joins(&late, care) {
            late.push(Step::Start(id));
        }
    }
    late
}

fn step(random: &mut Random, system: &System) -> Option<Step> {
    let mut stage = Stage::at_start(system);
    for change in &system.changes {
        stage.apply(change).ok()?;
    }
    if let Some(step) = transfer::draw(random, system, &stage) {
        return Some(step);
    }
    let id = TaskId(u32::try_from(random.index(system.tasks.len())).ok()?);
    let node = match system.schedulers.len() {
        0 => None,
        count => Some(SchedulerId(u16::try_from(random.index(count)).ok()?)),
    };
    let slice = node.filter(|node| {
        let slice = &system.schedulers[node.index()];
        slice.receiver.is_some() && random.happens(600)
    });
    if let Some(slice) = slice {
        return Some(match stage.scheduler(slice) {
            None => Step::Join(slice),
            Some(_) => Step::Leave(slice),
        });
    }
    let Some(task) = stage.task(id) else {
        return Some(Step::Start(id));
    };
    if ends_by_itself(task) {
        return None;
    }
    Some(match random.below(13) {
        0..2 => Step::Stop(id),
        2..5 => Step::Constrain(id, terms(random, task)),
        5..7 => Step::Move(id, node.filter(|_| random.happens(600))),
        12 => {
            let policy = match random.happens(500) {
                true => PolicyKind::EarliestDeadlineFirst,
                false => PolicyKind::FixedPriority { preemptive: true },
            };
            node.map_or(Step::ReorderCpu(task.cpu, policy), |node| {
                Step::Reorder(node, policy, None)
            })
        }
        7..9 => {
            let scheduler = stage.scheduler(node?)?;
            let Supply::Server(server) = scheduler.supply else {
                return None;
            };
            Step::Supply(node?, other(random, server))
        }
        _ => match stage.scheduler(node?) {
            None => Step::Join(node?),
            Some(_) => Step::Leave(node?),
        },
    })
}

/// The core refuses to change a thread that has ended.
fn ends_by_itself(task: &punctual_model::Task) -> bool {
    let once = matches!(task.class, Class::Once { .. });
    once || !task.class.runs_per_job() && task.work.is_some()
}

/// So many per cent of a time, at least 1.
fn part(random: &mut Random, of: u64, (low, high): (u64, u64)) -> u64 {
    (of * random.within(low, high) / 100).max(1)
}

/// Half of the time less work alone, which the old constraint covers.
fn terms(random: &mut Random, task: &punctual_model::Task) -> Terms {
    let budget = task.class.budget().map_or(1, Work::as_ns);
    if random.happens(400) {
        return Terms {
            budget: Some(Work::from_ns(part(random, budget, (20, 100)))),
            ..Terms::default()
        };
    }
    let separation = task.class.min_separation().map_or(10, Span::as_ns);
    let separation = part(random, separation, (50, 250));
    let budget = part(random, budget, (30, 200)).min(separation);
    let deadline = random.within(budget, separation.max(budget));
    Terms {
        separation: Some(Span::from_ns(separation)),
        budget: Some(Work::from_ns(budget)),
        relative_deadline: random.happens(500).then_some(Span::from_ns(deadline)),
        priority: None,
    }
}

fn other(random: &mut Random, server: Server<punctual_model::Ns>) -> Server<punctual_model::Ns> {
    let period = part(random, server.period.as_ns(), (50, 200));
    let budget = part(random, server.budget.as_ns(), (50, 150)).min(period);
    Server {
        budget: Work::from_ns(budget),
        period: Span::from_ns(period),
        ..server
    }
}
