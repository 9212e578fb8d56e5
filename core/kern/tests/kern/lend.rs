//! Siblings lend each other budget: time moves, and none is made.

use punctual_kern::{Event, Grant, Next, NodeId, Refusal, Request, TraceEvent};
use punctual_model::{ServerKind, Work};

use crate::driver::{id, periodic};
use crate::trees::{FIXED, Grove, at, node, server, terms};
use punctual_generate::Dice;

const LONG: u64 = 1_000_000;

/// Nodes 1 and 2 on (4 in 10), node 3 shared; thread 0 in node 1, thread 1 in node 2 from 6 on,
/// thread 2 on the CPU, least urgent.
fn grove(kind: ServerKind) -> Grove {
    let supply = server(kind, 4, 10);
    Grove::new(
        FIXED,
        &[
            (0, FIXED, terms(supply, 9)),
            (0, FIXED, terms(supply, 8)),
            (0, FIXED, terms(Grant::Shared, 1)),
        ],
        &[
            (1, periodic(LONG / 2, LONG, 1)),
            (2, at(6, periodic(LONG / 2, LONG, 1))),
            (0, periodic(LONG / 2, LONG, 1)),
        ],
    )
}

fn lend(grove: &mut Grove, now: u64, by: NodeId, to: NodeId, work: u64) -> Option<Refusal> {
    let request = Request::Lend {
        to,
        work: Work::from_ticks(work),
    };
    grove.at(now, Event::Manage { by, request }).refused
}

#[test]
fn the_borrower_runs_on_what_the_lender_gave_until_the_lenders_period_ends() {
    let mut grove = grove(ServerKind::Deferrable);
    assert_eq!(grove.at(0, Event::Tick).next, Next::Thread(id(0)));
    assert_eq!(grove.at(4, Event::Tick).next, Next::Thread(id(2)));
    // Node 2 sleeps, and has 4 that it does not need before 6.
    assert_eq!(lend(&mut grove, 4, node(2), node(1), 3), None);
    let lent = TraceEvent::Lent {
        from: node(2),
        to: node(1),
        work: Work::from_ticks(3),
    };
    assert!(grove.log.0.contains(&(4, lent)), "for everybody to see");
    assert_eq!(
        grove.shard.tree().lent_below(NodeId::ROOT),
        Some(Work::from_ticks(3))
    );
    assert_eq!(grove.shard.running(), Some(id(0)));
    assert_eq!(grove.at(7, Event::Tick).next, Next::Thread(id(1)));
    assert_eq!(
        grove.at(8, Event::Tick).next,
        Next::Thread(id(2)),
        "1 was left"
    );
    assert_eq!(grove.at(10, Event::Tick).next, Next::Thread(id(0)));
}

#[test]
fn what_is_borrowed_and_not_used_is_gone_with_the_lenders_period() {
    let mut grove = grove(ServerKind::Deferrable);
    assert_eq!(lend(&mut grove, 0, node(1), node(2), 4), None);
    assert_eq!(grove.shard.running(), Some(id(2)), "node 1 has none left");
    let _ = grove.at(10, Event::Tick);
    assert_eq!(grove.at(14, Event::Tick).next, Next::Thread(id(1)));
    // 4 of its own from 14 on, nothing from before 10.
    assert_eq!(grove.at(18, Event::Tick).next, Next::Thread(id(2)));
}

/// Nobody may take it for budget that is left: the borrower ran on with nothing of its own.
#[test]
fn the_rest_of_a_loan_that_ended_behind_a_late_entry_is_none() {
    let of = |budget, period, priority| {
        let supply = server(ServerKind::Deferrable, budget, period);
        (0, FIXED, terms(supply, priority))
    };
    let threads = [(1, periodic(LONG / 2, LONG, 1))];
    let mut grove = Grove::new(FIXED, &[of(4, 20, 9), of(4, 10, 8)], &threads);
    let _ = grove.at(0, Event::Tick);
    let _ = grove.at(4, Event::Tick);
    assert_eq!(lend(&mut grove, 8, node(2), node(1), 4), None);
    // The loan ends at 10; the entry is 3 late.
    assert_eq!(grove.at(13, Event::Tick).next, Next::Idle);
    let exhausted = TraceEvent::ServerExhausted { node: node(1) };
    assert!(grove.log.0.contains(&(13, exhausted)), "{:?}", grove.log.0);
    // It owes 3 of the next 4.
    assert_eq!(grove.at(20, Event::Tick).next, Next::Thread(id(0)));
    assert_eq!(grove.at(21, Event::Tick).next, Next::Idle);
}

#[test]
fn a_sporadic_server_gets_back_what_it_lent_one_period_later() {
    let mut grove = grove(ServerKind::Sporadic);
    let _ = grove.at(0, Event::Tick);
    let _ = grove.at(4, Event::Tick);
    assert_eq!(lend(&mut grove, 5, node(2), node(1), 4), None);
    assert_eq!(grove.shard.running(), Some(id(0)));
    assert_eq!(grove.at(6, Event::Tick).next, Next::Thread(id(0)));
    assert_eq!(grove.at(9, Event::Tick).next, Next::Thread(id(2)));
    assert_eq!(grove.at(10, Event::Tick).next, Next::Thread(id(0)));
    assert_eq!(grove.at(14, Event::Tick).next, Next::Thread(id(2)));
    assert_eq!(grove.at(15, Event::Tick).next, Next::Thread(id(1)));
}

#[test]
fn loans_without_budget_or_between_strangers_are_refused() {
    let mut grove = grove(ServerKind::Polling);
    let _ = grove.at(0, Event::Tick);
    let root = NodeId::ROOT;
    let cases = [
        (node(1), node(1), 1, Refusal::NotASibling(node(1))),
        (node(1), root, 1, Refusal::NotASibling(root)),
        (root, node(1), 1, Refusal::NotASibling(node(1))),
        (node(1), node(3), 1, Refusal::NotGrantable(node(3))),
        (node(3), node(1), 1, Refusal::NotGrantable(node(3))),
        (node(1), node(2), 5, Refusal::TooLittleBudget(node(1))),
        (node(1), node(2), 0, Refusal::TooLittleBudget(node(1))),
        (node(2), node(1), 1, Refusal::TooLittleBudget(node(2))),
    ];
    for (by, to, work, refusal) in cases {
        assert_eq!(lend(&mut grove, 1, by, to, work), Some(refusal));
    }
    assert_eq!(grove.shard.tree().check(), Ok(()));
}

/// However siblings lend, together they execute no more than their servers give.
fn history(seed: u64) -> u64 {
    let mut dice = Dice::new(seed);
    let kind = ServerKind::ALL[usize::try_from(dice.below(5)).unwrap()];
    let mut grove = grove(kind);
    let (mut now, mut used, mut loans) = (0, 0, 0);
    for _ in 0..200 {
        let (by, to) = (1 + dice.below(2), 1 + dice.below(2));
        let [by, to] = [by, to].map(|place| node(u16::try_from(place).unwrap()));
        let decision = if dice.below(3) == 0 {
            let work = Work::from_ticks(dice.below(5));
            let request = Request::Lend { to, work };
            let decision = grove.at(now, Event::Manage { by, request });
            loans += u64::from(decision.refused.is_none());
            decision
        } else {
            grove.at(now, Event::Tick)
        };
        let free = 1 + dice.below(6);
        let armed = decision.arm.map_or(free, |at| at.ticks() - now);
        let step = free.min(armed);
        if let Next::Thread(thread) = decision.next
            && thread.index() < 2
        {
            used += step;
        }
        now += step;
    }
    assert!(
        used <= (now / 10 + 2) * 8,
        "seed {seed}, {kind:?}: {used} in {now}"
    );
    loans
}

#[test]
fn no_history_of_loans_gains_time() {
    let loans: u64 = (0..5_000).map(history).sum();
    assert!(loans > 20_000, "only {loans} loans");
}
