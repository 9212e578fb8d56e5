//! What locks need of a tree, at its seam: overrun and payback, waiting for budget, raising.

use punctual_kern::{Attributes, Capacity, Next, NodeId, Tree};
use punctual_model::{Instant, Priority, ServerKind, ThreadId, Work};
use punctual_order::Band;
use punctual_policy::AnyPolicy;

use crate::driver::id;
use crate::trees::{FIXED, node, server, terms};

/// Node 1 on (4 in 10) at priority 5 with threads 0 and 1; node 2 on (4 in 10) at priority 7 with
/// thread 2; thread 3 on the CPU at priority 6.
fn tree(kind: ServerKind) -> Tree<AnyPolicy> {
    let mut capacity = Capacity::for_threads(4);
    capacity.nodes = 2;
    let policy = || AnyPolicy::new(FIXED, capacity.entities(), &[]);
    let mut tree = Tree::new(capacity, policy());
    for priority in [5, 7] {
        let terms = terms(server(kind, 4, 10), priority);
        tree.add(NodeId::ROOT, policy(), terms).unwrap();
    }
    for (thread, home) in [(0, 1), (1, 1), (2, 2), (3, 0)] {
        tree.attach(id(thread), node(home)).unwrap();
    }
    tree
}

fn t(ticks: u64) -> Instant {
    Instant::from_ticks(ticks)
}

fn work(ticks: u64) -> Work {
    Work::from_ticks(ticks)
}

fn wake(tree: &mut Tree<AnyPolicy>, now: u64, thread: u32, priority: u32) {
    let attributes = Attributes {
        priority: Priority::new(priority),
        absolute_deadline: Instant::MAX,
        release: t(now),
        order: thread,
    };
    let band = Band::RealTime;
    tree.wake(t(now), t(now), id(thread), &attributes, band);
}

/// An entry at `now`, after `thread` has executed `ran`: who runs next, and until when.
fn entry(
    tree: &mut Tree<AnyPolicy>,
    now: u64,
    ran: Option<(u32, u64)>,
) -> (Option<ThreadId>, Option<u64>) {
    tree.begin(t(now));
    if let Some((thread, ran)) = ran {
        let band = Band::RealTime;
        tree.charge(t(now), id(thread), band, work(ran), &mut |_, _| {});
    }
    tree.serve_timers(t(now), false, &mut |_, _| {});
    assert_eq!(tree.check(), Ok(()));
    let choice = tree.pick(t(now));
    assert_eq!(tree.check(), Ok(()));
    let next = match choice.next {
        Next::Thread(thread) => Some(thread),
        _ => None,
    };
    (next, choice.until.map(Instant::ticks))
}

#[test]
fn a_holder_goes_on_beyond_the_budget_alone_and_the_next_budget_pays() {
    for kind in [
        ServerKind::Deferrable,
        ServerKind::Polling,
        ServerKind::PeriodicResource,
        ServerKind::Sporadic,
        ServerKind::ConstantBandwidth,
    ] {
        let mut tree = tree(kind);
        wake(&mut tree, 0, 0, 1);
        assert_eq!(entry(&mut tree, 0, None), (Some(id(0)), Some(4)));
        // From 3 on thread 0 is in a section of 3; at 4 a sibling above it becomes ready.
        tree.overrun(t(3), id(0), Some(work(3)));
        assert_eq!(entry(&mut tree, 3, Some((0, 3))).0, Some(id(0)));
        let _ = entry(&mut tree, 4, Some((0, 1)));
        wake(&mut tree, 4, 1, 9);
        assert_eq!(
            entry(&mut tree, 4, None),
            (Some(id(0)), Some(7)),
            "{kind:?}: not the sibling"
        );
        assert_eq!(entry(&mut tree, 6, Some((0, 2))), (Some(id(0)), Some(7)));
        tree.overrun(t(6), id(0), None);
        assert_eq!(entry(&mut tree, 6, None).0, None, "{kind:?}: exhausted");
        // 2 were overdrawn: 2 are left of the next 4.
        assert_eq!(entry(&mut tree, 10, None), (Some(id(1)), Some(12)));
    }
}

#[test]
fn an_overrun_ends_with_its_allowance() {
    let mut tree = tree(ServerKind::Deferrable);
    wake(&mut tree, 0, 0, 1);
    let _ = entry(&mut tree, 0, None);
    tree.overrun(t(3), id(0), Some(work(2)));
    assert_eq!(entry(&mut tree, 4, Some((0, 4))), (Some(id(0)), Some(6)));
    assert_eq!(entry(&mut tree, 6, Some((0, 2))).0, None);
}

/// Thread 0 runs from 8 to 15 on 4 of its own and 4 that are borrowed until 10: 1 too much.
#[test]
fn what_runs_after_the_end_of_a_loan_is_an_overrun() {
    let mut tree = tree(ServerKind::Deferrable);
    tree.lend(t(0), node(2), node(1), work(4)).unwrap();
    wake(&mut tree, 8, 0, 1);
    tree.overrun(t(8), id(0), Some(work(2)));
    assert_eq!(entry(&mut tree, 8, None).0, Some(id(0)));
    // The other half of its allowance is left.
    assert_eq!(entry(&mut tree, 15, Some((0, 7))), (Some(id(0)), Some(16)));
    assert_eq!(entry(&mut tree, 16, Some((0, 1))).0, None);
}

#[test]
fn a_section_that_does_not_fit_waits_for_the_next_budget() {
    for kind in ServerKind::ALL {
        let mut tree = tree(kind);
        wake(&mut tree, 0, 0, 1);
        let _ = entry(&mut tree, 0, None);
        let _ = entry(&mut tree, 2, Some((0, 2)));
        assert!(tree.fits(id(0), work(2)) && !tree.fits(id(0), work(3)));
        tree.block(t(2), id(0), Band::RealTime);
        tree.park(t(2), id(0), work(3));
        assert_eq!(entry(&mut tree, 2, None).0, None);
        assert_eq!(tree.take_fitting(t(2)), None);
        let due = tree.next_timer().expect("the next budget");
        assert_eq!(entry(&mut tree, due.ticks(), None).0, None);
        assert_eq!(due, t(10), "{kind:?}");
        assert_eq!(tree.take_fitting(t(10)), Some(id(0)), "{kind:?}");
        assert_eq!(tree.take_fitting(t(10)), None);
        wake(&mut tree, 10, 0, 1);
        assert_eq!(entry(&mut tree, 10, None).0, Some(id(0)), "{kind:?}");
    }
}

/// Thread 0 overruns the first budget by 2, which leaves 2 of the next: too little for thread 1.
#[test]
fn a_section_waits_for_a_whole_budget_where_the_next_pays_back() {
    for kind in ServerKind::ALL {
        let mut tree = tree(kind);
        wake(&mut tree, 0, 0, 1);
        let _ = entry(&mut tree, 0, None);
        tree.overrun(t(3), id(0), Some(work(3)));
        let _ = entry(&mut tree, 4, Some((0, 4)));
        let _ = entry(&mut tree, 6, Some((0, 2)));
        tree.overrun(t(6), id(0), None);
        tree.block(t(6), id(0), Band::RealTime);
        tree.park(t(6), id(1), work(3));
        let _ = entry(&mut tree, 6, None);
        assert_eq!(tree.take_fitting(t(6)), None);
        let mut now = 6;
        while now < 30 && tree.take_fitting(t(now)).is_none() {
            now = tree.next_timer().expect("a budget").ticks();
            let _ = entry(&mut tree, now, None);
        }
        assert_eq!(now, 20, "{kind:?}");
    }
}

/// Thread 0 is kept away in its section until the deadline of its server is past. Its charge then
/// renews the budget, less 2 that it overran: too little for thread 1, and no timer was due.
#[test]
fn a_section_waits_for_a_whole_budget_where_a_starved_server_is_renewed() {
    let mut tree = tree(ServerKind::ConstantBandwidth);
    wake(&mut tree, 0, 0, 1);
    let _ = entry(&mut tree, 0, None);
    tree.overrun(t(3), id(0), Some(work(3)));
    let _ = entry(&mut tree, 4, Some((0, 4)));
    tree.park(t(4), id(1), work(3));
    let _ = entry(&mut tree, 11, Some((0, 2)));
    tree.overrun(t(11), id(0), None);
    tree.block(t(11), id(0), Band::RealTime);
    assert_eq!(tree.take_fitting(t(11)), None);
    assert_eq!(entry(&mut tree, 11, None), (None, None));
    assert_eq!(tree.next_timer(), Some(t(21)));
    let _ = entry(&mut tree, 21, None);
    assert_eq!(tree.take_fitting(t(21)), Some(id(1)));
}

#[test]
fn a_section_longer_than_any_budget_waits_for_a_full_one_not_for_ever() {
    let tree = tree(ServerKind::Deferrable);
    assert!(tree.fits(id(0), work(50)));
}

#[test]
fn a_parked_thread_that_ends_leaves_nothing_behind() {
    let mut tree = tree(ServerKind::Polling);
    wake(&mut tree, 0, 0, 1);
    let _ = entry(&mut tree, 0, None);
    let _ = entry(&mut tree, 2, Some((0, 2)));
    tree.block(t(2), id(0), Band::RealTime);
    tree.park(t(2), id(0), work(3));
    tree.detach(id(0));
    let _ = entry(&mut tree, 3, None);
    assert_eq!(tree.next_timer(), None, "nothing is pending");
}

#[test]
fn a_raised_scheduler_goes_before_its_equals() {
    let mut tree = tree(ServerKind::Deferrable);
    wake(&mut tree, 0, 0, 1);
    let _ = entry(&mut tree, 0, None);
    for (thread, priority) in [(2, 1), (3, 6)] {
        wake(&mut tree, 1, thread, priority);
    }
    assert_eq!(entry(&mut tree, 1, Some((0, 1))).0, Some(id(2)));
    let child = tree.child_towards(NodeId::ROOT, id(0));
    assert_eq!(child, Some(node(1)));
    assert_eq!(tree.child_towards(node(1), id(0)), None, "its own");
    tree.raise(node(1), Some(Priority::new(7)));
    assert_eq!(entry(&mut tree, 1, None).0, Some(id(0)));
    tree.raise(node(1), Some(Priority::new(6)));
    assert_eq!(entry(&mut tree, 1, None).0, Some(id(2)));
    tree.raise(node(1), None);
    tree.block(t(1), id(2), Band::RealTime);
    assert_eq!(entry(&mut tree, 1, None).0, Some(id(3)));
}
