//! Random histories on both ways through an entry, with signals, mail and missing time in between.

use punctual_generate::Dice;
use punctual_kern::{Constraint, Event};
use punctual_model::ThreadId;

use super::{Bench, Feeds, POLICIES, THREADS, Told, at, constraint, disturb};
use crate::record::per_cpu::Reason;

fn event(dice: &mut Dice, bench: &Bench, now: u64) -> Event {
    if bench.cpu.host.current.get().is_null() {
        return Event::Tick;
    }
    let other = ThreadId::new(dice.small(THREADS.into()), 0);
    match dice.below(13) {
        0 if dice.below(2) == 0 => match bench.cpu.host.pool.spawning.get().is_null() {
            true => Event::Exit,
            false => Event::Create(constraint(dice, THREADS)),
        },
        0..=3 => Event::Tick,
        4 => Event::Yield,
        5 => Event::Complete,
        6 => Event::Block { until: None },
        7 => Event::Block {
            until: Some(at(now + dice.below(90_000))),
        },
        8 => Event::Wake(other),
        9 => Event::Wake(ThreadId::new(dice.small(THREADS.into()), 1)),
        10 => Event::BlockOn {
            holder: other,
            key: dice.small(3),
            until: Some(at(now + dice.below(90_000))),
        },
        11 => Event::BlockOn {
            holder: other,
            key: dice.small(3),
            until: None,
        },
        _ => Event::HandOver {
            key: dice.small(3),
            from: ThreadId::new(dice.small(THREADS.into()), 0),
            to: other,
        },
    }
}

/// The kind of most events of a history.
#[derive(Clone, Copy, PartialEq)]
enum Most {
    Anything,
    /// Yields among equals.
    Yields,
    /// Wake-ups, waits, and waits for what one thread holds and hands on.
    Locks,
}

/// Entries that took the fast path, and those of them that took the shortest way.
#[derive(Clone, Copy, Default)]
struct Taken {
    entries: u32,
    /// By how many a thread came or went, and how many of those took the shortest way.
    births: (u32, u32),
    turns: [u32; 5],
    followed: u32,
}

impl Taken {
    fn and(mut self, other: Taken) -> Taken {
        let turns = self.turns.iter_mut().zip(other.turns);
        turns.for_each(|(sum, turns)| *sum += turns);
        self.entries += other.entries;
        self.births.0 += other.births.0;
        self.births.1 += other.births.1;
        self.followed += other.followed;
        self
    }
}

/// A lock of a runtime that somebody holds and somebody waits for.
type Wanted = Option<(u32, ThreadId, ThreadId)>;

fn lock_event(dice: &mut Dice, running: Option<ThreadId>, wanted: Wanted) -> Event {
    let other = ThreadId::new(dice.small(THREADS.into()), 0);
    match (dice.below(8), running, wanted) {
        (_, None, _) => Event::Tick,
        (0..4, Some(id), Some((key, from, to))) if id == from => Event::HandOver { key, from, to },
        (0..3, ..) => Event::BlockOn {
            holder: other,
            key: dice.small(3),
            until: None,
        },
        (3, ..) => Event::Block { until: None },
        _ => Event::Wake(other),
    }
}

/// Both paths side by side; returns which ways the entries took.
fn history(seed: u64, most: Most) -> Taken {
    let kind = POLICIES[usize::try_from(seed % 4).expect("small")];
    let mut dice = Dice::new(seed);
    let mut constraints: Vec<Constraint> = (0..THREADS).map(|n| constraint(&mut dice, n)).collect();
    if most == Most::Yields {
        let one = constraints[1];
        (2..THREADS).for_each(|order| constraints[order as usize] = Constraint { order, ..one });
    }
    let feeds = Feeds::random(&mut dice);
    let mut fast = Bench::new(kind, &constraints, &feeds);
    let mut slow = Bench::new(kind, &constraints, &feeds);
    let (mut now, mut entries, mut births, mut wanted) = (0, 0, 0, None);
    for _ in 0..250 {
        let running = slow.state().runs;
        let event = match most {
            Most::Yields if running.is_some() && dice.below(4) > 0 => Event::Yield,
            Most::Locks if dice.below(8) > 0 => lock_event(&mut dice, running, wanted),
            _ => event(&mut dice, &slow, now),
        };
        let instant = at(now);
        let (what, amount) = (dice.below(40), dice.below(3_000));
        if event == Event::Tick {
            fast.signal(instant);
            slow.signal(instant);
        }
        disturb(&mut fast, what, instant, amount);
        disturb(&mut slow, what, instant, amount);
        match fast.enter(instant, event, true) {
            Some(()) if matches!(event, Event::Create(_) | Event::Exit) => births += 1,
            Some(()) => entries += 1,
            None => assert!(fast.enter(instant, event, false).is_some()),
        }
        assert!(slow.enter(instant, event, false).is_some());
        let (a, b) = (fast.state(), slow.state());
        assert_eq!(a, b, "seed {seed}, {kind:?} at {now}: {event:?}");
        assert_eq!(fast.core().sink, slow.core().sink, "seed {seed} at {now}");
        if a.reason == Some(Reason::End) {
            break;
        }
        wanted = match (event, running) {
            (Event::BlockOn { holder, key, .. }, Some(waiter)) if a.runs == Some(holder) => {
                Some((key, holder, waiter))
            }
            (Event::HandOver { .. }, _) => None,
            _ => wanted,
        };
        fast.core().sink = Told::default();
        slow.core().sink = Told::default();
        // Shorter than what is compared with the kernel's account of real time.
        let steps = match most {
            Most::Locks => [100, 1_000, 8_000],
            _ => [100, 3_000, 60_000],
        };
        let most = steps[usize::try_from(dice.below(3)).expect("small")];
        now += 1 + dice.below(most);
    }
    Taken {
        entries,
        births: (births, fast.births),
        turns: fast.turns,
        followed: fast.followed,
    }
}

fn histories(number: u64, most: Most) -> Taken {
    (0..number).fold(Taken::default(), |sum, seed| sum.and(history(seed, most)))
}

#[test]
fn both_paths_through_an_entry_of_the_platform_do_the_same() {
    let taken = histories(400, Most::Anything);
    let Taken {
        entries, births, ..
    } = taken;
    assert!(entries > 10_000, "only {entries} took the fast path");
    let (all, shortest) = births;
    assert!(all > 500, "only {all} threads came or went on it");
    assert!(shortest > 20, "only {shortest} on the shortest way");
}

#[test]
fn yields_among_equals_do_the_same_on_both_paths() {
    let Taken { entries, turns, .. } = histories(1_500, Most::Yields);
    assert!(entries > 50_000, "only {entries} took the fast path");
    assert!(turns[0] > 3_000, "only {turns:?} took the shortest way");
}

#[test]
fn wakes_waits_and_locks_of_a_runtime_do_the_same_on_both_paths() {
    let Taken {
        turns, followed, ..
    } = histories(1_000, Most::Locks);
    let least = [0, 50, 300, 80, 60];
    let is_enough = turns
        .iter()
        .zip(least)
        .all(|(turns, least)| *turns >= least);
    assert!(is_enough, "{turns:?} turns, at least {least:?} expected");
    assert!(followed > 500, "only {followed} switched between two");
    let ended = turns.iter().sum::<u32>() - followed;
    assert!(ended > 20, "only {ended} turns ended another way");
}
