//! Random systems, and random histories of them.

use punctual_kern::{
    Ceiling, ChildPick, Constraint, Decision, Event, Grant, MissingCause, Next, NodeId, NodeTerms,
    Request, Shard, Uncharged,
};
use punctual_model::{
    AtBudgetEnd, Class, CpuId, Fallback, Frequency, Instant, Late, Mode as LockMode, Ns, OnOverrun,
    PolicyKind, Priority, Protocol, Resource, ResourceId, Scheduler, SchedulerId, Server,
    ServerKind, Slot, Span, Supply, System, Task, ThreadId, Trust, Use, Work,
};
use punctual_policy::AnyPolicy;
use punctual_tables::Tables;
use punctual_trace::{Log, RecordedEntry, Recorder};

use crate::common::{cpu, log_of, periodic};

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

pub(crate) fn ticks(n: u64) -> Span {
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
fn system(dice: &mut Dice, runtime_locks: bool) -> System {
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
    // Between threads of one scheduler, a holder inherits by locks of a runtime.
    let alone = runtime_locks && !divided && dice.one_in(2);
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
            receiver: None,
            fallback: None,
            code: None,
        });
    }
    let declares = !divided && !runtime_locks;
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
    // Its own draws: those of the others stay what they were.
    let mut slices = Dice(now.ticks().wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
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
            receiver: slices.one_in(3).then(|| any_node(&mut slices)),
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

/// An event, and what the entry has beside it.
fn event(
    dice: &mut Dice,
    shard: &Machine,
    last: &Decision,
    runtime_locks: bool,
    entry: &mut RecordedEntry,
) -> Event {
    let now = shard.now();
    if let Next::RunChild(child) = last.next
        && !dice.one_in(4)
    {
        return Event::ChildPicked(pick(dice, shard, child));
    }
    let (thread, node) = (any_thread(dice), any_node(dice));
    let by = if dice.one_in(3) { NodeId::ROOT } else { node };
    let resource = dice.small(2);
    match dice.below(if runtime_locks { 38 } else { 32 }) {
        32 => {
            entry.ceiling = Some(dice.one_in(3).then(|| ceiling(dice, now)));
            Event::Tick
        }
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
        22 => {
            entry.missing = Uncharged::of(MissingCause::Stolen, ticks(dice.below(9)));
            Event::Tick
        }
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

/// Another policy for some scheduler; who asks puts it there first, as a rule.
fn replace(dice: &mut Dice, shard: &mut Machine) -> Event {
    let node = any_node(dice);
    let by = if dice.one_in(3) {
        any_node(dice)
    } else {
        NodeId::ROOT
    };
    let policy = policy(dice).in_ticks(Frequency::NANOSECONDS);
    let room = shard.tree().capacity().entities();
    drop(shard.unshelve(node));
    if !dice.one_in(8) {
        drop(shard.shelve(node, AnyPolicy::new(policy, room, &[])));
    }
    let request = Request::Replace { node, policy };
    Event::Manage { by, request }
}

/// One history; entries come up to `late` ticks after their armed instants.
pub(crate) fn history(seed: u64, late: u64) -> Log {
    history_of(seed, late, false)
}

/// The same, with policies that are replaced.
pub(crate) fn swapping_history(seed: u64, late: u64) -> Log {
    history_of(seed, late, true)
}

fn history_of(seed: u64, late: u64, swaps: bool) -> Log {
    let mut dice = Dice(seed);
    // In some, threads lock what a runtime has and no table declares.
    let runtime_locks = dice.one_in(2);
    let mut system = system(&mut dice, runtime_locks);
    for scheduler in system.schedulers.iter_mut().filter(|_| swaps) {
        if scheduler.trust == Trust::OwnTime {
            let policy = PolicyKind::EarliestDeadlineFirst;
            scheduler.fallback = Some(Fallback { policy, after: 2 });
        }
    }
    let mut tables = Tables::new(&system, Frequency::NANOSECONDS);
    let room = &mut tables.cpus[0].capacity;
    (room.threads, room.nodes) = (room.threads + 3, room.nodes + 2);
    for slot in &mut tables.cpus[0].slots {
        // Children come after all threads among the entities.
        if slot.entity as usize >= system.tasks.len() {
            slot.entity += 3;
        }
    }
    let cpu_input = &tables.cpus[0];
    let mut shard = cpu_input
        .build(AnyPolicy::new)
        .expect("tables that hang together");
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
        let mut entry = RecordedEntry::at(now, Event::Tick);
        entry.event = event(&mut dice, &shard, &last, runtime_locks, &mut entry);
        if let Event::Arrive { arrival, .. } = &mut entry.event {
            // As a rule it is noticed later than it came.
            let since_last = now.since(shard.now()).ticks();
            *arrival = now.saturating_sub(ticks(dice.below(since_last + 1)));
        }
        if swaps && dice.one_in(10) {
            entry.event = replace(&mut dice, &mut shard);
        }
        if let Next::RunChild(child) = last.next
            && swaps
            && dice.one_in(12)
        {
            entry.event = Event::ChildFailed(child);
        }
        last = shard.handle_entry(&entry.as_entry(), &mut recorder);
        while shard.take_message().is_some() {}
    }
    log_of(system, tables, recorder, now)
}
