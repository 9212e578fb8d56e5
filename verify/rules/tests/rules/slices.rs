//! Slices of time in other hands: runs obey the rules, and changed records of them do not.

use std::cell::Cell;

use punctual_kern::{Event, Grant, NodeId, NodeTerms, Request, TraceEvent};
use punctual_model::{
    CpuId, Frequency, Instant, Ns, Priority, Receiver, Scheduler, SchedulerId, Server, ServerKind,
    Span, Supply, System, ThreadId, Trust, Work,
};
use punctual_policy::AnyPolicy;
use punctual_rules::{Rule, check};
use punctual_tables::Tables;
use punctual_trace::{Log, Record, RecordedEntry, Recorder, Records};

use crate::common::{FIXED, cpu, log_of, periodic};

/// 400 in 1,000 and 200 in 1,000, a task in each.
fn system() -> System {
    let scheduler = |name: &str, budget: u64| Scheduler {
        name: name.into(),
        cpu: CpuId(0),
        parent: None,
        policy: FIXED,
        priority: Priority::new(5),
        supply: Supply::Server(Server {
            kind: ServerKind::Deferrable,
            budget: Work::from_ns(budget),
            period: Span::<Ns>::from_ns(1_000),
        }),
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    };
    let task = |name: &str, home: u16| {
        let mut task = periodic(name, 0, 1, 0, 1);
        task.class = punctual_model::Class::Aperiodic;
        task.scheduler = Some(SchedulerId(home));
        task
    };
    System {
        cpus: vec![cpu("0", FIXED)],
        schedulers: vec![scheduler("a", 400), scheduler("b", 200)],
        tasks: vec![task("one", 0), task("two", 1)],
        ..System::default()
    }
}

/// 300 in 1,000 for `b`.
fn slice() -> NodeTerms {
    NodeTerms {
        supply: Grant::Server(Server {
            kind: ServerKind::Deferrable,
            budget: Work::from_ticks(300),
            period: Span::from_ticks(1_000),
        }),
        priority: Priority::new(7),
        order: 9,
        receiver: Some(NodeId::new(2, 0)),
        ..NodeTerms::ROOT
    }
}

/// `a` delegates 300 in 1,000 to `b`, which binds its task; then `a` takes it back.
fn history() -> Log {
    let node = |place| NodeId::new(place, 0);
    let bind = Request::Grant {
        thread: ThreadId::new(1, 0),
        to: node(3),
    };
    history_of(&[
        (0, node(1), Request::Promote(slice())),
        (0, node(2), bind),
        (2, node(1), Request::Demote(node(3))),
    ])
}

/// What comes of these requests, each of which is lawful.
fn history_of(asked: &[(u64, NodeId, Request)]) -> Log {
    let asks = |&(at, by, request): &_| (at, Event::Manage { by, request });
    events_of(system(), &asked.iter().map(asks).collect::<Vec<_>>())
}

/// What comes of these events, each of which is lawful.
fn events_of(system: System, events: &[(u64, Event)]) -> Log {
    let mut tables = Tables::new(&system, Frequency::NANOSECONDS);
    tables.cpus[0].capacity.nodes += 1;
    let mut shard = tables.cpus[0].build(AnyPolicy::new).expect("tables");
    let mut recorder = Recorder::with_capacity(1 << 16).expect("memory");
    let mut end = Instant::ZERO;
    for &(at, event) in events {
        end = Instant::from_ticks(at);
        let entry = RecordedEntry::at(end, event);
        let decision = shard.handle_entry(&entry.as_entry(), &mut recorder);
        assert_eq!(decision.refused, None);
    }
    log_of(system, tables, recorder, end)
}

/// The first rule that the history breaks with a change to each of its records.
fn broken(change: impl Fn(&mut Record)) -> Rule {
    let mut log = history();
    let mut all: Vec<Record> = log.cpus[0].records.iter().map(|(_, r)| r).collect();
    let before = all.clone();
    all.iter_mut().for_each(change);
    assert_ne!(all, before, "nothing was changed");
    log.cpus[0].records = Records::from_iter(all);
    check(&log).first().expect("noticed").rule
}

/// What sleeps gets a new budget when its deadline has passed, and has what it borrowed besides.
#[test]
fn a_sleeper_that_has_borrowed_lends_out_of_a_new_budget() {
    let mut system = system();
    system.schedulers[0].supply = Supply::Server(Server {
        kind: ServerKind::ConstantBandwidth,
        budget: Work::from_ns(400),
        period: Span::from_ns(1_000),
    });
    let lend = |by, to, work| {
        let (to, work) = (NodeId::new(to, 0), Work::from_ticks(work));
        let by = NodeId::new(by, 0);
        let request = Request::Lend { to, work };
        Event::Manage { by, request }
    };
    let events = [
        (0, Event::Tick),
        (100, Event::Block { until: None }),
        (110, Event::Block { until: None }),
        (1_100, lend(2, 1, 190)),
        (1_110, lend(1, 2, 150)),
    ];
    let log = events_of(system, &events);
    let own_and_borrowed = Some(Work::from_ticks(250 + 190));
    let states = |record: &Record| {
        let stated = |event: &TraceEvent| matches!(event, TraceEvent::Unqueued { budget, .. } if *budget == own_and_borrowed);
        matches!(record, Record::Trace(event) if stated(event))
    };
    assert!(log.cpus[0].records.iter().any(|(_, r)| states(&r)));
    assert_eq!(check(&log), []);
}

#[test]
fn slices_are_delegated_bound_and_taken_back_within_the_rules() {
    assert_eq!(check(&history()), []);
}

#[test]
fn a_scheduler_in_the_place_of_a_giver_owes_nothing_for_it() {
    let shared = NodeTerms {
        priority: Priority::new(3),
        order: 10,
        ..NodeTerms::ROOT
    };
    let log = history_of(&[
        (0, NodeId::new(1, 0), Request::Promote(slice())),
        (1, NodeId::ROOT, Request::Demote(NodeId::new(1, 0))),
        (2, NodeId::ROOT, Request::Promote(shared)),
        (3, NodeId::new(1, 1), Request::Promote(shared)),
    ]);
    assert_eq!(check(&log), []);
}

#[test]
fn a_thread_that_is_bound_elsewhere_when_its_slice_ends_is_noticed() {
    let moves = Cell::new(0);
    let rule = broken(|record| {
        let Record::Trace(TraceEvent::Moved { home, .. }) = record else {
            return;
        };
        // The second time it is on its way home.
        moves.set(moves.get() + 1);
        if moves.get() == 2 {
            *home = NodeId::new(1, 0);
        }
    });
    assert_eq!(rule, Rule::TimeConserved);
}

#[test]
fn a_scheduler_that_delegates_more_than_it_has_is_noticed() {
    let rule = broken(|record| {
        if let Record::Entry(entry) = record
            && let Event::Manage {
                request: Request::Promote(terms),
                ..
            } = &mut entry.event
            && let Grant::Server(server) = &mut terms.supply
        {
            server.budget = Work::from_ticks(410);
        }
    });
    assert!(matches!(rule, Rule::PowerRespected | Rule::TimeConserved));
}

#[test]
fn a_clock_of_any_rate_makes_nobody_delegate_too_much() {
    let mut system = system();
    let server = |budget| {
        Supply::Server(Server {
            kind: ServerKind::Deferrable,
            budget: Work::from_ms(budget),
            period: Span::<Ns>::from_ms(10),
        })
    };
    system.schedulers[0].supply = server(2);
    for name in ["a:one", "a:two"] {
        let mut slice = system.schedulers[1].clone();
        (slice.name, slice.parent) = (name.into(), Some(SchedulerId(0)));
        slice.supply = server(1);
        slice.receiver = Some(Receiver {
            scheduler: Some("b".into()),
            task: None,
        });
        system.schedulers.push(slice);
    }
    let clock = Frequency::try_new(2_499_998_200).expect("a clock");
    let tables = Tables::new(&system, clock);
    let mut shard = tables.cpus[0].build(AnyPolicy::new).expect("tables");
    let mut recorder = Recorder::with_capacity(1 << 16).expect("memory");
    let supply = Server {
        kind: ServerKind::Deferrable,
        budget: Work::<Ns>::from_ms(2),
        period: Span::from_ms(10),
    };
    let request = Request::Supply {
        node: NodeId::new(1, 0),
        supply: Grant::Server(supply.in_ticks(clock)),
    };
    // A debug build checks INV-TIME here.
    let event = Event::Manage {
        by: NodeId::ROOT,
        request,
    };
    let entry = RecordedEntry::at(Instant::ZERO, event);
    let _ = shard.handle_entry(&entry.as_entry(), &mut recorder);
    assert_eq!(check(&log_of(system, tables, recorder, Instant::ZERO)), []);
}
