//! Random histories: whatever the events, the invariants hold and budgets are conserved.

use punctual_generate::Dice;
use punctual_kern::{Ceiling, Entry, Event, State, TraceEvent};
use punctual_model::{Class, Instant, Late, OnOverrun, Priority, Span, ThreadId, Work};

use crate::driver::{Driver, constraint, periodic};

pub(crate) fn random_constraint(dice: &mut Dice) -> punctual_kern::Constraint {
    let period = 5 + dice.below(60);
    let amount = 1 + dice.below(period / 4 + 1);
    let priority = u32::try_from(dice.below(10)).unwrap();
    let (span, work) = (Span::from_ticks(period), Work::from_ticks(amount));
    let mut c = match dice.below(5) {
        0 => constraint(
            Class::Reservation {
                period: span,
                slice: work,
            },
            priority,
        ),
        1 => constraint(Class::Aperiodic, priority),
        2 => constraint(
            Class::Once {
                size: work,
                relative_deadline: span,
            },
            priority,
        ),
        3 => {
            let class = Class::Sporadic {
                min_separation: span,
                wcet: work,
                relative_deadline: span,
            };
            constraint(class, priority)
        }
        _ => periodic(amount, period, priority),
    };
    c.on_overrun = [
        OnOverrun::Throttle,
        OnOverrun::Demote,
        OnOverrun::Stop,
        OnOverrun::Signal,
    ][usize::try_from(dice.below(4)).unwrap()];
    if dice.below(3) == 0 {
        c.late = Late::Skip;
    }
    c.phase = Span::from_ticks(dice.below(20));
    c
}

pub(crate) fn random_event(dice: &mut Dice, running: Option<ThreadId>, now: u64) -> Event {
    let thread = ThreadId::new(
        u32::try_from(dice.below(8)).unwrap(),
        u32::try_from(dice.below(3)).unwrap(),
    );
    let constraint = random_constraint(dice);
    match dice.below(23) {
        0..=6 => Event::Tick,
        7..=10 => Event::Complete,
        11 => Event::Block { until: None },
        12 => Event::Block {
            until: Some(Instant::from_ticks(now + dice.below(30))),
        },
        13 => Event::Yield,
        14 if dice.below(8) == 0 => Event::Exit,
        15 if dice.below(8) == 0 => Event::Kill(thread),
        16 => Event::Create(constraint),
        17 if dice.below(4) == 0 => Event::Change { thread, constraint },
        18 => Event::Protect,
        19 => Event::Unprotect,
        20 | 21 => Event::Wake(running.unwrap_or(thread)),
        _ => Event::Arrive {
            thread,
            arrival: Instant::from_ticks(now),
        },
    }
}

/// An entry with `event`; now and then time was missing, or the running thread's ceiling changes.
pub(crate) fn random_entry<'a>(dice: &mut Dice, now: u64, event: &'a Event) -> Entry<'a> {
    let mut entry = Entry::at(Instant::from_ticks(now), event);
    let mut span = || match dice.below(24) {
        0 => Span::from_ticks(dice.below(9)),
        _ => Span::ZERO,
    };
    (entry.missing.stolen, entry.missing.given_back) = (span(), span());
    if dice.below(16) == 0 {
        entry.ceiling = Some((dice.below(2) == 0).then(|| Ceiling {
            priority: Priority::new(u32::try_from(dice.below(7)).unwrap()),
            absolute_deadline: Instant::from_ticks(now + dice.below(40)),
        }));
    }
    entry
}

/// One history. Every job that was released is over at most once and in order, and nobody with a
/// periodic guarantee receives more than its budgets.
fn history(seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let mut d = Driver::new(&[]);
    let mut now = 0;
    for _ in 0..300 {
        let event = random_event(&mut dice, d.shard.running(), now);
        let decision = d.enter(&random_entry(&mut dice, now, &event));
        if let (punctual_kern::Next::Thread(id), None) = (decision.next, decision.refused) {
            assert!(
                matches!(d.shard.state(id), State::Running | State::Woken),
                "seed {seed}"
            );
        }
        // Never past the armed instant: this platform's timer is exact.
        let free = 1 + dice.below(6);
        let armed = decision
            .arm
            .map_or(free, |at| at.ticks().saturating_sub(now));
        now += free.min(armed);
    }
    jobs_are_over_once_and_in_order(&d, seed)
}

fn jobs_are_over_once_and_in_order(d: &Driver, seed: u64) -> usize {
    let mut over: Vec<(ThreadId, u64)> = Vec::new();
    for (_, event) in &d.log.0 {
        if let TraceEvent::Completed { thread, job, .. } = event {
            let last = over
                .iter()
                .filter(|(t, _)| t == thread)
                .map(|(_, job)| *job)
                .max();
            assert!(
                last.is_none_or(|last| last < *job),
                "seed {seed}: {thread:?} job {job}"
            );
            over.push((*thread, *job));
        }
    }
    over.len()
}

#[test]
fn invariants_hold_in_ten_thousand_random_histories() {
    let jobs: usize = (0..10_000).map(history).sum();
    assert!(jobs > 100_000, "only {jobs} jobs in all histories");
}
