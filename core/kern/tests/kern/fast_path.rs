//! The fast path through an entry leads where the slow one leads.

use punctual_kern::{
    Capacity, Constraint, Decision, Edge, Entry, Event, FastOutcome, Front, Message, Next, Shard,
    Sink, Source, TraceEvent, Tree, Uncharged,
};
use punctual_model::{CpuId, Instant, PolicyKind, Protocol, Span, ThreadId, Work};
use punctual_policy::AnyPolicy;

use crate::contended::random_wait;
use crate::driver::{id, periodic};
use crate::histories::{random_constraint, random_entry, random_event};
use crate::lock_histories::{random_lock, random_use};
use crate::locks::resource;
use punctual_generate::Dice;

/// Everything that a shard tells.
#[derive(Default, PartialEq, Debug)]
pub(crate) struct Told {
    events: Vec<(Instant, Uncharged, Event)>,
    traces: Vec<(Instant, TraceEvent)>,
    decisions: Vec<(Instant, Decision)>,
}

impl Sink for Told {
    fn begin(&mut self, entry: &Entry<'_>) {
        self.events.push((entry.now, entry.missing, *entry.event));
    }
    fn trace(&mut self, now: Instant, event: TraceEvent) {
        self.traces.push((now, event));
    }
    fn decision(&mut self, now: Instant, decision: &Decision) {
        self.decisions.push((now, *decision));
    }
}

const POLICIES: [PolicyKind; 5] = [
    PolicyKind::FixedPriority { preemptive: true },
    PolicyKind::FixedPriority { preemptive: false },
    PolicyKind::EarliestDeadlineFirst,
    PolicyKind::Fifo,
    PolicyKind::RoundRobin {
        timeslice: Span::from_ticks(3),
    },
];

/// A shard that may take the fast path, and one that never does. Where costs are nothing, the tree
/// of that one has room for a second scheduler and keeps the counts that this takes.
struct Both {
    fast: Shard<AnyPolicy>,
    slow: Shard<AnyPolicy>,
    seed: u64,
    now: u64,
    /// How many entries took the fast path, and how many of those were yields.
    taken: u32,
    yielded: u32,
    /// How many came where the fast path ends, or found nobody running.
    due: u32,
    /// By how many of them a thread came or went.
    births: u32,
    /// How many yields, wake-ups, waits, waits for a lock, hand-overs, releases, creations and ends
    /// took the shortest way.
    turns: [u32; 8],
    /// How many releases on an idle CPU, and completions.
    jobs: [u32; 2],
    /// How many threads ended that others follow.
    followed: u32,
}

impl Both {
    fn new(seed: u64) -> Both {
        let kind = POLICIES[usize::try_from(seed % 5).unwrap()];
        let mut capacity = Capacity::for_threads(8);
        capacity.background_turn = Span::from_ticks(4);
        capacity.grace = Work::from_ticks(seed / 10 % 3);
        let kinds = [[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 1], [1, 2, 1]];
        let kind_of_cost = (seed / 30 % 16).saturating_sub(11);
        let costs = kinds[usize::try_from(kind_of_cost).unwrap()].map(Work::from_ticks);
        [capacity.entry, capacity.stop_cost, capacity.cache_delay] = costs;
        let shard = |nodes| {
            let capacity = Capacity { nodes, ..capacity };
            let policy = AnyPolicy::new(kind, capacity.entities(), &[]);
            Shard::new(Tree::new(capacity, policy))
        };
        Both {
            fast: shard(0),
            // A thread of a tree does not get the cost of an entry back.
            slow: shard(u16::from(kind_of_cost == 0)),
            seed,
            now: 0,
            taken: 0,
            yielded: 0,
            due: 0,
            births: 0,
            turns: [0; 8],
            jobs: [0; 2],
            followed: 0,
        }
    }

    fn attach(&mut self, constraint: Constraint) {
        let _ = self.fast.attach(constraint).unwrap();
        let _ = self.slow.attach(constraint).unwrap();
    }

    /// An entry that finds the fast path closed.
    fn enter_closed(&mut self, entry: &Entry<'_>, told: &mut Told) -> Decision {
        if entry.is_plain()
            && let Some(decision) = self.fast.handle_when_due(entry.now, entry.event, told)
        {
            self.due += 1;
            return decision;
        }
        self.fast.handle_slowly(*entry, told)
    }

    /// An entry on the shortest way, as a platform tries it that knows the event. In half of the
    /// histories the fast path of all events tries it by itself.
    fn enter_front(&mut self, now: Instant, event: &Event, told: &mut Told) -> Option<FastOutcome> {
        if (self.seed / 5).is_multiple_of(2) {
            return None;
        }
        let fast = &mut self.fast;
        let (kind, front) = match *event {
            Event::Yield => (0, fast.yield_front(now, told)),
            Event::Wake(other) => (1, fast.wake_front(now, other, told)),
            Event::Block { until: None } => (2, fast.block_front(now, told)),
            Event::BlockOn { holder, key, until } if until.is_none() => {
                (3, fast.wait_front(now, (holder, key), told))
            }
            Event::HandOver { key, from, to } => (4, fast.hand_front(now, (key, from, to), told)),
            Event::Tick => (5, fast.release_front(now, told)),
            Event::Create(_) => (6, fast.create_front(now, event, told)),
            Event::Exit => (7, fast.exit_front(now, told)),
            Event::Complete => (8, fast.complete_front(now, told)),
            _ => return None,
        };
        match front {
            Front::Turn(turn) => {
                self.turns[kind] += 1;
                Some(turn.outcome())
            }
            Front::Chosen(arm) => {
                match kind {
                    5 => self.jobs[0] += 1,
                    8 => self.jobs[1] += 1,
                    _ => {}
                }
                Some(fast.chosen(arm))
            }
            Front::Closed => {
                assert_eq!(*told, Told::default(), "nothing has happened");
                None
            }
        }
    }

    /// One entry on both; everything that they tell and decide is the same.
    fn enter(&mut self, entry: &Entry<'_>) -> Decision {
        let (seed, now, event) = (self.seed, self.now, *entry.event);
        let (mut from_fast, mut from_slow) = (Told::default(), Told::default());
        let taken = match entry.is_plain() {
            true => self
                .enter_front(entry.now, &event, &mut from_fast)
                .or_else(|| self.fast.handle_fast(entry.now, &event, &mut from_fast))
                .or_else(|| {
                    let born = self.fast.handle_birth(entry.now, &event, &mut from_fast);
                    self.births += u32::from(born.is_some());
                    born
                }),
            false => None,
        };
        let a = match taken {
            Some(FastOutcome { next, arm, stamp }) => {
                if let Next::Thread(thread) = next {
                    assert_eq!(stamp, self.fast.job_stamp(thread));
                }
                self.taken += 1;
                self.yielded += u32::from(event == Event::Yield);
                let refused = None;
                Decision { next, arm, refused }
            }
            None => self.enter_closed(entry, &mut from_fast),
        };
        let b = self.slow.handle_slowly(*entry, &mut from_slow);
        assert_eq!(a, b, "seed {seed} at {now}: {event:?}");
        assert_eq!(from_fast, from_slow, "seed {seed} at {now}: {event:?}");
        let counted = |shard: &Shard<AnyPolicy>| (shard.counters(), shard.unsettled());
        assert_eq!(
            counted(&self.fast),
            counted(&self.slow),
            "seed {seed} at {now}"
        );
        if self.slow.tree().capacity().nodes > 0 {
            let in_tree = self
                .slow
                .handle_fast(entry.now, &Event::Tick, &mut from_slow);
            assert_eq!(in_tree, None, "`handle_fast` stays closed in a tree");
        }
        loop {
            let messages = (self.fast.take_message(), self.slow.take_message());
            assert_eq!(messages.0, messages.1, "seed {seed} at {now}: {event:?}");
            if messages.0.is_none() {
                return a;
            }
        }
    }
}

/// Six threads and any event, always before the next instant that the shard named.
fn history(seed: u64) -> [u32; 5] {
    let mut dice = Dice::new(seed);
    let mut both = Both::new(seed);
    for _ in 0..6 {
        both.attach(random_constraint(&mut dice));
    }
    for _ in 0..300 {
        let event = random_event(&mut dice, both.fast.running(), both.now);
        let entry = random_entry(&mut dice, both.now, &event);
        let decision = both.enter(&entry);
        let free = 1 + dice.below(6);
        let until = decision
            .arm
            .map_or(free, |at| at.ticks().saturating_sub(both.now));
        both.now += free.min(until);
    }
    let [released, completed] = both.jobs;
    [both.taken, both.due, both.births, released, completed]
}

#[test]
fn both_paths_through_an_entry_report_and_decide_the_same() {
    let counts: Vec<[u32; 5]> = (0..2_000).map(history).collect();
    let sum = |which: usize| counts.iter().map(|counts| counts[which]).sum::<u32>();
    let [taken, due, births, released, completed] = [0, 1, 2, 3, 4].map(sum);
    assert!(taken > 50_000, "only {taken} of 600,000 took the fast path");
    assert!(due > 50_000, "only {due} of 600,000 came where it ends");
    assert!(births > 1_000, "only {births} threads came or went on it");
    assert!(released > 600, "only {released} releases were the shortest");
    assert!(completed > 2_000, "only {completed} completions were");
}

/// Threads with resources, precedence on this CPU and from another, and one that another hears of.
fn entangled(dice: &mut Dice, seed: u64) -> Both {
    let mut both = Both::new(seed);
    for order in 0..6 {
        let mut constraint = random_constraint(dice);
        constraint.order = order;
        both.attach(constraint);
    }
    for number in 0..4 {
        let protocol = Protocol::ALL[usize::try_from(dice.below(5)).unwrap()];
        let _ = both.fast.add_resource(resource(protocol, 9));
        let _ = both.slow.add_resource(resource(protocol, 9));
        for thread in 0..6 {
            if dice.below(4) > 0 {
                let terms = random_use(dice, number);
                both.fast.declare_use(id(thread), terms).unwrap();
                both.slow.declare_use(id(thread), terms).unwrap();
            }
        }
    }
    let first = Instant::from_ticks(dice.below(20));
    let period = Some(Span::from_ticks(10 + dice.below(30)));
    let slot = both.fast.add_remote(first, period);
    assert_eq!(both.slow.add_remote(first, period), slot);
    for (successor, from) in [
        (1, Source::Local(id(0))),
        (2, Source::Remote { slot }),
        (2, Source::Local(id(1))),
    ] {
        let strict = dice.below(2) == 0;
        let edge = Edge { from, strict };
        both.fast.add_precedence(id(successor), edge).unwrap();
        both.slow.add_precedence(id(successor), edge).unwrap();
    }
    both.fast.add_notification(id(0), CpuId(1), 0).unwrap();
    both.slow.add_notification(id(0), CpuId(1), 0).unwrap();
    both
}

/// The same with all that threads can be entangled in, and with entries that come too late.
fn entangled_history(seed: u64) -> u32 {
    let mut dice = Dice::new(seed);
    let mut both = entangled(&mut dice, seed);
    let mut frontier = 0;
    for _ in 0..300 {
        let event = match dice.below(8) {
            0 => random_lock(&mut dice, both.now),
            1 => random_wait(&mut dice, both.now),
            2 => {
                frontier += dice.below(3);
                let (to, slot) = (CpuId(0), 0);
                Event::Remote(Message { to, slot, frontier })
            }
            3 => Event::Yield,
            _ => random_event(&mut dice, both.fast.running(), both.now),
        };
        let entry = random_entry(&mut dice, both.now, &event);
        let decision = both.enter(&entry);
        let free = 1 + dice.below(6);
        let until = decision
            .arm
            .map_or(free, |at| at.ticks().saturating_sub(both.now));
        let is_late = dice.below(20) == 0;
        both.now += if is_late { 4 * free } else { free.min(until) };
    }
    both.taken
}

#[test]
fn locks_of_both_kinds_precedence_and_late_entries_find_the_same_on_both_paths() {
    let taken: u32 = (0..3_000).map(entangled_history).sum();
    assert!(taken > 20_000, "only {taken} of 900,000 took the fast path");
}

/// Six threads, most of them of one urgency, that yield more often than anything else happens: how
/// many yields took the fast path, and how many of half of the histories the shortest way.
fn history_of_equals(seed: u64) -> (u32, u32) {
    let mut dice = Dice::new(seed);
    let mut both = Both::new(seed);
    for _ in 0..5 {
        both.attach(periodic(20 + dice.below(40), 400, 3));
    }
    both.attach(random_constraint(&mut dice));
    let number = 0;
    let _ = both
        .fast
        .add_resource(resource(Protocol::ImmediateCeiling, 9));
    let _ = both
        .slow
        .add_resource(resource(Protocol::ImmediateCeiling, 9));
    for thread in 0..3 {
        let terms = random_use(&mut dice, number);
        both.fast.declare_use(id(thread), terms).unwrap();
        both.slow.declare_use(id(thread), terms).unwrap();
    }
    for _ in 0..300 {
        let event = match dice.below(40) {
            0 => random_lock(&mut dice, both.now),
            1 => random_wait(&mut dice, both.now),
            2 | 3 => random_event(&mut dice, both.fast.running(), both.now),
            _ => Event::Yield,
        };
        let arm = both
            .enter(&Entry::at(Instant::from_ticks(both.now), &event))
            .arm;
        let free = dice.below(4);
        let until = arm.map_or(free, |at| at.ticks().saturating_sub(both.now));
        both.now += free.min(until);
    }
    (both.yielded, both.turns[0])
}

#[test]
fn equals_that_yield_take_the_same_turns_on_both_paths() {
    let counts: Vec<(u32, u32)> = (0..2_000).map(history_of_equals).collect();
    let yielded: u32 = counts.iter().map(|counts| counts.0).sum();
    let turns: u32 = counts.iter().map(|counts| counts.1).sum();
    assert!(
        yielded > 20_000,
        "only {yielded} of 600,000 entries yielded on it"
    );
    assert!(turns > 10_000, "only {turns} took the shortest way");
}

/// Seven threads that wake and wait, and of which one wants a lock of a runtime that another one
/// holds, as nearly always: how many entries of each kind took the shortest way.
fn history_of_a_lock(seed: u64) -> [u32; 8] {
    let mut dice = Dice::new(seed);
    let mut both = Both::new(seed);
    for order in 0..6 {
        let constraint = periodic(40 + dice.below(400), 2_000, dice.small(5));
        both.attach(Constraint {
            order,
            ..constraint
        });
    }
    let order = 6;
    let constraint = random_constraint(&mut dice);
    both.attach(Constraint {
        order,
        ..constraint
    });
    let mut wanted: Option<(u32, ThreadId, ThreadId)> = None;
    for order in 7..307 {
        let running = both.fast.running();
        let other = id(dice.small(7));
        let event = match (dice.below(16), wanted) {
            (0, _) => random_event(&mut dice, running, both.now),
            (1, _) => random_wait(&mut dice, both.now),
            (2..10, Some((key, from, to))) if running == Some(from) => {
                Event::HandOver { key, from, to }
            }
            (2..6, _) => {
                let (holder, key, until) = (other, dice.small(3), None);
                Event::BlockOn { holder, key, until }
            }
            (6, _) => Event::Block { until: None },
            (7, _) => Event::Yield,
            _ => Event::Wake(other),
        };
        // Of threads that are alike in all, the order of the file too, either may go first.
        let event = match event {
            Event::Create(constraint) => Event::Create(Constraint {
                order,
                ..constraint
            }),
            Event::Change { .. } => Event::Tick,
            other => other,
        };
        let entry = random_entry(&mut dice, both.now, &event);
        let decision = both.enter(&entry);
        wanted = match (event, running) {
            (Event::BlockOn { holder, key, .. }, Some(waiter))
                if decision.next == Next::Thread(holder) && decision.refused.is_none() =>
            {
                Some((key, holder, waiter))
            }
            (Event::HandOver { .. }, _) => None,
            _ => wanted,
        };
        let free = dice.below(3);
        let until = decision
            .arm
            .map_or(free, |at| at.ticks().saturating_sub(both.now));
        both.now += free.min(until);
    }
    both.turns
}

#[test]
fn wakes_waits_and_locks_of_a_runtime_take_the_same_turns_on_both_paths() {
    take_turns(history_of_a_lock, &[200, 200, 1_000, 600, 500]);
}

/// At least so many entries of each kind take the shortest way in two thousand histories.
fn take_turns(mut history: impl FnMut(u64) -> [u32; 8], least: &[u32]) {
    let mut turns = [0; 8];
    for seed in 0..2_000 {
        let of_one = history(seed);
        turns.iter_mut().zip(of_one).for_each(|(sum, n)| *sum += n);
    }
    let is_enough = turns.iter().zip(least).all(|(n, least)| n >= least);
    assert!(is_enough, "{turns:?} turns, at least {least:?}");
}

/// Jobs of three streams, which complete or yield, among threads that are created and end; streams
/// end too, and in half of the histories each other one follows the one before. Half of the entries
/// come when the timer does, or late.
fn history_of_jobs(seed: u64) -> Both {
    let mut dice = Dice::new(seed);
    let mut both = Both::new(seed);
    for order in 0..3 {
        let period = 20 + dice.below(200);
        let constraint = periodic(1 + dice.below(period), period, dice.small(5));
        both.attach(Constraint {
            order,
            ..constraint
        });
    }
    let follow = dice.below(2) == 0;
    for before in 0..if follow { 2 } else { 0 } {
        let strict = dice.below(2) == 0;
        let from = Source::Local(id(before));
        let edge = Edge { from, strict };
        both.fast.add_precedence(id(before + 1), edge).unwrap();
        both.slow.add_precedence(id(before + 1), edge).unwrap();
    }
    for order in 3..303 {
        let running = both.fast.running();
        let constraint = match dice.below(8) {
            0 => random_constraint(&mut dice),
            _ => periodic(1 + dice.below(300), 2_000, dice.small(5)),
        };
        let constraint = Constraint {
            order,
            ..constraint
        };
        let is_of_a_stream = running.is_some_and(|id| id.index() < 3);
        let event = match (dice.below(16), is_of_a_stream) {
            (0, _) => random_wait(&mut dice, both.now),
            (1..6, _) => Event::Tick,
            (6..9, _) => Event::Create(constraint),
            (9..14, true) if dice.below(40) > 0 => Event::Complete,
            (9..14, _) => Event::Exit,
            (14, _) => Event::Yield,
            _ => Event::Wake(id(dice.small(8))),
        };
        let is_followed = follow && running.is_some_and(|thread| [id(0), id(1)].contains(&thread));
        both.followed += u32::from(is_followed && event == Event::Exit);
        let decision = both.enter(&Entry::at(Instant::from_ticks(both.now), &event));
        let free = dice.below(30);
        let arm = decision.arm.map(|at| at.ticks().saturating_sub(both.now));
        both.now += match (arm, dice.below(4)) {
            (Some(until), 0) => until,
            (Some(until), 1) => until + dice.below(4),
            (Some(until), _) => free.min(until),
            (None, _) => free,
        };
    }
    both
}

#[test]
fn jobs_and_threads_that_come_and_go_take_the_same_turns_on_both_paths() {
    let mut followed = 0;
    let mut jobs = [0; 2];
    take_turns(
        |seed| {
            let both = history_of_jobs(seed);
            followed += both.followed;
            (jobs[0], jobs[1]) = (jobs[0] + both.jobs[0], jobs[1] + both.jobs[1]);
            both.turns
        },
        &[20, 0, 0, 0, 0, 200, 200, 400],
    );
    assert!(followed > 100, "only {followed} ended that others follow");
    assert!(jobs[0] > 200 && jobs[1] > 1_000, "{jobs:?}");
}
