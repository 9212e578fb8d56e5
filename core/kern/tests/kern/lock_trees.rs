//! Locks below servers: sections at the end of a budget, and resources between schedulers.

use punctual_kern::{Event, Grant, NodeId, Refusal, Request, ResourceTerms, TraceEvent};
use punctual_model::{AtBudgetEnd, Protocol, ServerKind};

use crate::driver::{id, periodic};
use crate::locks::{a_use, lock, resource, unlock};
use crate::trees::{FIXED, Grove, at, node, server, terms};

fn below(grove: &mut Grove, terms: ResourceTerms, users: &[(u32, u64)]) {
    let number = grove.shard.add_resource(terms);
    for &(thread, length) in users {
        grove
            .shard
            .declare_use(id(thread), a_use(number, length))
            .unwrap();
    }
}

fn runs(grove: &mut Grove, now: u64, event: Event) -> Option<usize> {
    let _ = grove.at(now, event);
    grove.shard.running().map(|thread| thread.index())
}

/// Two threads below a deferrable server of 4 in 10 at priority 5, the second more urgent; one on
/// the CPU at priority 1.
fn served(at_budget_end: AtBudgetEnd) -> Grove {
    let mut grove = Grove::new(
        FIXED,
        &[(0, FIXED, terms(server(ServerKind::Deferrable, 4, 10), 5))],
        &[
            (1, periodic(30, 1_000, 1)),
            (1, at(3, periodic(30, 1_000, 2))),
            (0, periodic(500, 1_000, 1)),
        ],
    );
    let terms = ResourceTerms {
        at_budget_end,
        common: node(1),
        ..resource(Protocol::Inheritance, 2)
    };
    below(&mut grove, terms, &[(0, 3)]);
    grove
}

#[test]
fn a_holder_alone_finishes_its_section_and_the_next_budget_pays() {
    let mut grove = served(AtBudgetEnd::Overrun);
    assert_eq!(runs(&mut grove, 0, Event::Tick), Some(0));
    assert_eq!(runs(&mut grove, 2, lock(0)), Some(0));
    assert_eq!(runs(&mut grove, 3, Event::Tick), Some(1), "more urgent");
    assert_eq!(runs(&mut grove, 4, Event::Tick), Some(0), "exhausted");
    assert_eq!(runs(&mut grove, 6, unlock(0)), Some(2));
    // Two were beyond the budget: two are left of the next one.
    assert_eq!(runs(&mut grove, 10, Event::Tick), Some(1));
    assert_eq!(runs(&mut grove, 12, Event::Tick), Some(2));
    assert_eq!(runs(&mut grove, 20, Event::Tick), Some(1));
    assert_eq!(runs(&mut grove, 24, Event::Tick), Some(2), "all four again");
}

#[test]
fn an_overrun_ends_with_the_declared_length() {
    let mut grove = served(AtBudgetEnd::Overrun);
    let _ = runs(&mut grove, 0, Event::Tick);
    assert_eq!(runs(&mut grove, 2, lock(0)), Some(0));
    let _ = runs(&mut grove, 3, Event::Tick);
    assert_eq!(
        runs(&mut grove, 4, Event::Tick),
        Some(0),
        "beyond the budget"
    );
    assert_eq!(runs(&mut grove, 6, Event::Tick), Some(2), "longer than 3");
    let overran = |e: &(u64, TraceEvent)| matches!(e.1, TraceEvent::SectionOverran { .. });
    assert_eq!(grove.log.0.iter().filter(|e| overran(e)).count(), 1);
    assert_eq!(runs(&mut grove, 10, Event::Tick), Some(1));
}

#[test]
fn a_section_that_does_not_fit_waits_for_the_next_budget() {
    let mut grove = served(AtBudgetEnd::CheckFirst);
    let _ = runs(&mut grove, 0, Event::Tick);
    assert_eq!(runs(&mut grove, 2, lock(0)), Some(2), "2 are left of 4");
    assert_eq!(
        runs(&mut grove, 3, Event::Tick),
        Some(1),
        "a sibling uses them"
    );
    assert_eq!(runs(&mut grove, 5, Event::Tick), Some(2));
    assert_eq!(runs(&mut grove, 10, Event::Tick), Some(1));
    assert_eq!(runs(&mut grove, 11, Event::Complete), Some(0), "3 are left");
    assert!(grove.shard.holds(id(0), 0));
    assert_eq!(runs(&mut grove, 14, unlock(0)), Some(2));
    let postponed = |e: &(u64, TraceEvent)| matches!(e.1, TraceEvent::Postponed { .. });
    assert_eq!(grove.log.0.iter().filter(|e| postponed(e)).count(), 1);
}

#[test]
fn a_holder_is_raised_where_the_users_meet_and_on_the_way_there() {
    // CPU: node 1 (priority 2) over node 2 (priority 1) over thread 0; node 1 has thread 1 at
    // priority 9; thread 2 on the CPU at priority 5 uses the resource, thread 3 at 3 does not.
    let mut grove = Grove::new(
        FIXED,
        &[
            (0, FIXED, terms(Grant::Shared, 2)),
            (1, FIXED, terms(Grant::Shared, 1)),
        ],
        &[
            (2, periodic(100, 1_000, 1)),
            (1, at(1, periodic(10, 1_000, 9))),
            (0, at(2, periodic(10, 1_000, 5))),
            (0, at(2, periodic(10, 1_000, 3))),
            (2, at(1, periodic(10, 1_000, 9))),
            (0, at(3, periodic(1, 1_000, 7))),
        ],
    );
    let terms = ResourceTerms {
        spans_schedulers: true,
        ..resource(Protocol::ImmediateCeiling, 5)
    };
    below(&mut grove, terms, &[(0, 20), (2, 5)]);
    assert_eq!(runs(&mut grove, 0, Event::Tick), Some(0));
    assert_eq!(runs(&mut grove, 0, lock(0)), Some(0));
    assert_eq!(
        runs(&mut grove, 1, Event::Tick),
        Some(0),
        "neither its siblings nor those of its scheduler"
    );
    assert_eq!(runs(&mut grove, 2, Event::Tick), Some(0), "nor the user");
    assert_eq!(
        runs(&mut grove, 3, Event::Tick),
        Some(5),
        "who is above all"
    );
    assert_eq!(runs(&mut grove, 4, Event::Complete), Some(0));
    assert_eq!(runs(&mut grove, 5, unlock(0)), Some(2));
    assert_eq!(runs(&mut grove, 6, lock(0)), Some(2));
    assert_eq!(runs(&mut grove, 7, unlock(0)), Some(2));
    for (now, next) in [(8, 3), (9, 1), (10, 4), (11, 0)] {
        assert_eq!(runs(&mut grove, now, Event::Complete), Some(next));
    }
}

#[test]
fn a_holder_that_suspends_itself_raises_nobody_meanwhile() {
    let mut grove = Grove::new(
        FIXED,
        &[(0, FIXED, terms(Grant::Shared, 1))],
        &[
            (1, periodic(100, 1_000, 2)),
            (1, periodic(100, 1_000, 1)),
            (0, at(5, periodic(10, 1_000, 5))),
        ],
    );
    let terms = ResourceTerms {
        spans_schedulers: true,
        ..resource(Protocol::ImmediateCeiling, 5)
    };
    below(&mut grove, terms, &[(0, 20), (2, 5)]);
    let _ = runs(&mut grove, 0, Event::Tick);
    assert_eq!(runs(&mut grove, 0, lock(0)), Some(0));
    assert_eq!(runs(&mut grove, 1, Event::Block { until: None }), Some(1));
    assert_eq!(runs(&mut grove, 5, Event::Tick), Some(2), "not the sibling");
    assert_eq!(runs(&mut grove, 6, lock(0)), Some(1));
    assert_eq!(runs(&mut grove, 7, Event::Wake(id(0))), Some(0));
    assert_eq!(runs(&mut grove, 8, unlock(0)), Some(2));
}

#[test]
fn a_scheduler_stays_raised_as_long_as_anybody_in_it_holds_what_others_share() {
    let mut grove = Grove::new(
        FIXED,
        &[(0, FIXED, terms(Grant::Shared, 1))],
        &[
            (1, periodic(100, 1_000, 2)),
            (1, periodic(100, 1_000, 1)),
            (0, at(5, periodic(10, 1_000, 5))),
        ],
    );
    let shared = || ResourceTerms {
        spans_schedulers: true,
        ..resource(Protocol::ImmediateCeiling, 5)
    };
    below(&mut grove, shared(), &[(0, 20), (2, 5)]);
    below(&mut grove, shared(), &[(1, 20), (2, 5)]);
    let _ = runs(&mut grove, 0, Event::Tick);
    assert_eq!(runs(&mut grove, 0, lock(0)), Some(0));
    assert_eq!(runs(&mut grove, 1, Event::Block { until: None }), Some(1));
    assert_eq!(runs(&mut grove, 2, lock(1)), Some(1));
    assert_eq!(runs(&mut grove, 3, Event::Wake(id(0))), Some(0));
    // The other one holds the second resource still.
    assert_eq!(runs(&mut grove, 4, unlock(0)), Some(1));
    assert_eq!(runs(&mut grove, 5, Event::Tick), Some(1), "not its user");
    assert_eq!(runs(&mut grove, 6, unlock(1)), Some(2));
}

#[test]
fn who_shares_resources_stays_in_its_scheduler() {
    let mut grove = served(AtBudgetEnd::Overrun);
    let _ = runs(&mut grove, 0, Event::Tick);
    let by_root = |request| Event::Manage {
        by: NodeId::ROOT,
        request,
    };
    let revoke = by_root(Request::Revoke { thread: id(0) });
    let stays = Some(Refusal::UsesResources(id(0)));
    assert_eq!(grove.at(1, revoke).refused, stays);
    assert_eq!(
        grove.at(1, by_root(Request::Demote(node(1)))).refused,
        stays
    );
    let other = by_root(Request::Revoke { thread: id(1) });
    assert_eq!(grove.at(1, other).refused, None);
}
