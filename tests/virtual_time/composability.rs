//! Composability: an application in its slots cannot tell what its neighbours do.
//!
//! Source: CompOSe §5.1, where the task scheduler of one application changes and the start and
//! response times of the other stay the same. Here everything about the neighbour changes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write as _;

use punctual::{
    Class, Cpu, CpuId, Crash, Faults, Misconduct, Overrun, PolicyKind, Priority, SimOptions, Span,
    System, Task, TaskId, Work, Workloads, simulate_unjudged,
};
use punctual_generate::Dice;
use punctual_kern::TraceEvent;
use punctual_model::{Arrivals, Ns, Scheduler, SchedulerId, Slot, Supply, Trust};
use punctual_trace::{Log, Record};

const FRAME_US: u64 = 1_000;
const RUN: Span<Ns> = Span::from_ms(200);
/// Applications drawn; without optimization a tenth of the time must do.
const SEEDS: u64 = if cfg!(debug_assertions) { 12 } else { 60 };

pub(crate) fn scheduler(name: &str, policy: PolicyKind<Ns>, slots: &[(u64, u64)]) -> Scheduler {
    let slot = |&(at, length)| Slot {
        at: Span::from_us(at),
        length: Span::from_us(length),
    };
    Scheduler {
        name: name.into(),
        cpu: CpuId(0),
        parent: None,
        policy,
        priority: Priority::LOWEST,
        supply: Supply::Slots(slots.iter().map(slot).collect()),
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    }
}

pub(crate) fn policy(dice: &mut Dice) -> PolicyKind<Ns> {
    match dice.below(4) {
        0 => PolicyKind::FixedPriority { preemptive: true },
        1 => PolicyKind::EarliestDeadlineFirst,
        2 => PolicyKind::Fifo,
        _ => PolicyKind::RoundRobin {
            timeslice: Span::from_us(37),
        },
    }
}

fn periodic(dice: &mut Dice, name: String, home: u16) -> Task {
    let period = [2_000, 3_000, 5_000, 7_000][usize::try_from(dice.below(4)).unwrap()];
    let class = Class::Periodic {
        period: Span::from_us(period),
        wcet: Work::from_us(50 + dice.below(150)),
        relative_deadline: Span::from_us(period),
    };
    let mut task = Task::new(name, CpuId(0), class);
    task.scheduler = Some(SchedulerId(home));
    task.priority = Priority::new(u32::try_from(1 + dice.below(9)).unwrap());
    task.phase = Span::from_us(dice.below(2_000));
    if dice.below(3) == 0 {
        task.max_suspension = Span::from_us(1 + dice.below(300));
        task.suspensions = 1;
    }
    task
}

/// The application under observation: scheduler 0, its tasks the first ones. A task without
/// deadline takes every rest of a slot, so that nothing of the supply goes unseen.
fn application(dice: &mut Dice) -> System {
    let mut system = System::default();
    system.cpus.push(Cpu {
        name: "0".into(),
        host: None,
        policy: PolicyKind::Tdm {
            frame: Span::from_us(FRAME_US),
            scheduling: Span::from_us(20),
        },
    });
    let slots = [(0, 180), (500, 200)];
    system
        .schedulers
        .push(scheduler("observed", policy(dice), &slots));
    if dice.below(3) == 0 {
        system.schedulers[0].trust = Trust::OwnTime;
    }
    for index in 0..1 + dice.below(4) {
        system.tasks.push(periodic(dice, format!("t{index}"), 0));
    }
    let mut rest = Task::new("rest", CpuId(0), Class::Aperiodic);
    rest.scheduler = Some(SchedulerId(0));
    rest.priority = Priority::new(1);
    system.tasks.push(rest);
    system
}

/// How the neighbour behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Neighbour {
    Absent,
    Quiet,
    OtherPolicy,
    Crashing,
    Endless,
    Flooding,
    Overrunning,
    OwnTime,
    NeverDeciding,
    Lying,
}

pub(crate) const NEIGHBOURS: [Neighbour; 10] = [
    Neighbour::Absent,
    Neighbour::Quiet,
    Neighbour::OtherPolicy,
    Neighbour::Crashing,
    Neighbour::Endless,
    Neighbour::Flooding,
    Neighbour::Overrunning,
    Neighbour::OwnTime,
    Neighbour::NeverDeciding,
    Neighbour::Lying,
];

/// The same with a neighbour on CPU 0.
pub(crate) fn with_neighbour(mut system: System, kind: Neighbour, seed: u64) -> (System, Faults) {
    let mut dice = Dice::new(seed);
    let mut faults = Faults::default();
    if kind == Neighbour::Absent {
        return (system, faults);
    }
    let own = policy(&mut dice);
    let chosen = match kind {
        Neighbour::OtherPolicy => PolicyKind::RoundRobin {
            timeslice: Span::from_us(5),
        },
        _ => own,
    };
    let slots = [(200, 280), (720, 260)];
    let home = system.schedulers.len();
    system
        .schedulers
        .push(scheduler("neighbour", chosen, &slots));
    let misconduct = match kind {
        Neighbour::NeverDeciding => Some(Misconduct::Loops),
        Neighbour::Lying => Some(Misconduct::Lies),
        _ => None,
    };
    if misconduct.is_some() || kind == Neighbour::OwnTime {
        system.schedulers[home].trust = Trust::OwnTime;
    }
    let home = u16::try_from(home).unwrap();
    let id = SchedulerId(home);
    faults.children.extend(misconduct.map(|how| (id, how)));
    for index in 0..3 {
        let id = TaskId(u32::try_from(system.tasks.len()).unwrap());
        let mut task = periodic(&mut dice, format!("n{index}"), home);
        match kind {
            Neighbour::Crashing => faults.crashes.push(Crash { task: id, job: 3 }),
            Neighbour::Overrunning => faults.overruns.push(Overrun {
                task: id,
                per_mille: 7_000,
            }),
            Neighbour::Flooding => {
                task.class = Class::Sporadic {
                    min_separation: Span::from_us(7),
                    wcet: Work::from_us(1),
                    relative_deadline: Span::from_us(7),
                };
                task.arrivals = Arrivals::Every(Span::from_us(7));
                (task.max_suspension, task.suspensions) = (Span::ZERO, 0);
            }
            Neighbour::Endless => task.class = Class::Aperiodic,
            _ => {}
        }
        if kind == Neighbour::Endless {
            (task.max_suspension, task.suspensions) = (Span::ZERO, 0);
        }
        system.tasks.push(task);
    }
    (system, faults)
}

/// Everything in a log that is about the first `tasks` threads, one line each, up to the last
/// release. (How long a simulation goes on after that depends on whose jobs are unfinished.)
fn projection(log: &Log, tasks: usize) -> String {
    let mut text = String::new();
    let ours = |event: &TraceEvent| {
        let mine = |thread: &punctual_model::ThreadId| thread.index() < tasks;
        match event {
            TraceEvent::Switched { from, to, .. } => from.iter().chain(to).any(mine).then(|| {
                let of = |t: &Option<_>| match t.filter(mine) {
                    Some(thread) => format!("{thread:?}"),
                    None => "others".into(),
                };
                format!("{} -> {}", of(from), of(to))
            }),
            TraceEvent::Released { thread, .. }
            | TraceEvent::Started { thread, .. }
            | TraceEvent::Completed { thread, .. }
            | TraceEvent::Overran { thread, .. }
            | TraceEvent::Throttled { thread, .. }
            | TraceEvent::Replenished { thread, .. }
            | TraceEvent::Blocked { thread, .. }
            | TraceEvent::Woken { thread, .. } => mine(thread).then(|| format!("{event:?}")),
            _ => None,
        }
    };
    for (now, record) in &log.cpus[0].records {
        if let Record::Trace(event) = record
            && now.ticks() < RUN.as_ns()
            && let Some(line) = ours(&event)
        {
            let _ = writeln!(text, "{} {line}", now.ticks());
        }
    }
    text
}

fn observed(system: &System, faults: Faults, tasks: usize) -> String {
    let options = SimOptions {
        duration: Some(RUN),
        faults,
        ..SimOptions::default()
    };
    let mut workloads = Workloads::new();
    let log = simulate_unjudged(system, &options, &mut workloads, &mut |_| true).unwrap();
    projection(&log, tasks)
}

fn neighbours_are_not_seen(cache_delay: Work<Ns>) {
    for seed in 0..SEEDS {
        let system = application(&mut Dice::new(seed));
        let tasks = system.tasks.len();
        let mut alone = None;
        for kind in NEIGHBOURS {
            let (composed, mut faults) = with_neighbour(system.clone(), kind, seed ^ 0x5EED);
            faults.cache_delay = cache_delay;
            // A liar that is refused every few microseconds fills the recorder before the run ends.
            faults.decision_cost = Work::from_us(25);
            let seen = observed(&composed, faults, tasks);
            assert!(seen.lines().count() > 400, "seed {seed}: too little to see");
            let alone = alone.get_or_insert_with(|| seen.clone());
            let difference = alone.lines().zip(seen.lines()).find(|(a, b)| a != b);
            assert!(
                *alone == seen,
                "seed {seed}: {kind:?} is seen: {difference:?}"
            );
        }
    }
}

#[test]
fn an_application_in_its_slots_cannot_tell_what_its_neighbours_do() {
    neighbours_are_not_seen(Work::ZERO);
}

#[test]
fn nor_can_it_when_every_resumption_finds_cold_caches() {
    neighbours_are_not_seen(Work::from_us(7));
}

/// From arrival to start and to finish of each job of the first three tasks: an application of the
/// decoders.
fn times(system: &System) -> Vec<[u64; 3]> {
    let options = SimOptions {
        duration: Some(Span::from_ms(2_000)),
        ..SimOptions::default()
    };
    let log = simulate_unjudged(system, &options, &mut Workloads::new(), &mut |_| true).unwrap();
    let behavior = punctual_trace::Behavior::new(&log, 0);
    let jobs = behavior.jobs.iter().enumerate();
    let own = jobs.filter(|(_, job)| job.thread.index() < 3);
    let times = own.filter_map(|(index, job)| {
        let mut segments = behavior.segments.iter();
        let start = segments.find(|segment| segment.job == Some(index))?.start;
        Some([job.arrival, start, job.ended?].map(punctual_model::Instant::ticks))
    });
    times.collect()
}

/// The two runs that `examples/composability` compares live.
#[test]
fn start_and_finish_times_of_a_decoder_are_the_same_whatever_the_other_does() {
    let quiet = crate::common::examples::example("compose-decoders");
    let mut greedy = quiet.clone();
    greedy.schedulers[1].trust = Trust::OwnTime;
    for task in &mut greedy.tasks {
        if task.scheduler == Some(SchedulerId(1)) {
            task.work = None;
        }
    }
    let mut endless = Task::new("greedy", CpuId(0), Class::Aperiodic);
    endless.scheduler = Some(SchedulerId(1));
    greedy.tasks.push(endless);
    let seen = times(&quiet);
    assert!(seen.len() > 120, "{}", seen.len());
    assert_eq!(seen, times(&greedy));
}

/// The projection can tell: without slots, the same neighbour is seen at once.
#[test]
fn without_slots_the_neighbours_are_seen() {
    let mut differences = 0;
    for seed in 0..20 {
        let mut system = application(&mut Dice::new(seed));
        let tasks = system.tasks.len();
        let mut seen = Vec::new();
        for kind in [Neighbour::Absent, Neighbour::Overrunning] {
            let (mut composed, faults) = with_neighbour(system.clone(), kind, seed);
            composed.cpus[0].policy = PolicyKind::FixedPriority { preemptive: true };
            for scheduler in &mut composed.schedulers {
                scheduler.supply = Supply::Shared;
                scheduler.trust = Trust::Inline;
                scheduler.priority = Priority::new(1);
            }
            seen.push(observed(&composed, faults, tasks));
        }
        differences += u32::from(seen[0] != seen[1]);
        system.tasks.clear();
    }
    assert!(differences > 15, "only {differences} of 20 were seen");
}
