//! Locks, event by event: who holds, who waits, and who is how urgent meanwhile.

use punctual_kern::{
    Constraint, Event, MAX_NESTING, NodeId, Refusal, ResourceTerms, State, TraceEvent, UseTerms,
    WaitOrder, WakeCause,
};
use punctual_model::{
    AtBudgetEnd, Class, Instant, Mode, OnOverrun, Priority, Protocol, ResourceId, Span, Work,
};

use crate::driver::{Driver, constraint, id, periodic};

/// A resource of the root under fixed priority.
pub(crate) fn resource(protocol: Protocol, ceiling: u32) -> ResourceTerms {
    ResourceTerms {
        resource: ResourceId(0),
        protocol,
        at_budget_end: AtBudgetEnd::Overrun,
        wait_order: WaitOrder::Priority,
        ceiling: Priority::new(ceiling),
        floor: Span::from_ticks(1_000),
        real_time: true,
        common: NodeId::ROOT,
        spans_schedulers: false,
    }
}

pub(crate) fn a_use(resource: u32, length: u64) -> UseTerms {
    UseTerms {
        resource,
        mode: Mode::Exclusive,
        length: Work::from_ticks(length),
        priority: Priority::new(1),
    }
}

pub(crate) fn lock(resource: u32) -> Event {
    Event::Lock {
        resource,
        mode: Mode::Exclusive,
        until: None,
    }
}

pub(crate) fn unlock(resource: u32) -> Event {
    Event::Unlock { resource }
}

fn read(resource: u32) -> Event {
    Event::Lock {
        resource,
        mode: Mode::Shared,
        until: None,
    }
}

fn lock_until(resource: u32, until: u64) -> Event {
    Event::Lock {
        resource,
        mode: Mode::Exclusive,
        until: Some(Instant::from_ticks(until)),
    }
}

fn at(phase: u64, mut constraint: Constraint) -> Constraint {
    constraint.phase = Span::from_ticks(phase);
    constraint
}

/// Threads that all declare all of `protocols`' resources for 50 ticks.
fn sharing(protocols: &[Protocol], constraints: &[Constraint]) -> Driver {
    let mut d = Driver::new(constraints);
    let ceiling = constraints.iter().map(|c| c.priority.number()).max();
    for protocol in protocols {
        let number = d.shard.add_resource(resource(*protocol, ceiling.unwrap()));
        for thread in 0..constraints.len() {
            let thread = id(u32::try_from(thread).unwrap());
            d.shard.declare_use(thread, a_use(number, 50)).unwrap();
        }
    }
    d
}

const INHERITANCE: &[Protocol] = &[Protocol::Inheritance, Protocol::Inheritance];

/// Low, middle and high, released at 0, 1 and 2, 100 each in 1,000.
fn three() -> [Constraint; 3] {
    [
        periodic(100, 1_000, 1),
        at(1, periodic(100, 1_000, 5)),
        at(2, periodic(100, 1_000, 9)),
    ]
}

fn count(d: &Driver, wanted: impl Fn(&TraceEvent) -> bool) -> usize {
    d.log.0.iter().filter(|(_, event)| wanted(event)).count()
}

#[test]
fn urgency_is_inherited_along_a_chain_and_given_back_link_by_link() {
    let bystander = at(3, periodic(100, 1_000, 7));
    let [low, middle, high] = three();
    let mut d = sharing(INHERITANCE, &[low, middle, high, bystander]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(0, lock(0)), Some(0));
    assert_eq!(d.runs(1, Event::Tick), Some(1));
    assert_eq!(d.runs(1, lock(1)), Some(1));
    assert_eq!(d.runs(1, lock(0)), Some(0), "middle waits for low");
    assert_eq!(d.runs(2, Event::Tick), Some(2));
    assert_eq!(d.runs(2, lock(1)), Some(0), "high for middle, so for low");
    assert_eq!(d.runs(3, Event::Tick), Some(0), "not the bystander");
    assert_eq!(d.runs(4, unlock(0)), Some(1), "middle, as urgent as high");
    assert_eq!(d.runs(5, unlock(0)), Some(1));
    assert_eq!(d.runs(6, unlock(1)), Some(2));
    assert_eq!(d.runs(7, unlock(1)), Some(2));
    assert_eq!(d.runs(8, Event::Complete), Some(3));
    assert_eq!(d.runs(9, Event::Complete), Some(1));
    assert_eq!(d.runs(10, Event::Complete), Some(0));
}

#[test]
fn a_wait_ends_at_its_timeout_and_the_holder_is_as_urgent_as_before() {
    let [low, middle, high] = three();
    let mut d = sharing(INHERITANCE, &[low, at(3, middle), high]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    let _ = d.at(0, lock(0));
    assert_eq!(d.runs(2, Event::Tick), Some(2));
    assert_eq!(d.runs(2, lock_until(0, 6)), Some(0));
    assert_eq!(d.runs(3, Event::Tick), Some(0), "inherits");
    assert_eq!(d.runs(6, Event::Tick), Some(2));
    assert!(!d.shard.holds(id(2), 0), "it goes on without");
    assert_eq!(
        d.at(6, unlock(0)).refused,
        Some(Refusal::NotHeld(0)),
        "so there is nothing to give back"
    );
    assert_eq!(d.runs(7, Event::Complete), Some(1), "no longer inherits");
}

#[test]
fn a_lock_that_must_not_wait_is_an_attempt() {
    let [low, _, high] = three();
    let mut d = sharing(INHERITANCE, &[low, high]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(1, lock_until(0, 1)), Some(0));
    assert!(d.shard.holds(id(0), 0));
    assert_eq!(d.runs(2, Event::Tick), Some(1));
    assert_eq!(d.runs(3, lock_until(0, 3)), Some(1));
    assert!(!d.shard.holds(id(1), 0));
}

#[test]
fn a_ceiling_counts_from_the_lock_on_and_ties_go_to_the_holder() {
    let mut d = sharing(
        &[Protocol::ImmediateCeiling],
        &[periodic(100, 1_000, 1), at(1, periodic(100, 1_000, 9))],
    );
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    let _ = d.at(0, lock(0));
    assert_eq!(d.runs(1, Event::Tick), Some(0));
    assert_eq!(d.runs(4, unlock(0)), Some(1));
    assert_eq!(count(&d, |e| matches!(e, TraceEvent::Waits { .. })), 0);
}

#[test]
fn a_non_preemptive_lock_keeps_others_away_from_its_instant_on() {
    for protocol in [Protocol::NonPreemptive, Protocol::Spin] {
        let mut d = sharing(
            &[protocol],
            &[periodic(100, 1_000, 1), at(1, periodic(100, 1_000, 9))],
        );
        assert_eq!(d.runs(0, Event::Tick), Some(0));
        // At the very instant at which the other is released.
        assert_eq!(d.runs(1, lock(0)), Some(0));
        assert_eq!(d.runs(3, Event::Protect), Some(0));
        assert_eq!(d.runs(4, unlock(0)), Some(0), "still protected");
        assert_eq!(d.runs(5, Event::Unprotect), Some(1));
    }
}

#[test]
fn readers_share_and_a_reader_waits_behind_a_more_urgent_writer() {
    let [low, middle, high] = three();
    let late = at(3, periodic(100, 1_000, 7));
    let mut d = sharing(INHERITANCE, &[low, middle, high, late]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    let _ = d.at(0, read(0));
    assert_eq!(d.runs(1, Event::Tick), Some(1));
    assert_eq!(d.runs(1, read(0)), Some(1), "shared");
    assert_eq!(d.runs(2, Event::Tick), Some(2));
    assert_eq!(
        d.runs(2, lock(0)),
        Some(1),
        "the writer waits; readers inherit"
    );
    assert_eq!(d.runs(3, Event::Tick), Some(1), "more urgent than the late");
    assert_eq!(d.runs(4, unlock(0)), Some(0), "the other reader inherits");
    assert_eq!(d.runs(5, unlock(0)), Some(2));
    assert_eq!(d.runs(6, unlock(0)), Some(2));
    assert_eq!(d.runs(7, Event::Complete), Some(3));
    // A reader that comes after a more urgent writer waits, although there is room for it.
    let mut d = sharing(INHERITANCE, &three());
    let _ = d.at(0, Event::Tick);
    let _ = d.at(0, read(0));
    assert_eq!(d.runs(2, Event::Tick), Some(2));
    assert_eq!(d.runs(2, lock(0)), Some(0));
    let _ = d.at(3, Event::Block { until: None });
    assert_eq!(d.shard.running(), Some(id(1)));
    assert_eq!(d.runs(4, read(0)), None);
    assert_eq!(d.runs(5, Event::Wake(id(0))), Some(0));
    assert_eq!(d.runs(6, unlock(0)), Some(2), "the writer first");
    assert!(!d.shard.holds(id(1), 0));
    let _ = d.at(7, Event::Kill(id(2)));
    assert!(d.shard.holds(id(1), 0));
}

#[test]
fn a_writer_that_gives_up_lets_the_readers_in() {
    let mut d = sharing(INHERITANCE, &three());
    let _ = d.at(0, Event::Tick);
    let _ = d.at(0, read(0));
    assert_eq!(d.runs(2, Event::Tick), Some(2));
    assert_eq!(d.runs(2, lock_until(0, 9)), Some(0));
    let _ = d.at(3, Event::Block { until: None });
    assert_eq!(d.runs(4, read(0)), None, "behind the writer");
    assert_eq!(d.runs(9, Event::Tick), Some(2));
    assert_eq!(
        d.shard.state(id(1)),
        State::Ready,
        "nobody is ahead any more"
    );
    assert_eq!(d.runs(10, Event::Complete), Some(1));
    assert!(d.shard.holds(id(1), 0));
}

#[test]
fn a_waiter_that_has_not_run_since_keeps_nobody_more_urgent_waiting() {
    // For one resource a job waits for one less urgent section at most (Sha, Rajkumar and
    // Lehoczky 1990, Theorem 2): that of low here, and not that of middle on top.
    let upper = at(3, periodic(100, 1_000, 7));
    let [low, middle, high] = three();
    let mut d = sharing(INHERITANCE, &[low, middle, at(3, high), upper]);
    let _ = d.at(0, Event::Tick);
    let _ = d.at(0, lock(0));
    assert_eq!(d.runs(1, Event::Tick), Some(1));
    assert_eq!(d.runs(2, lock(0)), Some(0), "middle waits");
    assert_eq!(d.runs(3, Event::Tick), Some(2));
    assert_eq!(d.runs(3, lock(0)), Some(0), "high waits; upper is ready");
    assert_eq!(d.runs(4, unlock(0)), Some(2));
    assert_eq!(d.runs(5, unlock(0)), Some(2));
    assert_eq!(d.runs(6, Event::Complete), Some(3));
    assert_eq!(d.runs(7, lock(0)), Some(3), "at once");
    assert_eq!(d.runs(8, unlock(0)), Some(3));
    assert_eq!(d.runs(9, Event::Complete), Some(1));
    assert!(d.shard.holds(id(1), 0));
}

#[test]
fn the_death_of_a_holder_or_of_a_waiter_leaves_nothing_behind() {
    let mut d = sharing(INHERITANCE, &three());
    let _ = d.at(0, Event::Tick);
    let _ = d.at(0, lock(0));
    let _ = d.at(1, Event::Tick);
    assert_eq!(d.runs(1, lock(0)), Some(0));
    assert_eq!(d.runs(2, Event::Tick), Some(2));
    assert_eq!(d.runs(2, lock(0)), Some(0));
    let _ = d.at(3, Event::Kill(id(2)));
    assert_eq!(d.shard.running(), Some(id(0)), "for middle");
    assert_eq!(d.runs(4, Event::Exit), Some(1));
    assert!(d.shard.holds(id(1), 0));
    // The newcomer in the place of a dead thread has declared nothing.
    let _ = d.at(5, Event::Create(periodic(100, 1_000, 9)));
    let newcomer = d.shard.running().unwrap();
    assert!(newcomer.generation() > 0);
    assert_eq!(d.at(5, lock(0)).refused, Some(Refusal::NotDeclared(0)));
}

#[test]
fn a_job_that_completes_gives_back_what_it_holds() {
    let mut d = sharing(INHERITANCE, &three());
    let _ = d.at(0, Event::Tick);
    let _ = d.at(0, lock(0));
    let _ = d.at(0, lock(1));
    let _ = d.at(1, Event::Tick);
    assert_eq!(d.runs(1, lock(1)), Some(0));
    let _ = d.at(1, Event::Complete);
    assert!(d.shard.holds(id(1), 1));
    assert_eq!(count(&d, |e| matches!(e, TraceEvent::Unlocked { .. })), 2);
}

#[test]
fn a_section_that_outlives_its_declaration_inherits_nothing_any_more() {
    for protocol in [
        Protocol::Inheritance,
        Protocol::ImmediateCeiling,
        Protocol::NonPreemptive,
    ] {
        let [low, middle, high] = three();
        let mut d = Driver::new(&[low, middle, high]);
        let _ = d.shard.add_resource(resource(protocol, 9));
        for thread in [0, 2] {
            d.shard.declare_use(id(thread), a_use(0, 5)).unwrap();
        }
        let _ = d.at(0, Event::Tick);
        assert_eq!(d.runs(0, lock(0)), Some(0));
        if protocol == Protocol::Inheritance {
            let _ = d.at(1, Event::Tick);
            assert_eq!(d.runs(2, Event::Tick), Some(2));
            assert_eq!(d.runs(2, lock(0)), Some(0));
        }
        let decision = d.at(3, Event::Tick);
        // Under inheritance it has executed for one tick before 1 and one after 2.
        let end = if protocol == Protocol::Inheritance {
            6
        } else {
            5
        };
        assert_eq!(decision.arm, Some(Instant::from_ticks(end)), "{protocol:?}");
        let overran = |e: &TraceEvent| matches!(e, TraceEvent::SectionOverran { .. });
        assert_eq!(count(&d, overran), 0);
        let next = d.runs(end, Event::Tick);
        let expected = if protocol == Protocol::Inheritance {
            1
        } else {
            2
        };
        assert_eq!(next, Some(expected), "{protocol:?}");
        assert_eq!(count(&d, overran), 1);
    }
}

#[test]
fn a_section_that_ends_with_its_last_tick_has_not_outlived_it() {
    let mut d = Driver::new(&[periodic(100, 1_000, 1)]);
    for protocol in INHERITANCE {
        let number = d.shard.add_resource(resource(*protocol, 1));
        d.shard.declare_use(id(0), a_use(number, 5)).unwrap();
    }
    let _ = d.at(0, Event::Tick);
    let _ = d.at(0, lock(0));
    let _ = d.at(0, lock(1));
    let _ = d.at(5, unlock(1));
    let _ = d.at(5, unlock(0));
    let _ = d.at(6, Event::Tick);
    let overran = |e: &TraceEvent| matches!(e, TraceEvent::SectionOverran { .. });
    assert_eq!(count(&d, overran), 0);
}

#[test]
fn a_job_with_less_budget_than_its_section_begins_it_with_the_next() {
    let mut d = Driver::new(&[periodic(10, 100, 9), periodic(50, 1_000, 1)]);
    let _ = d.shard.add_resource(resource(Protocol::Inheritance, 9));
    for thread in [0, 1] {
        d.shard.declare_use(id(thread), a_use(0, 4)).unwrap();
    }
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(
        d.runs(7, lock(0)),
        Some(1),
        "3 are left, the section takes 4"
    );
    assert_eq!(d.shard.state(id(0)), State::Throttled);
    assert!(d.shard.job(id(0)).unwrap().overran);
    assert_eq!(d.runs(8, lock(0)), Some(1), "nobody holds it");
    assert_eq!(d.runs(9, unlock(0)), Some(1));
    assert_eq!(d.runs(100, Event::Tick), Some(0));
    assert!(d.shard.holds(id(0), 0));
    assert_eq!(d.runs(104, unlock(0)), Some(0));
}

#[test]
fn a_demoted_job_locks_in_the_background_and_inherits_from_its_waiters() {
    let mut greedy = periodic(5, 1_000, 5);
    greedy.on_overrun = OnOverrun::Demote;
    let middle = at(8, periodic(100, 1_000, 3));
    let high = at(9, periodic(10, 1_000, 9));
    let mut d = Driver::new(&[greedy, middle, high]);
    let _ = d.shard.add_resource(resource(Protocol::Inheritance, 9));
    for thread in [0, 2] {
        d.shard.declare_use(id(thread), a_use(0, 4)).unwrap();
    }
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(5, Event::Tick), Some(0), "demoted, and alone");
    assert_eq!(d.runs(6, lock(0)), Some(0));
    assert_eq!(d.runs(8, Event::Tick), Some(1), "real-time work first");
    assert_eq!(d.runs(9, Event::Tick), Some(2));
    assert_eq!(d.runs(9, lock(0)), Some(0), "the holder inherits");
    assert_eq!(d.runs(11, unlock(0)), Some(2));
    assert_eq!(d.runs(12, Event::Complete), Some(1));
    assert_eq!(d.runs(13, Event::Complete), Some(0));
}

#[test]
fn a_wake_up_does_not_end_the_wait_for_a_resource() {
    let mut d = sharing(INHERITANCE, &three());
    let _ = d.at(0, Event::Tick);
    let _ = d.at(0, lock(0));
    let _ = d.at(2, Event::Tick);
    assert_eq!(d.runs(2, lock(0)), Some(0));
    assert_eq!(d.runs(3, Event::Wake(id(2))), Some(0));
    assert_eq!(d.shard.state(id(2)), State::Blocked);
    assert_eq!(d.runs(4, unlock(0)), Some(2));
    let woken = TraceEvent::Woken {
        thread: id(2),
        cause: WakeCause::Lock,
    };
    assert!(d.log.0.contains(&(4, woken)));
    assert_eq!(
        d.runs(5, Event::Block { until: None }),
        Some(2),
        "the wake-up was kept for its next wait"
    );
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let many = vec![Protocol::Inheritance; MAX_NESTING as usize + 1];
    let [low, _, high] = three();
    let mut d = sharing(&many, &[low, high]);
    let reader = UseTerms {
        mode: Mode::Shared,
        ..a_use(MAX_NESTING + 1, 5)
    };
    let _ = d.shard.add_resource(resource(Protocol::Inheritance, 9));
    d.shard.declare_use(id(0), reader).unwrap();
    let _ = d.at(0, Event::Tick);
    let mut refused = |now, event| d.at(now, event).refused;
    assert_eq!(refused(0, lock(99)), Some(Refusal::NotDeclared(99)));
    let written = MAX_NESTING + 1;
    let of_reader = Some(Refusal::NotDeclared(written));
    assert_eq!(refused(0, lock(written)), of_reader);
    assert_eq!(refused(0, unlock(0)), Some(Refusal::NotHeld(0)));
    for resource in 0..MAX_NESTING {
        assert_eq!(refused(0, lock(resource)), None);
    }
    assert_eq!(refused(0, lock(0)), Some(Refusal::AlreadyHeld(0)));
    let deep = Some(Refusal::NestedTooDeep(MAX_NESTING));
    assert_eq!(refused(0, lock(MAX_NESTING)), deep);
}

#[test]
fn a_lock_that_closes_a_circle_is_refused() {
    let three_of = [Protocol::Inheritance; 3];
    let mut d = sharing(&three_of, &three());
    let _ = d.at(0, Event::Tick);
    let _ = d.at(0, lock(0));
    let _ = d.at(1, Event::Tick);
    let _ = d.at(1, lock(1));
    assert_eq!(d.runs(1, lock(0)), Some(0));
    let _ = d.at(2, Event::Tick);
    let _ = d.at(2, lock(2));
    assert_eq!(d.runs(2, lock(1)), Some(0));
    assert_eq!(d.at(3, lock(2)).refused, Some(Refusal::Deadlock(2)));
    assert_eq!(d.shard.running(), Some(id(0)), "it goes on without");
    assert_eq!(d.runs(4, unlock(0)), Some(1));
}

#[test]
fn a_body_without_guarantees_changes_when_it_holds_nothing() {
    let mut d = sharing(INHERITANCE, &[constraint(Class::Aperiodic, 1)]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    let _ = d.at(0, lock(0));
    let change = Event::Change {
        thread: id(0),
        constraint: periodic(10, 100, 5),
    };
    assert_eq!(d.runs(1, change), Some(0));
    assert!(d.shard.holds(id(0), 0));
    let _ = d.at(2, unlock(0));
    let changed = |e: &TraceEvent| matches!(e, TraceEvent::Changed { .. });
    assert_eq!(count(&d, changed), 1);
}
