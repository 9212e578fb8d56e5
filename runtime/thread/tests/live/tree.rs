//! Programs that build and change a tree of schedulers while they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_kern::Refusal;
use punctual_model::{
    CpuId, Ns, Priority, Scheduler as Declared, Server, ServerKind, Supply, Trust,
};
use punctual_thread::thread::{self, SpawnError};
use punctual_thread::tree::{Scheduler, Terms, Wait};
use punctual_thread::{Constraint, NotAdmitted, Runtime};

use crate::common::{FIXED, alone, fly, free, ms, runtime, until, us};

const POLLING: ServerKind = ServerKind::Polling;

pub(crate) fn trees() -> Runtime {
    runtime(FIXED).promotions(4)
}

pub(crate) fn declared(name: &str, priority: u32, (budget, period): (u64, u64)) -> Declared {
    Declared {
        name: name.to_owned(),
        cpu: CpuId(0),
        parent: None,
        policy: FIXED,
        priority: Priority::new(priority),
        supply: Supply::Server(Server::<Ns> {
            kind: POLLING,
            budget: us(budget * 1_000),
            period: ms(period),
        }),
        trust: Trust::Inline,
        quota: Some(3),
        receiver: None,
        fallback: None,
        code: None,
    }
}

/// Runs `first` on a CPU that may have four schedulers.
pub(crate) fn grown<T: Send + 'static>(first: impl FnOnce(Scheduler) -> T + Send + 'static) -> T {
    let with_root = || first(Scheduler::root().expect("the first thread"));
    fly(trees(), with_root).result
}

pub(crate) fn server(priority: u32, (budget, period): (u64, u64)) -> Terms {
    Terms::server(POLLING, (us(budget * 1_000), ms(period))).priority(priority)
}

pub(crate) fn periodic(period: u64, wcet: u64) -> Constraint {
    Constraint::periodic(ms(period), us(wcet)).priority(1)
}

/// Counts its jobs.
fn counting(count: &Arc<AtomicU32>) -> impl FnOnce() + Send + 'static {
    let count = Arc::clone(count);
    move || {
        count.fetch_add(1, Ordering::Relaxed);
        while thread::wait_next_period().is_ok() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Waits for so many more jobs.
fn more_jobs(count: &AtomicU32, more: u32) {
    let enough = count.load(Ordering::Relaxed) + more;
    until(|| count.load(Ordering::Relaxed) >= enough);
}

/// The name of the refusal.
pub(crate) fn refused<T>(result: Result<T, SpawnError>) -> String {
    match result {
        Err(SpawnError::Refused(refusal)) => {
            let all = format!("{refusal:?}");
            all.split('(').next().unwrap_or_default().to_owned()
        }
        Err(error) => format!("{error:?}"),
        Ok(_) => "nothing".to_owned(),
    }
}

#[test]
fn a_thread_is_admitted_on_the_supply_of_its_scheduler() {
    let runtime = trees().tree(vec![declared("net", 3, (2, 10))]);
    let finished = fly(runtime, || {
        let net = Scheduler::root()
            .and_then(|root| root.child("net"))
            .expect("it started with it");
        let count = Arc::new(AtomicU32::new(0));
        let receive = net
            .spawn("receive", periodic(40, 1_000), counting(&count))
            .expect("2 ms in 10 ms carry 1 ms in 40 ms");
        // The CPU is empty, but this scheduler has no more to give.
        let refused = net.spawn("greedy", periodic(10, 2_000), || ()).err();
        let begun = thread::now().expect("in a run");
        more_jobs(&count, 5);
        receive.cancel();
        let passed = thread::now().expect("in a run").since(begun);
        (count.load(Ordering::Relaxed), passed, refused)
    });
    let (jobs, passed, refused) = finished.result;
    // One at once, and one for each of its periods.
    let most = 2 + passed.as_ns() / 40_000_000;
    assert!(u64::from(jobs) <= most, "{jobs} jobs in {passed:?}");
    let Some(SpawnError::NotAdmitted(NotAdmitted::Refused(verdict))) = refused else {
        panic!("{refused:?}");
    };
    assert!(!verdict.refusals.is_empty());
    assert_eq!(finished.schedulers, ["net"]);
    let promise = &finished.promises[0];
    assert_eq!(promise.name, "receive");
    assert!(promise.response_bound.is_some_and(|bound| bound <= ms(40)));
}

#[test]
fn a_scheduler_comes_gets_threads_gives_them_back_and_leaves() {
    let (jobs, gone) = grown(|root| {
        let count = Arc::new(AtomicU32::new(0));
        let worker = thread::spawn("worker", periodic(20, 500), counting(&count)).expect("alone");
        let net = root.promote("net", server(3, (4, 10))).expect("room");
        // It may be in the middle of a job; then it is asked again.
        between_jobs(|| root.grant(&worker, &net));
        more_jobs(&count, 4);
        between_jobs(|| root.revoke(&worker));
        assert_eq!(refused(root.revoke(&worker)), "NotItsOwn");
        between_jobs(|| root.grant(&worker, &net));
        more_jobs(&count, 3);
        // Back in the care of the root, by the end of its scheduler.
        between_jobs(|| root.demote(&net));
        more_jobs(&count, 3);
        worker.cancel();
        let gone = [
            net.spawn("late", free(1), || ()).err(),
            net.promote("late", server(1, (1, 10))).err(),
            root.demote(&net).err(),
        ];
        // A place of the table is free again.
        for _ in 0..10 {
            let next = root.promote("next", server(2, (1, 10))).expect("a place");
            root.demote(&next).expect("it is empty");
            thread::sleep(ms(10));
        }
        (count.load(Ordering::Relaxed), gone)
    });
    assert!(jobs >= 10, "{jobs} jobs: four, three, and three");
    for gone in gone {
        let Some(SpawnError::Refused(Refusal::NoSuchNode(_))) = gone else {
            panic!("{gone:?}");
        };
    }
}

/// Asks again while a thread is in the middle of a job.
fn between_jobs(mut ask: impl FnMut() -> Result<(), SpawnError>) {
    for _ in 0..20_000 {
        match ask() {
            Err(SpawnError::HasJob) => thread::sleep(punctual_model::Span::from_us(300)),
            asked => return asked.expect("admitted"),
        }
    }
    panic!("it is never between its jobs");
}

#[test]
fn what_would_be_late_elsewhere_stays_where_it_is() {
    grown(|root| {
        let count = Arc::new(AtomicU32::new(0));
        let worker = thread::spawn("worker", periodic(20, 3_000), counting(&count)).expect("alone");
        let net = root.promote("net", server(3, (2, 10))).expect("room");
        let before = thread::verdict().expect("in a run");
        // Its second budget would come too late: refused with the witness, whatever it is doing.
        for _ in 0..20 {
            let refused = root.grant(&worker, &net).err();
            let Some(SpawnError::NotAdmitted(NotAdmitted::Refused(verdict))) = refused else {
                panic!("{refused:?}");
            };
            assert!(
                verdict.refusals.iter().any(|r| r.witness.is_some()),
                "{verdict:?}"
            );
            thread::sleep(ms(1));
        }
        // So is a scheduler that would take too much.
        let refused = root.promote("hog", server(9, (8, 10))).err();
        assert!(
            matches!(refused, Some(SpawnError::NotAdmitted(_))),
            "{refused:?}"
        );
        // Nothing has changed.
        assert_eq!(thread::verdict().expect("in a run"), before);
        assert_eq!(root.child("hog").ok(), None);
        worker.cancel();
    });
}

#[test]
fn a_scheduler_blocks_and_wakes_in_its_name() {
    grown(|root| {
        // It sleeps for most of the time, and not for want of budget.
        let kept = Terms::server(ServerKind::Deferrable, (us(4_000), ms(10)));
        let net = root.promote("net", kept.priority(3)).expect("room");
        let inner = net
            .promote("inner", Terms::shared().priority(2))
            .expect("room");
        let steps = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&steps);
        let loops = inner.spawn("loops", free(1), move || {
            loop {
                count.fetch_add(1, Ordering::Relaxed);
                thread::sleep(ms(1));
            }
        });
        let loops = loops.expect("room");
        let stands_still = |yes: bool| {
            thread::sleep(ms(5));
            let before = steps.load(Ordering::Relaxed);
            if !yes {
                return until(|| steps.load(Ordering::Relaxed) != before);
            }
            thread::sleep(ms(40));
            assert_eq!(steps.load(Ordering::Relaxed), before);
        };
        stands_still(false);
        ready(|| net.block(&loops, Wait::until_woken().exclusive()));
        stands_still(true);
        // Neither its own scheduler nor a thread may wake it.
        assert_eq!(refused(inner.wake(&loops)), "BlockedByTrusted");
        loops.wake();
        stands_still(true);
        net.wake(&loops).expect("who blocked it");
        stands_still(false);
        // So can the root.
        ready(|| root.block(&loops, Wait::until_woken().exclusive()));
        stands_still(true);
        assert_eq!(refused(net.wake(&loops)), "BlockedByTrusted");
        root.wake(&loops).expect("who blocked it");
        stands_still(false);
        // For a while: it goes on by itself.
        ready(|| inner.block(&loops, Wait::within(ms(5))));
        thread::sleep(ms(20));
        stands_still(false);
        loops.cancel();
    });
}

/// Asks again while a thread has nothing to run.
fn ready(mut ask: impl FnMut() -> Result<(), SpawnError>) {
    for _ in 0..100_000 {
        match ask() {
            Err(SpawnError::Refused(Refusal::NotReady(_))) => {
                thread::sleep(punctual_model::Span::from_us(100));
            }
            asked => return asked.expect("allowed"),
        }
    }
    panic!("it is never ready");
}

#[test]
fn a_guarantee_waits_only_as_it_declares() {
    grown(|root| {
        let spin = || loop {
            thread::yield_now();
            if thread::wait_next_period().is_err() {
                return;
            }
        };
        let none = thread::spawn("none", periodic(20, 500), spin).expect("alone");
        let some = periodic(20, 500).suspension(ms(4), 2);
        let some = thread::spawn("some", some, spin).expect("both");
        let asked = root.block(&none, Wait::within(ms(1))).err();
        let Some(SpawnError::NotAdmitted(NotAdmitted::Undeclared(why))) = asked else {
            panic!("{asked:?}");
        };
        assert!(why.contains("`none`"), "{why}");
        for wait in [Wait::until_woken(), Wait::within(ms(5))] {
            let asked = root.block(&some, wait).err();
            assert!(
                matches!(
                    asked,
                    Some(SpawnError::NotAdmitted(NotAdmitted::Undeclared(_)))
                ),
                "{asked:?}"
            );
        }
        none.cancel();
        some.cancel();
    });
}

#[test]
fn budget_is_lent_to_siblings_and_counted() {
    grown(|root| {
        let kept = (us(4_000), ms(20));
        let a = root.promote("a", Terms::server(ServerKind::Deferrable, kept).priority(3));
        let a = a.expect("room");
        let b = root.promote("b", server(2, (2, 20))).expect("room");
        let inside = b.promote("inside", server(1, (1, 60))).expect("room");
        let to_b = b.recipient();
        a.lend(&to_b, us(3_000)).expect("nobody uses it");
        // What is lent is gone until the next period, which may have come meanwhile.
        let lent = (0..100).map(|_| refused(a.lend(&to_b, us(3_000))));
        assert!(lent.into_iter().any(|lent| lent == "TooLittleBudget"));
        // No siblings: a child, itself, the root.
        for other in [&inside, &a, &root] {
            let asked = refused(a.lend(&other.recipient(), us(100)));
            assert_eq!(asked, "NotASibling");
        }
        // Too much for others: with it, a guarantee below both would be late, whose deadline is as
        // close as admission allows. What was lent before counts no more.
        thread::sleep(ms(200));
        let c = root.promote("c", server(1, (7, 20))).expect("room");
        let tight = (6..80).find_map(|half_ms| {
            let tight = periodic(40, 3_000).deadline(us(half_ms * 500 + 250).as_span());
            c.spawn("tight", tight, thread::block).ok()
        });
        let tight = tight.expect("admitted");
        let asked = a.lend(&to_b, us(1_500)).err();
        assert!(
            matches!(
                asked,
                Some(SpawnError::NotAdmitted(
                    NotAdmitted::Refused(_) | NotAdmitted::NoSafeInstant(_)
                ))
            ),
            "{asked:?}"
        );
        a.lend(&to_b, us(50))
            .expect("that little is for nobody too much");
        // While it counts, its borrower stays.
        let asked = root.demote(&b).err();
        assert!(
            matches!(
                asked,
                Some(SpawnError::NotAdmitted(NotAdmitted::NoSafeInstant(_)))
            ),
            "{asked:?}"
        );
        tight.cancel();
    });
}

#[test]
fn a_slice_is_delegated_bound_and_taken_back_by_those_who_hold_handles() {
    let _alone = alone();
    let flown = trees().start(|| {
        let root = Scheduler::root().expect("the first thread");
        let giver = root.promote("giver", server(3, (4, 10))).expect("room");
        let other = root.promote("other", server(2, (1, 10))).expect("room");
        let count = Arc::new(AtomicU32::new(0));
        let worker = other.spawn("worker", periodic(40, 200), counting(&count));
        let worker = worker.expect("0.2 ms in 40 ms on 1 ms in 10 ms");
        let slice = giver.delegate(&other.recipient(), server(5, (1, 20)));
        let slice = slice.expect("1 ms in 20 ms of 4 ms in 10 ms");
        between_jobs(|| other.bind(&worker, &slice));
        let refusals = [
            // Neither the giver nor anybody else has power over the thread.
            refused(giver.revoke(&worker)),
            refused(giver.bind(&worker, &slice)),
            refused(other.take_back(&slice)),
        ];
        more_jobs(&count, 2);
        between_jobs(|| giver.take_back(&slice));
        more_jobs(&count, 2);
        // Until its period is over.
        thread::sleep(ms(40));
        let gone = refused(other.bind(&worker, &slice));
        let again = refused(giver.delegate(&other.recipient(), server(5, (1, 20))));
        // It has not the budget to end in time, and is abandoned.
        worker.cancel();
        (count.load(Ordering::Relaxed), (refusals, gone, again))
    });
    let (jobs, refusals) = flown.expect("a run").result;
    assert!(jobs >= 4, "{jobs} jobs");
    let (refusals, gone, again) = refusals;
    let expected = ["NotItsOwn", "NotItsChild", "NotItsChild"];
    assert_eq!(refusals, expected);
    assert_eq!(gone, "NoSuchNode");
    assert_eq!(again, "nothing", "its period is over");
}
