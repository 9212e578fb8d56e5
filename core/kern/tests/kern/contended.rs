//! Locks of a runtime: their holders inherit from who waits, and from nobody else.

use punctual_kern::{Ceiling, Event, Refusal, State};
use punctual_model::{Class, Instant, Priority, Span, ThreadId};

use crate::driver::{Driver, constraint, id, periodic};
use crate::histories::{random_constraint, random_entry, random_event};
use punctual_generate::Dice;

const KEY: u32 = 7;

fn wait_for(holder: u32) -> Event {
    Event::BlockOn {
        holder: id(holder),
        key: KEY,
        until: None,
    }
}

fn hand(from: u32, to: u32) -> Event {
    Event::HandOver {
        key: KEY,
        from: id(from),
        to: id(to),
    }
}

/// Threads 0 (low), 1 (middle), 2 (high), of which the later arrive 10 and 20 ticks after.
fn three() -> Driver {
    let at = |phase, priority| {
        let mut c = periodic(100, 1_000, priority);
        c.phase = Span::from_ticks(phase);
        c
    };
    Driver::new(&[at(0, 1), at(20, 2), at(10, 3)])
}

#[test]
fn a_holder_goes_before_whoever_is_less_urgent_than_its_waiter() {
    let mut d = three();
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(10, Event::Tick), Some(2));
    assert_eq!(d.runs(12, wait_for(0)), Some(0), "the holder goes on");
    assert_eq!(d.runs(20, Event::Tick), Some(0), "the middle must wait");
    assert!(d.shard.goes_before(id(0), id(1)));
    assert_eq!(d.runs(30, hand(0, 2)), Some(2));
    assert!(
        d.shard.goes_before(id(1), id(0)),
        "nothing is inherited any more"
    );
    assert_eq!(d.runs(40, Event::Complete), Some(1));
}

#[test]
fn the_next_holder_inherits_from_those_that_still_wait() {
    let mut d = three();
    assert_eq!(d.runs(10, Event::Tick), Some(2));
    let _ = d.at(11, Event::Block { until: None });
    assert_eq!(d.runs(20, Event::Tick), Some(1));
    assert_eq!(d.runs(21, wait_for(0)), Some(0));
    assert_eq!(d.runs(22, Event::Wake(id(2))), Some(2));
    assert_eq!(d.runs(23, wait_for(0)), Some(0));
    // The lock goes to the middle although the high one waits: it is as urgent as that from now on.
    assert_eq!(d.runs(30, hand(0, 1)), Some(1));
    assert!(d.shard.goes_before(id(1), id(0)));
    assert!(!d.shard.goes_before(id(2), id(1)) && !d.shard.goes_before(id(1), id(2)));
    assert_eq!(d.runs(31, hand(1, 2)), Some(2));
}

#[test]
fn a_chain_is_inherited_through_a_waiter_and_a_circle_is_refused() {
    let mut d = three();
    assert_eq!(d.runs(10, Event::Tick), Some(2));
    let _ = d.at(11, Event::Block { until: None });
    assert_eq!(d.runs(20, Event::Tick), Some(1));
    assert_eq!(d.runs(21, wait_for(0)), Some(0));
    let refused = d.at(22, wait_for(1)).refused;
    assert_eq!(refused, Some(Refusal::Deadlock(KEY)));
    assert_eq!(d.at(22, wait_for(0)).refused, Some(Refusal::Deadlock(KEY)));
    assert_eq!(d.runs(23, Event::Wake(id(2))), Some(2));
    assert_eq!(d.runs(24, wait_for(1)), Some(0), "through the middle");
    assert!(!d.shard.goes_before(id(2), id(0)));
}

#[test]
fn nothing_is_inherited_from_a_wait_that_timed_out_or_ended() {
    let mut d = three();
    assert_eq!(d.runs(10, Event::Tick), Some(2));
    let wait = Event::BlockOn {
        holder: id(0),
        key: KEY,
        until: Some(Instant::from_ticks(25)),
    };
    assert_eq!(d.runs(12, wait), Some(0));
    assert_eq!(d.runs(25, Event::Tick), Some(2));
    assert!(d.shard.goes_before(id(1), id(0)));
    assert_eq!(d.runs(26, wait_for(0)), Some(0));
    assert_eq!(d.runs(27, Event::Kill(id(2))), Some(1));
    assert_eq!(d.shard.state(id(2)), State::Dead);
    let stale = d.at(28, wait_for(2)).refused;
    assert_eq!(stale, Some(Refusal::StaleThread(id(2))));
}

#[test]
fn a_wake_up_that_came_first_keeps_the_thread_from_waiting() {
    let mut d = three();
    assert_eq!(d.runs(10, Event::Wake(id(2))), Some(2));
    assert_eq!(d.runs(12, wait_for(0)), Some(2));
    assert!(d.shard.goes_before(id(1), id(0)));
}

#[test]
fn a_ceiling_keeps_everybody_up_to_it_away() {
    let mut d = three();
    let ceiling = Ceiling {
        priority: Priority::new(2),
        absolute_deadline: Instant::from_ticks(1),
    };
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.raised(5, Some(ceiling), Event::Tick), Some(0));
    assert_eq!(d.runs(10, Event::Tick), Some(2));
    assert_eq!(d.runs(15, Event::Complete), Some(0));
    assert_eq!(
        d.runs(20, Event::Tick),
        Some(0),
        "as urgent, and released earlier"
    );
    assert_eq!(d.raised(30, None, Event::Tick), Some(1));
}

fn a_thread(dice: &mut Dice) -> ThreadId {
    let index = u32::try_from(dice.below(6)).unwrap();
    ThreadId::new(index, u32::try_from(dice.below(2)).unwrap())
}

pub(crate) fn random_wait(dice: &mut Dice, now: u64) -> Event {
    let (from, to) = (a_thread(dice), a_thread(dice));
    let key = u32::try_from(dice.below(3)).unwrap();
    match dice.below(3) {
        0 => Event::HandOver { key, from, to },
        _ => Event::BlockOn {
            holder: to,
            key,
            until: (dice.below(2) == 0).then(|| Instant::from_ticks(now + dice.below(30))),
        },
    }
}

#[test]
fn no_history_of_contended_locks_breaks_an_invariant() {
    let mut waited = 0;
    for seed in 0..400 {
        let mut dice = Dice::new(seed);
        let mut d = Driver::new(&[]);
        for order in 0..6 {
            let mut c = random_constraint(&mut dice);
            c.order = order;
            let _ = d.shard.attach(c).unwrap();
        }
        let mut now = 0;
        for _ in 0..300 {
            let event = match dice.below(2) {
                0 => random_event(&mut dice, d.shard.running(), now),
                _ => random_wait(&mut dice, now),
            };
            let decision = d.enter(&random_entry(&mut dice, now, &event));
            let is_wait = matches!(event, Event::BlockOn { .. });
            waited += u32::from(is_wait && decision.refused.is_none());
            now += dice.below(8);
        }
    }
    assert!(waited > 1_000, "only {waited} waits");
}

#[test]
fn background_work_inherits_by_priority() {
    let free = |priority| constraint(Class::Aperiodic, priority);
    let mut d = Driver::new(&[free(1), free(2), free(3)]);
    assert_eq!(d.runs(0, Event::Tick), Some(2));
    assert_eq!(d.runs(1, wait_for(0)), Some(0), "before the middle");
    assert_eq!(d.runs(2, hand(0, 2)), Some(2));
}
