//! Random histories with locks, with invariants at every exit.
//!
//! Who runs is held against an oracle that follows the chains of waiters by itself.

use punctual_kern::{Event, Next, Refusal, ResourceTerms, State, TraceEvent, UseTerms};
use punctual_model::{AtBudgetEnd, Instant, Mode, Priority, Protocol, Span, ThreadId, Work};

use crate::driver::{Driver, id, periodic};
use crate::histories::{random_constraint, random_event};
use crate::locks::{a_use, resource};
use crate::tree_histories::random_grove;
use crate::trees::node;
use punctual_generate::Dice;

const THREADS: u32 = 6;
const RESOURCES: u32 = 4;

fn index(dice: &mut Dice, below: u64) -> usize {
    usize::try_from(dice.below(below)).unwrap()
}

fn small(dice: &mut Dice, below: u32) -> u32 {
    u32::try_from(dice.below(u64::from(below))).unwrap()
}

fn random_mode(dice: &mut Dice) -> Mode {
    [Mode::Exclusive, Mode::Shared][index(dice, 2)]
}

pub(crate) fn random_use(dice: &mut Dice, resource: u32) -> UseTerms {
    UseTerms {
        mode: random_mode(dice),
        priority: Priority::new(small(dice, 10)),
        ..a_use(resource, 1 + dice.below(6))
    }
}

pub(crate) fn random_lock(dice: &mut Dice, now: u64) -> Event {
    let resource = small(dice, RESOURCES);
    if dice.below(2) == 0 {
        return Event::Unlock { resource };
    }
    let until = (dice.below(4) == 0).then(|| Instant::from_ticks(now + dice.below(20)));
    Event::Lock {
        resource,
        mode: random_mode(dice),
        until,
    }
}

/// Any events in any order: `check` is called at every exit.
fn chaos(seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let mut d = Driver::new(&[]);
    for thread in 0..THREADS {
        let mut c = random_constraint(&mut dice);
        c.order = thread;
        let _ = d.shard.attach(c).unwrap();
    }
    for number in 0..RESOURCES {
        let protocol = Protocol::ALL[index(&mut dice, 5)];
        let _ = d.shard.add_resource(resource(protocol, 9));
        for thread in 0..THREADS {
            if dice.below(4) > 0 {
                let terms = random_use(&mut dice, number);
                d.shard.declare_use(id(thread), terms).unwrap();
            }
        }
    }
    let mut now = 0;
    for _ in 0..400 {
        let event = match dice.below(3) {
            0 => random_event(&mut dice, d.shard.running(), now),
            1 => Event::Tick,
            _ => random_lock(&mut dice, now),
        };
        let decision = d.at(now, event);
        let free = 1 + dice.below(6);
        let armed = decision
            .arm
            .map_or(free, |at| at.ticks().saturating_sub(now));
        now += free.min(armed);
    }
    let waits = |(_, e): &&(u64, TraceEvent)| matches!(e, TraceEvent::Waits { .. });
    d.log.0.iter().filter(waits).count()
}

#[test]
fn invariants_hold_in_random_histories_with_locks() {
    let waits: usize = (0..4_000).map(chaos).sum();
    assert!(waits > 2_000, "only {waits} waits in all histories");
}

/// The same on random trees, with resources between schedulers.
fn chaos_in_a_tree(seed: u64) -> (usize, usize) {
    let mut dice = Dice::new(seed);
    let (mut grove, _, parents) = random_grove(&mut dice);
    for number in 0..RESOURCES {
        let spans = dice.below(2) == 0;
        let common = if spans {
            0
        } else {
            index(&mut dice, parents.len() as u64)
        };
        let protocol = if spans {
            Protocol::ImmediateCeiling
        } else {
            Protocol::ALL[index(&mut dice, 5)]
        };
        let terms = ResourceTerms {
            at_budget_end: [AtBudgetEnd::Overrun, AtBudgetEnd::CheckFirst][index(&mut dice, 2)],
            common: node(u16::try_from(common).unwrap()),
            spans_schedulers: spans,
            ..resource(protocol, 9)
        };
        let _ = grove.shard.add_resource(terms);
        for thread in 0..THREADS {
            if dice.below(3) > 0 {
                let terms = random_use(&mut dice, number);
                grove.shard.declare_use(id(thread), terms).unwrap();
            }
        }
    }
    let mut now = 0;
    for _ in 0..400 {
        let event = match dice.below(3) {
            0 => random_event(&mut dice, grove.shard.running(), now),
            1 => Event::Tick,
            _ => random_lock(&mut dice, now),
        };
        let decision = grove.at(now, event);
        let free = 1 + dice.below(6);
        let armed = decision
            .arm
            .map_or(free, |at| at.ticks().saturating_sub(now));
        now += free.min(armed);
    }
    let log = grove.log.0.iter();
    let waits = log
        .clone()
        .filter(|(_, e)| matches!(e, TraceEvent::Waits { .. }));
    let postponed = log.filter(|(_, e)| matches!(e, TraceEvent::Postponed { .. }));
    (waits.count(), postponed.count())
}

#[test]
fn invariants_hold_in_random_trees_with_locks() {
    let (mut waits, mut postponed) = (0, 0);
    for seed in 0..3_000 {
        let (w, p) = chaos_in_a_tree(seed);
        waits += w;
        postponed += p;
    }
    assert!(waits > 1_000, "only {waits} waits");
    assert!(
        postponed > 1_000,
        "only {postponed} sections waited for supply"
    );
}

/// What each thread holds and waits for, from the trace alone.
#[derive(Default)]
struct Shadow {
    /// Resource, by thread; with whether anything is inherited by it still.
    holds: Vec<Vec<(u32, bool)>>,
    waits: Vec<Option<u32>>,
    seen: usize,
}

impl Shadow {
    fn new() -> Shadow {
        Shadow {
            holds: vec![Vec::new(); THREADS as usize],
            waits: vec![None; THREADS as usize],
            seen: 0,
        }
    }

    fn follow(&mut self, log: &[(u64, TraceEvent)]) {
        for (_, event) in &log[self.seen..] {
            match *event {
                TraceEvent::Locked {
                    thread, resource, ..
                } => {
                    self.waits[thread.index()] = None;
                    self.holds[thread.index()].push((resource, true));
                }
                TraceEvent::Unlocked { thread, resource } => {
                    self.holds[thread.index()].retain(|(held, _)| *held != resource);
                }
                TraceEvent::SectionOverran { thread, resource } => {
                    let holds = &mut self.holds[thread.index()];
                    for (_, counts) in holds.iter_mut().filter(|(held, _)| *held == resource) {
                        *counts = false;
                    }
                }
                TraceEvent::Waits {
                    thread, resource, ..
                } => self.waits[thread.index()] = Some(resource),
                TraceEvent::Woken { thread, .. } => self.waits[thread.index()] = None,
                _ => {}
            }
        }
        self.seen = log.len();
    }

    /// The urgency of every thread: the highest of its own, of the ceilings that it holds, and of
    /// whoever waits for what it holds, until nothing changes.
    fn urgencies(&self, own: &[u32], protocols: &[Protocol]) -> Vec<u32> {
        let mut urgency = own.to_vec();
        for _ in 0..THREADS {
            for thread in 0..urgency.len() {
                for &(resource, counts) in &self.holds[thread] {
                    let ceiling = protocols[resource as usize] == Protocol::ImmediateCeiling;
                    if counts && ceiling {
                        urgency[thread] = urgency[thread].max(9);
                    }
                    for (waiter, waits) in self.waits.iter().enumerate() {
                        if counts && *waits == Some(resource) {
                            urgency[thread] = urgency[thread].max(urgency[waiter]);
                        }
                    }
                }
            }
        }
        urgency
    }
}

/// Periodic jobs that lock in the order of the numbers and unlock in any. Returns jobs done.
fn orderly(seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let own: Vec<u32> = (0..THREADS).map(|_| small(&mut dice, 10)).collect();
    let constraints = own.iter().zip(0_u32..).map(|(&priority, order)| {
        let mut c = periodic(200, 400, priority);
        (c.order, c.phase) = (order, Span::from_ticks(dice.below(60)));
        c
    });
    let constraints: Vec<_> = constraints.collect();
    let mut d = Driver::new(&constraints);
    let protocols: Vec<Protocol> = (0..RESOURCES)
        .map(|_| [Protocol::Inheritance, Protocol::ImmediateCeiling][index(&mut dice, 2)])
        .collect();
    for (number, protocol) in (0_u32..).zip(&protocols) {
        let _ = d.shard.add_resource(resource(*protocol, 9));
        for thread in 0..THREADS {
            let terms = UseTerms {
                length: Work::from_ticks(1 + dice.below(40)),
                ..a_use(number, 1)
            };
            d.shard.declare_use(id(thread), terms).unwrap();
        }
    }
    let (mut shadow, mut now, mut event) = (Shadow::new(), 0, Event::Tick);
    let mut steps = vec![0_u32; THREADS as usize];
    for _ in 0..600 {
        let decision = d.at(now, event);
        assert!(
            !matches!(decision.refused, Some(Refusal::Deadlock(_))),
            "seed {seed}"
        );
        shadow.follow(&d.log.0);
        let urgencies = shadow.urgencies(&own, &protocols);
        most_urgent_runs(&d, decision.next, &urgencies, seed);
        let armed = decision.arm.map_or(1, |at| at.ticks().saturating_sub(now));
        let step = (1 + dice.below(5)).min(armed.max(1));
        now += step;
        event = match d.shard.running() {
            Some(runs) if step < armed => next_of(&mut dice, &shadow, runs, &mut steps),
            _ => Event::Tick,
        };
    }
    let done = |(_, e): &&(u64, TraceEvent)| matches!(e, TraceEvent::Completed { .. });
    d.log.0.iter().filter(done).count()
}

/// What the job that runs does next: it locks something above all that it holds, or unlocks, or
/// completes when it holds nothing.
fn next_of(dice: &mut Dice, shadow: &Shadow, runs: ThreadId, steps: &mut [u32]) -> Event {
    let holds = &shadow.holds[runs.index()];
    let above = holds.iter().map(|(held, _)| held + 1).max().unwrap_or(0);
    steps[runs.index()] += 1;
    let over = steps[runs.index()] > 4;
    if !over && above < RESOURCES && dice.below(2) == 0 {
        return Event::Lock {
            resource: above + small(dice, RESOURCES - above),
            mode: random_mode(dice),
            until: None,
        };
    }
    if !holds.is_empty() {
        let resource = holds[index(dice, holds.len() as u64)].0;
        return Event::Unlock { resource };
    }
    if over {
        steps[runs.index()] = 0;
        return Event::Complete;
    }
    Event::Tick
}

fn most_urgent_runs(d: &Driver, next: Next, urgencies: &[u32], seed: u64) {
    let ready = |thread: u32| {
        let state = d.shard.state(id(thread));
        matches!(state, State::Ready | State::Running | State::Woken)
    };
    let most = (0..THREADS).filter(|&thread| ready(thread));
    let most = most.map(|thread| urgencies[thread as usize]).max();
    let runs = match next {
        Next::Thread(thread) => Some(urgencies[thread.index()]),
        _ => None,
    };
    assert_eq!(runs, most, "seed {seed} at {:?}", d.shard.now());
}

#[test]
fn the_most_urgent_by_itself_or_by_its_waiters_runs_and_no_order_of_locks_ends_in_a_circle() {
    let done: usize = (0..3_000).map(orderly).sum();
    assert!(done > 50_000, "only {done} jobs in all histories");
}
