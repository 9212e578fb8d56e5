//! The table of locks by itself: lists, searches, room.

use super::*;

fn terms(protocol: Protocol) -> ResourceTerms {
    ResourceTerms {
        resource: ResourceId(0),
        protocol,
        at_budget_end: AtBudgetEnd::Overrun,
        wait_order: WaitOrder::Priority,
        ceiling: Priority::new(1),
        floor: Span::ZERO,
        real_time: true,
        common: NodeId::ROOT,
        spans_schedulers: false,
    }
}

fn a_use(resource: u32, mode: Mode, length: u64) -> UseTerms {
    UseTerms {
        resource,
        mode,
        length: Work::from_ticks(length),
        priority: Priority::new(1),
    }
}

fn table(uses: &[(usize, u32)]) -> Locks {
    let mut table = Locks::new(8);
    for _ in 0..4 {
        let _ = table.add(terms(Protocol::Inheritance));
    }
    for &(thread, resource) in uses {
        assert!(table.declare(thread, a_use(resource, Mode::Exclusive, 1)));
    }
    table
}

fn hold(table: &mut Locks, thread: usize, resource: u32, mode: Mode) {
    let of = table.find(thread, resource).expect("declared");
    table.hold(of, mode, Instant::ZERO);
}

#[test]
fn only_declared_uses_are_found_and_a_second_declaration_widens_the_first() {
    let mut t = table(&[(0, 1), (0, 2), (3, 1)]);
    assert!(!t.declare(0, a_use(9, Mode::Shared, 1)), "no such resource");
    assert!(!t.declare(9, a_use(1, Mode::Shared, 1)), "no such thread");
    assert_eq!(t.find(3, 2), None);
    assert!(t.declare(5, a_use(3, Mode::Shared, 7)));
    assert!(t.declare(5, a_use(3, Mode::Exclusive, 4)));
    let at = t.find(5, 3).expect("declared");
    assert_eq!(t.get(at).terms, a_use(3, Mode::Exclusive, 7));
    t.forget(3);
    assert_eq!(t.find(3, 1), None);
}

#[test]
fn readers_leave_room_for_readers_and_a_writer_for_nobody() {
    let mut t = table(&[(0, 0), (1, 0)]);
    assert!(t.has_room(0, Mode::Exclusive));
    hold(&mut t, 0, 0, Mode::Shared);
    assert!(t.has_room(0, Mode::Shared) && !t.has_room(0, Mode::Exclusive));
    hold(&mut t, 1, 0, Mode::Exclusive);
    assert!(!t.has_room(0, Mode::Shared));
    assert!(t.check().is_err(), "INV-RES: a reader beside a writer");
}

fn leads(table: &mut Locks, lock: u32, thread: usize) -> bool {
    table.look_at_holders(lock);
    table.leads_to(thread, |_| None)
}

#[test]
fn a_search_goes_along_every_chain_and_ends() {
    // 0 holds r0 and waits for r1; 1 and 2 read r1; 2 waits for r2; 3 holds r2.
    let uses = [(0, 0), (1, 1), (2, 1), (3, 2)];
    let mut t = table(&uses);
    hold(&mut t, 0, 0, Mode::Exclusive);
    hold(&mut t, 1, 1, Mode::Shared);
    hold(&mut t, 2, 1, Mode::Shared);
    hold(&mut t, 3, 2, Mode::Exclusive);
    t.wait(0, 1);
    t.wait(2, 2);
    assert!(leads(&mut t, 0, 3) && leads(&mut t, 0, 1));
    assert!(!leads(&mut t, 0, 4) && !leads(&mut t, 2, 0));
    t.wait(3, 0);
    assert!(!leads(&mut t, 0, 4), "also in a circle");
    assert_eq!(t.leave(3), Some(0));
    while t.next_to_look_at().is_some() {}
    t.look_at_holders(2);
    let of = t.find(0, 0);
    assert!(t.leads_to(0, |thread| of.filter(|_| thread == 3)));
}

#[test]
fn waiters_are_served_in_the_order_of_their_asking() {
    let mut t = table(&[(7, 2)]);
    hold(&mut t, 7, 2, Mode::Exclusive);
    for thread in [3, 1, 5, 0] {
        t.wait(thread, 2);
    }
    for (leaves, left) in [(1, vec![3, 5, 0]), (3, vec![5, 0]), (0, vec![5])] {
        assert_eq!(t.leave(leaves), Some(2));
        assert_eq!(t.waiters(2).collect::<Vec<_>>(), left);
        assert_eq!((t.waits_for(leaves), t.check()), (None, Ok(())));
        assert_eq!(t.next_to_look_at(), Some(7), "who holds it");
    }
    assert_eq!(t.leave(0), None);
}

#[test]
fn a_lock_of_a_runtime_is_here_while_somebody_waits_for_it() {
    let mut t = table(&[(0, 0)]);
    let (locks, uses) = (t.locks.capacity(), t.uses.capacity());
    for _ in 0..3 {
        // All wait for 0, each under a key of its own, and then all for 1.
        for waiter in 1..8 {
            let lock = t.contend(0, 9 * small(waiter), WaitOrder::Priority);
            t.wait(waiter, lock);
            assert_eq!(t.contended(0, 9 * small(waiter)), Some(lock));
        }
        assert_eq!((t.held_by(0).count(), t.check()), (7, Ok(())));
        for waiter in 2..8 {
            let lock = t.contended(0, 9 * small(waiter)).expect("it is waited for");
            t.hand(lock, 1);
            assert_eq!(t.contended(0, 9 * small(waiter)), None);
        }
        assert_eq!((t.held_by(0).count(), t.held_by(1).count()), (1, 6));
        assert!(t.leave(4).is_some());
        t.forget(1);
        t.forget(0);
        assert_eq!((t.held().count(), t.check()), (0, Ok(())));
        assert!((0..8).all(|thread| t.waits_for(thread).is_none()));
    }
    assert_eq!((t.locks.len(), t.uses.len()), (4 + 7, 1 + 7), "used again");
    assert_eq!((t.locks.capacity(), t.uses.capacity()), (locks, uses));
    assert_eq!(t.find(0, 5), None, "nobody has declared it");
}

#[test]
fn what_one_thread_holds_under_one_key_is_one_lock_also_when_both_were_handed_to_it() {
    let mut t = table(&[(0, 0)]);
    for (holder, waiter) in [(0, 4), (1, 5), (1, 6)] {
        let lock = t.contend(holder, 9, WaitOrder::Priority);
        t.wait(waiter, lock);
    }
    let lock = t.contended(1, 9).expect("5 and 6 wait for it");
    t.hand(lock, 0);
    assert_eq!((t.held_by(0).count(), t.held_by(1).count()), (1, 0));
    let lock = t.contended(0, 9).expect("all wait for it");
    assert_eq!(t.waiters(lock).collect::<Vec<_>>(), [4, 5, 6]);
    t.hand(lock, 2);
    assert_eq!((t.contended(0, 9), t.contended(2, 9)), (None, Some(lock)));
    assert_eq!(t.check(), Ok(()));
}

#[test]
fn threads_are_looked_at_once_each_in_the_order_of_asking() {
    let mut t = table(&[]);
    for thread in [3, 1, 3, 7, 1] {
        t.look_at(thread);
    }
    let order: Vec<usize> = core::iter::from_fn(|| t.next_to_look_at()).collect();
    assert_eq!(order, [3, 1, 7]);
    t.look_at(3);
    assert_eq!(t.next_to_look_at(), Some(3));
}
