//! Systems with planned groups, drawn: nodes, threads, segments, children and what is beside them

use punctual_generate::Random;
use punctual_model::{
    Arrivals, AtBudgetEnd, Class, Cpu, CpuId, Group, GroupId, Heuristic, Importance, Instant,
    Locality, Mode, Ns, OnOverrun, Overload, PolicyKind, Priority, Protocol, Request, Reserve,
    Resource, ResourceId, Scheduler, SchedulerId, SegmentUse, Server, ServerKind, Slot, Span,
    Spawn, Supply, System, Task, Trust, Work,
};

/// Nothing arrives at this instant or later.
pub(super) const DURATION: u64 = 9_000;
/// All periods divide the longest.
const PERIODS: [u64; 3] = [1_500, 3_000, 6_000];
/// Frame of slots, and period of servers.
const FRAME: u64 = 100;

fn span(ns: u64) -> Span<Ns> {
    Span::from_ns(ns)
}

/// A system with one to five groups and their children.
pub(super) fn draw(random: &mut Random) -> System {
    let mut system = System::default();
    let count = random.within(1, 3);
    for number in 0..count {
        cpu(random, &mut system, number == 0);
    }
    for number in 0..random.below(3) {
        system.resources.push(Resource {
            name: format!("r{number}"),
            protocol: Protocol::Planned,
            at_budget_end: AtBudgetEnd::default(),
        });
    }
    if random.happens(150) {
        system.machine.timer = Work::from_ns(random.within(1, 4));
    }
    if random.happens(150) {
        system.machine.missing_time = Some(Reserve {
            name: "missing-time".into(),
            budget: Work::from_ns(random.within(1, 10)),
            period: span(random.within(300, 900)),
        });
    }
    planning(random, &mut system);
    let processes = processes(random, &system);
    for number in 0..random.within(1, 4) {
        let (request, latest) = request(random);
        let mut group = group(random, &system, (format!("g{number}"), latest), &processes);
        group.request = request;
        system.groups.push(group);
    }
    for _ in 0..random.below(3) {
        child(random, &mut system, &processes);
    }
    kills(random, &mut system);
    // Removing somebody needs a difference.
    let worth = |group: &Group| group.importance;
    let least = system.groups.iter().map(worth).min();
    if least == system.groups.iter().map(worth).max() {
        system.planning.overload = Overload::Keep;
    }
    system
}

/// A CPU with a planned node on the whole of it, in slots or behind a server; or none but on the
/// first.
fn cpu(random: &mut Random, system: &mut System, first: bool) {
    let number = system.cpus.len();
    let id = CpuId(u16::try_from(number).unwrap_or(0));
    let kind = match random.below(10) {
        0..=5 => 0,
        6 | 7 => 1,
        8 => 2,
        _ => 3 * usize::from(!first),
    };
    let edf = PolicyKind::EarliestDeadlineFirst;
    let by_priority = PolicyKind::FixedPriority { preemptive: true };
    let policy = match kind {
        0 => PolicyKind::Planned,
        1 => PolicyKind::Tdm {
            frame: span(FRAME),
            scheduling: span(random.below(2)),
        },
        2 => [edf, by_priority][random.index(2)],
        _ => edf,
    };
    let name = number.to_string();
    let host = None;
    system.cpus.push(Cpu { name, host, policy });
    let own = SchedulerId(u16::try_from(system.schedulers.len()).unwrap_or(0));
    let mut background = (id, None);
    match kind {
        1 => {
            let plan = slots(id, (2, random.within(50, 65)));
            let mut rest = slots(id, (68, random.within(20, 28)));
            (rest.name, rest.policy) = (format!("loops{number}"), edf);
            system.schedulers.extend([plan, rest]);
            let on = (id, Some(SchedulerId(own.0 + 1)));
            beside(random, system, on);
            background.1 = Some(own);
        }
        2 => {
            let plan = served(random, id);
            system.schedulers.push(plan);
            beside(random, system, (id, None));
            background.1 = Some(own);
        }
        3 => beside(random, system, (id, None)),
        _ => {}
    }
    if kind < 3 && random.happens(400) {
        let mut task = Task::new(format!("background{number}"), id, Class::Aperiodic);
        task.scheduler = background.1;
        system.tasks.push(task);
    }
}

fn planned(cpu: CpuId, supply: Supply) -> Scheduler {
    Scheduler {
        name: format!("plan{}", cpu.0),
        cpu,
        parent: None,
        policy: PolicyKind::Planned,
        priority: Priority::new(5),
        supply,
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    }
}

fn slots(cpu: CpuId, (at, length): (u64, u64)) -> Scheduler {
    let (at, length) = (span(at), span(length));
    planned(cpu, Supply::Slots(vec![Slot { at, length }]))
}

fn served(random: &mut Random, cpu: CpuId) -> Scheduler {
    let server = Server {
        kind: ServerKind::ALL[random.index(5)],
        budget: Work::from_ns(random.within(40, 70)),
        period: span(FRAME),
    };
    planned(cpu, Supply::Server(server))
}

/// A loop or two that are no group.
fn beside(
    random: &mut Random,
    system: &mut System,
    (cpu, scheduler): (CpuId, Option<SchedulerId>),
) {
    for number in 0..random.within(1, 2) {
        let period = random.within(3, 6) * FRAME;
        let class = Class::Periodic {
            period: span(period),
            wcet: Work::from_ns(random.within(5, 20)),
            relative_deadline: span(period),
        };
        let mut task = Task::new(format!("loop{number}.{}", cpu.0), cpu, class);
        task.scheduler = scheduler;
        task.priority = Priority::new(4 + 2 * u32::try_from(number).unwrap_or(0));
        system.tasks.push(task);
    }
}

fn planning(random: &mut Random, system: &mut System) {
    let planning = &mut system.planning;
    planning.within = span([0, 10, 60, 150][random.index(4)]);
    if random.happens(300) {
        // Of a hundred looks or a few.
        planning.evaluation = Work::from_ns(random.within(1, 4));
        planning.segment = Some(planning.evaluation);
        planning.margin = span(random.below(planning.within.as_ns() / 2 + 1));
    }
    planning.overload = [Overload::Keep, Overload::Shed][random.index(2)];
    planning.locality = [Locality::Earliest, Locality::OnlyLocal][random.index(2)];
    planning.within_process = random.happens(250);
    planning.backtracks = [0, 5, 100][random.index(3)];
    planning.window = random
        .happens(300)
        .then(|| 1 + u32::try_from(random.below(7)).unwrap_or(0));
    if random.happens(200) {
        planning.process_switch = Work::from_ns(random.within(1, 5));
    }
    if random.happens(250) {
        let own = [
            Heuristic::FirstCome,
            Heuristic::Deadline,
            Heuristic::Start,
            Heuristic::Laxity,
        ];
        planning.heuristic = own[random.index(own.len())];
    }
}

/// Two processes, and where their memory is.
fn processes(random: &mut Random, system: &System) -> Vec<(String, Option<CpuId>)> {
    let nodes = system.planned_nodes();
    let process = |name: &str, random: &mut Random| {
        let home = random
            .happens(500)
            .then(|| nodes[random.index(nodes.len())].cpu);
        (name.to_owned(), home)
    };
    vec![process("p", random), process("q", random)]
}

/// How a group arrives, and its latest deadline.
fn request(random: &mut Random) -> (Request, u64) {
    match random.below(10) {
        0 | 1 => {
            let at = Instant::from_ns(random.below(4_000));
            (Request::Once { at }, 4_000)
        }
        2..=4 => {
            let period = PERIODS[random.index(PERIODS.len())];
            let request = Request::Periodic {
                period: span(period),
            };
            (request, period)
        }
        _ => {
            let apart = random.within(100, 1_500);
            let arrivals = match random.happens(700) {
                true => Arrivals::Random {
                    mean: span(apart + random.below(2_000)),
                },
                false => Arrivals::Every(span(apart)),
            };
            let request = Request::OnLine {
                arrivals,
                phase: span(random.below(1_000)),
                min_separation: span(apart),
            };
            (request, 4_000)
        }
    }
}

/// One to four segments on one or two threads.
fn group(
    random: &mut Random,
    system: &System,
    (name, latest): (String, u64),
    processes: &[(String, Option<CpuId>)],
) -> Group {
    let deadline = random.within(latest / 3, latest);
    let mut group = Group::new(name, span(deadline));
    if random.happens(200) {
        group.release = span(random.below(deadline / 2));
    }
    group.importance = Importance(u32::try_from(random.below(3)).unwrap_or(0));
    group.on_overrun = match random.happens(700) {
        true => OnOverrun::Stop,
        false => [OnOverrun::Throttle, OnOverrun::Demote, OnOverrun::Signal][random.index(3)],
    };
    for number in 0..random.within(1, 2) {
        let place = group.thread(format!("t{number}"));
        if random.happens(400) {
            let (process, home) = processes[random.index(processes.len())].clone();
            group.threads[place].process = process;
            group.threads[place].home = home;
        }
    }
    let room = (deadline - group.release.as_ns()) / 3;
    for number in 0..random.within(1, 4) {
        let thread = random.index(group.threads.len());
        let wcet = random.within(10, 200).min(room.max(10));
        let place = group.segment(format!("s{number}"), thread, Work::from_ns(wcet));
        let home = group.threads[thread].home.is_some();
        let segment = &mut group.segments[place];
        if home && random.happens(500) {
            segment.wcet_away = Some(Work::from_ns(wcet + random.below(wcet)));
        }
        for resource in (0..).map(ResourceId).take(system.resources.len()) {
            let mode = [Mode::Shared, Mode::Exclusive][random.index(2)];
            let used = random.happens(400).then_some(SegmentUse { resource, mode });
            segment.uses.extend(used);
        }
        if random.happens(300) {
            segment.cleanup = Work::from_ns(random.within(1, wcet / 2));
        }
        if place > 0 && random.happens(300) {
            let after = random.index(place);
            let own = group.segments[after].thread == thread;
            group.segments[place].after.extend((!own).then_some(after));
        }
    }
    group
}

/// A group that a segment of one before spawns: planned with it, or asked for.
fn child(random: &mut Random, system: &mut System, processes: &[(String, Option<CpuId>)]) {
    let parent = random.index(system.groups.len());
    let place = random.index(system.groups[parent].segments.len());
    if system.groups[parent].segments[place].spawn.is_some() {
        return;
    }
    let id = GroupId(u16::try_from(system.groups.len()).unwrap_or(0));
    let deadline = system.groups[parent].relative_deadline.as_ns();
    let name = format!("g{}", id.0);
    let dependent = random.happens(500);
    // One that is planned with a periodic group ends within its period.
    let latest = match dependent {
        true => deadline,
        false => deadline + 2_000,
    };
    let mut children = vec![group(random, system, (name, latest), processes)];
    let spawn = match dependent {
        true => Spawn::Dependent { group: id },
        false => {
            let second = GroupId(id.0 + 1);
            let mut groups = vec![id];
            if random.happens(400) {
                // It asks for less if that is refused.
                let name = format!("g{}", second.0);
                children.push(group(random, system, (name, latest), processes));
                groups.push(second);
            }
            let within = system.planning.within;
            let max_wait = match random.happens(500) {
                true => Span::ZERO,
                // Less than planning takes: it is refused at once.
                false if random.happens(200) => span(random.within(1, within.as_ns().max(1))),
                false => span(within.as_ns() + random.within(1, 50)),
            };
            Spawn::Independent { groups, max_wait }
        }
    };
    let segment = &mut system.groups[parent].segments[place];
    segment.spawn = Some(spawn);
    let wait = segment.wait().as_ns();
    let least = segment.wcet.as_ns() + wait + system.groups[parent].release.as_ns();
    if least > deadline {
        system.groups[parent].segments[place].spawn = None;
        return;
    }
    for mut child in children {
        child.request = Request::Spawned;
        system.groups.push(child);
    }
}

/// Some segments kill another group at their end.
fn kills(random: &mut Random, system: &mut System) {
    let count = system.groups.len();
    for own in 0..count {
        for place in 0..system.groups[own].segments.len() {
            let other = random.index(count);
            if other != own && random.happens(120) {
                let other = GroupId(u16::try_from(other).unwrap_or(0));
                system.groups[own].segments[place].kills.push(other);
            }
        }
    }
}
