//! Temporal capabilities: no sequence of operations gains time or urgency.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual_capability::{Capabilities, CapabilityError, CapabilityId, MAX_DELEGATIONS, Transfer};
use punctual_generate::Dice;
use punctual_model::Work;
use punctual_order::NodeId;

const ROOT: NodeId = NodeId::ROOT;

fn node(place: u16) -> NodeId {
    NodeId::new(place, 0)
}

fn ticks(ticks: u64) -> Work {
    Work::from_ticks(ticks)
}

/// The root's 10, of which node 1 has 4 (as 7) and node 2 has 3 (as 9).
fn shared() -> (Capabilities, [CapabilityId; 3]) {
    let mut table = Capabilities::new(16);
    let root = table.mint(ROOT, ticks(10)).unwrap();
    let a = table.delegate(ROOT, root, node(1), (ticks(4), 7)).unwrap();
    let b = table.delegate(ROOT, root, node(2), (ticks(3), 9)).unwrap();
    (table, [root, a, b])
}

#[test]
fn delegated_time_is_moved_not_copied() {
    let (table, [root, a, b]) = shared();
    assert_eq!(
        [root, a, b].map(|id| table.left(id)),
        [Ok(ticks(3)), Ok(ticks(4)), Ok(ticks(3))]
    );
    assert_eq!(table.check(), Ok(()));
}

#[test]
fn revoking_takes_back_what_was_delegated_on() {
    let (mut table, [root, a, _]) = shared();
    let c = table.delegate(node(1), a, node(3), (ticks(3), 1)).unwrap();
    let d = table.delegate(node(3), c, node(4), (ticks(2), 1)).unwrap();
    assert_eq!(table.expend(d, ticks(1)), Ok(ticks(1)));
    assert_eq!(
        table.revoke(node(3), a),
        Err(CapabilityError::NotHeld(a)),
        "below it"
    );
    assert_eq!(table.revoke(ROOT, a), Ok(ticks(3)));
    assert_eq!(table.left(root), Ok(ticks(6)));
    for gone in [a, c, d] {
        assert_eq!(table.left(gone), Err(CapabilityError::Stale(gone)));
    }
    assert_eq!(table.check(), Ok(()));
}

#[test]
fn an_ancestor_revokes_over_the_head_of_those_between() {
    let (mut table, [root, a, _]) = shared();
    let c = table.delegate(node(1), a, node(3), (ticks(3), 1)).unwrap();
    assert_eq!(table.revoke(ROOT, c), Ok(ticks(3)));
    assert_eq!(table.left(root), Ok(ticks(6)));
    assert_eq!(table.left(a), Ok(ticks(1)));
}

#[test]
fn a_transfer_is_seen_by_the_closest_who_delegated_to_both() {
    let (mut table, [_, a, b]) = shared();
    let c = table.delegate(node(1), a, node(3), (ticks(2), 1)).unwrap();
    let d = table.delegate(node(1), a, node(4), (ticks(1), 1)).unwrap();
    table.transfer(node(3), c, d, ticks(1)).unwrap();
    table.transfer(node(3), c, b, ticks(1)).unwrap();
    let seen = |seen_by, to| Transfer {
        seen_by: Some(seen_by),
        from: node(3),
        to,
        time: ticks(1),
    };
    assert_eq!(table.take_transfer(), Some(seen(node(1), node(4))));
    assert_eq!(table.take_transfer(), Some(seen(ROOT, node(2))));
    assert_eq!(table.take_transfer(), None);
}

#[test]
fn a_transfer_that_could_not_be_seen_is_refused() {
    let mut table = Capabilities::new(3);
    let root = table.mint(ROOT, ticks(100)).unwrap();
    let a = table.delegate(ROOT, root, node(1), (ticks(50), 1)).unwrap();
    let b = table.delegate(ROOT, root, node(2), (ticks(50), 1)).unwrap();
    for _ in 0..3 {
        assert_eq!(table.transfer(node(1), a, b, ticks(1)), Ok(()));
    }
    assert_eq!(
        table.transfer(node(1), a, b, ticks(1)),
        Err(CapabilityError::LedgerFull)
    );
    assert_eq!(table.left(a), Ok(ticks(47)), "nothing half done");
    assert!(table.take_transfer().is_some());
    assert_eq!(table.transfer(node(1), a, b, ticks(1)), Ok(()));
}

#[test]
fn preemption_asks_everybody_who_delegated_to_both() {
    let (mut table, [root, a, b]) = shared();
    assert_eq!(table.preempts(b, a), Ok(true), "9 over 7 at the root");
    assert_eq!(table.preempts(a, b), Ok(false));
    assert_eq!(table.preempts(a, a), Ok(false), "nobody finds it higher");
    assert_eq!(table.preempts(b, root), Ok(false), "nobody in common");
    // Node 1 finds c more urgent than d, the root finds them equal: c preempts d.
    let c = table.delegate(node(1), a, node(3), (ticks(1), 5)).unwrap();
    let d = table.delegate(node(1), a, node(4), (ticks(1), 2)).unwrap();
    assert_eq!(table.preempts(c, d), Ok(true));
    assert_eq!(table.preempts(d, c), Ok(false));
    // What node 1 thinks does not count against node 2: the root's word does.
    assert_eq!(table.preempts(b, c), Ok(true));
    // Two schedulers that disagree: neither preempts.
    let low = table.delegate(ROOT, root, node(1), (ticks(1), 1)).unwrap();
    let e = table
        .delegate(node(1), low, node(3), (ticks(1), 99))
        .unwrap();
    assert_eq!(
        (table.preempts(c, e), table.preempts(e, c)),
        (Ok(false), Ok(false))
    );
}

#[test]
fn a_transfer_does_not_make_time_more_urgent() {
    let (mut table, [_, a, b]) = shared();
    table.transfer(node(1), a, b, ticks(1)).unwrap();
    // b was 9 at the root; with time that is 7 there it is 7.
    assert_eq!(table.preempts(b, a), Ok(false));
}

#[test]
fn nobody_hands_out_what_is_not_his_or_not_there() {
    let (mut table, [root, a, _]) = shared();
    assert_eq!(
        table.delegate(node(1), root, node(1), (ticks(1), 1)),
        Err(CapabilityError::NotHeld(root))
    );
    assert_eq!(
        table.delegate(node(1), a, node(3), (ticks(5), 1)),
        Err(CapabilityError::TooLittle { left: ticks(4) })
    );
    assert_eq!(
        table.expend(a, ticks(9)),
        Ok(ticks(4)),
        "only what is there"
    );
    assert_eq!(table.check(), Ok(()));
}

#[test]
fn the_chain_of_delegations_is_bounded() {
    let mut table = Capabilities::new(32);
    let mut last = table.mint(ROOT, ticks(100)).unwrap();
    let most = u16::try_from(MAX_DELEGATIONS).unwrap();
    for depth in 0..most {
        let (by, to) = (node(depth), node(depth + 1));
        last = table.delegate(by, last, to, (ticks(90), 1)).unwrap();
        assert_eq!(table.left(last), Ok(ticks(90)));
    }
    assert_eq!(
        table.delegate(node(most), last, node(20), (ticks(1), 1)),
        Err(CapabilityError::TooManyDelegations)
    );
}

/// A random history; the sum is checked after every operation. Returns how many succeeded.
fn history(seed: u64) -> u64 {
    let mut dice = Dice::new(seed);
    let mut table = Capabilities::new(12);
    let mut known = vec![table.mint(ROOT, ticks(1_000)).unwrap()];
    let mut done = 0;
    for _ in 0..200 {
        let index = |dice: &mut Dice, n: usize| {
            usize::try_from(dice.below(u64::try_from(n).unwrap())).unwrap()
        };
        let (from, to) = (index(&mut dice, known.len()), index(&mut dice, known.len()));
        let (from, to) = (known[from], known[to]);
        let by = node(u16::try_from(dice.below(4)).unwrap());
        let who = node(u16::try_from(dice.below(4)).unwrap());
        let time = ticks(dice.below(300));
        let succeeded = match dice.below(6) {
            0 if dice.below(10) == 0 => table.mint(by, time).map(|id| known.push(id)).is_ok(),
            0..=2 => {
                let made = table.delegate(by, from, who, (time, dice.below(9)));
                made.map(|id| known.push(id)).is_ok()
            }
            3 => table.transfer(by, from, to, time).is_ok(),
            4 => table.revoke(by, from).is_ok(),
            _ => table.expend(from, ticks(dice.below(20))).is_ok(),
        };
        if dice.below(3) == 0 {
            let _ = table.take_transfer();
        }
        assert_eq!(table.check(), Ok(()), "seed {seed}");
        done += u64::from(succeeded);
    }
    done
}

#[test]
fn no_sequence_of_operations_gains_or_loses_time() {
    let done: u64 = (0..5_000).map(history).sum();
    assert!(done > 100_000, "only {done} operations succeeded");
}
