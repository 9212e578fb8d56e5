//! Tests of carriers.

use super::*;
use crate::me::{add_member, me};

#[test]
fn a_carrier_that_takes_an_identity_back_is_its_carrier_whoever_had_it_meanwhile() {
    let root = me();
    let team: &'static Team = Box::leak(Box::new(Team::new(Some(root.hat()))));
    let new = |is_pool| -> &'static Identity { Box::leak(Box::new(Identity::new(is_pool))) };
    let (identity, first, other) = (new(true), new(true), new(true));
    identity.member.set(Some(add_member(team, identity)));
    let thread: &'static Thread = Box::leak(Box::new(Thread::new(core::ptr::null_mut())));
    assert!(!identity.standing.make_ready(thread), "it is held");
    // The other one carried it between two steps of the first.
    identity.carrier.set(Some(&other.own));
    assert!(!let_go(&first.own, identity), "a thread of it is ready");
    assert!(core::ptr::eq(carrier_of(identity), &first.own));
    assert!(core::ptr::eq(
        first.own.carries.load(Ordering::Relaxed),
        identity
    ));
}
