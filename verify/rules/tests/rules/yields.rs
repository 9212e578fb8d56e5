//! Who yields goes behind its equals; policies that order them otherwise are accused.

use crate::common::{FIXED, cpu, log_of, periodic};
use punctual_kern::{Attributes, Event, Next, Pick, Policy, Shard};
use punctual_model::{Frequency, Instant, Ns, PolicyKind, Priority, Span, System, ThreadId, Work};
use punctual_rules::{Rule, check};
use punctual_tables::Tables;
use punctual_trace::{Log, Recorder};

const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;
const WAITING: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: false };

/// What a policy does when a thread yields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// Behind who is ready, ahead of who comes later.
    Right,
    StaysInFront,
    /// Behind who is ready, who change places.
    TurnsOthersRound,
    /// Behind the next of its equals alone.
    BehindOne,
    /// Behind whoever comes later, too.
    BehindWhoComesLater,
}

/// Ready threads in a list, by urgency and place among equals.
struct Listed {
    way: Way,
    kind: PolicyKind<Ns>,
    ready: Vec<(ThreadId, u64, Instant, u32)>,
    latest: Instant,
    holder: Option<ThreadId>,
}

impl Listed {
    fn new(way: Way, kind: PolicyKind<Ns>) -> Listed {
        let (latest, holder) = (Instant::ZERO, None);
        Listed {
            way,
            kind,
            ready: Vec::new(),
            latest,
            holder,
        }
    }

    fn sort(&mut self) {
        self.ready
            .sort_by_key(|&(_, urgency, place, order)| (urgency, place, order));
    }

    fn next_place(&mut self) -> Instant {
        self.latest = self.latest.saturating_add(Span::from_ticks(1));
        self.latest
    }
}

impl Policy for Listed {
    fn wake(&mut self, thread: ThreadId, a: &Attributes) {
        let urgency = match self.kind {
            EDF => a.absolute_deadline.ticks(),
            _ => u64::from(u32::MAX - a.priority.number()),
        };
        self.latest = self.latest.max(a.release);
        self.ready.push((thread, urgency, a.release, a.order));
        self.sort();
    }

    fn block(&mut self, thread: ThreadId) {
        self.ready.retain(|ready| ready.0 != thread);
        self.holder = self.holder.filter(|&holder| holder != thread);
    }

    fn charge(&mut self, thread: ThreadId, _: Work) {
        self.holder = (self.kind == WAITING).then_some(thread);
    }

    fn yield_now(&mut self, thread: ThreadId) {
        self.holder = None;
        let Some(at) = self.ready.iter().position(|ready| ready.0 == thread) else {
            return;
        };
        let urgency = self.ready[at].1;
        let is_other =
            |ready: &&(ThreadId, u64, Instant, u32)| ready.1 == urgency && ready.0 != thread;
        let others: Vec<ThreadId> = self.ready.iter().filter(is_other).map(|r| r.0).collect();
        let order = match self.way {
            Way::StaysInFront => return,
            Way::BehindWhoComesLater => {
                self.ready[at].2 = Instant::MAX;
                return self.sort();
            }
            Way::Right => vec![thread],
            Way::TurnsOthersRound => others.into_iter().rev().chain([thread]).collect(),
            Way::BehindOne => {
                let mut order = others;
                order.insert(order.len().min(1), thread);
                order
            }
        };
        for thread in order {
            let place = self.next_place();
            let mut ready = self.ready.iter_mut();
            if let Some(ready) = ready.find(|ready| ready.0 == thread) {
                ready.2 = place;
            }
        }
        self.sort();
    }

    fn pick(&mut self, _: Instant) -> Pick {
        let first = self.ready.first().map(|ready| ready.0);
        let entity = self.holder.or(first);
        Pick {
            entity,
            until: None,
        }
    }
}

/// Five threads, four of them equals that come one after the other (by deadline: at once).
fn system(kind: PolicyKind<Ns>) -> System {
    let mut system = System {
        cpus: vec![cpu("0", kind)],
        ..System::default()
    };
    for (index, name) in ["a", "b", "c", "d", "urgent"].into_iter().enumerate() {
        let mut task = periodic(name, 0, 1, 200, 1);
        if kind != EDF {
            task.phase = Span::from_us(40 * index as u64);
        }
        system.tasks.push(task);
    }
    system.tasks[4].priority = Priority::new(2);
    system
}

/// A run of `way` in which threads yield, wait and end their jobs as the dice fall.
fn run(way: Way, kind: PolicyKind<Ns>, seed: u64) -> Log {
    let system = system(kind);
    let tables = Tables::new(&system, Frequency::NANOSECONDS);
    let cpu = &tables.cpus[0];
    let shard = cpu.build(|_, _, _| Listed::new(way, kind));
    let mut shard = shard.expect("tables that hang together");
    let mut recorder = Recorder::with_capacity(1 << 18).expect("memory");
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut dice = |n: u64| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 11) % n
    };
    let mut now = Instant::ZERO;
    let mut decision = shard.handle(now, Event::Tick, &mut recorder);
    for _ in 0..400 {
        let step = now.saturating_add(Span::from_ticks(1_000 * (1 + dice(20))));
        let due = decision.arm.unwrap_or(step);
        (now, decision) = if due <= step {
            (due, shard.handle(due, Event::Tick, &mut recorder))
        } else {
            let event = told(&shard, decision.next, dice(12));
            (step, shard.handle(step, event, &mut recorder))
        };
    }
    log_of(system, tables, recorder, now)
}

fn told(shard: &Shard<Listed>, next: Next, what: u64) -> Event {
    let other = ThreadId::new(u32::try_from(what % 5).expect("small"), 0);
    match (what, next) {
        (0..=6, Next::Thread(_)) => Event::Yield,
        (7, Next::Thread(_)) => Event::Complete,
        (8, Next::Thread(_)) => Event::Block { until: None },
        _ if shard.running() == Some(other) => Event::Tick,
        _ => Event::Wake(other),
    }
}

const SEEDS: u64 = 40;

#[test]
fn a_policy_that_puts_who_yields_behind_its_equals_is_accused_of_nothing() {
    for kind in [FIXED, WAITING, EDF] {
        for seed in 0..SEEDS {
            let found = check(&run(Way::Right, kind, seed));
            assert!(found.is_empty(), "{kind:?} seed {seed}: {}", found[0]);
        }
    }
}

#[test]
fn every_other_place_among_equals_is_noticed() {
    for kind in [FIXED, WAITING, EDF] {
        for way in [
            Way::StaysInFront,
            Way::TurnsOthersRound,
            Way::BehindOne,
            Way::BehindWhoComesLater,
        ] {
            // By deadline nobody who comes later is an equal.
            if (kind, way) == (EDF, Way::BehindWhoComesLater) {
                continue;
            }
            for seed in 0..SEEDS {
                let found = check(&run(way, kind, seed));
                let first = found.first();
                let first = first.unwrap_or_else(|| panic!("{kind:?} {way:?} seed {seed}"));
                assert_eq!(first.rule, Rule::PolicyOrder, "{first}");
            }
        }
    }
}
