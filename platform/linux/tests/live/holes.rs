//! Time taken from the midst of a body: it is missing time, and no overrun of the body.
//!
//! `HOLES=1000` makes as many holes as that; a minute then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Log, alone, input, periodic, test_cpu, until_stopped};
use punctual_generate::Random;
use punctual_kern::TraceEvent;
use punctual_linux::{Mode, Outcome, Status, TakingThread, job, run, try_kernel};

/// The work of a body, and its budget, which pays for the entries around it, too.
const BODY_NS: u64 = 300_000;
const WCET_US: u64 = if cfg!(debug_assertions) { 1_000 } else { 500 };
const PERIOD_US: u64 = 12_000;
const INJECTOR: &str = "injector";
/// How long a hole is.
const HOLE_US: (u64, u64) = (100, 5_000);

fn holes() -> u64 {
    let asked = std::env::var("HOLES").ok().and_then(|n| n.parse().ok());
    asked.unwrap_or(60)
}

/// Executes for so long by the kernel's account of the calling kernel thread, which counts no other
/// thread. Between two looks at it lies some time without a call.
pub(crate) fn compute(ns: u64) {
    let end = executed_ns() + ns;
    while executed_ns() < end {
        for round in 0..1_000_u64 {
            std::hint::black_box(round);
        }
    }
}

fn executed_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes the structure.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(done, 0);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).expect("it counts up")
}

/// One job: its charge, the time taken from it, and whether it was said to have overrun.
#[derive(Clone, Copy, Debug, Default)]
struct Job {
    charged_ns: u64,
    taken_ns: u64,
    overran: bool,
}

/// The jobs of the only task, in order.
fn jobs(outcome: &Outcome<Log>) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut at = |job: u64, change: &dyn Fn(&mut Job)| {
        let index = usize::try_from(job).expect("few jobs");
        if jobs.len() <= index {
            jobs.resize(index + 1, Job::default());
        }
        change(&mut jobs[index]);
    };
    for (_, event) in &outcome.cpus[0].sink.traces {
        match *event {
            TraceEvent::Completed { job, received, .. } => {
                let ns = outcome.frequency.ns_up(received.ticks());
                at(job, &|job| job.charged_ns = ns);
            }
            TraceEvent::Overran { job, .. } => at(job, &|job| job.overran = true),
            _ => {}
        }
    }
    jobs
}

/// At least 95 % of the time that was taken is charged to nobody. Of the jobs that were hit one in
/// a hundred is called an overrun at most, or one. The machine takes from jobs by itself, too:
/// those that were not hit tell how much.
fn assert_charged_what_was_executed(jobs: &[Job]) {
    let (hit, spared): (Vec<Job>, Vec<Job>) = jobs.iter().partition(|job| job.taken_ns > 0);
    let mut charged: Vec<u64> = spared.iter().map(|job| job.charged_ns).collect();
    charged.sort_unstable();
    let usual = charged[charged.len() / 2];
    let beyond = |jobs: &[Job]| -> u64 {
        let beyond = jobs.iter().map(|job| job.charged_ns.saturating_sub(usual));
        beyond.sum()
    };
    let overran = |jobs: &[Job]| jobs.iter().filter(|job| job.overran).count();
    let taken: u64 = hit.iter().map(|job| job.taken_ns).sum();
    let said = format!(
        "{} jobs hit: {taken} ns taken, {} ns beyond the usual {usual} ns charged, {} overran; {} \
         spared: {} ns beyond it charged, {} overran",
        hit.len(),
        beyond(&hit),
        overran(&hit),
        spared.len(),
        beyond(&spared),
        overran(&spared)
    );
    eprintln!("{said}");
    let by_itself = beyond(&spared) * hit.len() as u64 / spared.len() as u64;
    assert!(beyond(&hit) <= by_itself + taken / 20, "{said}");
    assert!(
        overran(&hit) <= overran(&spared) + (hit.len() / 100).max(1),
        "{said}"
    );
}

/// When the body begins the next time, in nanoseconds since `begun`, and what was taken from the
/// present job.
struct Between {
    begun: Instant,
    next_ns: AtomicU64,
    inside: AtomicBool,
    taken_ns: AtomicU64,
    over: AtomicBool,
}

/// Waits on the CPU of the test above the run, and takes it away in the midst of every other body.
fn take_away(shared: &Between) {
    let mut random = Random::new(7);
    let (mut hit, mut is_turn) = (0, false);
    while !shared.over.load(Ordering::Relaxed) {
        let next = shared.next_ns.load(Ordering::Relaxed);
        if next == hit {
            thread::sleep(Duration::from_millis(1));
            continue;
        }
        hit = next;
        is_turn = !is_turn;
        if !is_turn {
            continue;
        }
        let at = Duration::from_nanos(next + random.within(20_000, BODY_NS));
        thread::sleep(at.saturating_sub(shared.begun.elapsed()));
        if !shared.inside.load(Ordering::Relaxed) {
            continue;
        }
        let begun = Instant::now();
        let hole = Duration::from_micros(random.within(HOLE_US.0, HOLE_US.1));
        while begun.elapsed() < hole {
            std::hint::spin_loop();
        }
        shared.taken_ns.store(ns(begun), Ordering::Relaxed);
    }
}

fn ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).expect("a short time")
}

#[test]
fn what_a_more_urgent_thread_takes_from_a_body_is_missing_and_no_overrun() {
    let _alone = alone();
    let holes = holes();
    let shared = Arc::new(Between {
        begun: Instant::now(),
        next_ns: AtomicU64::new(0),
        inside: AtomicBool::new(false),
        taken_ns: AtomicU64::new(0),
        over: AtomicBool::new(false),
    });
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let of_injector = Arc::clone(&shared);
    let injector = thread::Builder::new().name(INJECTOR.into()).spawn(move || {
        let is_above = above_everybody_here();
        if is_above {
            take_away(&of_injector);
        }
        is_above
    });
    let injector = injector.expect("a thread");
    let taken: Arc<[AtomicU64]> = (0..6 * holes).map(|_| AtomicU64::new(0)).collect();
    let (of_jobs, of_body) = (Arc::clone(&taken), Arc::clone(&shared));
    let body = periodic("body", 1, PERIOD_US, WCET_US, move |info| {
        of_body.taken_ns.store(0, Ordering::Relaxed);
        let next = ns(of_body.begun) + PERIOD_US * 1_000;
        of_body.next_ns.store(next, Ordering::Relaxed);
        of_body.inside.store(true, Ordering::Relaxed);
        compute(BODY_NS);
        of_body.inside.store(false, Ordering::Relaxed);
        let index = usize::try_from(info.index).expect("few jobs");
        let taken_ns = of_body.taken_ns.load(Ordering::Relaxed);
        of_jobs[index].store(taken_ns, Ordering::Relaxed);
        let hit = of_jobs.iter().filter(|ns| ns.load(Ordering::Relaxed) > 0);
        if hit.count() as u64 >= holes || index + 1 == of_jobs.len() {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let log = Log::with_room(1_000_000);
    let outcome = run(vec![input(vec![body], 10_000, log)], &options).expect("a run");
    shared.over.store(true, Ordering::Relaxed);
    let is_above = injector.join().expect("it does not panic");
    if !is_above || outcome.mode != Mode::RealTime {
        eprintln!("skipped: this user gets no real-time priority");
        return;
    }
    let mut jobs = jobs(&outcome);
    for (job, taken) in jobs.iter_mut().zip(taken.iter()) {
        job.taken_ns = taken.load(Ordering::Relaxed);
    }
    assert!(jobs.len() as u64 >= holes, "{}", jobs.len());
    assert_charged_what_was_executed(&jobs);
    assert_named(&outcome.cpus[0].takers, &taken);
}

/// Where the kernel tells who had the CPU, most of what was taken is of the injector.
fn assert_named(takers: &[TakingThread], taken: &[AtomicU64]) {
    if takers.is_empty() {
        eprintln!("skipped: the kernel does not tell this user who had the CPU");
        return;
    }
    let name = format!("{INJECTOR} of ");
    let injected = takers.iter().filter(|taker| taker.name.starts_with(&name));
    let named: u64 = injected.map(|taker| taker.ns).sum();
    let taken: u64 = taken.iter().map(|ns| ns.load(Ordering::Relaxed)).sum();
    assert!(named >= taken / 2, "{named} of {taken} ns: {takers:?}");
}

/// The calling thread stands above the threads of a run, on their CPU; `false`: it may not.
pub(crate) fn above_everybody_here() -> bool {
    // SAFETY: all zeros is an empty set.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    let parameter = libc::sched_param { sched_priority: 95 };
    // SAFETY: both read what they are given, and concern the calling thread.
    unsafe {
        libc::CPU_SET(test_cpu() as usize, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set) == 0
            && libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) == 0
    }
}

/// A process of its own that stops this one so often, for 1 to 5 ms each, and lets it go on.
fn stopper(times: u64) -> std::process::Child {
    let script = format!(
        "n=0; while [ $n -lt {times} ]; do n=$((n + 1)); \
         kill -STOP $PPID; sleep 0.00$((n % 5 + 1)); kill -CONT $PPID; sleep 0.01$((n % 9)); done"
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).spawn().expect("a shell")
}

/// Bodies of 5 ms while `beside` runs: how many jobs, the time beyond the usual that they were
/// charged, how many overran, and what was missing.
fn bodies_beside(beside: impl FnOnce() + Send + 'static) -> (u64, u64, u64, u64) {
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let ends = thread::spawn(move || {
        beside();
        stop.store(true, Ordering::Relaxed);
    });
    let body = periodic("body", 1, PERIOD_US, 8_000, |_| compute(5_000_000));
    let log = Log::with_room(1_000_000);
    let outcome = run(vec![input(vec![body], 10_000, log)], &options).expect("a run");
    ends.join().expect("it does not panic");
    let jobs = jobs(&outcome);
    assert!(!jobs.is_empty(), "others had the CPU: {outcome:?}");
    let mut charged: Vec<u64> = jobs.iter().map(|job| job.charged_ns).collect();
    charged.sort_unstable();
    let usual = charged[charged.len() / 4];
    let beyond = charged.iter().map(|ns| ns.saturating_sub(usual)).sum();
    let overran = jobs.iter().filter(|job| job.overran).count() as u64;
    let missing = outcome.cpus[0].counters.missing_ns;
    (jobs.len() as u64, beyond, overran, missing)
}

#[test]
fn a_process_that_was_stopped_did_not_overrun() {
    let _alone = alone();
    // The machine takes from bodies by itself: so much from each when nobody stops it, before
    // and after.
    let spared = || bodies_beside(|| thread::sleep(Duration::from_secs(1)));
    let before = spared();
    let (jobs, charged, overruns, missing) = bodies_beside(|| {
        let ended = stopper(holes()).wait().expect("a child");
        assert!(ended.success());
    });
    let after = spared();
    let per_job = |ns: u64, of: u64| (ns / of).max(50_000);
    let by_itself = per_job(before.1, before.0).max(per_job(after.1, after.0)) * jobs;
    let overran = before.2.max(after.2);
    let of = before.0.min(after.0);
    let said = format!(
        "{jobs} jobs: {missing} ns missing, {charged} ns beyond the usual charged, {overruns} \
         overran; jobs, ns and overruns without a stop, before: {before:?}, after: {after:?}"
    );
    eprintln!("{said}");
    // Some stops meet a CPU that sleeps.
    assert!(missing > holes() * 300_000, "{said}");
    assert!(charged <= missing / 20 + 3 * by_itself, "{said}");
    assert!(overruns <= 3 * (overran * jobs / of).max(1), "{said}");
}

/// Lets this process go on whenever it was stopped, until it is killed or for a minute.
fn waker() -> std::process::Child {
    let script = "n=0; while [ $n -lt 6000 ]; do n=$((n + 1)); sleep 0.01; kill -CONT $PPID; done";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).spawn().expect("a shell")
}

#[test]
fn work_that_begins_after_a_hole_is_executed_once() {
    const WORK_NS: u64 = 1_000_000;
    let _alone = alone();
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let taken = Arc::new(AtomicU64::new(0));
    let of_body = Arc::clone(&taken);
    let mut waker = waker();
    let body = periodic("body", 1, 50_000, 40_000, move |info| {
        let begun = Instant::now();
        // SAFETY: the waker lets this process go on.
        unsafe { libc::raise(libc::SIGSTOP) };
        of_body.fetch_add(ns(begun), Ordering::Relaxed);
        job::burn_ns(WORK_NS);
        stop.store(info.index >= 9, Ordering::Relaxed);
    });
    let log = Log::with_room(100_000);
    let outcome = run(vec![input(vec![body], 10_000, log)], &options);
    waker.kill().expect("it runs");
    waker.wait().expect("it ends");
    let charged: Vec<u64> = jobs(&outcome.expect("a run"))
        .iter()
        .map(|job| job.charged_ns)
        .collect();
    let taken = taken.load(Ordering::Relaxed);
    eprintln!("{taken} ns taken, charged {charged:?}");
    let beyond: u64 = charged.iter().map(|ns| ns.saturating_sub(WORK_NS)).sum();
    assert!(beyond < taken / 2, "{taken} ns taken, charged {charged:?}");
}

/// A hypervisor leaves no trace but the clock's: here the body passes the time that it takes.
#[test]
fn a_body_that_burns_alone_is_not_charged_for_what_passes_before_it_looks() {
    const WORK_NS: u64 = 1_000_000;
    const HOLE: Duration = Duration::from_millis(3);
    let _alone = alone();
    let charged = |burn: fn(u64)| {
        let options = until_stopped();
        let stop = Arc::clone(&options.stop);
        let body = periodic("body", 1, 50_000, 40_000, move |info| {
            let begun = Instant::now();
            while begun.elapsed() < HOLE {}
            burn(WORK_NS);
            stop.store(info.index >= 5, Ordering::Relaxed);
        });
        let log = Log::with_room(100_000);
        let outcome = run(vec![input(vec![body], 10_000, log)], &options);
        let jobs = jobs(&outcome.expect("a run"));
        jobs.iter().map(|job| job.charged_ns).collect::<Vec<u64>>()
    };
    // Others may take time from a job's hole, and from its work: one job of each shows it.
    let alone = charged(job::burn_alone_ns).into_iter().min().expect("jobs");
    let with_more = charged(job::burn_ns).into_iter().max().expect("jobs");
    eprintln!("{alone} ns alone, {with_more} ns with more");
    assert!((WORK_NS..3 * WORK_NS).contains(&alone), "{alone} ns");
    assert!(with_more >= 4 * WORK_NS, "{with_more} ns");
}

/// A run relies on that. The kernel would take in every second; the machine below may stand still,
/// too, but hardly in each of eight trials.
#[test]
fn the_kernel_takes_nothing_at_once_from_a_cpu_that_sleeps_a_sixteenth() {
    let _alone = alone();
    let share_holds = || {
        let tried = try_kernel(test_cpu());
        tried.iter().for_each(|probe| eprintln!("{probe:?}"));
        let share = tried.last().expect("three trials");
        assert_eq!(share.name, "share-tried");
        share.status == Status::Ok || share.value.starts_with("not tried")
    };
    assert!((0..8).any(|_| share_holds()));
}
