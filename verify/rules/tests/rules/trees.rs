//! Runs of trees obey every rule; for every rule about supply a changed trace is rejected.

use crate::common::{FIXED, cpu, missing, overrunning, periodic, simulate};
use punctual_kern::{Next, NodeId, TraceEvent};
use punctual_model::{
    Class, CpuId, Instant, Ns, OnOverrun, PolicyKind, Priority, Scheduler, SchedulerId, Server,
    ServerKind, Slot, Span, Supply, System, Task, ThreadId, Trust, Work,
};
use punctual_rules::{Rule, check};
use punctual_trace::{Log, Record, Records, text};

const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;
const WAITING: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: false };
const TURNS: PolicyKind<Ns> = PolicyKind::RoundRobin {
    timeslice: Span::from_ns(700_000),
};

fn server(kind: ServerKind, budget_us: u64, period_ms: u64) -> Supply {
    Supply::Server(Server {
        kind,
        budget: Work::from_us(budget_us),
        period: Span::from_ms(period_ms),
    })
}

fn scheduler(name: &str, parent: Option<u16>, policy: PolicyKind<Ns>, supply: Supply) -> Scheduler {
    Scheduler {
        name: name.into(),
        cpu: CpuId(0),
        parent: parent.map(SchedulerId),
        policy,
        priority: Priority::new(5),
        supply,
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    }
}

fn on(scheduler: u16, mut task: Task) -> Task {
    task.scheduler = Some(SchedulerId(scheduler));
    task
}

/// A CPU under `root`; below it a server of `kind` with tasks under `policy`, and below that a
/// scheduler without supply of its own; background work at each level.
fn nested(root: PolicyKind<Ns>, kind: ServerKind, policy: PolicyKind<Ns>) -> System {
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

/// A busy log with a polling and a deferrable server, to change.
fn served() -> Log {
    let system = nested(FIXED, ServerKind::Polling, FIXED);
    let (system, mut faults) = overrunning(&system, "served", OnOverrun::Throttle);
    faults.missing = missing(400, 9).missing;
    simulate(&system, 400, 3, faults)
}

fn records(log: &Log) -> Vec<Record> {
    log.cpus[0].records.iter().map(|(_, r)| r).collect()
}

/// Applies `change` to the records of `log` and expects the first violation to be of `rule`.
fn rejected(log: &Log, rule: Rule, change: impl Fn(&mut Vec<Record>)) {
    let mut log = log.clone();
    let mut all = records(&log);
    change(&mut all);
    assert_ne!(all, records(&log), "{}: nothing was changed", rule.name());
    log.cpus[0].records = Records::from_iter(all);
    let found = check(&log);
    let first = found.first();
    let first = first.unwrap_or_else(|| panic!("{} was not noticed", rule.name()));
    assert_eq!(first.rule, rule, "{first}");
}

/// The place of the `nth` change that is `wanted`.
fn change_at(all: &[Record], nth: usize, wanted: impl Fn(&TraceEvent) -> bool) -> usize {
    let is = |r: &Record| matches!(r, Record::Trace(t) if wanted(t));
    let mut places = (0..all.len()).filter(|&at| is(&all[at]));
    places.nth(nth).expect("such a change")
}

/// The decision of the entry that the record at `at` belongs to.
fn decision_after(all: &[Record], at: usize) -> usize {
    let mut places = (at..all.len()).filter(|&at| matches!(all[at], Record::Decision(_)));
    places.next().expect("every entry has a decision")
}

/// Makes the entry after the switch at `at` choose `chosen`.
fn choose(all: &mut [Record], at: usize, chosen: Option<ThreadId>) {
    if let Record::Trace(TraceEvent::Switched { to, .. }) = &mut all[at] {
        *to = chosen;
    }
    let decision = decision_after(all, at);
    if let Record::Decision(decision) = &mut all[decision] {
        decision.next = chosen.map_or(Next::Idle, Next::Thread);
    }
}

const OUTER: NodeId = NodeId::new(1, 0);
const INNER: NodeId = NodeId::new(2, 0);

#[test]
fn a_server_that_is_said_to_have_more_or_less_than_it_has() {
    let log = served();
    let more = |t: &TraceEvent| matches!(t, TraceEvent::ServerReplenished { .. });
    for (nth, ticks) in [(1, 1), (3, 700_000), (4, 100_000)] {
        for raise in [true, false] {
            rejected(&log, Rule::SupplyRespected, |all| {
                let at = change_at(all, nth, more);
                if let Record::Trace(TraceEvent::ServerReplenished { budget, .. }) = &mut all[at] {
                    let had = budget.ticks();
                    *budget = Work::from_ticks(if raise { had + ticks } else { had - ticks });
                }
            });
        }
    }
}

#[test]
fn budgets_that_come_twice_never_or_unasked() {
    let log = served();
    let more = |t: &TraceEvent| matches!(t, TraceEvent::ServerReplenished { .. });
    let none = |t: &TraceEvent| matches!(t, TraceEvent::ServerExhausted { .. });
    rejected(&log, Rule::SupplyRespected, |all| {
        let at = change_at(all, 2, more);
        all.insert(at, all[at]);
    });
    rejected(&log, Rule::SupplyRespected, |all| {
        let at = change_at(
            all,
            2,
            |t| matches!(t, TraceEvent::ServerReplenished { node, .. } if *node == INNER),
        );
        let _ = all.remove(at);
    });
    rejected(&log, Rule::SupplyRespected, |all| {
        let at = change_at(all, 0, none);
        let _ = all.remove(at);
    });
    rejected(&log, Rule::SupplyRespected, |all| {
        let at = change_at(all, 0, more);
        all.insert(
            at,
            Record::Trace(TraceEvent::ServerExhausted { node: OUTER }),
        );
    });
    rejected(&log, Rule::SupplyRespected, |all| {
        let at = change_at(all, 0, more);
        let node = NodeId::ROOT;
        let budget = Work::from_ticks(1_000_000);
        all.insert(
            at,
            Record::Trace(TraceEvent::ServerReplenished { node, budget }),
        );
    });
    rejected(&log, Rule::EntriesAreWhole, |all| {
        let at = change_at(all, 0, none);
        let node = NodeId::new(9, 0);
        all[at] = Record::Trace(TraceEvent::ServerExhausted { node });
    });
}

#[test]
fn work_that_runs_on_when_its_server_has_nothing_left() {
    rejected(&served(), Rule::SupplyRespected, |all| {
        let exhausted = |t: &TraceEvent| matches!(t, TraceEvent::ServerExhausted { .. });
        let at = change_at(all, 1, exhausted);
        let switch = at + change_at(&all[at..], 0, |t| matches!(t, TraceEvent::Switched { .. }));
        let Record::Trace(TraceEvent::Switched { from, .. }) = all[switch] else {
            return;
        };
        // Whoever ran when the budget ended runs on.
        let _ = all.remove(switch);
        let decision = decision_after(all, at);
        if let Record::Decision(decision) = &mut all[decision] {
            decision.next = from.map_or(Next::Idle, Next::Thread);
        }
    });
}

#[test]
fn a_core_that_does_not_want_to_be_back_when_supply_ends_or_returns() {
    let log = served();
    let late = Instant::from_ticks(390_000_000);
    // While the inner server's budget runs.
    rejected(&log, Rule::SupplyRespected, |all| {
        let deep = |t: &TraceEvent| matches!(t, TraceEvent::Switched { to: Some(to), .. } if to.index() == 7);
        let at = decision_after(all, change_at(all, 0, deep));
        if let Record::Decision(decision) = &mut all[at] {
            decision.arm = Some(late);
        }
    });
    // While it has none.
    rejected(&log, Rule::SupplyRespected, |all| {
        let exhausted = |t: &TraceEvent| matches!(t, TraceEvent::ServerExhausted { .. });
        let at = decision_after(all, change_at(all, 0, exhausted));
        if let Record::Decision(decision) = &mut all[at] {
            decision.arm = decision.arm.map(|arm| arm.max(late));
        }
    });
}

#[test]
fn wrong_choices_at_every_level_are_noticed() {
    for (log, rules) in [
        (
            served(),
            [
                Rule::PolicyOrder,
                Rule::SupplyRespected,
                Rule::WorkConserving,
            ],
        ),
        (
            simulate(&divided(), 200, 1, missing(300, 7)),
            [
                Rule::SlotRespected,
                Rule::SlotRespected,
                Rule::WorkConserving,
            ],
        ),
    ] {
        let good = records(&log);
        let busy =
            |r: &Record| matches!(r, Record::Trace(TraceEvent::Switched { to: Some(_), .. }));
        let switches: Vec<usize> = (0..good.len()).filter(|&at| busy(&good[at])).collect();
        let mut found = Vec::new();
        for &at in switches.iter().take(120) {
            let threads = log.tables.cpus[0].threads.len();
            let others = (0..threads).map(|t| u32::try_from(t).expect("few"));
            let others = others.map(|index| Some(ThreadId::new(index, 0)));
            for chosen in others.chain([None]) {
                let mut all = good.clone();
                choose(&mut all, at, chosen);
                if all == good {
                    continue;
                }
                let mut log = log.clone();
                log.cpus[0].records = Records::from_iter(all);
                let violations = check(&log);
                let first = violations.first();
                let first = first.unwrap_or_else(|| panic!("{chosen:?} at {at} is not noticed"));
                found.push(first.rule);
            }
        }
        for rule in rules {
            let count = found.iter().filter(|found| **found == rule).count();
            assert!(count > 3, "{}: {count} of {}", rule.name(), found.len());
        }
    }
}

#[test]
fn somebody_elses_slot_and_nobodys_time() {
    let log = simulate(&divided(), 200, 1, missing(300, 7));
    assert!(check(&log).is_empty());
    // A slot's end moves: its owner runs into the time between slots.
    rejected(&log, Rule::SlotRespected, |all| {
        let to_one = |t: &TraceEvent| matches!(t, TraceEvent::Switched { to: Some(to), .. } if to.index() == 5);
        let at = decision_after(all, change_at(all, 1, to_one));
        if let Record::Decision(decision) = &mut all[at] {
            decision.arm = decision
                .arm
                .map(|arm| arm.saturating_add(Span::from_ticks(15_000)));
        }
    });
    // The frame of the log is another than the one that was kept.
    let mut other = log.clone();
    other.tables.cpus[0].slots[0].length = Span::from_ticks(400_000);
    let found = check(&other);
    assert_eq!(found.first().map(|v| v.rule), Some(Rule::SlotRespected));
}

#[test]
fn a_written_tree_is_the_tree_that_was_planned() {
    for log in [served(), simulate(&divided(), 50, 1, missing(300, 7))] {
        let mut bytes = Vec::new();
        text::write(&log, &mut bytes).expect("memory takes it");
        assert_eq!(text::read(&mut bytes.as_slice()), Ok(log));
    }
}

#[test]
fn a_plan_that_does_not_hang_together_is_refused_with_its_reason() {
    let log = simulate(&divided(), 20, 1, missing(300, 7));
    let mut bytes = Vec::new();
    text::write(&log, &mut bytes).expect("memory takes it");
    let good = String::from_utf8(bytes).expect("text");
    for (from, to, why) in [
        ("\nnode 0 0 ", "\nnode 0 1 ", "before its parent"),
        ("\nnode 0 0 ", "\nnode 7 0 ", "which is not here"),
        ("\nhome 0 1", "\nhome 0 5", "does not have"),
        ("\nhome 0 1", "\nhome 77 1", "no line of its own"),
        ("\nslot 0 ", "\nslot 3 ", "does not have"),
        (" 10000000 2\nnode", " 10000000 1\nnode", "room for 1"),
        (" slots - - ", " polling 0 10 ", "belong together"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        let error = text::read(&mut bad.as_bytes()).expect_err(to);
        assert!(error.message.contains(why), "{to}: {error}");
    }
}
