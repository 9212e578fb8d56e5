//! Tests of words in one order.
//!
//! They stand apart from the files of these words, which are compiled a second time over words of a
//! model checker: a test there would be outside of a model.

use crate::deque::{Deque, Stolen};
use crate::pending::{CHILD, Pending, REFERENCE};

fn address(number: usize) -> *mut u8 {
    core::ptr::without_provenance_mut(number)
}

#[test]
fn the_owner_takes_the_newest_and_a_thief_the_oldest() {
    let deque = Deque::<u8, 4>::new();
    for number in 1..=3 {
        assert_eq!(deque.push(address(number)), Ok(()));
    }
    assert_eq!(deque.len(), 3);
    assert_eq!(deque.pop(), Some(address(3)));
    assert_eq!(deque.steal(), Stolen::One(address(1)));
    assert_eq!(deque.pop(), Some(address(2)));
    assert_eq!(deque.pop(), None);
    assert_eq!(deque.steal(), Stolen::Nothing);
}

#[test]
fn a_full_deque_gives_the_item_back_and_takes_one_again_after_a_theft() {
    let deque = Deque::<u8, 4>::new();
    for number in 1..=4 {
        assert_eq!(deque.push(address(number)), Ok(()));
    }
    assert_eq!(deque.push(address(5)), Err(address(5)));
    assert_eq!(deque.steal(), Stolen::One(address(1)));
    assert_eq!(deque.push(address(5)), Ok(()));
    let popped: Vec<_> = core::iter::from_fn(|| deque.pop()).collect();
    assert_eq!(popped, [5, 4, 3, 2].map(address));
}

#[test]
fn the_last_child_tells_the_waiter_and_the_last_reference_is_the_end() {
    let mut place = 0_u8;
    let waiter = &raw mut place;
    let pending = Pending::new();
    pending.begin();
    pending.add(2 * (REFERENCE | CHILD));
    assert!(pending.register(waiter));
    assert_eq!(pending.sub(REFERENCE | CHILD).waiter, None);
    let last = pending.sub(CHILD);
    assert_eq!((last.waiter, last.is_over), (Some(waiter), false));
    assert!(pending.is_childless() && !pending.is_last());
    assert!(!pending.sub(REFERENCE).is_over);
    assert!(pending.is_last());
    assert!(pending.sub(REFERENCE).is_over);
}

#[test]
fn one_who_comes_too_late_is_not_told() {
    let mut place = 0_u8;
    let pending = Pending::new();
    pending.begin();
    assert!(!pending.register(&raw mut place));
    assert!(pending.is_last());
}
