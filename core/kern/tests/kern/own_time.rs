//! Children that decide on their own supply: what is believed of them, and who pays.

use punctual_kern::{ChildPick, Event, Grant, Next, NodeTerms, Refusal, TraceEvent};
use punctual_model::{Instant, PolicyKind, ServerKind, ThreadId, Trust};

use crate::driver::{id, periodic};
use crate::trees::{FIXED, Grove, at, node, server, terms};

fn own_time(supply: Grant, priority: u32) -> NodeTerms {
    NodeTerms {
        trust: Trust::OwnTime,
        ..terms(supply, priority)
    }
}

/// Threads 0 and 1 below a child on (4 in 20), thread 2 on the CPU below it.
fn grove() -> Grove {
    let supply = server(ServerKind::Deferrable, 4, 20);
    Grove::new(
        FIXED,
        &[(0, PolicyKind::Fifo, own_time(supply, 9))],
        &[
            (1, periodic(100, 1_000, 1)),
            (1, at(6, periodic(100, 1_000, 5))),
            (0, periodic(500, 1_000, 1)),
        ],
    )
}

fn pick(thread: ThreadId, epoch: u32) -> Event {
    Event::ChildPicked(ChildPick {
        child: node(1),
        epoch,
        thread: Some(thread),
        until: None,
    })
}

fn child() -> Next {
    Next::RunChild(node(1))
}

fn epoch(grove: &Grove) -> u32 {
    grove.shard.epoch(node(1)).unwrap()
}

#[test]
fn a_child_decides_on_its_own_supply_and_its_choice_runs() {
    let mut grove = grove();
    assert_eq!(grove.at(0, Event::Tick).next, child());
    let now = epoch(&grove);
    let decision = grove.at(1, pick(id(0), now));
    assert_eq!(
        (decision.next, decision.refused),
        (Next::Thread(id(0)), None)
    );
    // 1 for deciding and 3 for its thread: 4 in all.
    assert_eq!(decision.arm, Some(Instant::from_ticks(4)));
    assert_eq!(grove.at(4, Event::Tick).next, Next::Thread(id(2)));
    let charged = TraceEvent::ChildCharged {
        node: node(1),
        work: punctual_model::Work::from_ticks(1),
    };
    assert!(grove.log.0.contains(&(1, charged)));
}

#[test]
fn a_child_that_never_decides_burns_only_its_own_supply() {
    let mut grove = grove();
    let mut others = 0;
    let mut now = 0;
    while now < 200 {
        let decision = grove.at(now, Event::Tick);
        let next = decision.arm.map_or(200, Instant::ticks).min(200);
        match decision.next {
            Next::RunChild(_) => assert!(now % 20 < 4, "at {now}"),
            Next::Thread(thread) => {
                assert_eq!(thread, id(2));
                others += next - now;
            }
            _ => panic!("somebody wants to run"),
        }
        now = next;
    }
    assert_eq!(others, 200 - 200 / 20 * 4);
}

#[test]
fn a_choice_is_asked_for_again_when_the_ready_threads_change() {
    let mut grove = grove();
    let _ = grove.at(0, Event::Tick);
    let decided_on = epoch(&grove);
    let _ = grove.at(1, pick(id(0), decided_on));
    let _ = grove.at(4, Event::Tick);
    // Thread 1 came at 6; the new budget comes at 20.
    assert_eq!(grove.at(6, Event::Tick).next, Next::Thread(id(2)));
    assert_eq!(grove.at(20, Event::Tick).next, child());
    let stale = grove.at(21, pick(id(0), decided_on));
    assert_eq!(stale.refused, Some(Refusal::StalePick(node(1))));
    assert_eq!(stale.next, child(), "it goes on, and is charged");
    let mut ready: Vec<_> = grove.shard.ready_in(node(1)).map(|(t, _)| t).collect();
    ready.sort_unstable();
    assert_eq!(ready, [id(0), id(1)]);
    let now = epoch(&grove);
    assert_eq!(grove.at(22, pick(id(1), now)).next, Next::Thread(id(1)));
}

#[test]
fn illegal_answers_are_refused_with_their_reason() {
    let mut grove = grove();
    let _ = grove.at(0, Event::Tick);
    let now = epoch(&grove);
    let mut refused = |event| {
        let decision = grove.at(0, event);
        assert_eq!(decision.next, child());
        decision.refused
    };
    let stale = ThreadId::new(0, 7);
    assert_eq!(
        refused(pick(id(2), now)),
        Some(Refusal::NotItsOwn(id(2))),
        "of another scheduler"
    );
    assert_eq!(
        refused(pick(id(1), now)),
        Some(Refusal::NotReady(id(1))),
        "not released yet"
    );
    assert_eq!(
        refused(pick(stale, now)),
        Some(Refusal::StaleThread(stale)),
        "of an earlier life"
    );
    let nobody = ThreadId::new(4_000, 0);
    assert_eq!(
        refused(pick(nobody, now)),
        Some(Refusal::StaleThread(nobody)),
        "of no shard, or of another CPU"
    );
    assert_eq!(
        refused(pick(id(0), now + 1)),
        Some(Refusal::StalePick(node(1)))
    );
}

#[test]
fn a_child_that_was_not_let_run_is_not_listened_to() {
    let mut grove = grove();
    let _ = grove.at(0, Event::Tick);
    let now = epoch(&grove);
    let _ = grove.at(4, Event::Tick);
    let decision = grove.at(5, pick(id(0), now));
    assert_eq!(decision.refused, Some(Refusal::NotDeciding(node(1))));
    assert_eq!(decision.next, Next::Thread(id(2)));
}

#[test]
fn a_child_may_choose_nobody_until_an_instant_and_others_run() {
    let mut grove = grove();
    let _ = grove.at(0, Event::Tick);
    let nobody = Event::ChildPicked(ChildPick {
        child: node(1),
        epoch: epoch(&grove),
        thread: None,
        until: Some(Instant::from_ticks(3)),
    });
    assert_eq!(grove.at(1, nobody).next, Next::Thread(id(2)));
    assert_eq!(grove.at(3, Event::Tick).next, child());
}

#[test]
fn a_child_that_wanted_nobody_for_a_while_that_has_passed_is_asked_again() {
    let mut grove = grove();
    let _ = grove.at(0, Event::Tick);
    let nobody = Event::ChildPicked(ChildPick {
        child: node(1),
        epoch: epoch(&grove),
        thread: None,
        until: Some(Instant::from_ticks(1)),
    });
    // Its answer took longer than its pause.
    let decision = grove.at(2, nobody);
    assert_eq!(decision.next, Next::Thread(id(2)));
    assert_eq!(decision.arm, Some(Instant::from_ticks(3)));
    assert_eq!(grove.at(3, Event::Tick).next, child());
}

#[test]
fn a_child_takes_turns_by_asking_to_decide_again() {
    let mut grove = grove();
    let _ = grove.at(0, Event::Tick);
    let turn = Event::ChildPicked(ChildPick {
        child: node(1),
        epoch: epoch(&grove),
        thread: Some(id(0)),
        until: Some(Instant::from_ticks(2)),
    });
    assert_eq!(grove.at(1, turn).next, Next::Thread(id(0)));
    assert_eq!(grove.at(2, Event::Tick).next, child());
}
