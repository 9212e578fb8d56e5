//! Runs of trees obey every rule; for every rule about supply a changed trace is rejected.

mod common;

use common::{FIXED, cpu, missing, overrunning, periodic, simulate};
use punctual_model::{
    Class, CpuId, OnOverrun, PolicyKind, Priority, Scheduler, SchedulerId, Server, ServerKind,
    Slot, Span, Supply, System, Task, Trust, Work,
};
use punctual_trace::check;

const EDF: PolicyKind = PolicyKind::EarliestDeadlineFirst;
const WAITING: PolicyKind = PolicyKind::FixedPriority { preemptive: false };
const TURNS: PolicyKind = PolicyKind::RoundRobin {
    timeslice: Span::from_us(700),
};

fn server(kind: ServerKind, budget_us: u64, period_ms: u64) -> Supply {
    Supply::Server(Server {
        kind,
        budget: Work::from_us(budget_us),
        period: Span::from_ms(period_ms),
    })
}

fn scheduler(name: &str, parent: Option<u16>, policy: PolicyKind, supply: Supply) -> Scheduler {
    Scheduler {
        name: name.into(),
        cpu: CpuId(0),
        parent: parent.map(SchedulerId),
        policy,
        priority: Priority::new(5),
        supply,
        trust: Trust::Inline,
        quota: None,
    }
}

fn on(scheduler: u16, mut task: Task) -> Task {
    task.scheduler = Some(SchedulerId(scheduler));
    task
}

/// A CPU under `root`; below it a server of `kind` with tasks under `policy`, and below that a
/// scheduler without supply of its own; background work at each level.
fn nested(root: PolicyKind, kind: ServerKind, policy: PolicyKind) -> System {
    let mut outer = scheduler("outer", None, policy, server(kind, 2_500, 10));
    outer.priority = Priority::new(6);
    let mut inner = scheduler(
        "inner",
        Some(0),
        FIXED,
        server(ServerKind::Deferrable, 900, 7),
    );
    inner.priority = Priority::new(2);
    let idle = |name: &str, priority: u32| {
        let mut task = periodic(name, 0, 1, 0, priority);
        task.class = Class::Aperiodic;
        task
    };
    System {
        cpus: vec![cpu("0", root)],
        schedulers: vec![outer, inner],
        tasks: vec![
            periodic("above", 0, 5, 700, 9),
            periodic("below", 0, 20, 4_000, 2),
            on(0, periodic("served", 0, 10, 600, 3)),
            on(0, periodic("long", 0, 40, 2_500, 1)),
            on(1, periodic("deep", 0, 14, 700, 4)),
            idle("rest", 1),
            on(0, idle("filler", 2)),
            on(1, idle("dregs", 0)),
        ],
        ..System::default()
    }
}

#[test]
fn runs_of_every_server_under_every_policy_obey_every_rule() {
    for kind in ServerKind::ALL {
        for root in [FIXED, WAITING, EDF, PolicyKind::Fifo, TURNS] {
            for policy in [FIXED, EDF, TURNS, PolicyKind::Fifo] {
                for seed in 0..4 {
                    let system = nested(root, kind, policy);
                    let (system, mut faults) = overrunning(&system, "served", OnOverrun::Throttle);
                    if seed > 0 {
                        faults.missing = missing(400, 9 + seed).missing;
                        faults.late_timer = Span::from_us(80 * (seed - 1));
                    }
                    let log = simulate(&system, 400, seed, faults);
                    let found = check(&log);
                    assert!(
                        found.is_empty(),
                        "{kind:?} {root:?} {policy:?} seed {seed}: {}",
                        found[0]
                    );
                }
            }
        }
    }
}

/// Two applications in slots of a frame, one of them with slots of its own for its tasks.
fn divided() -> System {
    let slot = |at_us: u64, length_us: u64| Slot {
        at: Span::from_us(at_us),
        length: Span::from_us(length_us),
    };
    let frame = |frame_us: u64, scheduling_us: u64| PolicyKind::Tdm {
        frame: Span::from_us(frame_us),
        scheduling: Span::from_us(scheduling_us),
    };
    let root = frame(5_000, 20);
    let slots = Supply::Slots(vec![slot(0, 1_000), slot(3_000, 1_000)]);
    let first = scheduler("first", None, FIXED, slots);
    let second = scheduler(
        "second",
        None,
        frame(2_500, 0),
        Supply::Slots(vec![slot(1_100, 1_800)]),
    );
    let mut left = on(1, periodic("left", 0, 20, 1_000, 1));
    left.slots = vec![slot(0, 1_500)];
    let mut right = on(1, periodic("right", 0, 20, 1_000, 1));
    right.slots = vec![slot(1_500, 900)];
    let mut alone = periodic("alone", 0, 10, 500, 1);
    alone.slots = vec![slot(4_100, 600)];
    let mut filler = periodic("filler", 0, 1, 0, 1);
    filler.class = Class::Aperiodic;
    System {
        cpus: vec![cpu("0", root)],
        schedulers: vec![first, second],
        tasks: vec![
            on(0, periodic("one", 0, 10, 800, 2)),
            on(0, periodic("two", 0, 20, 1_500, 1)),
            left,
            right,
            alone,
            on(0, filler),
        ],
        ..System::default()
    }
}

#[test]
fn runs_in_slots_obey_every_rule() {
    for seed in 0..6 {
        let (system, mut faults) = overrunning(&divided(), "one", OnOverrun::Demote);
        if seed > 0 {
            faults.missing = missing(300, 6 + seed).missing;
            faults.late_timer = Span::from_us(50 * (seed - 1));
        }
        let log = simulate(&system, 400, seed, faults);
        let found = check(&log);
        assert!(found.is_empty(), "seed {seed}: {}", found[0]);
    }
}
