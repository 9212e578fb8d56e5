//! Entries that come late: what was due before them counts from when it was due.

use crate::common::{FIXED, cpu, log_of, periodic};
use punctual_kern::{Ceiling, Event, Shard, TraceEvent};
use punctual_model::{
    Class, CpuId, Frequency, Instant, Late, Ns, OnOverrun, PolicyKind, Priority, Scheduler,
    SchedulerId, Server, ServerKind, Span, Supply, System, Task, ThreadId, Trust, Work,
};
use punctual_policy::AnyPolicy;
use punctual_rules::check;
use punctual_tables::Tables;
use punctual_trace::{Log, Record, RecordedEntry, Recorder};

fn at(ticks: u64) -> Instant {
    Instant::from_ticks(ticks)
}

/// One scheduler below a CPU of fixed priorities; all tasks are its own.
fn below(supply: Supply, policy: PolicyKind<Ns>, tasks: Vec<Task>) -> System {
    let mut system = System {
        cpus: vec![cpu("0", FIXED)],
        ..System::default()
    };
    system.schedulers.push(Scheduler {
        name: "inner".into(),
        cpu: CpuId(0),
        parent: None,
        policy,
        priority: Priority::new(5),
        supply,
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    });
    system.tasks = tasks;
    for task in &mut system.tasks {
        task.scheduler = Some(SchedulerId(0));
    }
    system
}

/// Tells a shard these events, and keeps what it does.
fn told(system: System, events: &[(u64, Event)]) -> Log {
    let tables = Tables::new(&system, Frequency::NANOSECONDS);
    told_by(system, tables, &entries(events))
}

fn entries(events: &[(u64, Event)]) -> Vec<RecordedEntry> {
    let entry = |&(now, event): &_| RecordedEntry::at(at(now), event);
    events.iter().map(entry).collect()
}

fn told_by(system: System, tables: Tables, entries: &[RecordedEntry]) -> Log {
    let cpu = &tables.cpus[0];
    let mut shard: Shard<AnyPolicy> = cpu
        .build(AnyPolicy::new)
        .expect("tables that hang together");
    let mut recorder = Recorder::with_capacity(1 << 16).expect("memory");
    for entry in entries {
        let decision = shard.handle_entry(&entry.as_entry(), &mut recorder);
        assert_eq!(decision.refused, None, "{entry:?}");
    }
    let end = shard.now();
    log_of(system, tables, recorder, end)
}

fn lawful(log: &Log) {
    let found = check(log);
    assert!(found.is_empty(), "{}", found[0]);
}

fn thread(index: u32) -> ThreadId {
    ThreadId::new(index, 0)
}

fn task(name: &str, class: Class<Ns>) -> Task {
    let mut task = periodic(name, 0, 1, 0, 1);
    task.class = class;
    task
}

fn clocked(name: &str, period: u64, phase: u64) -> Task {
    let class = Class::Periodic {
        period: Span::from_ns(period),
        wcet: Work::from_ns(10),
        relative_deadline: Span::from_ns(period),
    };
    let mut task = task(name, class);
    task.phase = Span::from_ns(phase);
    task
}

/// Once in 100 ticks, for 10 ticks.
fn policed() -> Task {
    let class = Class::Sporadic {
        min_separation: Span::from_ns(100),
        wcet: Work::from_ns(10),
        relative_deadline: Span::from_ns(100),
    };
    let mut task = task("policed", class);
    task.late = Late::Skip;
    task.on_overrun = OnOverrun::Throttle;
    task
}

/// Its budget passes while nothing is ready: what is left tells since when something has been.
fn passing(tasks: Vec<Task>) -> System {
    let server = Server {
        kind: ServerKind::PeriodicResource,
        budget: Work::from_ns(210),
        period: Span::from_ns(1_000),
    };
    below(Supply::Server(server), FIXED, tasks)
}

#[test]
fn a_ceiling_lifts_its_thread_before_what_was_due_joins() {
    let turns = PolicyKind::RoundRobin {
        timeslice: Span::from_ns(50),
    };
    let tasks = vec![clocked("due", 1_000, 0), task("lifted", Class::Aperiodic)];
    let ceiling = Ceiling {
        priority: Priority::new(9),
        absolute_deadline: Instant::ZERO,
    };
    let raised = |now, ceiling| RecordedEntry {
        ceiling: Some(ceiling),
        ..RecordedEntry::at(at(now), Event::Tick)
    };
    let until = Some(at(100));
    let mut all = entries(&[(0, Event::Tick), (5, Event::Block { until })]);
    // The wait was over at 100. Both take turns now, and the lifted one came first.
    all.extend([raised(150, Some(ceiling)), raised(160, None)]);
    let system = below(Supply::Shared, turns, tasks);
    let tables = Tables::new(&system, Frequency::NANOSECONDS);
    let log = told_by(system, tables, &all);
    lawful(&log);
}

#[test]
fn a_skipped_arrival_takes_its_place_in_the_stream_and_grants_from_there() {
    let arrive = |arrival| Event::Arrive {
        thread: thread(0),
        arrival: at(arrival),
    };
    let mut system = passing(vec![policed(), clocked("other", 1_000, 190)]);
    // It only wakes the CPU.
    system.tasks[1].scheduler = None;
    system.tasks[1].priority = Priority::new(9);
    let log = told(
        system,
        &[
            (0, Event::Tick),
            (5, arrive(5)),
            (
                7,
                Event::Block {
                    until: Some(at(150)),
                },
            ),
            (60, arrive(60)),
            // Its place is 105, and the job before is unfinished.
            (105, Event::Tick),
            (150, Event::Tick),
            // Its budget is used up; the next place is 205.
            (158, Event::Tick),
            (170, arrive(170)),
            // The other one was due at 190.
            (240, Event::Tick),
            (250, Event::Complete),
            (255, Event::Tick),
            (1_000, Event::Tick),
        ],
    );
    lawful(&log);
}

#[test]
fn an_arrival_that_waited_for_its_place_counts_from_there() {
    let arrive = |arrival| Event::Arrive {
        thread: thread(0),
        arrival: at(arrival),
    };
    let log = told(
        passing(vec![policed()]),
        &[
            (0, Event::Tick),
            (5, arrive(5)),
            (10, Event::Complete),
            // Noticed at 240; its place was 105, and the budget has passed up to there.
            (240, arrive(60)),
            (245, Event::Complete),
            (1_000, Event::Tick),
        ],
    );
    lawful(&log);
}

#[test]
fn an_allotment_after_the_last_release_has_a_place_of_its_own() {
    let mut early = clocked("early", 100, 0);
    early.on_overrun = OnOverrun::Throttle;
    let mut often = clocked("often", 1, 5);
    often.late = Late::Skip;
    early.late = Late::Skip;
    let system = System {
        cpus: vec![cpu("0", PolicyKind::Fifo)],
        tasks: vec![early, often, clocked("once", 1_000, 250)],
        ..System::default()
    };
    let mut tables = Tables::new(&system, Frequency::NANOSECONDS);
    tables.cpus[0].threads[0].1.until = at(250);
    let log = told_by(
        system,
        tables,
        &entries(&[
            (0, Event::Tick),
            // Its budget is used up; the other one waits, and skips a release at every tick.
            (10, Event::Tick),
            (11, Event::Block { until: None }),
            // 64 releases are taken in each entry: those up to 201.
            (500, Event::Tick),
            (500, Event::Tick),
            (500, Event::Tick),
            // Up to 264, and the budget of 100 is used up; then the one of 300, behind 250.
            (510, Event::Tick),
            (510, Event::Tick),
            (511, Event::Tick),
        ]),
    );
    let place = |record: &Record| matches!(record, Record::Trace(TraceEvent::Replenished { .. }));
    let records = &log.cpus[0].records;
    assert_eq!(
        records.iter().filter(|(_, record)| place(record)).count(),
        2
    );
    lawful(&log);
}
