//! Refusals of a tree: nothing changes, and the answer says why.

use punctual_model::{ServerKind, Span, Supply, Trust};
use punctual_thread::thread::{self, SpawnError};
use punctual_thread::tree::{Recipient, Scheduler, Terms, Wait};
use punctual_thread::{Constraint, NotAdmitted};

use crate::common::{FIXED, alone, fly, free, ms, runtime, us};
use crate::tree::{declared, grown, periodic, refused, server, trees};

/// Executes its jobs.
fn periods() {
    while thread::wait_next_period().is_ok() {}
}

/// Waits until it is told to end.
fn waits() {
    let _ = thread::block_within(Span::MAX);
}

#[test]
fn who_holds_one_handle_has_power_over_one_subtree() {
    grown(|root| {
        let mine = root.promote("mine", server(3, (2, 20))).expect("room");
        let other = root.promote("other", server(2, (2, 20))).expect("room");
        let inside = other.promote("inside", Terms::shared()).expect("room");
        let theirs = other.spawn("theirs", free(1), waits).expect("room");
        let deeper = inside.spawn("deeper", free(1), waits).expect("room");
        let admitted = other
            .spawn("admitted", periodic(60, 100), waits)
            .expect("admitted");
        let roots = thread::spawn("roots", free(1), waits).expect("room");
        let before = thread::verdict().expect("in a run");
        // A thread of `mine` that holds its own handle; the others are told to it on purpose.
        let names =
            [&theirs, &deeper, &admitted, &roots].map(punctual_thread::thread::ThreadRef::from);
        let to_other = other.recipient();
        let (own, not_own) = (mine.clone(), [other.clone(), inside.clone(), root.clone()]);
        let child = mine.spawn("child", free(9), move || {
            let _ = thread::block_within(ms(5));
            for name in names {
                assert_eq!(refused(own.revoke(name)), "NotItsOwn");
                assert_eq!(refused(own.wake(name)), "NotItsOwn");
                let block = refused(own.block(name, Wait::until_woken().exclusive()));
                assert!(
                    block == "NotItsOwn" || block.contains("Undeclared"),
                    "{block}"
                );
                for scheduler in &not_own {
                    let granted = refused(own.grant(name, scheduler));
                    assert!(
                        granted == "NotItsChild" || granted == "NotItsOwn",
                        "{granted}"
                    );
                }
            }
            for scheduler in &not_own {
                assert_eq!(refused(own.demote(scheduler)), "NotItsChild");
            }
            assert_eq!(refused(own.demote(&own)), "NotItsChild");
            assert_eq!(refused(own.child("other")), "NoSuchNode");
            assert_eq!(refused(own.child("inside")), "NoSuchNode");
            assert_eq!(refused(own.lend(&own.recipient(), us(1))), "NotASibling");
            assert!(matches!(Scheduler::root(), Err(SpawnError::NotItsRoot)));
            // The name of a sibling that it was given: to lend to, and for nothing else.
            let given: Recipient = to_other;
            assert_ne!(refused(own.lend(&given, us(1))), "NotASibling");
        });
        child.expect("room").join().expect("it says nothing else");
        assert_eq!(
            thread::verdict().expect("in a run").tasks.len(),
            before.tasks.len()
        );
        assert!(matches!(Scheduler::root(), Err(SpawnError::NotItsRoot)));
    });
}

#[test]
fn a_thread_is_born_where_its_creator_is() {
    grown(|root| {
        let net = root
            .promote("net", server(3, (2, 20)).quota(2))
            .expect("room");
        let first = net.spawn("first", free(3), || {
            // The CPU is idle, but here 2 ms in 20 ms are all that there is.
            let greedy = thread::spawn("greedy", periodic(20, 5_000), waits).err();
            assert!(
                matches!(greedy, Some(SpawnError::NotAdmitted(_))),
                "{greedy:?}"
            );
            let second = thread::spawn("second", periodic(60, 100), waits).expect("its share");
            let third = thread::spawn("third", free(1), waits);
            assert_eq!(refused(third), "QuotaExhausted");
            second.cancel();
            second.join().err()
        });
        let first = first.expect("room");
        assert!(first.join().expect("no panic").is_some());
        // The root has room.
        let greedy = thread::spawn("greedy", periodic(20, 5_000), waits).expect("alone");
        greedy.cancel();
    });
}

#[test]
fn there_is_room_for_as_many_schedulers_as_the_start_says_and_a_refusal_beyond() {
    let with_root = || {
        let root = Scheduler::root().expect("the first thread");
        let promote = |n: usize| root.promote(&format!("s{n}"), Terms::shared());
        let all: Vec<Scheduler> = (0..64).map(|n| promote(n).expect("room for 64")).collect();
        let beyond = promote(64);
        let says_so = |e: &SpawnError| e.to_string().contains("choose room for more");
        assert!(beyond.as_ref().is_err_and(says_so), "{beyond:?}");
        assert_eq!(refused(beyond), "NoNodeLeft");
        root.demote(&all[10]).expect("nobody there");
        assert!(promote(65).is_ok(), "one has left");
    };
    fly(runtime(FIXED).promotions(64), with_root);
}

#[test]
fn a_tree_ends_where_its_room_and_its_depth_do() {
    grown(|root| {
        let terms = Terms::shared();
        let all: Vec<Scheduler> = (0..4)
            .map(|n| {
                root.promote(&format!("s{n}"), terms)
                    .expect("room for four")
            })
            .collect();
        let beyond = root.promote("fifth", terms);
        assert!(
            beyond
                .as_ref()
                .is_err_and(|e| e.to_string().contains("choose room for more"))
        );
        assert_eq!(refused(beyond), "NoNodeLeft");
        assert_eq!(root.child("fifth").ok(), None);
        let nothing = Terms::server(ServerKind::Polling, (us(0), ms(10)));
        let nothing = all[0].promote("nothing", nothing).err();
        assert!(
            matches!(
                nothing,
                Some(SpawnError::NotAdmitted(NotAdmitted::Meaningless(_)))
            ),
            "{nothing:?}"
        );
        // No budget of its own: nothing to lend.
        assert_eq!(
            refused(all[0].lend(&all[1].recipient(), us(1))),
            "NotGrantable"
        );
    });
    let deep = runtime(FIXED).promotions(10);
    let depth = fly(deep, || {
        let mut at = Scheduler::root().expect("the first thread");
        let mut depth = 0;
        loop {
            match at.promote(&format!("level{depth}"), Terms::shared()) {
                Ok(below) => (at, depth) = (below, depth + 1),
                Err(SpawnError::NotAdmitted(NotAdmitted::Meaningless(why))) => {
                    assert!(why.contains("levels below"), "{why}");
                    break depth;
                }
                other => panic!("{other:?}"),
            }
        }
    });
    assert_eq!(depth.result, punctual_model::MAX_DEPTH);
}

#[test]
fn handles_of_another_cpu_or_run_and_of_the_dead_name_nothing() {
    let kept = grown(|root| {
        let net = root.promote("net", server(3, (2, 20))).expect("room");
        let thread = net.spawn("short", free(1), || ()).expect("room");
        let name = thread::ThreadRef::from(&thread);
        thread.join().expect("no panic");
        assert_eq!(refused(net.wake(name)), "StaleThread");
        assert_eq!(refused(net.revoke(name)), "StaleThread");
        let old = net.clone();
        root.demote(&net).expect("empty");
        let new = root.promote("net", server(3, (2, 20))).expect("room");
        assert_ne!(old, new, "the same place of the table, another generation");
        assert_eq!(refused(old.child("x")), "NoSuchNode");
        (new, root)
    });
    // No run, and then another one.
    let (new, root) = kept;
    assert!(matches!(new.demote(&new), Err(SpawnError::NoRun)));
    grown(move |now| {
        assert_eq!(refused(root.promote("x", Terms::shared())), "NotHere");
        assert_eq!(refused(now.demote(&new)), "NotHere");
        assert_eq!(refused(root.spawn("x", free(1), || ())), "NotHere");
    });
}

#[test]
fn a_tree_that_means_nothing_or_does_not_fit_starts_no_run() {
    let _alone = alone();
    let start = |schedulers| trees().tree(schedulers).start(|| ());
    let two = |a, b| vec![declared("a", 2, a), declared("b", 1, b)];
    let full = start(two((6, 10), (6, 10))).expect_err("too much");
    assert!(full.to_string().contains("not admitted"), "{full}");
    let mut odd = two((1, 10), (1, 10));
    odd[1].name = "a".to_owned();
    let odd = start(odd).expect_err("twice the same name");
    assert!(odd.to_string().contains("name"), "{odd}");
    let mut own = two((1, 10), (1, 10));
    own[1].trust = Trust::OwnTime;
    own[1].supply = Supply::Shared;
    assert!(start(own).is_err(), "it decides on nothing");
}

#[test]
fn a_demotion_that_would_make_somebody_late_changes_nothing() {
    grown(|root| {
        let kept = Terms::server(ServerKind::Deferrable, (us(4_000), ms(10)));
        let high = root.promote("high", kept.priority(9)).expect("room");
        let fast = periodic(20, 2_000).deadline(ms(10));
        let fast = high
            .spawn("fast", fast, periods)
            .expect("at once, on its own supply");
        // In the care of the root it would come behind this one.
        let hog = Constraint::periodic(ms(30), us(9_000)).priority(5);
        let hog = thread::spawn("hog", hog, periods).expect("beside 4 in 10");
        let before = thread::verdict().expect("in a run");
        let asked = root.demote(&high).err();
        let Some(SpawnError::NotAdmitted(NotAdmitted::Refused(verdict))) = asked else {
            panic!("{asked:?}");
        };
        assert!(verdict.refusals[0].name.starts_with("fast"), "{verdict:?}");
        assert_eq!(thread::verdict().expect("in a run"), before);
        assert_eq!(root.child("high").ok(), Some(high));
        fast.cancel();
        hog.cancel();
    });
}
