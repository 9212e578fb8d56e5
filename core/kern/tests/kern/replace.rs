//! A policy is replaced while its scheduler goes on: nobody loses anything, refused or done.

use punctual_generate::Dice;
use punctual_kern::{
    Capacity, Event, Grant, MAX_PLACES_PER_ENTRY, Next, NoSink, NodeId, Policy, Refusal, Request,
    Shard, TraceEvent, Tree,
};
use punctual_model::{Instant, PolicyKind, Priority, ServerKind, Span, ThreadId, Trust, Work};
use punctual_policy::{AnyPolicy, Fifo};

use crate::driver::{Log, id, periodic};
use crate::histories::{random_constraint, random_event};
use crate::trees::{FIXED, Grove, node, server, terms};

const EDF: PolicyKind = PolicyKind::EarliestDeadlineFirst;
const TURNS: PolicyKind = PolicyKind::RoundRobin {
    timeslice: Span::from_ticks(3),
};

/// Puts a policy beside a node and asks for it.
fn replace(shard: &mut Shard<AnyPolicy>, by: NodeId, node: NodeId, to: PolicyKind) -> Event {
    let entities = shard.tree().capacity().entities();
    let _ = shard.shelve(node, AnyPolicy::new(to, entities, &[]));
    let request = Request::Replace { node, policy: to };
    Event::Manage { by, request }
}

/// Thread 0 is more important, thread 1 more urgent; both in node 1.
fn two() -> Grove {
    Grove::new(
        FIXED,
        &[(0, FIXED, terms(Grant::Shared, 5))],
        &[(1, periodic(20, 1_000, 9)), (1, periodic(20, 100, 1))],
    )
}

#[test]
fn the_new_policy_decides_with_the_entry_in_which_it_knows_everybody() {
    let mut grove = two();
    let first = grove.at(0, Event::Tick);
    assert_eq!(first.next, Next::Thread(id(0)));
    let event = replace(&mut grove.shard, NodeId::ROOT, node(1), EDF);
    let second = grove.at(5, event);
    assert_eq!((second.next, second.refused), (Next::Thread(id(1)), None));
    let replaced = TraceEvent::PolicyReplaced {
        node: node(1),
        policy: EDF,
    };
    assert!(grove.log.0.contains(&(5, replaced)));
    // The job keeps what it received, and its budget.
    let job = grove.shard.job(id(0)).unwrap();
    let left = Some(Work::from_ticks(15));
    assert_eq!((job.received, job.budget), (Work::from_ticks(5), left));
    let old = grove.shard.unshelve(node(1));
    assert!(matches!(old, Some(AnyPolicy::FixedPriority(_))), "{old:?}");
}

#[test]
fn the_policy_that_comes_knows_nothing_of_who_yielded_or_runs() {
    let mut grove = Grove::new(
        FIXED,
        &[(0, FIXED, terms(Grant::Shared, 5))],
        &[(1, periodic(20, 1_000, 5)), (1, periodic(20, 1_000, 5))],
    );
    assert_eq!(grove.at(0, Event::Tick).next, Next::Thread(id(0)));
    assert_eq!(grove.at(2, Event::Yield).next, Next::Thread(id(1)));
    assert_eq!(grove.at(3, Event::Tick).next, Next::Thread(id(1)));
    let event = replace(&mut grove.shard, node(1), node(1), PolicyKind::Fifo);
    // Equal releases: by their places, and neither has begun under the new one.
    let decision = grove.at(5, event);
    assert_eq!(decision.refused, None, "a scheduler may replace its own");
    assert_eq!(decision.next, Next::Thread(id(0)));
}

/// A shard whose thread 0 holds a lock for which the more urgent thread 1 waits; node 1 came after.
fn contended() -> Grove {
    let mut late = periodic(20, 1_000, 9);
    late.phase = Span::from_ticks(2);
    let mut grove = Grove::new(FIXED, &[], &[(0, periodic(20, 1_000, 5)), (0, late)]);
    let _ = grove.at(0, Event::Tick);
    assert_eq!(grove.at(2, Event::Tick).next, Next::Thread(id(1)));
    let wait = Event::BlockOn {
        holder: id(0),
        key: 7,
        until: None,
    };
    assert_eq!(grove.at(3, wait).next, Next::Thread(id(0)));
    let request = Request::Promote(terms(Grant::Shared, 1));
    let by = NodeId::ROOT;
    let promoted = grove.at(3, Event::Manage { by, request });
    assert_eq!(promoted.refused, None);
    grove
}

#[test]
fn a_replacement_that_waits_for_locks_holds_up_no_other_and_comes_when_they_are_free() {
    let mut grove = contended();
    let root = replace(&mut grove.shard, NodeId::ROOT, NodeId::ROOT, EDF);
    assert_eq!(grove.at(4, root).refused, None);
    assert!(
        grove.shard.is_replacing(),
        "somebody waits in the old order"
    );
    let below = replace(&mut grove.shard, NodeId::ROOT, node(1), EDF);
    let decision = grove.at(5, below);
    assert_eq!(decision.refused, None);
    let came = |grove: &Grove, node| {
        let replaced = TraceEvent::PolicyReplaced { node, policy: EDF };
        grove.log.0.iter().any(|(_, event)| *event == replaced)
    };
    assert!(came(&grove, node(1)) && !came(&grove, NodeId::ROOT));
    assert_ne!(
        decision.arm,
        Some(Instant::from_ticks(5)),
        "it waits asleep"
    );
    let hand = Event::HandOver {
        key: 7,
        from: id(0),
        to: id(1),
    };
    let _ = grove.at(6, hand);
    let _ = grove.at(7, Event::Tick);
    assert!(came(&grove, NodeId::ROOT) && !grove.shard.is_replacing());
}

#[test]
fn what_stands_beside_a_scheduler_is_not_new_to_the_one_that_comes_to_its_place() {
    let mut grove = two();
    let entities = grove.shard.tree().capacity().entities();
    let policy = AnyPolicy::new(EDF, entities, &[]);
    assert!(grove.shard.shelve(node(1), policy).is_ok());
    let by = NodeId::ROOT;
    let demote = Request::Demote(node(1));
    assert_eq!(
        grove
            .at(
                1,
                Event::Manage {
                    by,
                    request: demote
                }
            )
            .refused,
        None
    );
    let next = NodeId::new(1, 1);
    let promote = Request::Promote(terms(Grant::Shared, 5));
    for _ in 0..2 {
        let _ = grove.at(
            2,
            Event::Manage {
                by,
                request: promote,
            },
        );
    }
    let request = Request::Replace {
        node: next,
        policy: EDF,
    };
    let refused = grove.at(3, Event::Manage { by, request }).refused;
    assert_eq!(refused, Some(Refusal::NothingShelved(next)));
    assert!(grove.shard.unshelve(next).is_some());
}

/// A flat shard with this many ready threads, of growing priority and deadline.
fn many(count: u32) -> Shard<AnyPolicy> {
    let capacity = Capacity::for_threads(count as usize);
    let policy = AnyPolicy::new(FIXED, capacity.entities(), &[]);
    let mut shard = Shard::new(Tree::new(capacity, policy));
    for number in 0..count {
        let mut c = periodic(1, 10_000 + u64::from(number), 0);
        c.priority = Priority::new(number);
        c.order = number;
        let _ = shard.attach(c).unwrap();
    }
    shard
}

#[test]
fn a_thousand_ready_threads_change_their_order_in_bounded_steps_and_the_old_decides_meanwhile() {
    let mut shard = many(1_000);
    let now = Instant::from_ticks(1);
    let mut arm = Some(Instant::ZERO);
    while arm.is_some_and(|at| at <= now) {
        arm = shard.handle(now, Event::Tick, &mut NoSink).arm;
    }
    let event = replace(&mut shard, NodeId::ROOT, NodeId::ROOT, EDF);
    let mut log = Log::default();
    let mut decision = shard.handle(now, event, &mut log);
    let mut entries = 1;
    while shard.is_replacing() {
        assert_eq!(decision.next, Next::Thread(id(999)), "by priority");
        assert_eq!(decision.arm, Some(now), "the rest comes at once");
        decision = shard.handle(now, Event::Tick, &mut log);
        entries += 1;
    }
    assert_eq!(entries, 1_001_usize.div_ceil(MAX_PLACES_PER_ENTRY));
    assert_eq!(decision.next, Next::Thread(id(0)), "by deadline");
    assert_eq!(shard.unsettled(), 1_000, "nobody's job is gone");
}

#[test]
fn a_refused_request_has_changed_nothing_to_the_byte() {
    let tree = || {
        let mut own = terms(server(ServerKind::Polling, 2, 10), 4);
        own.trust = Trust::OwnTime;
        let nodes = [
            (0, FIXED, terms(Grant::Shared, 5)),
            (1, FIXED, terms(Grant::Shared, 5)),
            (0, FIXED, own),
        ];
        let mut grove = Grove::new(FIXED, &nodes, &[(1, periodic(20, 100, 1))]);
        let _ = grove.at(0, Event::Tick);
        let entities = grove.shard.tree().capacity().entities();
        for place in [0, 1, 3] {
            let policy = AnyPolicy::new(EDF, entities, &[]);
            assert!(grove.shard.shelve(node(place), policy).is_ok());
        }
        grove
    };
    let divided = PolicyKind::Tdm {
        frame: Span::from_ticks(10),
        scheduling: Span::ZERO,
    };
    let cases = [
        (node(1), node(0), EDF, Refusal::NotItsChild(node(0))),
        (node(2), node(1), EDF, Refusal::NotItsChild(node(1))),
        (node(0), node(9), EDF, Refusal::NoSuchNode(node(9))),
        (node(7), node(1), EDF, Refusal::NoSuchNode(node(7))),
        (node(0), node(1), divided, Refusal::NotReplaceable(node(1))),
        (node(0), node(3), divided, Refusal::NotReplaceable(node(3))),
        (node(0), node(2), EDF, Refusal::NothingShelved(node(2))),
    ];
    for (by, node, policy, refusal) in cases {
        let (mut asked, mut left_alone) = (tree(), tree());
        let request = Request::Replace { node, policy };
        let decision = asked.at(3, Event::Manage { by, request });
        assert_eq!(decision.refused, Some(refusal));
        let _ = left_alone.at(3, Event::Tick);
        let (one, other) = (asked.shard, left_alone.shard);
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
    }
}

#[test]
fn one_at_a_time_and_what_was_replaced_is_not_taken_for_new() {
    let mut shard = many(100);
    let event = replace(&mut shard, NodeId::ROOT, NodeId::ROOT, EDF);
    let _ = shard.handle(Instant::ZERO, event, &mut NoSink);
    assert!(shard.is_replacing() && shard.unshelve(NodeId::ROOT).is_none());
    let again = shard.handle(Instant::ZERO, event, &mut NoSink);
    assert_eq!(again.refused, Some(Refusal::BeingReplaced(NodeId::ROOT)));
    while shard.is_replacing() {
        let _ = shard.handle(Instant::ZERO, Event::Tick, &mut NoSink);
    }
    let third = shard.handle(Instant::ZERO, event, &mut NoSink);
    assert_eq!(third.refused, Some(Refusal::NothingShelved(NodeId::ROOT)));
    assert!(shard.unshelve(NodeId::ROOT).is_some());
}

#[test]
fn a_program_may_bring_a_policy_of_its_own() {
    let mut capacity = Capacity::for_threads(2);
    capacity.nodes = 1;
    let root: Box<dyn Policy> = Box::new(AnyPolicy::new(FIXED, capacity.entities(), &[]));
    let mut shard = Shard::new(Tree::new(capacity, root));
    for (priority, order) in [(1, 0), (2, 1)] {
        let mut constraint = periodic(10, 100, priority);
        constraint.order = order;
        let _ = shard.attach(constraint).unwrap();
    }
    let _ = shard.handle(Instant::ZERO, Event::Tick, &mut NoSink);
    assert_eq!(shard.running(), Some(id(1)));
    let own: Box<dyn Policy> = Box::new(Fifo::new(capacity.entities()));
    assert!(shard.shelve(NodeId::ROOT, own).is_ok());
    let request = Request::Replace {
        node: NodeId::ROOT,
        policy: PolicyKind::Fifo,
    };
    let by = NodeId::ROOT;
    let decision = shard.handle(Instant::ZERO, Event::Manage { by, request }, &mut NoSink);
    assert!(decision.refused.is_none() && !shard.is_replacing());
    // Both were released at 0; the order of the file tells.
    assert_eq!(shard.running(), Some(id(0)));
    assert!(shard.unshelve(NodeId::ROOT).is_some());
}

/// Two equal shards with equal events; in one, policies are replaced by equal ones all the time.
/// Whatever was ready stays ready, in the same order: nobody decides otherwise at any instant.
fn twin_history(seed: u64, kind: PolicyKind, nested: bool) -> u64 {
    let mut dice = Dice::new(seed);
    let mut capacity = Capacity::for_threads(150);
    capacity.nodes = if nested { 2 } else { 0 };
    let policy = || AnyPolicy::new(kind, capacity.entities(), &[]);
    let kinds = ServerKind::ALL;
    let kind_of_server = kinds[usize::try_from(dice.below(5)).unwrap()];
    let constraints: Vec<_> = (0..6).map(|_| random_constraint(&mut dice)).collect();
    let homes: Vec<u16> = (0..6)
        .map(|_| u16::try_from(dice.below(u64::from(capacity.nodes) + 1)).unwrap())
        .collect();
    let build = || {
        let mut tree = Tree::new(capacity, policy());
        if nested {
            let supply = server(kind_of_server, 5, 20);
            let _ = tree.add(node(0), policy(), terms(supply, 5)).unwrap();
            let shared = terms(Grant::Shared, 4);
            let _ = tree.add(node(1), policy(), shared).unwrap();
        }
        let mut shard = Shard::new(tree);
        for (home, constraint) in homes.iter().zip(&constraints) {
            let _ = shard.attach_to(node(*home), *constraint).unwrap();
        }
        shard
    };
    let (mut one, mut other) = (build(), build());
    let (mut now, mut replaced) = (0, 0);
    for _ in 0..300 {
        let event = match random_event(&mut dice, one.running(), now) {
            // A yield is forgotten with the policy that heard of it.
            Event::Yield => Event::Tick,
            other => other,
        };
        let place = node(u16::try_from(dice.below(u64::from(capacity.nodes) + 1)).unwrap());
        let swap = (dice.below(4) == 0).then_some(place);
        let at = Instant::from_ticks(now);
        if let Some(place) = swap {
            drop(other.unshelve(place));
            let event = replace(&mut other, NodeId::ROOT, place, kind);
            replaced += u64::from(other.handle(at, event, &mut NoSink).refused.is_none());
            let _ = one.handle(at, Event::Tick, &mut NoSink);
        }
        let (a, b) = (
            one.handle(at, event, &mut NoSink),
            other.handle(at, event, &mut NoSink),
        );
        let same = (a.next, a.refused) == (b.next, b.refused);
        assert!(
            same,
            "seed {seed}, {kind:?} at {now}: {event:?} {a:?} {b:?}"
        );
        for index in 0..10 {
            let id = ThreadId::new(index, 0);
            assert_eq!(one.state(id), other.state(id), "seed {seed} at {now}");
            assert_eq!(one.job(id), other.job(id), "seed {seed} at {now}");
        }
        now += dice.below(5);
    }
    replaced
}

#[test]
fn policies_replaced_by_equal_ones_change_no_decision_and_no_job() {
    let mut replaced = 0;
    for seed in 0..60 {
        for kind in [FIXED, EDF] {
            replaced += twin_history(seed, kind, false);
            replaced += twin_history(seed, kind, true);
        }
    }
    assert!(replaced > 2_500, "only {replaced} were replaced");
}

#[test]
fn turns_begin_anew() {
    let mut grove = Grove::new(
        FIXED,
        &[(0, FIXED, terms(Grant::Shared, 5))],
        &[(1, periodic(20, 1_000, 9)), (1, periodic(20, 100, 1))],
    );
    let _ = grove.at(0, Event::Tick);
    let event = replace(&mut grove.shard, node(1), node(1), TURNS);
    let decision = grove.at(2, event);
    assert_eq!(decision.next, Next::Thread(id(0)), "in the order of places");
    assert_eq!(decision.arm, Some(Instant::from_ticks(5)), "a whole turn");
    let next = grove.at(5, Event::Tick);
    assert_eq!(next.next, Next::Thread(id(1)));
}

#[test]
fn a_policy_in_stock_is_taken_by_the_order_that_it_keeps_and_by_whoever_asks_first() {
    let mut grove = two();
    let entities = grove.shard.tree().capacity().entities();
    let made = |kind| (kind, AnyPolicy::new(kind, entities, &[]));
    grove.shard.stock([TURNS, EDF, FIXED].map(made));
    let ask = |policy| Event::Manage {
        by: NodeId::ROOT,
        request: Request::Replace {
            node: node(1),
            policy,
        },
    };
    let mut now = 0;
    let mut asked = |policy| {
        now += 5;
        grove.at(now, ask(policy))
    };
    assert_eq!(asked(EDF).next, Next::Thread(id(1)));
    assert_eq!(asked(FIXED).next, Next::Thread(id(0)));
    let none_left = Some(Refusal::NothingShelved(node(1)));
    assert_eq!(asked(EDF).refused, none_left);
    assert_eq!(asked(TURNS).refused, None);
}
