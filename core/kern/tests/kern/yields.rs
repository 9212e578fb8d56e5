//! A thread that holds a resource or inherits stays ahead of its equals when it yields.

use punctual_kern::{Ceiling, Constraint, Event};
use punctual_model::{Instant, Priority, Protocol, Span};

use crate::driver::{Driver, id, periodic};
use crate::locks::{a_use, lock, resource, unlock};

/// 100 ticks in 1,000 from `phase` on, at this priority, at this place in the file.
fn at(phase: u64, priority: u32, order: u32) -> Constraint {
    let mut constraint = periodic(100, 1_000, priority);
    constraint.phase = Span::from_ticks(phase);
    constraint.order = order;
    constraint
}

/// Threads that may all lock two resources with this protocol, whose ceiling is priority 5.
fn sharing(protocol: Protocol, constraints: &[Constraint]) -> Driver {
    let mut d = Driver::new(constraints);
    for _ in 0..2 {
        let number = d.shard.add_resource(resource(protocol, 5));
        for thread in 0..constraints.len() {
            let thread = id(u32::try_from(thread).unwrap());
            d.shard.declare_use(thread, a_use(number, 50)).unwrap();
        }
    }
    d
}

const BLOCK: Event = Event::Block { until: None };

#[test]
fn a_yield_below_a_ceiling_lets_nobody_start_and_opposite_orders_never_meet() {
    for protocol in [Protocol::ImmediateCeiling, Protocol::StackResource] {
        let mut d = sharing(protocol, &[at(0, 5, 1), at(1, 5, 0)]);
        assert_eq!(d.runs(0, Event::Tick), Some(0));
        assert_eq!(d.runs(0, lock(0)), Some(0));
        assert_eq!(d.runs(1, Event::Tick), Some(0));
        assert_eq!(d.runs(2, Event::Yield), Some(0), "{protocol:?}");
        // The other one takes them in the opposite order: had it begun, this would close a circle.
        assert_eq!(d.at(3, lock(1)).refused, None);
        assert_eq!(d.runs(4, Event::Yield), Some(0));
        assert_eq!(d.runs(5, unlock(1)), Some(0));
        assert_eq!(d.runs(6, unlock(0)), Some(0));
        assert_eq!(d.runs(7, Event::Yield), Some(1), "nothing is held now");
        assert_eq!(d.runs(8, lock(1)), Some(1));
        assert_eq!(d.runs(9, Event::Yield), Some(1));
    }
}

#[test]
fn who_let_others_go_first_and_then_reaches_a_ceiling_is_ahead_of_them_again() {
    for protocol in [Protocol::ImmediateCeiling, Protocol::StackResource] {
        let mut d = sharing(protocol, &[at(0, 5, 0), at(0, 5, 1)]);
        assert_eq!(d.runs(0, Event::Tick), Some(0));
        assert_eq!(d.runs(0, Event::Yield), Some(1));
        assert_eq!(d.runs(1, BLOCK), Some(0));
        assert_eq!(d.runs(2, lock(0)), Some(0));
        assert_eq!(d.runs(3, Event::Wake(id(1))), Some(0), "{protocol:?}");
        assert_eq!(d.runs(4, unlock(0)), Some(0));
    }
}

#[test]
fn a_yield_of_who_inherits_lets_no_equal_of_its_waiter_go_between() {
    let mut d = sharing(
        Protocol::Inheritance,
        &[at(0, 1, 0), at(2, 5, 1), at(3, 5, 2)],
    );
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(0, lock(0)), Some(0));
    assert_eq!(d.runs(2, Event::Tick), Some(1));
    assert_eq!(d.runs(2, lock(0)), Some(0));
    assert_eq!(d.runs(3, Event::Tick), Some(0));
    assert_eq!(d.runs(4, Event::Yield), Some(0));
    assert_eq!(d.runs(5, unlock(0)), Some(1));
}

#[test]
fn who_let_others_go_first_and_is_waited_for_is_ahead_of_them_again() {
    let mut d = sharing(
        Protocol::Inheritance,
        &[at(0, 5, 0), at(0, 5, 1), at(0, 5, 2)],
    );
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(0, Event::Yield), Some(1));
    assert_eq!(d.runs(1, BLOCK), Some(2));
    assert_eq!(d.runs(2, BLOCK), Some(0));
    assert_eq!(d.runs(3, lock(0)), Some(0));
    assert_eq!(d.runs(4, Event::Wake(id(1))), Some(1));
    assert_eq!(d.runs(5, lock(0)), Some(0), "waited for");
    assert_eq!(d.runs(6, Event::Wake(id(2))), Some(0), "not the third");
    assert_eq!(d.runs(7, unlock(0)), Some(0));
}

#[test]
fn a_yield_of_who_is_raised_or_waited_for_by_a_runtime_lets_no_equal_in() {
    let mut d = Driver::new(&[at(0, 1, 0), at(10, 5, 1), at(30, 5, 2)]);
    let ceiling = Ceiling {
        priority: Priority::new(5),
        absolute_deadline: Instant::from_ticks(1),
    };
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.raised(5, Some(ceiling), Event::Tick), Some(0));
    assert_eq!(d.runs(10, Event::Tick), Some(0));
    assert_eq!(d.runs(11, Event::Yield), Some(0));
    assert_eq!(d.raised(12, None, Event::Tick), Some(1));
    let wait = Event::BlockOn {
        holder: id(0),
        key: 7,
        until: None,
    };
    assert_eq!(d.runs(20, wait), Some(0));
    assert_eq!(d.runs(30, Event::Tick), Some(0));
    assert_eq!(d.runs(31, Event::Yield), Some(0));
    assert_eq!(d.runs(32, Event::Wake(id(1))), Some(1));
}
