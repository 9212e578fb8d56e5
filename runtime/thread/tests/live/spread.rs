//! Work spread over two CPUs: none is lost, none is done twice, and no CPU idles beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use crate::common::{FIXED, allowed_cpus, alone, ms, runtime};
use punctual_linux::{job, this_cpu};
use punctual_thread::spread::{Choice, OfferError, Spread, Spreads, offer};
use punctual_thread::thread::JoinError;
use punctual_thread::{Finished, Runtime, thread};

fn spread(choice: Choice) -> Spread {
    Spread {
        choice,
        workers: 2,
        priority: 10,
        room: 1_000,
    }
}

/// Two CPUs at ordinary priority, the other one without anything else to do once `begins` is set.
fn two_cpus(choice: Choice, begins: &Arc<AtomicBool>) -> Option<Runtime> {
    let begins = Arc::clone(begins);
    let busy = move || {
        while !begins.load(Ordering::SeqCst) {
            job::burn_ns(10_000);
        }
    };
    let [.., other, _last] = allowed_cpus()[..] else {
        println!("skipped: needs two CPUs");
        return None;
    };
    let runtime = runtime(FIXED).real_time(false).spread(spread(choice));
    Some(runtime.and(other, FIXED, busy))
}

fn sum(spreads: &[Spreads], of: impl Fn(&Spreads) -> u64) -> u64 {
    spreads.iter().map(of).sum()
}

#[test]
fn work_that_is_offered_is_done_once_on_one_cpu_or_the_other() {
    const EACH: usize = 300;
    for choice in [Choice::TwoRandom, Choice::EveryQueue] {
        let Some(runtime) = two_cpus(choice, &Arc::new(AtomicBool::new(true))) else {
            return;
        };
        let _alone = alone();
        let done: Arc<Vec<AtomicU32>> = Arc::new((0..EACH).map(|_| AtomicU32::new(0)).collect());
        let times = Arc::clone(&done);
        let finished = runtime.start(move || {
            let offered = (0..EACH).map(|n| {
                let times = Arc::clone(&times);
                let work = offer(move || {
                    let begun = this_cpu();
                    times[n].fetch_add(1, Ordering::SeqCst);
                    job::burn_ns(20_000);
                    if n % 16 == 0 {
                        thread::sleep(ms(1));
                    }
                    // What has begun stays.
                    (n, begun == this_cpu())
                });
                work.expect("there is room")
            });
            let offered: Vec<_> = offered.collect();
            let joined = offered.into_iter().map(|work| work.join());
            joined.collect::<Vec<_>>()
        });
        let Finished {
            result, spreads, ..
        } = finished.expect("a run");
        let all: Vec<_> = (0..EACH).map(|n| Ok((n, true))).collect();
        assert_eq!(result, all, "{choice:?}");
        assert!(done.iter().all(|times| times.load(Ordering::SeqCst) == 1));
        let each = EACH as u64;
        assert_eq!(sum(&spreads, |cpu| cpu.offered), each);
        assert_eq!(
            sum(&spreads, |cpu| cpu.own + cpu.taken),
            each,
            "{spreads:?}"
        );
    }
}

#[test]
fn an_idle_cpu_takes_all_the_work_of_one_that_has_no_time() {
    const ALL: usize = 40;
    for choice in [Choice::TwoRandom, Choice::EveryQueue] {
        let offered = Arc::new(AtomicBool::new(false));
        let Some(runtime) = two_cpus(choice, &offered) else {
            return;
        };
        let _alone = alone();
        let finished = runtime.start(move || {
            let done = Arc::new(AtomicUsize::new(0));
            for _ in 0..ALL {
                let done = Arc::clone(&done);
                let work = offer(move || {
                    job::burn_ns(10_000);
                    done.fetch_add(1, Ordering::SeqCst);
                });
                drop(work.expect("there is room"));
            }
            // More urgent than the workers here, and busy until the others have done everything;
            // without a call of the allocator, in which it could have to wait for them.
            offered.store(true, Ordering::SeqCst);
            while done.load(Ordering::SeqCst) < ALL {
                job::burn_ns(10_000);
            }
        });
        let spreads = finished.expect("a run").spreads;
        let all = ALL as u64;
        let expected = [
            Spreads {
                offered: all,
                own: 0,
                taken: 0,
            },
            Spreads {
                offered: 0,
                own: 0,
                taken: all,
            },
        ];
        assert_eq!(spreads, expected, "{choice:?}");
    }
}

#[test]
fn a_cpu_without_others_does_its_own_work_and_says_when_its_queue_is_full() {
    let _alone = alone();
    let few = Spread {
        room: 2,
        ..spread(Choice::EveryQueue)
    };
    let finished = runtime(FIXED).spread(few).start(|| {
        let waits = [1, 2].map(|n| offer(move || n));
        let third = offer(|| 3);
        let full = matches!(third, Err(OfferError::Full(_)));
        let work = waits.map(|work| work.map(|work| work.join()));
        let panics = offer(|| -> u32 { panic!("in work") }).map(|work| work.join());
        let after = offer(|| 4).map(|work| work.join());
        (work.map(Result::ok), full, panics.ok(), after.ok())
    });
    let finished = finished.expect("a run");
    let (work, full, panics, after) = finished.result;
    assert_eq!(work, [Some(Ok(1)), Some(Ok(2))]);
    assert!(full);
    let said = JoinError::Panicked("in work".to_owned());
    assert_eq!(panics, Some(Err(said)));
    assert_eq!(after, Some(Ok(4)), "the worker goes on");
    let counts = Spreads {
        offered: 4,
        own: 4,
        taken: 0,
    };
    assert_eq!(finished.spreads, [counts]);
}

#[test]
fn nothing_is_offered_where_nothing_is_spread() {
    let _alone = alone();
    let outside = offer(|| 5).map_err(OfferError::into_inner);
    assert_eq!(outside.err().map(|work| work()), Some(5));
    let finished = runtime(FIXED).start(|| offer(|| ()).is_err());
    let finished = finished.expect("a run");
    assert!(finished.result);
    assert_eq!(finished.spreads, []);
}
