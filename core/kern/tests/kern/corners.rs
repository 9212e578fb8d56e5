//! Where two mechanisms meet: demotion and backlog, change and throttling, policing and ties.

use punctual_kern::{AgendaStep, Edge, Event, PlannedSegment, Source, State, TraceEvent};
use punctual_model::{Class, Instant, OnOverrun, Protocol, Span, Work};

use crate::driver::{Driver, constraint, id, periodic};
use crate::locks::{a_use, lock, resource, unlock};

fn sporadic(wcet: u64, min_separation: u64) -> punctual_kern::Constraint {
    let class = Class::Sporadic {
        min_separation: Span::from_ticks(min_separation),
        wcet: Work::from_ticks(wcet),
        relative_deadline: Span::from_ticks(min_separation),
    };
    constraint(class, 9)
}

fn arrive(now: u64) -> Event {
    Event::Arrive {
        thread: id(0),
        arrival: Instant::from_ticks(now),
    }
}

fn change(constraint: punctual_kern::Constraint) -> Event {
    Event::Change {
        thread: id(0),
        constraint,
    }
}

/// Arrivals of the released jobs of thread 0.
fn releases(d: &Driver) -> Vec<u64> {
    let arrival = |(_, event): &(u64, TraceEvent)| match event {
        TraceEvent::Released {
            thread, arrival, ..
        } if thread.index() == 0 => Some(arrival.ticks()),
        _ => None,
    };
    d.log.0.iter().filter_map(arrival).collect()
}

#[test]
fn a_demoted_job_does_not_save_up_the_budgets_of_those_behind_it() {
    for rule in [OnOverrun::Demote, OnOverrun::Stop] {
        let mut greedy = periodic(2, 10, 9);
        greedy.on_overrun = rule;
        let mut other = periodic(5, 1_000, 1);
        other.phase = Span::from_ticks(65);
        let mut d = Driver::new(&[greedy, other]);
        assert_eq!(d.runs(0, Event::Tick), Some(0));
        for now in [2, 10, 20, 30, 40, 50, 60] {
            assert_eq!(d.runs(now, Event::Tick), Some(0), "alone");
        }
        // Six jobs wait; another thread is released, and the overrun must not delay it.
        assert_eq!(d.runs(65, Event::Complete), Some(1), "{rule:?}");
        assert_eq!(d.runs(70, Event::Complete), Some(0), "idle time drains it");
        for now in 71..78 {
            let _ = d.at(now, Event::Complete);
        }
        assert_eq!(d.shard.state(id(0)), State::Idle);
        assert_eq!(d.runs(80, Event::Tick), Some(0));
        let budget = d.shard.job(id(0)).and_then(|job| job.budget);
        assert_eq!(budget, Some(Work::from_ticks(2)), "in order again");
    }
}

#[test]
fn an_arrival_at_the_instant_of_a_replenishment_uses_up_that_place() {
    let mut d = Driver::new(&[sporadic(2, 10)]);
    assert_eq!(d.runs(0, arrive(0)), Some(0));
    assert_eq!(d.runs(2, Event::Tick), None, "throttled");
    assert_eq!(d.runs(10, arrive(10)), Some(0));
    assert_eq!(d.runs(11, Event::Complete), Some(0));
    let _ = d.at(12, Event::Complete);
    let _ = d.at(13, arrive(13));
    let _ = d.at(20, Event::Tick);
    assert_eq!(releases(&d), [0, 10, 20]);
}

#[test]
fn a_throttled_job_finishes_although_its_thread_is_to_change() {
    let mut d = Driver::new(&[periodic(2, 10, 9)]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(2, Event::Tick), None, "throttled");
    assert_eq!(d.at(3, change(periodic(1, 50, 9))).refused, None);
    assert_eq!(d.runs(10, Event::Tick), Some(0), "replenished");
    assert_eq!(d.runs(11, Event::Complete), None);
    assert_eq!(d.runs(20, Event::Tick), Some(0), "zero lag: the new one");
    assert_eq!(releases(&d), [0, 20]);
}

#[test]
fn a_change_does_not_cut_a_demoted_job_short_nor_free_its_bandwidth_early() {
    let mut greedy = periodic(2, 10, 9);
    greedy.on_overrun = OnOverrun::Demote;
    let mut d = Driver::new(&[greedy]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(2, Event::Tick), Some(0), "in the background");
    assert_eq!(d.runs(3, change(periodic(5, 10, 9))), Some(0));
    assert_eq!(d.shard.job(id(0)).map(|job| job.index), Some(0));
    assert_eq!(d.runs(4, Event::Complete), None);
    assert_eq!(d.runs(10, Event::Tick), Some(0));
    assert_eq!(releases(&d), [0, 10]);
}

#[test]
fn arrivals_during_a_change_wait_for_the_new_constraint() {
    let mut d = Driver::new(&[sporadic(5, 10)]);
    assert_eq!(d.runs(0, arrive(0)), Some(0));
    let _ = d.at(1, arrive(1));
    let _ = d.at(1, change(sporadic(1, 30)));
    let _ = d.at(5, Event::Complete);
    assert_eq!(d.runs(10, Event::Tick), Some(0), "from zero lag on");
    let _ = d.at(11, Event::Complete);
    let _ = d.at(12, arrive(12));
    let _ = d.at(40, Event::Tick);
    assert_eq!(releases(&d), [0, 10, 40]);
}

#[test]
fn a_second_change_does_not_come_before_the_zero_lag_instant_of_the_first() {
    let mut d = Driver::new(&[periodic(5, 10, 2)]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    let _ = d.at(5, Event::Complete);
    let _ = d.at(6, change(periodic(4, 10, 2)));
    let _ = d.at(7, change(periodic(5, 10, 2)));
    let _ = d.at(10, Event::Tick);
    assert_eq!(releases(&d), [0, 10]);
}

#[test]
fn an_arrival_after_a_change_waits_for_the_zero_lag_instant() {
    let mut d = Driver::new(&[sporadic(5, 10)]);
    assert_eq!(d.runs(0, arrive(0)), Some(0));
    let _ = d.at(5, Event::Complete);
    let _ = d.at(6, change(sporadic(4, 10)));
    assert_eq!(d.runs(7, arrive(7)), None);
    assert_eq!(d.runs(10, Event::Tick), Some(0));
    assert_eq!(releases(&d), [0, 10]);
}

#[test]
fn a_new_thread_does_not_inherit_the_precedences_of_a_dead_one() {
    let mut d = Driver::new(&[periodic(5, 100, 1), periodic(1, 100, 9)]);
    let edge = Edge {
        from: Source::Local(id(0)),
        strict: false,
    };
    d.shard.add_precedence(id(1), edge).unwrap();
    assert_eq!(d.runs(0, Event::Tick), Some(0), "the successor waits");
    assert_eq!(d.runs(1, Event::Kill(id(1))), Some(0));
    assert_eq!(d.runs(2, Event::Create(periodic(1, 100, 9))), Some(1));
}

#[test]
fn it_is_known_until_when_jobs_wait_for_predecessors() {
    let mut d = Driver::new(&[
        periodic(5, 100, 1),
        periodic(1, 100, 9),
        periodic(1, 100, 8),
    ]);
    let (from, strict) = (Source::Local(id(0)), false);
    for successor in [1, 2] {
        let edge = Edge { from, strict };
        d.shard.add_precedence(id(successor), edge).unwrap();
    }
    assert_eq!(d.shard.awaits_predecessors(), None);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    let deadline = Some(Instant::from_ticks(100));
    assert_eq!(d.shard.awaits_predecessors(), deadline);
    assert_eq!(d.runs(1, Event::Kill(id(1))), Some(0));
    assert_eq!(d.shard.awaits_predecessors(), deadline, "the other one");
    assert_eq!(d.runs(5, Event::Complete), Some(2));
    assert_eq!(d.shard.awaits_predecessors(), None);
}

#[test]
fn a_segment_of_a_dead_thread_is_passed_over_and_does_not_start_the_next_one_there() {
    let mut fed = sporadic(5, 10);
    fed.fed = true;
    let mut d = Driver::new(&[fed, fed]);
    d.shard.reserve_agenda(2);
    for number in 0..2 {
        let segment = PlannedSegment {
            number,
            thread: id(u32::try_from(number).unwrap()),
            earliest: Instant::from_ticks(5),
            start: Instant::from_ticks(5),
            wcet: Work::from_ticks(2),
            deadline: Instant::from_ticks(20),
            group: 0,
            cleanup: Work::ZERO,
        };
        let staged = d.at(0, Event::Agenda(AgendaStep::Stage(segment)));
        assert_eq!(staged.refused, None);
    }
    let committed = d.at(0, Event::Agenda(AgendaStep::Commit { from: 0 }));
    assert_eq!(committed.refused, None);
    assert_eq!(d.runs(1, Event::Kill(id(0))), None);
    assert_eq!(d.runs(2, Event::Create(fed)), None, "in the same place");
    assert_eq!(d.runs(5, Event::Tick), Some(1));
    assert_eq!(d.shard.agenda().frontier, 1);
    assert_eq!(d.runs(6, Event::Complete), None);
    assert_eq!(d.shard.agenda().frontier, 2);
}

#[test]
fn a_reservation_that_blocks_in_its_last_period_is_done() {
    let class = Class::Reservation {
        period: Span::from_ticks(10),
        slice: Work::from_ticks(5),
    };
    let mut last = constraint(class, 2);
    last.until = Instant::from_ticks(10);
    let mut d = Driver::new(&[last]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(2, Event::Block { until: None }), None);
    let _ = d.at(10, Event::Tick);
    assert_eq!(d.shard.unsettled(), 0, "it did not want its whole slice");
}

#[test]
fn a_blocked_reservation_still_waits_after_a_change() {
    let class = Class::Reservation {
        period: Span::from_ticks(10),
        slice: Work::from_ticks(5),
    };
    let mut d = Driver::new(&[constraint(class, 2)]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(2, Event::Block { until: None }), None);
    let _ = d.at(3, change(constraint(Class::Aperiodic, 1)));
    assert_eq!(d.runs(10, Event::Tick), None, "nobody has woken it");
    let _ = d.at(12, Event::Wake(id(0)));
    assert_eq!(d.runs(20, Event::Tick), Some(0));
    assert_eq!(d.at(60, Event::Tick).arm, None, "no budget any more");
}

#[test]
fn a_new_slice_does_not_end_a_section() {
    let class = Class::Reservation {
        period: Span::from_ticks(10),
        slice: Work::from_ticks(5),
    };
    let mut urgent = periodic(1, 100, 9);
    urgent.phase = Span::from_ticks(11);
    let mut first = periodic(6, 1_000, 9);
    first.order = 0;
    let mut d = Driver::new(&[constraint(class, 2), urgent, first]);
    assert_eq!(d.runs(0, Event::Tick), Some(2));
    assert_eq!(d.runs(6, Event::Complete), Some(0));
    let _ = d.at(7, Event::Protect);
    assert_eq!(d.runs(10, Event::Tick), Some(0), "a new slice");
    assert_eq!(d.runs(11, Event::Tick), Some(0), "still in its section");
    assert_eq!(d.runs(12, Event::Unprotect), Some(1));
}

#[test]
fn a_thread_that_dies_in_its_section_ends_nobody_elses() {
    let mut second = periodic(9, 100, 5);
    second.phase = Span::from_ticks(1);
    let mut third = periodic(1, 100, 9);
    third.phase = Span::from_ticks(3);
    let mut d = Driver::new(&[periodic(9, 100, 1), second, third]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    // Thread 0 enters its section and is preempted before it has executed a tick of it.
    assert_eq!(d.runs(1, Event::Protect), Some(1));
    let _ = d.at(2, Event::Protect);
    assert_eq!(d.runs(3, Event::Kill(id(0))), Some(1), "its section holds");
}

/// A reservation whose period is over at 10, and a change to one job per 20 ticks from then on with
/// it. Behind it one that is always ready.
fn about_to_change(phase: u64) -> Driver {
    let class = Class::Reservation {
        period: Span::from_ticks(10),
        slice: Work::from_ticks(20),
    };
    let mut d = Driver::new(&[constraint(class, 9), periodic(500, 1_000, 1)]);
    for protocol in [Protocol::Inheritance, Protocol::ImmediateCeiling] {
        let number = d.shard.add_resource(resource(protocol, 9));
        for thread in [0, 1] {
            d.shard.declare_use(id(thread), a_use(number, 20)).unwrap();
        }
    }
    let mut later = periodic(2, 20, 9);
    later.phase = Span::from_ticks(phase);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    let _ = d.at(1, change(later));
    d
}

#[test]
fn who_waits_when_its_job_has_just_ended_is_not_woken_without_one() {
    let mut d = about_to_change(10);
    // Its period was over at 10, and the change with it, before it waits.
    let until = None;
    assert_eq!(d.runs(12, Event::Block { until }), Some(1));
    assert_eq!(d.runs(13, Event::Wake(id(0))), Some(1));
    assert_eq!(d.shard.job(id(0)), None);
    assert_eq!(d.runs(22, Event::Tick), Some(0), "its next job");
    assert!(d.shard.job(id(0)).is_some());
}

#[test]
fn a_wake_up_for_a_wait_without_a_job_ends_no_later_wait() {
    let mut d = about_to_change(10);
    let _ = d.at(2, Event::Wake(id(0)));
    assert_eq!(d.shard.state(id(0)), State::Woken);
    let until = None;
    assert_eq!(d.runs(12, Event::Block { until }), Some(1));
    assert_eq!(d.runs(22, Event::Tick), Some(0), "its next job");
    assert_eq!(d.runs(23, Event::Block { until }), Some(1), "another wait");
    assert_eq!(d.shard.state(id(0)), State::Blocked);
}

#[test]
fn who_locks_when_its_job_has_just_ended_neither_holds_nor_waits() {
    for number in [0, 1] {
        let mut d = about_to_change(10);
        assert_eq!(d.at(12, lock(number)).refused, None);
        assert!(!d.shard.holds(id(0), number), "free, and it has no job");
        assert_eq!(d.shard.state(id(0)), State::Idle);
        assert_eq!(d.runs(13, lock(number)), Some(1), "it keeps nobody out");
        assert!(d.shard.holds(id(1), number));
    }
}

#[test]
fn who_locks_what_is_held_when_its_job_has_just_ended_is_not_handed_it() {
    for release in [14, 100] {
        let mut d = about_to_change(release - 12);
        let until = None;
        // The other has the resource since 3.
        assert_eq!(d.runs(2, Event::Block { until }), Some(1));
        assert_eq!(d.runs(3, lock(0)), Some(1));
        assert_eq!(d.runs(4, Event::Wake(id(0))), Some(0));
        assert_eq!(d.at(12, lock(0)).refused, None);
        assert_eq!(d.shard.state(id(0)), State::Idle, "it does not wait");
        // Given back before its next release (at 100), or after it (at 14).
        let next = if release == 14 { 0 } else { 1 };
        assert_eq!(d.runs(15, Event::Tick), Some(next));
        if next == 0 {
            assert_eq!(d.runs(16, Event::Complete), Some(1));
        }
        assert_eq!(d.runs(17, unlock(0)), Some(1), "nobody has waited");
        assert!(!d.shard.holds(id(0), 0));
    }
}

#[test]
fn a_yield_without_a_job_gives_no_slice_up() {
    let mut d = about_to_change(10);
    assert_eq!(d.runs(12, Event::Yield), Some(1));
    assert_eq!(d.shard.state(id(0)), State::Idle);
    assert_eq!(d.runs(22, Event::Tick), Some(0), "its next job");
}

#[test]
fn the_core_counts_a_change_from_the_instant_that_it_says() {
    let instant = Instant::from_ticks;
    let from = |d: &Driver, now: u64| d.shard.change_counts_from(id(0), instant(now));
    let mut d = Driver::new(&[periodic(5, 10, 2)]);
    assert_eq!(from(&d, 0), Some(instant(0)), "nothing was released");
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(from(&d, 3), Some(instant(10)), "the next release");
    let mut later = periodic(4, 20, 2);
    later.phase = Span::from_ticks(7);
    let _ = d.at(3, change(later));
    let _ = d.at(5, Event::Complete);
    assert_eq!(from(&d, 6), Some(instant(10)), "as it was asked");
    let _ = d.at(17, Event::Tick);
    assert_eq!(releases(&d), [0, 17]);
    assert_eq!(from(&d, 40), Some(instant(40)), "all is long over");
    assert_eq!(d.shard.change_counts_from(id(9), instant(0)), None);
}
