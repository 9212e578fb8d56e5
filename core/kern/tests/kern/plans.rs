//! Plans: all of a change happens, or nothing of it and of what was judged as coming after it.

use punctual_kern::{Event, Plan, Planned, Request};
use punctual_model::{Instant, PolicyKind, Priority, ServerKind, Work};

use crate::driver::{id, periodic};
use crate::trees::{FIXED, Grove, node, server, terms};

/// A scheduler with a server and one thread, and one thread beside it.
fn grove() -> Grove {
    let supply = server(ServerKind::Deferrable, 5, 10);
    Grove::new(
        FIXED,
        &[(0, FIXED, terms(supply, 5))],
        &[(1, periodic(3, 100, 1)), (0, periodic(2, 100, 1))],
    )
}

fn asks(request: Request) -> Event {
    let by = node(0);
    Event::Manage { by, request }
}

/// The other thread gets another priority, and the scheduler something else; at 1 and at 2.
fn plan(of_scheduler: Request, quiet: bool) -> Plan {
    let changed = |priority| Event::Change {
        thread: id(1),
        constraint: punctual_kern::Constraint {
            priority: Priority::new(priority),
            ..periodic(2, 100, 1)
        },
    };
    let step = |change, at, events| Planned {
        change,
        at: Instant::from_ticks(at),
        quiet: if quiet { vec![id(0)] } else { Vec::new() },
        events,
    };
    let first = vec![changed(7), asks(of_scheduler)];
    Plan::new(vec![step(0, 1, first), step(1, 2, vec![changed(9)])])
}

/// What the plan gives from here on, each with whether the core did it.
fn carried(plan: &mut Plan, grove: &mut Grove, now: u64) -> Vec<(Event, bool)> {
    let mut all = Vec::new();
    while let Some(event) = plan.next(Instant::from_ticks(now), &grove.shard) {
        let decision = grove.at(now, event);
        plan.hear(&decision);
        all.push((event, decision.refused.is_none()));
    }
    all
}

fn richer() -> Request {
    Request::Supply {
        node: node(1),
        supply: server(ServerKind::Deferrable, 6, 10),
    }
}

#[test]
fn a_change_of_which_the_core_would_refuse_a_part_is_not_begun_and_the_plan_ends() {
    let by_deadline = Request::Replace {
        node: node(1),
        policy: PolicyKind::EarliestDeadlineFirst,
    };
    // Work is ready below the server; nothing is in stock.
    for refused in [richer(), by_deadline] {
        let mut grove = grove();
        let _ = grove.at(0, Event::Tick);
        let mut plan = plan(refused, false);
        assert_eq!(carried(&mut plan, &mut grove, 2), [(asks(refused), false)]);
        assert_eq!((plan.due(), plan.waits()), (None, false));
        let priority = grove.shard.constraint(id(1)).unwrap().priority;
        assert_eq!(priority, periodic(2, 100, 1).priority);
    }
}

#[test]
fn a_change_that_waits_for_its_threads_is_done_whole() {
    let mut grove = grove();
    let _ = grove.at(0, Event::Tick);
    let mut plan = plan(richer(), true);
    assert_eq!(carried(&mut plan, &mut grove, 1), []);
    assert!(plan.waits());
    let _ = grove.at(3, Event::Complete);
    let all = carried(&mut plan, &mut grove, 3);
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(all.iter().all(|(_, done)| *done), "{all:?}");
}

#[test]
fn a_plan_ends_with_whatever_the_core_refuses() {
    let mut grove = grove();
    let _ = grove.at(0, Event::Tick);
    let gone = punctual_kern::NodeId::new(1, 7);
    let mut plan = plan(Request::Demote(gone), false);
    let all = carried(&mut plan, &mut grove, 2);
    let done: Vec<bool> = all.iter().map(|(_, done)| *done).collect();
    assert_eq!(done, [true, false], "{all:?}");
    assert_eq!(plan.due(), None);
}

#[test]
fn of_two_schedulers_that_have_gone_each_comes_to_its_own_place() {
    let supply = |priority| terms(server(ServerKind::Deferrable, 2, 10), priority);
    let nodes = [(0, FIXED, supply(5)), (0, FIXED, supply(4))];
    let mut grove = Grove::new(FIXED, &nodes, &[(0, periodic(2, 100, 1))]);
    let demote = |at| asks(Request::Demote(node(at)));
    let events = [demote(1), demote(2), asks(Request::Promote(supply(5)))];
    for event in events {
        assert_eq!(grove.at(1, event).refused, None);
    }
    let first = punctual_kern::NodeId::new(1, 1);
    assert_eq!(grove.shard.last_promoted(), Some(first));
}

#[test]
fn a_thread_that_has_ended_needs_no_home() {
    let mut grove = grove();
    let _ = grove.at(0, Event::Tick);
    let _ = grove.at(1, Event::Kill(id(0)));
    let mut plan = plan(Request::Revoke { thread: id(0) }, false);
    // Nothing is left of the first change but its first event.
    for _ in 0..2 {
        let all = carried(&mut plan, &mut grove, 2);
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all.iter().all(|(_, done)| *done), "{all:?}");
    }
}

/// The server of the first scheduler has (5 in 10). At 3 it has used 3, and cannot lend 4.
#[test]
fn a_transfer_waits_until_its_lender_has_so_much_and_what_follows_until_it_is_over() {
    let mut grove = Grove::new(
        FIXED,
        &[
            (0, FIXED, terms(server(ServerKind::Deferrable, 5, 10), 5)),
            (0, FIXED, terms(server(ServerKind::Polling, 2, 10), 4)),
        ],
        &[(1, periodic(3, 100, 1)), (0, periodic(2, 100, 1))],
    );
    let lends = Event::Manage {
        by: node(1),
        request: Request::Lend {
            to: node(2),
            work: Work::from_ticks(4),
        },
    };
    let step = |at, event| Planned {
        change: 0,
        at: Instant::from_ticks(at),
        quiet: Vec::new(),
        events: vec![event],
    };
    let mut plan = Plan::new(vec![step(3, lends), step(4, asks(richer()))]);
    let _ = grove.at(0, Event::Tick);
    let _ = grove.at(3, Event::Tick);
    assert_eq!(carried(&mut plan, &mut grove, 3), []);
    assert_eq!(plan.due(), Some(Instant::from_ticks(10)));
    let _ = grove.at(10, Event::Tick);
    assert_eq!(carried(&mut plan, &mut grove, 10), [(lends, true)]);
    assert_eq!(plan.due(), Some(Instant::from_ticks(20)));
    let _ = grove.at(19, Event::Tick);
    assert_eq!(carried(&mut plan, &mut grove, 19), []);
    let _ = grove.at(20, Event::Tick);
    assert_eq!(carried(&mut plan, &mut grove, 20), [(asks(richer()), true)]);
}
