//! The code of a child scheduler: what it sees, and what it answers.

use punctual_child::ChildScheduler;
use punctual_kern::{Event, Grant, Next, NodeTerms, Refusal, Request, TraceEvent};
use punctual_model::{PolicyKind, Span, Trust};
use punctual_policy::AnyPolicy;

use crate::driver::{id, periodic};
use crate::trees::{FIXED, Grove, at, node, terms};

/// Threads 0 and 1 below a child that takes all it can get, thread 1 from 6 on.
fn grove() -> Grove {
    let own_time = NodeTerms {
        trust: Trust::OwnTime,
        ..terms(Grant::Shared, 9)
    };
    Grove::new(
        FIXED,
        &[(0, PolicyKind::Fifo, own_time)],
        &[
            (1, periodic(100, 1_000, 1)),
            (1, at(6, periodic(100, 1_000, 5))),
        ],
    )
}

fn child(policy: PolicyKind) -> ChildScheduler {
    ChildScheduler::new(node(1), 4, Box::new(AnyPolicy::new(policy, 8, &[])))
}

fn round_robin(turn: u64) -> PolicyKind {
    PolicyKind::RoundRobin {
        timeslice: Span::from_ticks(turn),
    }
}

/// Lets the child decide at `now` if it was let run, and returns who runs and what is armed.
fn answer(grove: &mut Grove, child: &mut ChildScheduler, now: u64) -> (Next, Option<u64>) {
    child.look(&grove.shard);
    let pick = child.decide(punctual_model::Instant::from_ticks(now));
    let decision = grove.at(now, Event::ChildPicked(pick));
    assert_eq!(decision.refused, None);
    (decision.next, decision.arm.map(|arm| arm.ticks()))
}

#[test]
fn a_child_orders_what_it_sees_by_its_own_policy() {
    let mut grove = grove();
    let mut child = child(FIXED);
    let asks = Next::RunChild(node(1));
    assert_eq!(grove.at(0, Event::Tick).next, asks);
    assert_eq!(answer(&mut grove, &mut child, 1).0, Next::Thread(id(0)));
    assert_eq!(grove.at(6, Event::Tick).next, asks);
    assert_eq!(answer(&mut grove, &mut child, 7).0, Next::Thread(id(1)));
    assert_eq!(grove.at(107, Event::Complete).next, asks);
    assert_eq!(answer(&mut grove, &mut child, 108).0, Next::Thread(id(0)));
}

#[test]
fn a_child_gives_turns_by_what_its_threads_have_executed() {
    let mut grove = grove();
    let mut child = child(round_robin(10));
    let _ = grove.at(0, Event::Tick);
    let _ = answer(&mut grove, &mut child, 0);
    let _ = grove.at(6, Event::Tick);
    let (next, armed) = answer(&mut grove, &mut child, 7);
    assert_eq!((next, armed), (Next::Thread(id(0)), Some(17)));
    let asks = Next::RunChild(node(1));
    assert_eq!(grove.at(17, Event::Tick).next, asks);
    let (next, armed) = answer(&mut grove, &mut child, 18);
    assert_eq!((next, armed), (Next::Thread(id(1)), Some(28)));
}

#[test]
fn an_answer_to_what_was_seen_before_a_change_is_stale() {
    let mut grove = grove();
    let mut child = child(FIXED);
    let _ = grove.at(0, Event::Tick);
    child.look(&grove.shard);
    let _ = grove.at(6, Event::Tick);
    let pick = child.decide(punctual_model::Instant::from_ticks(7));
    let decision = grove.at(7, Event::ChildPicked(pick));
    assert_eq!(decision.refused, Some(Refusal::StalePick(node(1))));
    assert_eq!(answer(&mut grove, &mut child, 8).0, Next::Thread(id(1)));
}

#[test]
fn a_child_that_declines_lets_nobody_of_its_own_run() {
    let mut grove = grove();
    let mut child = child(FIXED);
    let _ = grove.at(0, Event::Tick);
    child.look(&grove.shard);
    let decision = grove.at(1, Event::ChildPicked(child.decline()));
    assert_eq!((decision.next, decision.refused), (Next::Idle, None));
}

/// The answer of the policy before counts no more, neither one that stands nor one that comes; the
/// next one hears of all that are ready, and of no work of before.
#[test]
fn another_policy_of_its_own_decides_from_the_instant_of_its_replacement_on() {
    let mut grove = grove();
    let mut child = child(FIXED).followed_by(vec![
        Box::new(AnyPolicy::new(PolicyKind::Fifo, 8, &[])),
        Box::new(AnyPolicy::new(round_robin(10), 8, &[])),
    ]);
    let _ = grove.at(6, Event::Tick);
    assert_eq!(answer(&mut grove, &mut child, 6).0, Next::Thread(id(1)));
    let asks = Next::RunChild(node(1));
    let by = node(0);
    for (now, policy, first) in [(10, PolicyKind::Fifo, id(0)), (20, round_robin(10), id(0))] {
        child.look(&grove.shard);
        let before = child.decide(punctual_model::Instant::from_ticks(now));
        let node = node(1);
        let request = Request::Replace { node, policy };
        let decision = grove.at(now, Event::Manage { by, request });
        assert_eq!((decision.refused, decision.next), (None, asks));
        let replaced = TraceEvent::PolicyReplaced { node, policy };
        assert_eq!(
            grove.log.0.iter().filter(|(_, it)| *it == replaced).count(),
            1
        );
        child.take_next();
        let decision = grove.at(now + 1, Event::ChildPicked(before));
        assert_eq!(decision.refused, Some(Refusal::StalePick(node)));
        assert_eq!(
            answer(&mut grove, &mut child, now + 2).0,
            Next::Thread(first)
        );
    }
}

#[test]
fn what_is_asked_for_a_scheduler_that_falls_back_is_refused_until_it_has() {
    let mut grove = grove();
    let patience = Span::from_ticks(50);
    grove.shard.set_fallback(node(1), FIXED, patience).unwrap();
    let _ = grove.at(0, Event::Tick);
    let (by, policy) = (node(0), PolicyKind::Fifo);
    let request = Request::Replace {
        node: node(1),
        policy,
    };
    // The new code has the whole patience.
    let _ = grove.at(49, Event::Manage { by, request });
    let decision = grove.at(60, Event::Tick);
    assert_eq!(decision.next, Next::RunChild(node(1)));
    let _ = grove.at(100, Event::Tick);
    assert_ne!(grove.shard.running(), None, "it has fallen back");
    let decision = grove.at(101, Event::Manage { by, request });
    assert_eq!(decision.refused, Some(Refusal::NothingShelved(node(1))));
}
