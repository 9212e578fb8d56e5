//! Random histories of random trees: the checker accuses nobody, and the log runs again.

#[path = "../../../record/trace/tests/common/mod.rs"]
mod common;

use common::{cpu, log_of, periodic};
use punctual_kern::{
    Ceiling, ChildPick, Constraint, Decision, Event, Grant, MissingCause, Next, NodeId, NodeTerms,
    Plan, Refusal, Request, Shard, TraceEvent,
};
use punctual_model::{
    AtBudgetEnd, Class, CpuId, Frequency, Instant, Late, Mode as LockMode, Ns, OnOverrun,
    PolicyKind, Priority, Protocol, Resource, ResourceId, Scheduler, SchedulerId, Server,
    ServerKind, Slot, Span, Supply, System, Task, ThreadId, Trust, Use, Work,
};
use punctual_policy::AnyPolicy;
use punctual_rules::{Rule, check};
use punctual_trace::{Log, Record, Recorder, Records, replay, text};

/// Steele, Lea and Flood's SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn small(&mut self, n: u64) -> u32 {
        u32::try_from(self.below(n)).expect("small")
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).expect("small")]
    }
}

const THREADS: u64 = 7;
const NODES: u64 = 4;

fn ns(n: u64) -> Span<Ns> {
    Span::from_ns(n)
}

fn ticks(n: u64) -> Span {
    Span::from_ticks(n)
}

fn server(dice: &mut Dice) -> Server<Ns> {
    let period = 4 + dice.below(40);
    Server {
        kind: dice.of(&ServerKind::ALL),
        budget: Work::from_ns(1 + dice.below(period / 2)),
        period: ns(period),
    }
}

fn policy(dice: &mut Dice) -> PolicyKind<Ns> {
    let timeslice = ns(1 + dice.below(6));
    dice.of(&[
        PolicyKind::FixedPriority { preemptive: true },
        PolicyKind::FixedPriority { preemptive: true },
        PolicyKind::FixedPriority { preemptive: false },
        PolicyKind::EarliestDeadlineFirst,
        PolicyKind::Fifo,
        PolicyKind::RoundRobin { timeslice },
    ])
}

fn task(dice: &mut Dice, index: u64) -> Task {
    let period = 5 + dice.below(60);
    let amount = Work::from_ns(1 + dice.below(period / 4 + 1));
    let period = ns(period);
    let mut task = periodic(&format!("t{index}"), 0, 1, 0, dice.small(9));
    let periodic = Class::Periodic {
        period,
        wcet: amount,
        relative_deadline: period,
    };
    let sporadic = Class::Sporadic {
        min_separation: period,
        wcet: amount,
        relative_deadline: period,
    };
    let reservation = Class::Reservation {
        period,
        slice: amount,
    };
    let once = Class::Once {
        size: amount,
        relative_deadline: period,
    };
    let classes = [periodic, periodic, sporadic, reservation, once];
    task.class = match dice.below(6) {
        5 => Class::Aperiodic,
        class => classes[usize::try_from(class).expect("small")],
    };
    task.on_overrun = dice.of(&[
        OnOverrun::Throttle,
        OnOverrun::Demote,
        OnOverrun::Stop,
        OnOverrun::Signal,
    ]);
    task.late = dice.of(&[Late::Queue { backlog: 3 }, Late::Skip]);
    task.phase = ns(dice.below(20));
    task
}

/// Two resources of any protocol.
fn resources(dice: &mut Dice) -> Vec<Resource> {
    let protocols = [
        Protocol::Inheritance,
        Protocol::ImmediateCeiling,
        Protocol::StackResource,
        Protocol::NonPreemptive,
    ];
    let one = |name: &str| Resource {
        name: name.into(),
        protocol: dice.of(&protocols),
        at_budget_end: dice.of(&[AtBudgetEnd::Overrun, AtBudgetEnd::CheckFirst]),
    };
    ["bus", "map"].map(one).into()
}

/// What a task may lock.
fn uses(dice: &mut Dice) -> Vec<Use> {
    let mut uses = Vec::new();
    for resource in 0..2 {
        if dice.one_in(2) {
            uses.push(Use {
                resource: ResourceId(resource),
                length: Work::from_ns(1 + dice.below(4)),
                mode: dice.of(&[LockMode::Exclusive, LockMode::Shared]),
                inside: None,
            });
        }
    }
    uses
}

/// A tree of up to four schedulers with up to seven tasks, and room for more of both.
fn system(dice: &mut Dice, loans: bool) -> System {
    let divided = dice.one_in(4);
    let frame = PolicyKind::Tdm {
        frame: ns(20),
        scheduling: ns(1),
    };
    let root = if divided { frame } else { policy(dice) };
    let mut system = System {
        cpus: vec![cpu("0", root)],
        ..System::default()
    };
    // Between threads of one scheduler, who waits for a lock of a runtime lends.
    let alone = loans && !divided && dice.one_in(2);
    let nodes = if alone { 0 } else { 1 + dice.below(NODES) };
    for index in 0..nodes {
        let below = (0..index).filter(|at| {
            let above = &system.schedulers[usize::try_from(*at).expect("small")];
            above.trust == Trust::Inline
        });
        let below: Vec<u64> = below.collect();
        let nested = !below.is_empty() && dice.one_in(2);
        let parent = nested.then(|| SchedulerId(u16::try_from(dice.of(&below)).expect("small")));
        let supply = match parent {
            None if divided => Supply::Slots(vec![Slot {
                at: ns(index * 4),
                length: ns(3),
            }]),
            _ if dice.one_in(4) && root != PolicyKind::EarliestDeadlineFirst => Supply::Shared,
            _ => Supply::Server(server(dice)),
        };
        system.schedulers.push(Scheduler {
            name: format!("s{index}"),
            cpu: CpuId(0),
            parent,
            policy: policy(dice),
            priority: Priority::new(dice.small(9)),
            supply,
            trust: dice.of(&[Trust::Inline, Trust::Inline, Trust::OwnTime]),
            quota: dice.one_in(4).then(|| 8 + dice.small(3)),
        });
    }
    let declares = !divided && !loans;
    if declares {
        system.resources = resources(dice);
    }
    for index in 0..THREADS {
        let mut task = task(dice, index);
        let mut home = dice.below(nodes + 1);
        if divided && system.tasks.iter().any(|t| t.scheduler.is_none()) {
            home = home.max(1);
        }
        task.scheduler = home
            .checked_sub(1)
            .map(|at| SchedulerId(u16::try_from(at).expect("small")));
        if task.scheduler.is_none() && divided {
            task.slots = vec![Slot {
                at: ns(16),
                length: ns(3),
            }];
        }
        if task.class.runs_per_job() && declares {
            task.uses = uses(dice);
        }
        system.tasks.push(task);
    }
    system
}

fn any_thread(dice: &mut Dice) -> ThreadId {
    ThreadId::new(dice.small(THREADS + 3), u32::from(dice.one_in(6)))
}

fn any_node(dice: &mut Dice) -> NodeId {
    let index = u16::try_from(dice.below(NODES + 2)).expect("small");
    NodeId::new(index, u16::from(dice.one_in(6)))
}

fn any_constraint(dice: &mut Dice) -> Constraint {
    let task = task(dice, 9);
    Constraint::of_task(&task, 9).in_ticks(Frequency::NANOSECONDS)
}

fn request(dice: &mut Dice, now: Instant) -> Request {
    let (thread, node) = (any_thread(dice), any_node(dice));
    let until = dice
        .one_in(2)
        .then(|| now.saturating_add(ticks(dice.below(30))));
    match dice.below(10) {
        0 => Request::Create {
            home: node,
            constraint: any_constraint(dice),
        },
        1 | 2 => Request::Grant { thread, to: node },
        3 => Request::Revoke { thread },
        4 => Request::Promote(NodeTerms {
            supply: match dice.below(4) {
                0 => Grant::Shared,
                1 => Grant::Slots,
                _ => Grant::Server(server(dice).in_ticks(Frequency::NANOSECONDS)),
            },
            priority: Priority::new(dice.small(9)),
            order: 20 + dice.small(4),
            trust: dice.of(&[Trust::Inline, Trust::OwnTime]),
            quota: dice.one_in(3).then(|| dice.small(4)),
        }),
        5 if dice.one_in(2) => Request::Demote(node),
        6 => Request::Block {
            thread,
            exclusive: dice.one_in(2),
            until,
        },
        7 => Request::Lend {
            to: node,
            work: Work::from_ticks(dice.below(6)),
        },
        _ => Request::Wake(thread),
    }
}

fn ceiling(dice: &mut Dice, now: Instant) -> Ceiling {
    Ceiling {
        priority: Priority::new(dice.small(9)),
        absolute_deadline: match dice.below(3) {
            0 => Instant::MAX,
            1 => Instant::ZERO,
            _ => now.saturating_add(ticks(dice.below(60))),
        },
    }
}

type Machine = Shard<AnyPolicy>;

fn event(dice: &mut Dice, shard: &Machine, last: &Decision, loans: bool) -> Event {
    let now = shard.now();
    if let Next::RunChild(child) = last.next
        && !dice.one_in(4)
    {
        return Event::ChildPicked(pick(dice, shard, child));
    }
    let (thread, node) = (any_thread(dice), any_node(dice));
    let by = if dice.one_in(3) { NodeId::ROOT } else { node };
    let resource = dice.small(2);
    match dice.below(if loans { 38 } else { 32 }) {
        32 => Event::Raise(dice.one_in(3).then(|| ceiling(dice, now))),
        33..=35 => Event::BlockOn {
            holder: thread,
            key: dice.small(2),
            until: dice
                .one_in(2)
                .then(|| now.saturating_add(ticks(dice.below(30)))),
        },
        36 | 37 => Event::HandOver {
            key: dice.small(2),
            from: if dice.one_in(3) {
                thread
            } else {
                shard.running().unwrap_or(thread)
            },
            to: any_thread(dice),
        },
        26..=28 => Event::Lock {
            resource,
            mode: dice.of(&[LockMode::Exclusive, LockMode::Shared]),
            until: dice
                .one_in(3)
                .then(|| now.saturating_add(ticks(dice.below(9)))),
        },
        29..=31 => Event::Unlock { resource },
        0..=6 => Event::Tick,
        7..=10 => Event::Complete,
        11 => Event::Block { until: None },
        12 => Event::Block {
            until: Some(now.saturating_add(ticks(dice.below(30)))),
        },
        13 => Event::Yield,
        14 if dice.one_in(8) => Event::Exit,
        15 if dice.one_in(8) => Event::Kill(thread),
        16 if dice.one_in(3) => Event::Create(any_constraint(dice)),
        17 if dice.one_in(4) => Event::Change {
            thread,
            constraint: any_constraint(dice),
        },
        18 => Event::Protect,
        19 => Event::Unprotect,
        20 | 21 => Event::Wake(shard.running().unwrap_or(thread)),
        22 => Event::Missing {
            span: ticks(dice.below(9)),
            cause: MissingCause::Stolen,
        },
        23 => Event::Arrive {
            thread,
            arrival: now,
        },
        _ => Event::Manage {
            by,
            request: request(dice, now),
        },
    }
}

/// An answer of a child: mostly lawful.
fn pick(dice: &mut Dice, shard: &Machine, child: NodeId) -> ChildPick {
    let ready: Vec<ThreadId> = shard.ready_in(child).map(|(thread, _)| thread).collect();
    let thread = match dice.below(8) {
        0 => None,
        1 => Some(any_thread(dice)),
        _ => (!ready.is_empty()).then(|| dice.of(&ready)),
    };
    let epoch = shard.epoch(child).unwrap_or(0);
    ChildPick {
        child: if dice.one_in(9) {
            any_node(dice)
        } else {
            child
        },
        epoch: epoch.wrapping_sub(u32::from(dice.one_in(9))),
        thread,
        until: dice
            .one_in(2)
            .then(|| shard.now().saturating_add(ticks(dice.below(12)))),
    }
}

/// One history; entries come up to `late` ticks after their armed instants.
fn history(seed: u64, late: u64) -> Log {
    let mut dice = Dice(seed);
    // In some, threads lock what a runtime has and no plan declares.
    let loans = dice.one_in(2);
    let system = system(&mut dice, loans);
    let mut plan = Plan::new(&system, Frequency::NANOSECONDS);
    let room = &mut plan.cpus[0].capacity;
    (room.threads, room.nodes) = (room.threads + 3, room.nodes + 2);
    for slot in &mut plan.cpus[0].slots {
        // Children come after all threads among the entities.
        if slot.entity as usize >= system.tasks.len() {
            slot.entity += 3;
        }
    }
    let cpu_plan = &plan.cpus[0];
    let mut shard = cpu_plan
        .build(AnyPolicy::new)
        .expect("a plan that hangs together");
    let mut recorder = Recorder::with_capacity(1 << 20).expect("memory");
    let mut now = Instant::ZERO;
    let mut last = shard.handle(now, Event::Tick, &mut recorder);
    for _ in 0..400 {
        let armed = last.arm.unwrap_or(now.saturating_add(ticks(30)));
        let room = armed.since(now).ticks() + if dice.one_in(4) { late } else { 0 };
        let step = if dice.one_in(3) {
            room
        } else {
            dice.below(6).min(room)
        };
        now = now.saturating_add(ticks(step));
        let mut what = event(&mut dice, &shard, &last, loans);
        if let Event::Arrive { arrival, .. } = &mut what {
            // As a rule it is noticed later than it came.
            let since_last = now.since(shard.now()).ticks();
            *arrival = now.saturating_sub(ticks(dice.below(since_last + 1)));
        }
        last = shard.handle(now, what, &mut recorder);
        if let Event::Missing { .. } | Event::Raise(_) = what {
            last = shard.handle(now, Event::Tick, &mut recorder);
        }
        while shard.take_message().is_some() {}
    }
    log_of(system, plan, recorder, now)
}

#[test]
fn whatever_is_asked_of_a_tree_the_checker_finds_nothing_wrong_with_the_core() {
    for seed in 0..600 {
        let log = history(seed, 0);
        let found = check(&log);
        assert!(found.is_empty(), "seed {seed}: {}", found[0]);
    }
}

#[test]
fn late_entries_are_no_reason_to_accuse_the_core() {
    for (late, seeds) in [(9, 600), (100, 400), (2_000, 200)] {
        for seed in 0..seeds {
            let found = check(&history(seed, late));
            let first = found.first();
            assert!(first.is_none(), "{late} late, seed {seed}: {}", found[0]);
        }
    }
}

/// So many histories as `HISTORIES` says; 4,000 take a minute and a half beside nothing else.
#[test]
fn of_as_many_histories_as_are_asked_for_none_is_accused() {
    let asked = std::env::var("HISTORIES").ok().and_then(|n| n.parse().ok());
    let accused = |late: u64| {
        let seeds =
            (0..asked.unwrap_or(40)).filter(|&seed| !check(&history(seed, late)).is_empty());
        seeds.collect::<Vec<u64>>()
    };
    let all = [0, 9, 100, 2_000].map(accused);
    let none: [Vec<u64>; 4] = Default::default();
    assert_eq!(all, none);
}

#[test]
fn every_history_is_written_read_and_run_again() {
    for seed in 0..60 {
        let log = history(seed, 5);
        let mut bytes = Vec::new();
        text::write(&log, &mut bytes).expect("memory takes it");
        let again =
            text::read(&mut bytes.as_slice()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(again, log, "seed {seed}");
        let stats = replay(&again, AnyPolicy::new).unwrap_or_else(|d| panic!("seed {seed}: {d}"));
        assert!(stats.decisions > 300, "seed {seed}: {stats:?}");
    }
}

fn records(log: &Log) -> Vec<Record> {
    log.cpus[0].records.iter().map(|(_, r)| r).collect()
}

/// Applies `change` to histories until it has changed ten; each must be rejected under `rule`.
/// `change` gets the event before each record, and says whether it has changed something.
fn rejected(rule: Rule, change: impl Fn(&Event, &mut Vec<Record>, usize) -> bool) {
    rejected_in(rule, |_, event, all, at| change(event, all, at));
}

/// The same; `change` gets the log, too.
fn rejected_in(rule: Rule, change: impl Fn(&Log, &Event, &mut Vec<Record>, usize) -> bool) {
    let mut changed = 0;
    for seed in 0..200 {
        let mut log = history(seed, 0);
        let mut all = records(&log);
        let mut event = Event::Tick;
        for at in 0..all.len() {
            if let Record::Event { event: next, .. } = all[at] {
                event = next;
            }
            if change(&log, &event, &mut all, at) {
                log.cpus[0].records = Records::from_iter(all);
                let found = check(&log);
                let first = found
                    .first()
                    .unwrap_or_else(|| panic!("seed {seed}: not noticed"));
                assert_eq!(first.rule, rule, "seed {seed}: {first}");
                changed += 1;
                break;
            }
        }
        if changed == 10 {
            return;
        }
    }
    panic!("only {changed} histories could be changed");
}

#[test]
fn an_unlawful_answer_that_is_believed_or_a_lawful_one_that_is_not() {
    rejected(Rule::ChildAnswersChecked, |event, all, at| {
        let Record::Decision(decision) = &mut all[at] else {
            return false;
        };
        let unlawful = matches!(
            decision.refused,
            Some(Refusal::NotItsOwn(_) | Refusal::NotReady(_) | Refusal::NotDeciding(_))
        );
        let believed = matches!(event, Event::ChildPicked(_)) && unlawful;
        if believed {
            decision.refused = None;
        }
        believed
    });
    rejected(Rule::ChildAnswersChecked, |event, all, at| {
        let (Event::ChildPicked(pick), Record::Decision(decision)) = (event, &mut all[at]) else {
            return false;
        };
        let (Some(thread), None) = (pick.thread, decision.refused) else {
            return false;
        };
        decision.refused = Some(Refusal::NotItsOwn(thread));
        true
    });
}

#[test]
fn a_child_that_is_not_charged_for_deciding() {
    let charged =
        |record: &Record| matches!(record, Record::Trace(TraceEvent::ChildCharged { .. }));
    rejected(Rule::SupplyRespected, |_, all, at| {
        let found = charged(&all[at]);
        if found {
            let _ = all.remove(at);
        }
        found
    });
    rejected(Rule::SupplyRespected, |_, all, at| {
        if let Record::Trace(TraceEvent::ChildCharged { work, .. }) = &mut all[at] {
            *work = Work::from_ticks(work.ticks() + 1);
            return true;
        }
        false
    });
}

#[test]
fn power_over_what_is_not_ones_own() {
    rejected(Rule::PowerRespected, |event, all, at| {
        let Record::Decision(decision) = &mut all[at] else {
            return false;
        };
        let unlawful = matches!(
            decision.refused,
            Some(
                Refusal::NotItsOwn(_)
                    | Refusal::NotItsChild(_)
                    | Refusal::OnlyRootCreates(_)
                    | Refusal::BlockedByTrusted(_)
            )
        );
        let done = matches!(event, Event::Manage { .. }) && unlawful;
        if done {
            decision.refused = None;
        }
        done
    });
    // A thread changes hands though nobody asked for it.
    rejected(Rule::PowerRespected, |event, all, at| {
        let Record::Trace(TraceEvent::Switched {
            to: Some(thread), ..
        }) = all[at]
        else {
            return false;
        };
        let quiet = matches!(event, Event::Tick | Event::Complete);
        if quiet {
            let home = NodeId::ROOT;
            all.insert(at, Record::Trace(TraceEvent::Moved { thread, home }));
        }
        quiet
    });
}

/// Whether an entry without the record at `at` has one that is `wanted`.
fn entry_has(all: &[Record], at: usize, wanted: impl Fn(&Record) -> bool) -> bool {
    let is_event = |r: &&Record| matches!(r, Record::Event { .. });
    let is_end = |r: &&Record| matches!(r, Record::Decision(_));
    let before = all[..at].iter().rev().take_while(|r| !is_event(r));
    let after = all[at + 1..].iter().take_while(|r| !is_end(r));
    before.chain(after).any(wanted)
}

/// A mistake that the core had (doc/soak.md).
#[test]
fn a_scheduler_that_is_lowered_while_a_thread_of_it_holds_what_others_share() {
    rejected(Rule::PolicyOrder, |_, all, at| {
        if let Record::Trace(TraceEvent::Queued {
            release, priority, ..
        }) = &mut all[at]
            && *release == Instant::ZERO
            && priority.number() > 0
        {
            *priority = Priority::new(priority.number() - 1);
            return true;
        }
        false
    });
}

/// A mistake that the core had (doc/soak.md).
#[test]
fn a_server_that_counts_from_before_it_has_a_budget_again() {
    rejected_in(Rule::SupplyRespected, |log, event, all, at| {
        let Record::Trace(TraceEvent::Queued { node, .. }) = all[at] else {
            return false;
        };
        let plan = node.index().checked_sub(1);
        let plan = plan.and_then(|at| log.plan.cpus[0].nodes.get(at));
        let in_periods = plan.is_some_and(|plan| match plan.terms.supply {
            Grant::Server(server) => {
                use ServerKind::{ConstantBandwidth, Sporadic};
                !matches!(server.kind, ConstantBandwidth | Sporadic)
            }
            Grant::Shared | Grant::Slots => false,
        });
        // It ran out, with something ready, and nothing but time has passed since.
        let quiet = |r: &&Record| match r {
            Record::Event { event, .. } => *event == Event::Tick,
            Record::Trace(TraceEvent::Switched { .. } | TraceEvent::ServerReplenished { .. })
            | Record::Decision(_) => true,
            Record::Trace(_) => false,
        };
        let told = all[..at].iter().rposition(|r| !quiet(&r)).unwrap_or(0);
        let preempted = |r: &Record| {
            matches!(
                r,
                Record::Trace(TraceEvent::Switched {
                    preempted: true,
                    ..
                })
            )
        };
        let budget = Some(Work::ZERO);
        let unqueued = Record::Trace(TraceEvent::Unqueued { node, budget });
        let ran_out = all[told] == unqueued && preempted(&all[told + 1]);
        if let Record::Trace(TraceEvent::Queued { release, .. }) = &mut all[at]
            && in_periods
            && ran_out
            && *event == Event::Tick
        {
            *release = release.saturating_sub(ticks(1));
            return true;
        }
        false
    });
}

/// A mistake that the core had (doc/soak.md).
#[test]
fn a_thread_that_waits_or_holds_without_a_job() {
    rejected(Rule::OnlyReadyRuns, |event, all, at| {
        let Record::Trace(TraceEvent::Completed { thread, job, .. }) = all[at] else {
            return false;
        };
        let starts = |r: &Record| match r {
            Record::Trace(TraceEvent::Started { thread: of, .. }) => *of == thread,
            Record::Trace(TraceEvent::Ended { .. } | TraceEvent::Unlocked { .. }) => true,
            _ => false,
        };
        let lasts = *event != Event::Complete || entry_has(all, at, starts);
        if !lasts {
            let for_predecessors = false;
            let blocked = TraceEvent::Blocked {
                thread,
                job,
                for_predecessors,
            };
            all.insert(at + 1, Record::Trace(blocked));
        }
        !lasts
    });
}
