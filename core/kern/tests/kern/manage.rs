//! Operations on the tree: each done whole or refused whole.

use punctual_kern::{Event, Grant, Next, NodeId, NodeTerms, Refusal, Request, State};
use punctual_model::{Instant, MAX_DEPTH, PolicyKind, ServerKind, Span, ThreadId};

use crate::driver::{id, periodic};
use crate::trees::{FIXED, Grove, at, node, server, terms};

fn shared(priority: u32) -> NodeTerms {
    terms(Grant::Shared, priority)
}

/// Root, node 1 below it, node 2 below that; threads 0 to 2 in that order of depth.
fn line() -> Grove {
    Grove::new(
        FIXED,
        &[(0, FIXED, shared(5)), (1, FIXED, shared(5))],
        &[
            (0, periodic(100, 1_000, 1)),
            (1, periodic(100, 1_000, 2)),
            (2, periodic(100, 1_000, 3)),
        ],
    )
}

fn ask(grove: &mut Grove, by: NodeId, request: Request) -> Result<(), Refusal> {
    let now = grove.shard.now().ticks();
    match grove.at(now, Event::Manage { by, request }).refused {
        None => Ok(()),
        Some(refusal) => Err(refusal),
    }
}

fn home(grove: &Grove, thread: ThreadId) -> Option<NodeId> {
    grove.shard.tree().supplier(thread)
}

#[test]
fn a_thread_goes_down_by_grant_and_comes_up_by_revoke() {
    let mut grove = line();
    let _ = grove.at(0, Event::Tick);
    let grant = |thread, to| Request::Grant { thread, to };
    assert_eq!(ask(&mut grove, NodeId::ROOT, grant(id(0), node(1))), Ok(()));
    assert_eq!(ask(&mut grove, node(1), grant(id(0), node(2))), Ok(()));
    assert_eq!(home(&grove, id(0)), Some(node(2)));
    let revoke = Request::Revoke { thread: id(0) };
    assert_eq!(ask(&mut grove, NodeId::ROOT, revoke), Ok(()));
    assert_eq!(
        home(&grove, id(0)),
        Some(NodeId::ROOT),
        "out of both at once"
    );
}

#[test]
fn grants_and_revokes_reach_no_further_than_the_subtree() {
    let mut grove = line();
    let _ = grove.at(0, Event::Tick);
    let refusals = [
        // Not a child of who asks; not in the care of who asks; not below who asks.
        (
            node(0),
            Request::Grant {
                thread: id(0),
                to: node(2),
            },
            Refusal::NotItsChild(node(2)),
        ),
        (
            node(1),
            Request::Grant {
                thread: id(0),
                to: node(2),
            },
            Refusal::NotItsOwn(id(0)),
        ),
        (
            node(2),
            Request::Revoke { thread: id(1) },
            Refusal::NotItsOwn(id(1)),
        ),
        (
            node(1),
            Request::Revoke { thread: id(1) },
            Refusal::NotItsOwn(id(1)),
        ),
        (
            node(2),
            Request::Demote(node(1)),
            Refusal::NotItsChild(node(1)),
        ),
        (
            node(1),
            Request::Demote(node(1)),
            Refusal::NotItsChild(node(1)),
        ),
        (
            NodeId::new(1, 4),
            Request::Demote(node(2)),
            Refusal::NoSuchNode(NodeId::new(1, 4)),
        ),
    ];
    for (by, request, refusal) in refusals {
        assert_eq!(ask(&mut grove, by, request), Err(refusal), "{request:?}");
    }
    assert_eq!(home(&grove, id(1)), Some(node(1)));
}

#[test]
fn only_the_root_creates_threads_and_holds_subtrees_to_their_quota() {
    let mut limited = shared(5);
    limited.quota = Some(2);
    let mut grove = Grove::new(
        FIXED,
        &[(0, FIXED, limited), (1, FIXED, shared(1))],
        &[(1, periodic(1, 1_000, 1))],
    );
    let create = |home| Request::Create {
        home,
        constraint: periodic(1, 1_000, 2),
    };
    assert_eq!(
        ask(&mut grove, node(1), create(node(2))),
        Err(Refusal::OnlyRootCreates(node(1)))
    );
    assert_eq!(ask(&mut grove, NodeId::ROOT, create(node(2))), Ok(()));
    assert_eq!(grove.shard.last_created(), Some(id(1)));
    assert_eq!(
        ask(&mut grove, NodeId::ROOT, create(node(2))),
        Err(Refusal::QuotaExhausted(node(1)))
    );
    assert_eq!(ask(&mut grove, NodeId::ROOT, create(node(0))), Ok(()));
    let grant = Request::Grant {
        thread: id(2),
        to: node(1),
    };
    assert_eq!(
        ask(&mut grove, NodeId::ROOT, grant),
        Err(Refusal::QuotaExhausted(node(1)))
    );
    // Whoever leaves makes room.
    let _ = grove.at(0, Event::Kill(id(1)));
    assert_eq!(ask(&mut grove, NodeId::ROOT, grant), Ok(()));
}

#[test]
fn a_promoted_scheduler_serves_and_a_demoted_one_leaves_its_threads_to_its_parent() {
    let mut grove = line();
    let _ = grove.at(0, Event::Tick);
    let supply = server(ServerKind::Deferrable, 2, 10);
    let promote = Request::Promote(terms(supply, 9));
    assert_eq!(ask(&mut grove, NodeId::ROOT, promote), Ok(()));
    let new = grove.shard.last_promoted().unwrap();
    assert_eq!(new.index(), 3);
    let grant = Request::Grant {
        thread: id(0),
        to: new,
    };
    assert_eq!(ask(&mut grove, NodeId::ROOT, grant), Ok(()));
    // The least urgent thread now runs first, for its server's budget.
    assert_eq!(grove.at(0, Event::Tick).next, Next::Thread(id(0)));
    assert_eq!(grove.at(2, Event::Tick).next, Next::Thread(id(2)));
    assert_eq!(ask(&mut grove, NodeId::ROOT, Request::Demote(new)), Ok(()));
    assert_eq!(home(&grove, id(0)), Some(NodeId::ROOT));
    assert_eq!(
        ask(&mut grove, NodeId::ROOT, Request::Demote(new)),
        Err(Refusal::NoSuchNode(new)),
        "its id is stale"
    );
    assert_eq!(ask(&mut grove, NodeId::ROOT, promote), Ok(()));
    let next = grove.shard.last_promoted().unwrap();
    assert_eq!((next.index(), next.generation()), (3, 1));
}

#[test]
fn demoting_a_scheduler_ends_those_below_it() {
    let mut grove = line();
    let _ = grove.at(0, Event::Tick);
    assert_eq!(
        ask(&mut grove, NodeId::ROOT, Request::Demote(node(1))),
        Ok(())
    );
    for thread in 0..3 {
        assert_eq!(home(&grove, id(thread)), Some(NodeId::ROOT));
    }
    assert_eq!(
        ask(&mut grove, node(2), Request::Wake(id(2))),
        Err(Refusal::NoSuchNode(node(2)))
    );
    assert_eq!(grove.at(0, Event::Tick).next, Next::Thread(id(2)));
}

#[test]
fn promotion_is_bounded_in_depth_room_and_supply() {
    let nodes: Vec<_> = (0..u16::try_from(MAX_DEPTH).unwrap())
        .map(|parent| (parent, FIXED, shared(1)))
        .collect();
    let mut grove = Grove::new(FIXED, &nodes, &[]);
    let deepest = node(u16::try_from(MAX_DEPTH).unwrap());
    let promote = Request::Promote(shared(1));
    assert_eq!(
        ask(&mut grove, deepest, promote),
        Err(Refusal::TooDeep(deepest))
    );
    let slots = Request::Promote(terms(Grant::Slots, 1));
    assert_eq!(
        ask(&mut grove, NodeId::ROOT, slots),
        Err(Refusal::NotGrantable(NodeId::ROOT))
    );
    let more_than_all = Request::Promote(terms(server(ServerKind::Polling, 11, 10), 1));
    assert_eq!(
        ask(&mut grove, NodeId::ROOT, more_than_all),
        Err(Refusal::NotGrantable(NodeId::ROOT))
    );
    assert_eq!(ask(&mut grove, NodeId::ROOT, promote), Ok(()));
    assert_eq!(
        ask(&mut grove, NodeId::ROOT, promote),
        Err(Refusal::NoNodeLeft)
    );
}

#[test]
fn a_table_has_no_time_for_threads_that_come_later() {
    let table = PolicyKind::Tdm {
        frame: Span::from_ticks(100),
        scheduling: Span::ZERO,
    };
    let slots = (table, &[(1, 0, 100)][..]);
    let nodes = [(0, FIXED, terms(Grant::Slots, 1)), (1, FIXED, shared(1))];
    let mut grove = Grove::with_slots(1, slots, &nodes, &[(2, periodic(1, 1_000, 1))]);
    let refused = Err(Refusal::NotGrantable(NodeId::ROOT));
    let constraint = periodic(1, 1_000, 2);
    let create = |home| Request::Create { home, constraint };
    assert_eq!(ask(&mut grove, NodeId::ROOT, create(NodeId::ROOT)), refused);
    let short = grove.at(0, Event::Create(constraint)).refused;
    assert_eq!(short.map_or(Ok(()), Err), refused);
    assert_eq!(
        ask(&mut grove, NodeId::ROOT, Request::Demote(node(1))),
        refused
    );
    // Below its slots everything is as ever.
    let revoke = Request::Revoke { thread: id(0) };
    assert_eq!(ask(&mut grove, node(1), revoke), Ok(()));
    assert_eq!(ask(&mut grove, NodeId::ROOT, create(node(1))), Ok(()));
    // One that moves from slots to others is the table's own in between.
    assert_eq!(ask(&mut grove, NodeId::ROOT, revoke), Ok(()));
    assert_eq!(
        ask(&mut grove, NodeId::ROOT, Request::Demote(node(2))),
        Ok(())
    );
}

#[test]
fn what_a_more_trusted_scheduler_blocked_for_itself_a_less_trusted_one_cannot_wake() {
    let mut grove = line();
    let _ = grove.at(0, Event::Tick);
    let block = |exclusive| Request::Block {
        thread: id(2),
        exclusive,
        until: None,
    };
    assert_eq!(ask(&mut grove, node(1), block(true)), Ok(()));
    assert_eq!(grove.shard.state(id(2)), State::Blocked);
    let wake = Request::Wake(id(2));
    let refused = Refusal::BlockedByTrusted(id(2));
    assert_eq!(ask(&mut grove, node(2), wake), Err(refused));
    assert_eq!(grove.at(1, Event::Wake(id(2))).refused, Some(refused));
    assert_eq!(grove.shard.state(id(2)), State::Blocked);
    assert_eq!(ask(&mut grove, NodeId::ROOT, wake), Ok(()), "more trusted");
    // Without the flag, anyone on the way down may.
    assert_eq!(ask(&mut grove, node(1), block(false)), Ok(()));
    assert_eq!(ask(&mut grove, node(2), wake), Ok(()));
    assert_eq!(grove.shard.state(id(2)), State::Running);
}

#[test]
fn an_exclusive_block_ends_with_its_timeout() {
    let mut grove = line();
    let _ = grove.at(0, Event::Tick);
    let block = Request::Block {
        thread: id(2),
        exclusive: true,
        until: Some(Instant::from_ticks(7)),
    };
    assert_eq!(ask(&mut grove, NodeId::ROOT, block), Ok(()));
    assert_eq!(grove.at(7, Event::Tick).next, Next::Thread(id(2)));
}

#[test]
fn nobody_less_trusted_ends_an_exclusive_block() {
    let mut grove = line();
    let _ = grove.at(0, Event::Tick);
    let block = |exclusive, until: Option<u64>| Request::Block {
        thread: id(2),
        exclusive,
        until: until.map(Instant::from_ticks),
    };
    // It sleeps, until 5.
    let until = Some(Instant::from_ticks(5));
    assert_eq!(grove.at(0, Event::Block { until }).refused, None);
    assert_eq!(ask(&mut grove, node(1), block(true, None)), Ok(()));
    // Neither its own timeout, nor that of a scheduler below, which cannot make the block its own.
    let refused = Err(Refusal::BlockedByTrusted(id(2)));
    assert_eq!(ask(&mut grove, node(2), block(false, Some(3))), refused);
    assert_eq!(ask(&mut grove, node(2), block(true, Some(3))), refused);
    let _ = grove.at(6, Event::Tick);
    assert_eq!(grove.shard.state(id(2)), State::Blocked);
    // A more trusted one may.
    assert_eq!(ask(&mut grove, NodeId::ROOT, block(false, Some(7))), Ok(()));
    let _ = grove.at(7, Event::Tick);
    assert_ne!(grove.shard.state(id(2)), State::Blocked);
}

#[test]
fn a_lock_that_is_handed_over_does_not_end_an_exclusive_block() {
    let mut grove = line();
    let _ = grove.at(0, Event::Tick);
    let waits = Event::BlockOn {
        holder: id(1),
        key: 9,
        until: None,
    };
    assert_eq!(grove.at(0, waits).refused, None);
    let block = Request::Block {
        thread: id(2),
        exclusive: true,
        until: None,
    };
    assert_eq!(ask(&mut grove, node(1), block), Ok(()));
    let hand = Event::HandOver {
        key: 9,
        from: id(1),
        to: id(2),
    };
    assert_eq!(grove.at(1, hand).refused, None);
    assert_eq!(grove.shard.state(id(2)), State::Blocked, "it has the lock");
    assert_eq!(ask(&mut grove, node(1), Request::Wake(id(2))), Ok(()));
    assert_eq!(grove.shard.state(id(2)), State::Running);
}

#[test]
fn the_block_of_a_demoted_scheduler_is_its_parents() {
    let mut grove = line();
    let _ = grove.at(0, Event::Tick);
    let block = Request::Block {
        thread: id(2),
        exclusive: true,
        until: None,
    };
    assert_eq!(ask(&mut grove, node(2), block), Ok(()));
    assert_eq!(ask(&mut grove, node(1), Request::Demote(node(2))), Ok(()));
    assert_eq!(ask(&mut grove, node(1), Request::Wake(id(2))), Ok(()));
}

#[test]
fn only_ready_or_waiting_threads_of_the_subtree_are_blocked() {
    let mut grove = Grove::new(
        FIXED,
        &[(0, FIXED, shared(1)), (0, FIXED, shared(2))],
        &[(1, at(50, periodic(1, 100, 1)))],
    );
    let block = Request::Block {
        thread: id(0),
        exclusive: false,
        until: None,
    };
    assert_eq!(
        ask(&mut grove, node(1), block),
        Err(Refusal::NotReady(id(0)))
    );
    assert_eq!(
        ask(&mut grove, node(2), block),
        Err(Refusal::NotItsOwn(id(0)))
    );
}

#[test]
fn the_closest_common_scheduler_decides_between_two_threads() {
    let mut grove = Grove::new(
        FIXED,
        &[
            (0, FIXED, shared(1)),
            (1, FIXED, shared(2)),
            (1, FIXED, shared(3)),
        ],
        &[
            (2, periodic(1, 100, 1)),
            (3, periodic(1, 100, 1)),
            (0, periodic(1, 100, 1)),
            (2, periodic(1, 100, 1)),
        ],
    );
    let common = |a, b| grove.shard.closest_common(id(a), id(b));
    assert_eq!(common(0, 1), Ok(node(1)));
    assert_eq!(common(0, 3), Ok(node(2)));
    assert_eq!(common(1, 2), Ok(NodeId::ROOT));
    let _ = grove.at(0, Event::Kill(id(2)));
    assert_eq!(
        grove.shard.closest_common(id(1), id(2)),
        Err(Refusal::StaleThread(id(2)))
    );
}
