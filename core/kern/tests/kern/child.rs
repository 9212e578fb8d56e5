//! The code of a child scheduler: what it sees, and what it answers.

use punctual_child::ChildScheduler;
use punctual_kern::{Event, Grant, Next, NodeTerms, Refusal};
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
