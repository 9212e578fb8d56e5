//! Policies that change places while threads work, hold, wait and are lent.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Fallback, Instant, Ns, PolicyKind, ServerKind, Span, ThreadId, Trust};
use punctual_policy::Fifo;
use punctual_thread::sync::Mutex;
use punctual_thread::thread::{self, JoinError, SpawnError};
use punctual_thread::tree::{Scheduler, Terms};
use punctual_thread::{Constraint, NotAdmitted};

use crate::common::{FIXED, alone, fly, free, ms, runtime, until, us};
use crate::tree::{declared, grown, periodic, refused, trees};

const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;

/// Asks again while somebody has a job or waits for a lock.
fn replace(scheduler: &Scheduler, policy: PolicyKind<Ns>) {
    for _ in 0..20_000 {
        match scheduler.replace(policy) {
            Err(SpawnError::HasJob | SpawnError::Contended) => thread::sleep(Span::from_us(100)),
            answer => return answer.expect("admitted"),
        }
    }
    panic!("never between two jobs");
}

/// Works for a while per job, up to 0.2 ms in a build for tests; counts jobs. A wcet close to that
/// keeps a job that overran standing, and the ones behind it, for many periods.
fn working(count: &Arc<AtomicU32>) -> impl FnOnce() + Send + 'static {
    let count = Arc::clone(count);
    move || loop {
        for _ in 0..2_000 {
            core::hint::spin_loop();
        }
        count.fetch_add(1, Ordering::Relaxed);
        if thread::wait_next_period().is_err() {
            return;
        }
    }
}

#[test]
fn policies_change_places_under_load_and_nobody_loses_a_job_or_a_lock() {
    grown(|root| {
        let kept = Terms::server(ServerKind::Deferrable, (us(5_000), ms(10)));
        let net = root.promote("net", kept.priority(3)).expect("room");
        let jobs = Arc::new(AtomicU32::new(0));
        let short = net.spawn("short", periodic(20, 600), working(&jobs));
        let tight = periodic(40, 600).deadline(ms(18)).priority(7);
        let tight = net.spawn("tight", tight, working(&jobs));
        let (short, tight) = (short.expect("admitted"), tight.expect("admitted"));
        // Background work holds a lock whenever it executes, and another of its kind waits for it.
        let shared = Arc::new(Mutex::new((0_u64, 0_u64)));
        let over = Arc::new(AtomicBool::new(false));
        let holds = |name: &str| {
            let (shared, over) = (Arc::clone(&shared), Arc::clone(&over));
            net.spawn(name, free(2), move || {
                let mut turns = 0_u32;
                while !over.load(Ordering::Relaxed) {
                    let mut both = shared.lock().expect("here");
                    both.0 += 1;
                    // Others come while it is held.
                    thread::sleep(Span::from_us(150));
                    both.1 += 1;
                    assert_eq!(both.0, both.1, "one at a time");
                    turns += 1;
                }
                turns
            })
        };
        let (one, two) = (holds("one").expect("room"), holds("two").expect("room"));
        let mut held = 0_u32;
        for round in 0..60 {
            for policy in [EDF, FIXED] {
                held += u32::from(shared.try_lock().is_err());
                replace(&net, policy);
                replace(&root, policy);
            }
            if round % 10 == 0 {
                thread::sleep(ms(20));
            }
        }
        over.store(true, Ordering::Relaxed);
        let turns = [one, two].map(|thread| thread.join().expect("it held its lock alone"));
        assert!(
            held > 10 && turns.iter().all(|turns| *turns > 5),
            "{held}, {turns:?}"
        );
        assert!(jobs.load(Ordering::Relaxed) >= 8, "{jobs:?}");
        short.cancel();
        tight.cancel();
    });
}

#[test]
fn borrowed_budget_and_its_terms_stay_across_a_replacement() {
    grown(|root| {
        let kept = |priority| {
            let terms = Terms::server(ServerKind::Deferrable, (us(2_000), ms(40)));
            terms.priority(priority)
        };
        let lender = root.promote("lender", kept(3)).expect("room");
        let net = root.promote("net", kept(2)).expect("room");
        lender
            .lend(&net.recipient(), us(1_500))
            .expect("nobody uses it");
        // What is lent counts on: the order above both stays, as loans want it.
        let asked = root.replace(EDF).err();
        assert!(
            matches!(&asked, Some(SpawnError::NotAdmitted(NotAdmitted::NoSafeInstant(why))) if why.contains("lent")),
            "{asked:?}"
        );
        for policy in [EDF, FIXED, EDF] {
            replace(&net, policy);
            replace(&lender, policy);
        }
        // Until the loan is over, and then it is possible.
        for _ in 0..4_000 {
            match root.replace(EDF) {
                Err(
                    SpawnError::NotAdmitted(NotAdmitted::NoSafeInstant(_)) | SpawnError::HasJob,
                ) => {
                    thread::sleep(ms(5));
                }
                answer => return answer.expect("admitted"),
            }
        }
        panic!("the loan never ends");
    });
}

#[test]
fn a_policy_under_which_somebody_would_be_late_is_refused_and_nothing_has_changed() {
    fly(runtime(EDF).promotions(2), || {
        let root = Scheduler::root().expect("the first thread");
        let waits = || while thread::wait_next_period().is_ok() {};
        // 93 % under deadlines; under priorities the longer one takes 16 ms.
        let short = Constraint::periodic(ms(10), us(5_000)).priority(2);
        let short = thread::spawn("short", short, waits).expect("alone");
        let long = Constraint::periodic(ms(14), us(6_000)).priority(1);
        let long = thread::spawn("long", long, waits).expect("both");
        let before = thread::verdict().expect("in a run");
        let asked = root.replace(FIXED).err();
        let Some(SpawnError::NotAdmitted(NotAdmitted::Refused(verdict))) = asked else {
            panic!("{asked:?}");
        };
        assert!(verdict.refusals[0].witness.is_some(), "{verdict:?}");
        let slots = PolicyKind::Tdm {
            frame: ms(10),
            scheduling: Span::ZERO,
        };
        assert_eq!(refused(root.replace(slots)), "NotReplaceable");
        assert_eq!(thread::verdict().expect("in a run"), before);
        // Without the long one it fits.
        long.cancel();
        thread::sleep(ms(60));
        replace(&root, FIXED);
        assert_ne!(thread::verdict().expect("in a run"), before);
        short.cancel();
    });
}

#[test]
fn a_policy_knows_hundreds_of_places_before_anybody_goes_on() {
    fly(runtime(FIXED).threads(500).promotions(1), || {
        let root = Scheduler::root().expect("the first thread");
        let net = root.promote("net", Terms::shared()).expect("room");
        let done = Arc::new(AtomicU32::new(0));
        let ready = |_| {
            let done = Arc::clone(&done);
            let body = move || {
                done.fetch_add(1, Ordering::Relaxed);
            };
            net.spawn("ready", free(1), body).expect("room")
        };
        let threads: Vec<_> = (0..400).map(ready).collect();
        // If a single one were not installed, the next would find it on its way.
        for _ in 0..20 {
            for policy in [EDF, PolicyKind::RoundRobin { timeslice: ms(1) }, FIXED] {
                assert_eq!(refused(net.replace(policy)), "nothing");
            }
            for preemptive in [false, true] {
                let policy = PolicyKind::FixedPriority { preemptive };
                assert_eq!(refused(root.replace(policy)), "nothing");
            }
        }
        for thread in threads {
            thread.join().expect("nobody is lost");
        }
        assert_eq!(done.load(Ordering::Relaxed), 400);
    });
}

/// Orders by arrival, and panics at the pick of this number.
struct Fragile {
    order: Fifo,
    picks: Arc<AtomicU32>,
    breaks_at: u32,
}

impl Policy for Fragile {
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.order.wake(thread, attributes);
    }
    fn block(&mut self, thread: ThreadId) {
        self.order.block(thread);
    }
    fn pick(&mut self, now: Instant) -> Pick {
        let pick = self.picks.fetch_add(1, Ordering::Relaxed);
        if pick >= self.breaks_at {
            // Without a message: nothing is printed on its supply.
            resume_unwind(Box::new("it breaks"));
        }
        self.order.pick(now)
    }
}

#[test]
fn a_program_brings_a_policy_for_its_child_which_falls_back_when_that_panics() {
    for (breaks_at, fewest) in [(u32::MAX, 8), (3, 3)] {
        let picks = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&picks);
        let mut guest = declared("guest", 3, (8, 20));
        guest.trust = Trust::OwnTime;
        guest.fallback = Some(Fallback {
            policy: EDF,
            after: 3,
        });
        let runtime = runtime(FIXED)
            .tree(vec![guest])
            .policy("guest", move |n| Fragile {
                order: Fifo::new(n),
                picks: count,
                breaks_at,
            });
        let asked = Arc::clone(&picks);
        let jobs = fly(runtime, move || {
            let root = Scheduler::root().expect("the first thread");
            let guest = root.child("guest").expect("it started with it");
            let (own, beside) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
            let inside = guest.spawn("inside", periodic(60, 2_000), working(&own));
            let outside = thread::spawn("outside", periodic(20, 2_000), working(&beside));
            let (inside, outside) = (inside.expect("admitted"), outside.expect("admitted"));
            until(|| {
                let enough = |jobs: &AtomicU32, fewest| jobs.load(Ordering::Relaxed) >= fewest;
                enough(&own, 6) && enough(&beside, 20) && enough(&asked, fewest)
            });
            for thread in [inside, outside] {
                thread.cancel();
                let ended = thread.join();
                assert!(
                    matches!(ended, Ok(()) | Err(JoinError::Cancelled)),
                    "{ended:?}"
                );
            }
            [own, beside].map(|jobs| jobs.load(Ordering::Relaxed))
        });
        let [own, beside] = jobs.result;
        let picks = picks.load(Ordering::Relaxed);
        assert!(own >= 6 && beside >= 20, "{own}, {beside}");
        assert!(
            picks >= fewest && (breaks_at == u32::MAX || picks == 4),
            "{picks}"
        );
    }
}

/// As [`Fragile`], and counts how many of its kind there are.
struct Counted(Fragile, Arc<AtomicU32>);

impl Counted {
    fn new(
        threads: usize,
        breaks_at: u32,
        (picks, alive): &(Arc<AtomicU32>, Arc<AtomicU32>),
    ) -> Counted {
        alive.fetch_add(1, Ordering::Relaxed);
        let order = Fifo::new(threads);
        let picks = Arc::clone(picks);
        Counted(
            Fragile {
                order,
                picks,
                breaks_at,
            },
            Arc::clone(alive),
        )
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Policy for Counted {
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.0.wake(thread, attributes);
    }
    fn block(&mut self, thread: ThreadId) {
        self.0.block(thread);
    }
    fn pick(&mut self, now: Instant) -> Pick {
        self.0.pick(now)
    }
}

/// Asks again while somebody has a job.
fn replace_with<P: Policy + Send + 'static>(
    scheduler: &Scheduler,
    claims: PolicyKind<Ns>,
    make: impl Fn(usize) -> P,
) {
    for _ in 0..20_000 {
        match scheduler.replace_with(claims, &make) {
            Err(SpawnError::HasJob) => thread::sleep(Span::from_us(100)),
            answer => return answer.expect("admitted"),
        }
    }
    panic!("never between two jobs");
}

/// The counts of one policy of a program's own: its decisions, and how many of it there are.
fn book() -> (Arc<AtomicU32>, Arc<AtomicU32>) {
    Default::default()
}

#[test]
fn a_policy_of_the_programs_own_is_followed_by_others_also_when_it_has_failed() {
    let (first, second) = (book(), book());
    let mut guest = declared("guest", 3, (8, 20));
    guest.trust = Trust::OwnTime;
    let start = first.clone();
    let runtime = runtime(FIXED)
        .tree(vec![guest, declared("inline", 2, (1, 20))])
        .policy("guest", move |n| Counted::new(n, 3, &start));
    let (one, other) = (first.clone(), second.clone());
    let _ = fly(runtime, move || {
        let root = Scheduler::root().expect("the first thread");
        let guest = root.child("guest").expect("it started with it");
        let own = Arc::new(AtomicU32::new(0));
        let inside = guest
            .spawn("inside", periodic(60, 2_000), working(&own))
            .expect("admitted");
        // It panics, and nobody in there runs any more; another of the same claim comes at once.
        until(|| one.0.load(Ordering::Relaxed) > 3);
        let before = own.load(Ordering::Relaxed);
        guest
            .replace_with(FIXED, |n| Counted::new(n, u32::MAX, &other))
            .expect("the same order");
        until(|| own.load(Ordering::Relaxed) > before + 3);
        // Back and forth, also with what this library brings, which decides on that supply, too.
        for round in 0..20 {
            replace(&guest, EDF);
            let seen = own.load(Ordering::Relaxed);
            until(|| own.load(Ordering::Relaxed) > seen);
            let decided = other.0.load(Ordering::Relaxed);
            until(|| own.load(Ordering::Relaxed) > seen + 1);
            assert_eq!(other.0.load(Ordering::Relaxed), decided, "round {round}");
            replace_with(&guest, FIXED, |n| Counted::new(n, u32::MAX, &other));
            until(|| other.0.load(Ordering::Relaxed) > decided);
        }
        // At most the one that decides, and the one before.
        assert!(other.1.load(Ordering::Relaxed) <= 2, "{other:?}");
        inside.cancel();
        let _ = inside.join();
    });
    let left = [first, second].map(|(_, alive)| alive.load(Ordering::Relaxed));
    assert_eq!(left, [0, 0], "all are freed");
}

#[test]
fn a_policy_of_the_programs_own_that_is_refused_changes_nothing() {
    let (first, second) = (book(), book());
    let mut guest = declared("guest", 3, (8, 20));
    (guest.trust, guest.policy) = (Trust::OwnTime, EDF);
    let start = first.clone();
    let runtime = runtime(FIXED)
        .tree(vec![guest, declared("inline", 2, (1, 20))])
        .policy("guest", move |n| Counted::new(n, u32::MAX, &start));
    let (one, other) = (first.clone(), second.clone());
    let _ = fly(runtime, move || {
        let root = Scheduler::root().expect("the first thread");
        let [guest, inline] = ["guest", "inline"].map(|name| root.child(name).expect("there"));
        let own = Arc::new(AtomicU32::new(0));
        // First come, first served, the long one keeps the short one too long.
        let short = periodic(60, 500).deadline(ms(24));
        let short = guest
            .spawn("short", short, working(&own))
            .expect("admitted");
        let long = guest
            .spawn("long", periodic(400, 6_000), working(&own))
            .expect("admitted");
        let before = thread::verdict().expect("in a run");
        let fifo = |n| Counted::new(n, u32::MAX, &other);
        let asked = guest.replace_with(PolicyKind::Fifo, fifo).err();
        assert!(
            matches!(
                &asked,
                Some(SpawnError::NotAdmitted(NotAdmitted::Refused(_)))
            ),
            "{asked:?}"
        );
        let slots = PolicyKind::Tdm {
            frame: ms(10),
            scheduling: Span::ZERO,
        };
        assert_eq!(refused(guest.replace_with(slots, fifo)), "NotReplaceable");
        assert_eq!(refused(inline.replace_with(EDF, fifo)), "NotReplaceable");
        assert_eq!(refused(root.replace_with(EDF, fifo)), "NotReplaceable");
        assert_eq!(thread::verdict().expect("in a run"), before);
        let decided = one.0.load(Ordering::Relaxed);
        until(|| one.0.load(Ordering::Relaxed) > decided + 3);
        assert_eq!(other.0.load(Ordering::Relaxed), 0, "nobody asks it");
        assert_eq!(other.1.load(Ordering::Relaxed), 0, "each is freed at once");
        for thread in [short, long] {
            thread.cancel();
            let _ = thread.join();
        }
    });
}

#[test]
fn a_policy_without_its_scheduler_starts_no_run() {
    let _alone = alone();
    let runtime = trees().tree(vec![declared("inside", 3, (2, 20))]);
    let refused = runtime
        .policy("inside", Fifo::new)
        .start(|| ())
        .expect_err("it is inline");
    assert!(refused.to_string().contains("own supply"), "{refused}");
}

#[test]
fn a_scheduler_with_two_policies_starts_no_run() {
    let _alone = alone();
    let mut guest = declared("guest", 3, (2, 20));
    guest.trust = Trust::OwnTime;
    let refused = trees()
        .tree(vec![guest])
        .policy("guest", Fifo::new)
        .policy("guest", Fifo::new)
        .start(|| ())
        .expect_err("one of them would not decide");
    assert!(
        refused.to_string().contains("a policy of the program's"),
        "{refused}"
    );
}

#[test]
fn a_scheduler_in_the_place_of_one_with_another_policy_orders_by_priority() {
    grown(|root| {
        // All places have been used by one that was first come, first served.
        let terms = || Terms::shared().priority(3);
        let mut was = Vec::new();
        while let Ok(scheduler) = root.promote("was", terms()) {
            replace(&scheduler, PolicyKind::Fifo);
            was.push(scheduler);
        }
        assert!(!was.is_empty());
        for scheduler in was {
            root.demote(&scheduler).expect("nobody there");
        }
        let now = root.promote("now", terms()).expect("room");
        let (begun, seen) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let high = {
            let (begun, seen) = (Arc::clone(&begun), Arc::clone(&seen));
            now.spawn("high", periodic(10, 300).priority(9), move || {
                loop {
                    seen.fetch_or(begun.load(Ordering::SeqCst), Ordering::SeqCst);
                    if thread::wait_next_period().is_err() {
                        return;
                    }
                }
            })
        };
        let low = {
            let (begun, seen) = (Arc::clone(&begun), Arc::clone(&seen));
            now.spawn("low", periodic(400, 60_000).priority(1), move || {
                begun.store(true, Ordering::SeqCst);
                let until = thread::now().map(|now| now.saturating_add(ms(40)));
                while !seen.load(Ordering::SeqCst) && thread::now() < until {
                    core::hint::spin_loop();
                }
                begun.store(false, Ordering::SeqCst);
            })
        };
        let (low, high) = (low.expect("admitted"), high.expect("admitted"));
        assert_eq!(low.join(), Ok(()));
        high.cancel();
        assert!(
            seen.load(Ordering::SeqCst),
            "it came while the other worked"
        );
    });
}
