//! Trees from a system of the model: servers and slots in virtual time.

use punctual_model::{
    CpuId, Ns, PolicyKind, Priority, Scheduler, SchedulerId, Server, ServerKind, Slot, Span,
    Supply, System, Task, Trust, Work,
};
use punctual_sim::Faults;

use crate::common::{Tape, periodic, simulate, system};

const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

pub(crate) fn scheduler(
    name: &str,
    policy: PolicyKind<Ns>,
    supply: Supply,
    priority: u32,
) -> Scheduler {
    Scheduler {
        name: name.into(),
        cpu: CpuId(0),
        parent: None,
        policy,
        priority: Priority::new(priority),
        supply,
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    }
}

fn slot(at: u64, length: u64) -> Slot<Ns> {
    Slot {
        at: Span::from_ns(at),
        length: Span::from_ns(length),
    }
}

fn below(scheduler: u16, mut task: Task) -> Task {
    task.scheduler = Some(SchedulerId(scheduler));
    task
}

fn run(system: &System, duration: u64) -> Tape {
    system.validate().expect("a meaningful system");
    let outcome = simulate(system, duration, Faults::default(), 1);
    outcome.cpus.into_iter().next().expect("one CPU").sink
}

#[test]
fn a_server_below_a_priority_cpu_serves_its_tasks_on_its_budget() {
    let mut system = system(1, FIXED);
    let server = Supply::Server(Server {
        kind: ServerKind::Deferrable,
        budget: Work::from_ns(2),
        period: Span::from_ns(10),
    });
    system.schedulers = vec![scheduler("app", FIXED, server, 2)];
    system.tasks = vec![
        below(0, periodic("served", 4, 40, 40)),
        periodic("own", 10, 40, 40),
    ];
    let tape = run(&system, 80);
    assert_eq!(tape.responses(0), [12, 12]);
    assert_eq!(tape.responses(1), [14, 14]);
}

/// Application `a` has [0, 3) and [6, 8) of every 10, application `b` has [3, 6).
fn divided(neighbour: Vec<Task>) -> System {
    let mut system = system(
        1,
        PolicyKind::Tdm {
            frame: Span::from_ns(10),
            scheduling: Span::ZERO,
        },
    );
    let slots = |slots: &[Slot<Ns>]| Supply::Slots(slots.to_vec());
    let edf = PolicyKind::EarliestDeadlineFirst;
    system.schedulers = vec![
        scheduler("a", edf, slots(&[slot(0, 3), slot(6, 2)]), 0),
        scheduler("b", FIXED, slots(&[slot(3, 3)]), 0),
    ];
    system.tasks = vec![
        below(0, periodic("first", 4, 20, 20)),
        below(0, periodic("second", 3, 40, 30)),
    ];
    system.tasks.extend(neighbour);
    system
}

#[test]
fn slots_belong_to_their_owner_alone() {
    let tape = run(&divided(vec![below(1, periodic("other", 2, 10, 10))]), 40);
    let expected = [
        (0, Some(0)),
        (3, Some(2)),
        (5, None),
        (6, Some(0)),
        (7, Some(1)),
        (8, None),
        (10, Some(1)),
        (12, None),
        (13, Some(2)),
        (15, None),
        (20, Some(0)),
        (23, Some(2)),
        (25, None),
        (26, Some(0)),
        (27, None),
        (33, Some(2)),
        (35, None),
    ];
    assert_eq!(tape.lane(), expected);
}

#[test]
fn what_one_application_sees_does_not_depend_on_its_neighbour() {
    let seen = |neighbour: Vec<Task>| {
        let tape = run(&divided(neighbour), 400);
        let mine = |(at, thread): &(u64, Option<usize>)| (thread.is_some_and(|t| t < 2), *at);
        let lane: Vec<_> = tape.lane().into_iter().filter(|l| mine(l).0).collect();
        (lane, tape.responses(0), tape.responses(1))
    };
    let alone = seen(vec![]);
    let mut endless = below(1, periodic("endless", 10, 10, 10));
    endless.class = punctual_model::Class::Aperiodic;
    let busy = below(1, periodic("busy", 3, 10, 10));
    let flood = (1..40).map(|n| below(1, periodic(&format!("flood{n}"), 1, n, n)));
    assert_eq!(seen(vec![endless]), alone);
    assert_eq!(seen(vec![busy]), alone);
    assert_eq!(seen(flood.collect()), alone);
}
