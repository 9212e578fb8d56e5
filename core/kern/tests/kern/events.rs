//! Each event, and what the core makes of it.

use punctual_kern::{
    Entry, Event, MissingCause, Outcome, Refusal, State, TraceEvent, Uncharged, WakeCause,
};
use punctual_model::{Class, Instant, OnOverrun, Span, ThreadId, Work};

use crate::driver::{Driver, constraint, id, periodic};

fn until(ticks: u64) -> Event {
    Event::Block {
        until: Some(Instant::from_ticks(ticks)),
    }
}

#[test]
fn a_job_blocks_and_is_woken_and_others_run_meanwhile() {
    let mut d = Driver::new(&[periodic(5, 100, 2), periodic(9, 100, 1)]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(2, Event::Block { until: None }), Some(1));
    assert_eq!(d.shard.state(id(0)), State::Blocked);
    assert_eq!(d.runs(4, Event::Wake(id(0))), Some(0));
    assert_eq!(d.shard.job(id(0)).unwrap().received, Work::from_ticks(2));
    assert_eq!(d.runs(7, Event::Complete), Some(1));
    assert_eq!(d.shard.state(id(0)), State::Idle);
}

#[test]
fn a_wake_up_that_comes_first_is_not_lost() {
    let mut d = Driver::new(&[periodic(5, 100, 2)]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(1, Event::Wake(id(0))), Some(0));
    assert_eq!(d.shard.state(id(0)), State::Woken);
    assert_eq!(
        d.runs(2, Event::Block { until: None }),
        Some(0),
        "it does not wait at all"
    );
    let early = TraceEvent::Woken {
        thread: id(0),
        cause: WakeCause::EarlyWake,
    };
    assert!(d.log.0.contains(&(2, early)));
    assert_eq!(
        d.runs(3, Event::Block { until: None }),
        None,
        "one wake-up ends one wait"
    );
}

#[test]
fn a_wait_ends_at_its_timeout() {
    let mut d = Driver::new(&[periodic(5, 100, 2)]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    let decision = d.at(1, until(30));
    assert_eq!(decision.arm, Some(Instant::from_ticks(30)));
    assert_eq!(d.runs(29, Event::Tick), None);
    assert_eq!(d.runs(30, Event::Tick), Some(0));
    let timeout = TraceEvent::Woken {
        thread: id(0),
        cause: WakeCause::Timeout,
    };
    assert!(d.log.0.contains(&(30, timeout)));
}

#[test]
fn the_timer_is_armed_to_the_earliest_of_release_budget_and_timeout() {
    let mut d = Driver::new(&[periodic(5, 100, 2), periodic(9, 40, 1)]);
    assert_eq!(
        d.at(0, Event::Tick).arm,
        Some(Instant::from_ticks(5)),
        "its budget ends"
    );
    assert_eq!(d.at(3, Event::Complete).arm, Some(Instant::from_ticks(12)));
    assert_eq!(
        d.at(8, Event::Complete).arm,
        Some(Instant::from_ticks(40)),
        "the next release"
    );
}

#[test]
fn missing_time_is_charged_to_nobody() {
    let mut d = Driver::new(&[periodic(5, 100, 2)]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    let entry = |now, missing| Entry {
        missing,
        ..Entry::at(Instant::from_ticks(now), &Event::Tick)
    };
    let stolen = |ticks| Uncharged::of(MissingCause::Stolen, Span::from_ticks(ticks));
    let decision = d.enter(&entry(43, stolen(40)));
    assert_eq!(
        decision.arm,
        Some(Instant::from_ticks(45)),
        "3 of 5 are used"
    );
    let more = Uncharged {
        given_back: Span::from_ticks(3),
        ..stolen(400)
    };
    let _ = d.enter(&entry(44, more));
    assert_eq!(
        d.shard.job(id(0)).unwrap().received,
        Work::from_ticks(3),
        "at most the interval"
    );
}

#[test]
fn a_changed_constraint_is_in_force_from_the_zero_lag_instant_on() {
    let mut d = Driver::new(&[periodic(5, 100, 2)]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    let change = Event::Change {
        thread: id(0),
        constraint: periodic(2, 10, 2),
    };
    assert_eq!(
        d.runs(1, change),
        Some(0),
        "the job that runs keeps its budget"
    );
    assert_eq!(d.runs(5, Event::Complete), None);
    assert_eq!(
        d.runs(60, Event::Tick),
        None,
        "its bandwidth is not free before its deadline"
    );
    assert_eq!(d.runs(100, Event::Tick), Some(0));
    assert_eq!(d.runs(101, Event::Complete), None);
    assert_eq!(d.runs(110, Event::Tick), Some(0));
    assert_eq!(
        d.log
            .0
            .iter()
            .filter(|e| matches!(e.1, TraceEvent::Changed { .. }))
            .count(),
        1
    );
}

#[test]
fn a_change_waits_for_the_end_of_the_period_and_not_for_a_nearer_deadline() {
    let soon = |wcet, period, deadline| {
        let class = Class::Periodic {
            period: Span::from_ticks(period),
            wcet: Work::from_ticks(wcet),
            relative_deadline: Span::from_ticks(deadline),
        };
        constraint(class, 2)
    };
    let mut d = Driver::new(&[soon(2, 100, 5)]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    let change = Event::Change {
        thread: id(0),
        constraint: soon(2, 100, 5),
    };
    assert_eq!(d.runs(1, change), Some(0));
    assert_eq!(d.runs(2, Event::Complete), None);
    // At its deadline it has had 2 of 5: far more than its 2 of 100.
    assert_eq!(d.runs(50, Event::Tick), None);
    assert_eq!(d.runs(100, Event::Tick), Some(0));
}

#[test]
fn an_aperiodic_thread_becomes_a_reservation_and_back() {
    let mut d = Driver::new(&[constraint(Class::Aperiodic, 1)]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    let class = Class::Reservation {
        period: Span::from_ticks(10),
        slice: Work::from_ticks(3),
    };
    let change = Event::Change {
        thread: id(0),
        constraint: constraint(class, 1),
    };
    assert_eq!(d.runs(5, change), Some(0));
    assert_eq!(d.runs(8, Event::Tick), None, "throttled after its slice");
    assert_eq!(d.runs(15, Event::Tick), Some(0));
    let back = Event::Change {
        thread: id(0),
        constraint: constraint(Class::Aperiodic, 1),
    };
    assert_eq!(d.runs(16, back), Some(0));
    assert_eq!(
        d.runs(18, Event::Tick),
        None,
        "its last period ends as promised"
    );
    assert_eq!(d.runs(25, Event::Tick), Some(0));
    assert_eq!(d.at(60, Event::Tick).arm, None, "no budget any more");
}

#[test]
fn a_reservation_that_yields_gives_up_the_rest_of_its_slice() {
    let class = Class::Reservation {
        period: Span::from_ticks(10),
        slice: Work::from_ticks(5),
    };
    let mut d = Driver::new(&[constraint(class, 2), constraint(Class::Aperiodic, 1)]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(1, Event::Yield), Some(1));
    assert_eq!(d.runs(10, Event::Tick), Some(0));
}

#[test]
fn threads_come_and_go_and_their_ids_grow_stale() {
    let mut d = Driver::new(&[periodic(5, 100, 1)]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(1, Event::Create(periodic(1, 50, 9))), Some(1));
    let second = d.shard.last_created().unwrap();
    assert_eq!(d.runs(2, Event::Exit), Some(0));
    assert_eq!(d.shard.state(second), State::Dead);
    assert_eq!(
        d.at(3, Event::Wake(second)).refused,
        Some(Refusal::StaleThread(second))
    );
    assert_eq!(d.runs(4, Event::Create(periodic(1, 50, 9))), Some(1));
    let third = d.shard.last_created().unwrap();
    assert_eq!((third.index(), third.generation()), (second.index(), 1));
    assert_eq!(
        d.at(4, Event::Kill(second)).refused,
        Some(Refusal::StaleThread(second))
    );
    assert_eq!(d.runs(4, Event::Kill(third)), Some(0));
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let mut d = Driver::new(&[periodic(5, 100, 1)]);
    assert_eq!(d.at(0, Event::Tick).refused, None);
    let arrive = |thread| Event::Arrive {
        thread,
        arrival: Instant::ZERO,
    };
    assert_eq!(
        d.at(1, arrive(id(0))).refused,
        Some(Refusal::NotSporadic(id(0)))
    );
    let nobody = ThreadId::new(77, 0);
    assert_eq!(
        d.at(1, Event::Kill(nobody)).refused,
        Some(Refusal::StaleThread(nobody))
    );
    let zero = Event::Create(periodic(0, 100, 1));
    assert_eq!(d.at(1, zero).refused, Some(Refusal::InvalidConstraint));
    let endless = Event::Create(periodic(1, 0, 1));
    assert_eq!(d.at(1, endless).refused, Some(Refusal::InvalidConstraint));
    for _ in 0..7 {
        assert_eq!(d.at(2, Event::Create(periodic(1, 50, 1))).refused, None);
    }
    let full = d.at(2, Event::Create(periodic(1, 50, 1)));
    assert_eq!(full.refused, Some(Refusal::NoThreadLeft));
    let mut idle = Driver::new(&[]);
    assert_eq!(
        idle.at(0, Event::Complete).refused,
        Some(Refusal::NobodyRuns)
    );
}

#[test]
fn protection_lasts_until_it_is_given_back_or_the_job_ends() {
    let mut low = periodic(9, 100, 1);
    low.order = 5;
    let mut high = periodic(2, 20, 2);
    high.phase = Span::from_ticks(1);
    let mut d = Driver::new(&[low, high]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(0, Event::Protect), Some(0));
    assert_eq!(d.runs(3, Event::Tick), Some(0), "the urgent job waits");
    assert_eq!(d.runs(4, Event::Unprotect), Some(1));
    assert_eq!(d.runs(6, Event::Complete), Some(0));
    assert_eq!(d.runs(7, Event::Protect), Some(0));
    assert_eq!(d.runs(8, Event::Complete), None);
    assert_eq!(
        d.runs(21, Event::Tick),
        Some(1),
        "nothing is left protected"
    );
}

#[test]
fn protection_does_not_outlive_the_budget() {
    let mut high = periodic(2, 20, 2);
    high.phase = Span::from_ticks(1);
    let mut d = Driver::new(&[periodic(5, 100, 1), high]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(d.runs(0, Event::Protect), Some(0));
    assert_eq!(d.runs(5, Event::Tick), Some(1));
}

#[test]
fn many_releases_at_once_are_taken_in_bounded_entries() {
    let mut d = Driver::new(&[periodic(1, 1, 1)]);
    let decision = d.at(1_000, Event::Tick);
    assert_eq!(
        decision.arm,
        Some(Instant::from_ticks(1_000)),
        "at once again"
    );
    // The first, and the last, which arms the next release.
    let mut entries = 2;
    while d.at(1_000, Event::Tick).arm == Some(Instant::from_ticks(1_000)) {
        entries += 1;
    }
    assert_eq!(
        entries,
        1_001_usize.div_ceil(punctual_kern::MAX_RELEASES_PER_ENTRY)
    );
}

#[test]
fn time_does_not_run_backwards() {
    let mut d = Driver::new(&[periodic(5, 100, 1)]);
    assert_eq!(d.runs(50, Event::Tick), Some(0));
    assert_eq!(d.runs(40, Event::Complete), None);
    assert_eq!(d.shard.now(), Instant::from_ticks(50));
}

#[test]
fn a_stop_ends_at_the_next_scheduling_point_and_costs_no_guaranteed_work() {
    let mut greedy = periodic(3, 50, 2);
    greedy.on_overrun = OnOverrun::Stop;
    let mut d = Driver::new(&[greedy, periodic(5, 100, 1)]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    assert_eq!(
        d.runs(3, Event::Tick),
        Some(1),
        "it goes on below all real-time work"
    );
    assert_eq!(d.runs(8, Event::Complete), Some(0));
    assert!(d.shard.job(id(0)).unwrap().stop);
    assert_eq!(d.runs(9, Event::Complete), None);
}

#[test]
fn a_job_whose_allotment_lapsed_is_stopped_when_it_has_received_as_much() {
    let mut greedy = periodic(3, 10, 2);
    greedy.on_overrun = OnOverrun::Stop;
    let mut d = Driver::new(&[greedy]);
    assert_eq!(d.runs(0, Event::Tick), Some(0));
    for now in [3, 10, 20] {
        assert_eq!(
            d.runs(now, Event::Tick),
            Some(0),
            "alone, in the background"
        );
    }
    // Two jobs are released behind the first: they have no budget, and no end of their own.
    let mut ends = vec![d.at(22, Event::Complete).arm];
    for now in [25, 28] {
        assert!(!d.shard.job(id(0)).unwrap().stop);
        let _ = d.at(now, Event::Tick);
        let job = d.shard.job(id(0)).unwrap();
        assert!(job.overran && job.stop, "told after one allotment");
        assert_eq!(job.budget, None);
        ends.push(d.at(now, Event::Complete).arm);
    }
    let end = |ticks| Some(Instant::from_ticks(ticks));
    assert_eq!(ends, [end(25), end(28), end(30)]);
    let stopped = |(_, event): &&(u64, TraceEvent)| {
        let stopped = Outcome::Stopped;
        matches!(event, TraceEvent::Completed { outcome, .. } if *outcome == stopped)
    };
    assert_eq!(d.log.0.iter().filter(stopped).count(), 3);
    assert_eq!(d.runs(30, Event::Tick), Some(0));
    assert_eq!(
        d.shard.job(id(0)).unwrap().budget,
        Some(Work::from_ticks(3)),
        "in order again"
    );
}
