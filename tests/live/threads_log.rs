//! Runs of threads that are created while they run, recorded: the same proof as for a file's run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual::sync::{Condvar, Mutex, Queue, Semaphore};
use punctual::thread::{self, SpawnError};
use punctual::{Constraint, Ns, PolicyKind, Recorded, RunReport, Runtime, Span, Work};
use punctual::{System, record, replay, rules, trace};

const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

/// Host CPUs that may be used.
pub(crate) fn allowed() -> Vec<u32> {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let mut cpus = Vec::new();
    for part in line.expect("a list").trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bound = |text: &str| text.parse::<u32>().expect("a number");
        cpus.extend(bound(first)..=bound(last));
    }
    cpus
}

fn runtime(policy: PolicyKind<Ns>) -> Runtime {
    let cpu = *allowed().last().expect("one at least");
    let runtime = Runtime::on(cpu, policy).terms(System::default().machine);
    runtime.main(Constraint::aperiodic(5)).threads(32)
}

/// Obeys every rule, gives itself again, and survives its written form.
pub(crate) fn prove<T>(recorded: &Recorded<T>) {
    let log = &recorded.log;
    let violations: Vec<String> = rules::check(log).iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{violations:#?}");
    let stats = replay(log).expect("the same again");
    assert!(stats.events > 0 && stats.decisions >= stats.events);
    let mut text = Vec::new();
    trace::text::write(log, &mut text).expect("memory");
    let back = trace::text::read(&mut text.as_slice()).expect("what was written");
    assert!(&back == log, "what is read is what was written");
}

fn ms(n: u64) -> Span<Ns> {
    Span::from_ms(n)
}

/// Threads with and without guarantees that share what can be shared, for a tenth of a second.
fn mixture() -> Result<u64, SpawnError> {
    let total = Arc::new(Mutex::new(0_u64));
    let queue = Arc::new(Queue::new(4));
    let permits = Arc::new(Semaphore::new(1));
    let told = Arc::new(Condvar::new());
    let mut periodic = Vec::new();
    for (name, period, priority) in [("fast", 2, 30), ("slow", 5, 20)] {
        let (total, queue) = (Arc::clone(&total), Arc::clone(&queue));
        let every = Constraint::periodic(ms(period), Work::from_us(400)).priority(priority);
        let jobs = 100 / period;
        periodic.push(thread::spawn(name, every, move || {
            for job in 0..jobs {
                *total.lock().expect("here") += 1;
                queue.send(job).expect("here");
                thread::wait_next_period().expect("periodic");
            }
        })?);
    }
    let mut workers = Vec::new();
    for _ in 0..3 {
        let (total, queue) = (Arc::clone(&total), Arc::clone(&queue));
        let (permits, told) = (Arc::clone(&permits), Arc::clone(&told));
        let worker = thread::spawn("worker", Constraint::aperiodic(1), move || {
            while queue.receive().is_ok() {
                permits.acquire().expect("here");
                let mut held = total.lock().expect("here");
                *held += 1;
                thread::yield_now();
                drop(held);
                told.notify_all().expect("here");
                permits.release().expect("here");
            }
        });
        workers.push(worker?);
    }
    for thread in periodic {
        thread.join().expect("its end");
    }
    // 20 jobs of `slow`, 50 of `fast`: each counted once by its thread and once by a worker.
    let mut held = total.lock().expect("here");
    while *held < 140 {
        held = told.wait(held).expect("here");
    }
    let sum = *held;
    drop(held);
    for worker in &workers {
        worker.cancel();
    }
    for short in 0..40 {
        let quick = thread::spawn("short-lived", Constraint::aperiodic(short % 7), || ())?;
        quick.join().expect("its end");
    }
    Ok(sum)
}

#[test]
fn a_run_of_threads_is_recorded_checked_replayed_and_reported_by_name() {
    let _alone = crate::alone();
    for policy in [FIXED, PolicyKind::EarliestDeadlineFirst] {
        let recorded = record(runtime(policy), 16 << 20, mixture).expect("a run");
        assert_eq!(recorded.result, Some(Ok(140)));
        prove(&recorded);
        let report = RunReport::new(&recorded.log);
        let jobs = |name: &str| {
            let task = report.tasks.iter().find(|task| task.name == name);
            let task = task.unwrap_or_else(|| panic!("no {name} in {report}"));
            (task.jobs, task.machine_bound_ns)
        };
        let (fast, slow) = (jobs("fast"), jobs("slow"));
        // What was released while the last one ran is a job too.
        assert!(fast.0 >= 50 && slow.0 >= 20, "{report}");
        assert!(fast.1.is_some() && slow.1.is_some(), "promised: {report}");
        assert_eq!((jobs("first"), jobs("worker")), ((1, None), (3, None)));
        assert_eq!(jobs("short-lived").0, 40, "one task for all of a name");
        if policy == FIXED {
            assert_eq!((fast.1, slow.1), (Some(400_000), Some(800_000)));
        }
    }
}

#[test]
fn a_first_thread_that_panics_leaves_its_log() {
    let _alone = crate::alone();
    let recorded = record(runtime(FIXED), 1 << 20, || {
        let child = thread::spawn("child", Constraint::aperiodic(9), || 7).expect("room");
        // On purpose: this is the panic that the log is to tell.
        panic!("on purpose, after {:?}", child.join());
    });
    let recorded = recorded.expect("a run");
    assert_eq!(recorded.result, None::<()>);
    prove(&recorded);
    let faults = &recorded.log.header.faults;
    assert!(
        faults
            .iter()
            .any(|f| f.starts_with("first panicked") && f.contains("on purpose, after Ok(7)")),
        "{faults:?}"
    );
}

#[test]
fn a_full_log_says_from_when_on_it_is_missing() {
    let _alone = crate::alone();
    let recorded = record(runtime(FIXED), 16 << 10, || {
        for _ in 0..1_000 {
            let child = thread::spawn("child", Constraint::aperiodic(9), || ()).expect("room");
            child.join().expect("its end");
        }
    });
    let recorded = recorded.expect("a run");
    assert!(recorded.result.is_some() && recorded.log.is_cut());
    prove(&recorded);
    assert_eq!(RunReport::new(&recorded.log).exit_code(), 3);
}

#[test]
fn both_cpus_of_a_run_are_recorded_and_told_apart() {
    let _alone = crate::alone();
    let [.., other, last] = allowed()[..] else {
        println!("SKIPPED: two CPUs are needed");
        return;
    };
    let child = || {
        let body = || thread::sleep(ms(1));
        let child = thread::spawn("child", Constraint::aperiodic(9), body).expect("room");
        child.join().expect("its end");
    };
    let done = Arc::new(AtomicBool::new(false));
    let says_so = Arc::clone(&done);
    let both = Runtime::on(last, FIXED)
        .terms(System::default().machine)
        .and(other, FIXED, move || {
            child();
            says_so.store(true, Ordering::SeqCst);
        });
    let recorded = record(both, 1 << 20, move || {
        child();
        // However long the other CPU is away.
        let mut looks = 0;
        while !done.load(Ordering::SeqCst) && looks < 30_000 {
            thread::sleep(ms(1));
            looks += 1;
        }
    });
    let recorded = recorded.expect("a run");
    prove(&recorded);
    let names: Vec<&str> = recorded
        .log
        .tasks
        .iter()
        .map(|task| task.name.as_str())
        .collect();
    let there = |name: &str| format!("{name}@{other}");
    let expected = ["first", &there("first"), "child", &there("child")];
    assert_eq!(names, expected);
}
