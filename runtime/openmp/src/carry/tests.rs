//! Tests of carriers.

use super::*;
use crate::me::{add_member, me};
use crate::parts::Team;

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

#[test]
fn members_of_a_short_region_are_left_to_the_carrier_that_offered_them_for_a_moment() {
    let root = me();
    let team: &'static Team = Box::leak(Box::new(Team::new(Some(root.hat()))));
    let new = || -> &'static Identity { Box::leak(Box::new(Identity::new(true))) };
    let (first, second, idle) = (new(), new(), new());
    add_member(team, first);
    let seat = add_member(team, second);
    second.member.set(Some(seat));
    second.seat.set(Some(seat));
    team.size.store(2, Ordering::Relaxed);
    team.waiting.add();
    second.standing.let_go();
    let by = core::ptr::from_ref(&first.own).cast_mut();
    team.offered_by.store(by, Ordering::Relaxed);
    team.unclaimed.words[0].store(2, Ordering::Relaxed);
    team.is_short.store(true, Ordering::Relaxed);
    pool::list_team(team);
    assert!(sees_unclaimed(&idle.own).is_some() && serves_short(&idle.own));
    assert!(next(&idle.own, false).is_none(), "it is left to the first");
    let taken = next(&first.own, false).expect("it has offered it");
    assert!(core::ptr::eq(taken, second));
    // It went on with something else: another carrier may have the one that it took.
    team.waiting.add();
    first.own.chosen.set(Some(second));
    pass_on(&first.own);
    let queued = next(&idle.own, false).expect("it is in the queue");
    assert!(core::ptr::eq(queued, second));
    second.standing.let_go();
    let patient = next(&idle.own, true).expect("a moment is over");
    assert!(core::ptr::eq(patient, second));
    // Nothing of this test is left for others.
    team.unclaimed.words[0].store(0, Ordering::Relaxed);
    team.is_short.store(false, Ordering::Relaxed);
}
