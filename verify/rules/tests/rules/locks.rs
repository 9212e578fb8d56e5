//! Runs with resources obey every rule; traces that lie about locks are rejected.

use crate::common::{FIXED, cpu, missing, overrunning, periodic, simulate};
use punctual_kern::TraceEvent;
use punctual_model::{
    AtBudgetEnd, CpuId, Mode, Ns, OnOverrun, PolicyKind, Priority, Protocol, Resource, ResourceId,
    Scheduler, SchedulerId, Server, ServerKind, Span, Supply, System, Task, ThreadId, Trust, Use,
    Work,
};
use punctual_policy::AnyPolicy;
use punctual_rules::{Rule, check};
use punctual_trace::{Cause, Log, Record, Records, RunReport, replay, text};

const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;

fn resource(name: &str, protocol: Protocol, at_budget_end: AtBudgetEnd) -> Resource {
    Resource {
        name: name.into(),
        protocol,
        at_budget_end,
    }
}

fn one_use(resource: u16, length_us: u64, mode: Mode, inside: Option<u16>) -> Use {
    Use {
        resource: ResourceId(resource),
        length: Work::from_us(length_us),
        mode,
        inside: inside.map(ResourceId),
    }
}

fn with(mut task: Task, uses: &[Use]) -> Task {
    task.uses = uses.to_vec();
    task
}

/// Four tasks, two resources, nesting, readers.
fn sharing(policy: PolicyKind<Ns>, protocol: Protocol) -> System {
    let exclusive = |r, length| one_use(r, length, Mode::Exclusive, None);
    let shared = |r, length| one_use(r, length, Mode::Shared, None);
    System {
        cpus: vec![cpu("0", policy)],
        resources: vec![
            resource("bus", protocol, AtBudgetEnd::Overrun),
            resource("map", protocol, AtBudgetEnd::Overrun),
        ],
        tasks: vec![
            with(periodic("high", 0, 7, 900, 9), &[exclusive(0, 300)]),
            with(
                periodic("middle", 0, 11, 1_500, 6),
                &[exclusive(0, 900), one_use(1, 400, Mode::Exclusive, Some(0))],
            ),
            with(periodic("reader", 0, 13, 1_200, 5), &[shared(1, 700)]),
            periodic("free", 0, 17, 1_500, 4),
            with(
                periodic("low", 0, 29, 5_000, 2),
                &[shared(1, 1_500), exclusive(0, 1_300)],
            ),
        ],
        ..System::default()
    }
}

fn assert_lawful(system: &System, seed: u64) -> Log {
    let (system, mut faults) = overrunning(system, "free", OnOverrun::Demote);
    if seed > 0 {
        faults.missing = missing(300, 8 + seed).missing;
        faults.late_timer = Span::from_us(60 * (seed - 1));
        faults.jitter = true;
    }
    let log = simulate(&system, 600, seed, faults);
    let found = check(&log);
    assert!(found.is_empty(), "seed {seed}: {}", found[0]);
    log
}

#[test]
fn runs_of_every_protocol_obey_every_rule() {
    let fixed = [
        Protocol::Inheritance,
        Protocol::ImmediateCeiling,
        Protocol::StackResource,
        Protocol::NonPreemptive,
    ];
    for protocol in fixed {
        for seed in 0..5 {
            assert_lawful(&sharing(FIXED, protocol), seed);
        }
    }
    for protocol in [
        Protocol::Inheritance,
        Protocol::StackResource,
        Protocol::NonPreemptive,
    ] {
        for seed in 0..5 {
            assert_lawful(&sharing(EDF, protocol), seed);
        }
    }
}

/// The same on servers, with a resource that both schedulers share.
fn across(kind: ServerKind, at_end: AtBudgetEnd) -> System {
    let server = |budget_us, period_ms| {
        Supply::Server(Server {
            kind,
            budget: Work::from_us(budget_us),
            period: Span::from_ms(period_ms),
        })
    };
    let scheduler = |name: &str, priority, supply| Scheduler {
        name: name.into(),
        cpu: CpuId(0),
        parent: None,
        policy: FIXED,
        priority: Priority::new(priority),
        supply,
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    };
    let on = |scheduler, mut task: Task| {
        task.scheduler = Some(SchedulerId(scheduler));
        task
    };
    let exclusive = |r, length| one_use(r, length, Mode::Exclusive, None);
    System {
        cpus: vec![cpu("0", FIXED)],
        schedulers: vec![
            scheduler("first", 7, server(2_000, 8)),
            scheduler("second", 5, server(2_500, 12)),
        ],
        resources: vec![
            resource("own", Protocol::Inheritance, at_end),
            resource("common", Protocol::ImmediateCeiling, at_end),
        ],
        tasks: vec![
            on(
                0,
                with(
                    periodic("a", 0, 9, 800, 8),
                    &[exclusive(0, 300), exclusive(1, 200)],
                ),
            ),
            on(
                0,
                with(periodic("b", 0, 20, 1_800, 3), &[exclusive(0, 800)]),
            ),
            on(
                1,
                with(periodic("c", 0, 15, 1_300, 7), &[exclusive(1, 700)]),
            ),
            on(1, periodic("free", 0, 25, 1_000, 9)),
            with(periodic("d", 0, 31, 3_000, 6), &[exclusive(1, 500)]),
        ],
        ..System::default()
    }
}

#[test]
fn sections_across_servers_overrun_or_wait_as_chosen() {
    for kind in ServerKind::ALL {
        for at_end in [AtBudgetEnd::Overrun, AtBudgetEnd::CheckFirst] {
            for seed in 0..5 {
                assert_lawful(&across(kind, at_end), seed);
            }
        }
    }
}

fn records(log: &Log) -> Vec<Record> {
    log.cpus[0].records.iter().map(|(_, r)| r).collect()
}

/// Applies `change` to the records of a log and expects the first violation to be of `rule`.
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

#[test]
fn a_lock_that_somebody_holds_or_nobody_asked_for() {
    let log = assert_lawful(&sharing(FIXED, Protocol::Inheritance), 1);
    let waits = |t: &TraceEvent| matches!(t, TraceEvent::Waits { .. });
    rejected(&log, Rule::LocksExclude, |all| {
        let at = change_at(all, 0, waits);
        if let Record::Trace(TraceEvent::Waits {
            thread,
            resource,
            mode,
        }) = all[at]
        {
            all[at] = Record::Trace(TraceEvent::Locked {
                thread,
                resource,
                mode,
            });
        }
    });
    let locked = |t: &TraceEvent| matches!(t, TraceEvent::Locked { .. });
    rejected(&log, Rule::LocksExclude, |all| {
        let at = change_at(all, 4, locked);
        if let Record::Trace(TraceEvent::Locked { thread, .. }) = &mut all[at] {
            *thread = ThreadId::new(3, 0);
        }
    });
    rejected(&log, Rule::LocksExclude, |all| {
        let at = change_at(all, 4, locked);
        all.insert(at, all[at]);
    });
    rejected(&log, Rule::LocksExclude, |all| {
        let at = change_at(all, 3, |t| matches!(t, TraceEvent::Unlocked { .. }));
        all.insert(at, all[at]);
    });
}

#[test]
fn whoever_waits_for_what_is_free_is_noticed() {
    let log = assert_lawful(&sharing(FIXED, Protocol::Inheritance), 1);
    // The waiter is not told that the resource has come free.
    rejected(&log, Rule::LocksPassOn, |all| {
        let woken = |t: &TraceEvent| {
            matches!(
                t,
                TraceEvent::Woken {
                    cause: punctual_kern::WakeCause::Lock,
                    ..
                }
            )
        };
        let at = change_at(all, 0, woken);
        let Record::Trace(TraceEvent::Woken { thread, .. }) = all[at] else {
            return;
        };
        let locked = (at..all.len()).find(|&at| {
            matches!(all[at], Record::Trace(TraceEvent::Locked { thread: t, .. }) if t == thread)
        });
        let _ = all.remove(locked.expect("it asked again"));
        let _ = all.remove(at);
    });
    rejected(&log, Rule::LocksPassOn, |all| {
        let at = change_at(all, 2, |t| matches!(t, TraceEvent::Locked { .. }));
        if let Record::Trace(TraceEvent::Locked {
            thread,
            resource,
            mode,
        }) = all[at]
        {
            all[at] = Record::Trace(TraceEvent::Waits {
                thread,
                resource,
                mode,
            });
        }
    });
}

#[test]
fn a_boost_without_a_waiter_or_none_with_one_breaks_the_order() {
    // Run under inheritance, checked as if nothing were lent, and the other way round.
    let log = assert_lawful(&sharing(FIXED, Protocol::Inheritance), 1);
    let mut ceilings = log.clone();
    for terms in &mut ceilings.tables.cpus[0].resources {
        terms.protocol = Protocol::ImmediateCeiling;
    }
    let found = check(&ceilings);
    assert_eq!(found.first().map(|v| v.rule), Some(Rule::PolicyOrder));
    let log = assert_lawful(&sharing(FIXED, Protocol::ImmediateCeiling), 1);
    let mut nothing = log.clone();
    for terms in &mut nothing.tables.cpus[0].resources {
        terms.protocol = Protocol::Inheritance;
    }
    let found = check(&nothing);
    assert_eq!(found.first().map(|v| v.rule), Some(Rule::PolicyOrder));
}

#[test]
fn sections_that_last_longer_or_shorter_than_they_may() {
    let log = assert_lawful(&sharing(FIXED, Protocol::ImmediateCeiling), 1);
    // Declared shorter than it was, without a word about it.
    let mut shorter = log.clone();
    for (_, terms) in &mut shorter.tables.cpus[0].uses {
        terms.length = Work::from_ticks(100_000);
    }
    let found = check(&shorter);
    assert_eq!(found.first().map(|v| v.rule), Some(Rule::SectionsBounded));
    rejected(&log, Rule::SectionsBounded, |all| {
        let at = change_at(all, 0, |t| matches!(t, TraceEvent::Locked { .. }));
        if let Record::Trace(TraceEvent::Locked {
            thread, resource, ..
        }) = all[at]
        {
            let over = TraceEvent::SectionOverran { thread, resource };
            all.insert(at + 1, Record::Trace(over));
        }
    });
}

#[test]
fn a_section_that_does_not_fit_into_its_supply_is_not_begun() {
    let log = assert_lawful(&across(ServerKind::Deferrable, AtBudgetEnd::Overrun), 1);
    let mut strict = log.clone();
    for terms in &mut strict.tables.cpus[0].resources {
        terms.at_budget_end = AtBudgetEnd::CheckFirst;
    }
    let found = check(&strict);
    assert_eq!(found.first().map(|v| v.rule), Some(Rule::SupplyRespected));
}

/// The first place, from `from` on, where a log states how much a scheduler has left.
fn budget_at(all: &[Record], from: usize, child: u16) -> (usize, u64) {
    let budget = |record: &Record| match *record {
        Record::Trace(
            TraceEvent::Queued { node, budget, .. } | TraceEvent::Unqueued { node, budget },
        ) if node.index() == usize::from(child) => budget.map(Work::ticks),
        _ => None,
    };
    let mut stated = (from..all.len()).filter_map(|at| Some((at, budget(&all[at])?)));
    stated.next().expect("a budget is stated")
}

fn state(record: &mut Record, left: u64) {
    if let Record::Trace(TraceEvent::Queued { budget, .. } | TraceEvent::Unqueued { budget, .. }) =
        record
    {
        *budget = Some(Work::from_ticks(left));
    }
}

/// The section of `b` needs 500 us: its own server has them, and the one above that has not.
#[test]
fn a_budget_is_given_up_for_a_section_that_it_is_too_little_for_and_for_no_other() {
    let mut system = across(ServerKind::ConstantBandwidth, AtBudgetEnd::CheckFirst);
    system.schedulers[1].parent = Some(SchedulerId(0));
    system.resources.truncate(1);
    let (upper, lower) = (system.tasks[0].scheduler, system.tasks[2].scheduler);
    let on = |scheduler, mut task: Task| {
        task.scheduler = scheduler;
        task
    };
    let asks = &[one_use(0, 500, Mode::Exclusive, None)];
    system.tasks = vec![
        on(upper, periodic("a", 0, 8, 1_700, 9)),
        on(lower, with(periodic("b", 0, 8, 600, 3), asks)),
        periodic("free", 0, 8, 1_000, 1),
    ];
    let log = assert_lawful(&system, 0);
    let all = records(&log);
    let waits = change_at(&all, 0, |t| matches!(t, TraceEvent::Postponed { .. }));
    let (above, none) = budget_at(&all, waits, 1);
    let (below, enough) = budget_at(&all, waits, 2);
    assert!(none == 0 && enough >= 500_000, "{none} and {enough} left");
    let decides = |record: &Record| matches!(record, Record::Decision(_));
    let end = waits + all[waits..].iter().position(decides).expect("a decision");
    assert!(above < end && below < end, "the budgets of this entry");
    for (at, left) in [
        (below, 0),
        (below, 100_000),
        (above, 100_000),
        (above, 300_000),
    ] {
        let mut all = all.clone();
        state(&mut all[at], left);
        let mut log = log.clone();
        log.cpus[0].records = Records::from_iter(all.drain(..=end));
        let found = check(&log);
        assert_eq!(
            found.first().map(|v| v.rule),
            Some(Rule::SupplyRespected),
            "{left}: {found:?}"
        );
    }
}

#[test]
fn a_miss_names_the_lock_and_its_holder_or_the_supply_that_lacked() {
    let mut system = sharing(FIXED, Protocol::NonPreemptive);
    system.resources[0].protocol = Protocol::Inheritance;
    system.tasks = vec![
        with(
            periodic("high", 0, 10, 1_000, 9),
            &[one_use(0, 500, Mode::Exclusive, None)],
        ),
        with(
            periodic("low", 0, 100, 30_000, 2),
            &[one_use(0, 20_000, Mode::Exclusive, None)],
        ),
    ];
    let log = simulate(&system, 200, 1, missing(1, 1_000));
    let report = RunReport::new(&log);
    let late = report.misses.iter().find(|m| m.task == "high");
    let late = late.expect("20 ms of section are too long for 10 ms");
    assert_eq!(late.cause, Cause::Blocked, "{}", late.detail);
    assert!(
        late.detail.contains("(`bus`, held by `low`)"),
        "{}",
        late.detail
    );
    let mut starved = across(ServerKind::Deferrable, AtBudgetEnd::Overrun);
    starved.tasks = vec![starved.tasks[1].clone()];
    starved.tasks[0].uses.clear();
    starved.tasks[0].class = periodic("b", 0, 8, 2_600, 3).class;
    let log = simulate(&starved, 100, 1, missing(1, 1_000));
    let report = RunReport::new(&log);
    let late = report.misses.first().expect("2.6 ms do not fit into 2 ms");
    assert_eq!(late.cause, Cause::Blocked, "{}", late.detail);
    assert!(
        late.detail.contains("without supply") && late.detail.contains("of `first`"),
        "{}",
        late.detail
    );
    let row = &report.schedulers[0];
    assert_eq!((row.name.as_str(), row.on.as_str()), ("first", "0"));
    assert!(row.exhausted > 10 && row.starved_ns > 50_000_000, "{row:?}");
    assert!(
        report
            .to_string()
            .contains("scheduler first on 0: fixed-priority, deferrable 2ms in 8ms")
    );
}

#[test]
fn a_run_with_locks_is_written_read_and_run_again() {
    for log in [
        assert_lawful(&sharing(EDF, Protocol::StackResource), 3),
        assert_lawful(&across(ServerKind::Sporadic, AtBudgetEnd::CheckFirst), 2),
    ] {
        let mut bytes = Vec::new();
        text::write(&log, &mut bytes).expect("memory takes it");
        let again = text::read(&mut bytes.as_slice()).expect("what was written");
        assert_eq!(again, log);
        let stats = replay(&again, AnyPolicy::new).expect("the same again");
        assert!(stats.decisions > 300, "{stats:?}");
    }
}
