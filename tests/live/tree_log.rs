//! Runs whose tree is built and changed by their program, recorded: checked, replayed, judged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual::thread::{self, SpawnError};
use punctual::tree::{Scheduler, Terms, Wait};
use punctual::{Constraint, Ns, PolicyKind, RunReport, Runtime, Span, System, Work, record};
use punctual_kern::TraceEvent;
use punctual_trace::Record;

use crate::threads_log::{allowed, prove};

const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

fn ms(n: u64) -> Span<Ns> {
    Span::from_ms(n)
}

fn runtime() -> Runtime {
    let cpu = *allowed().last().expect("one at least");
    let runtime = Runtime::on(cpu, FIXED).terms(System::default().machine);
    runtime.main(Constraint::aperiodic(5)).promotions(3)
}

/// Asks again while a thread is in the middle of a job or has nothing to run, or a loan counts.
fn ask(mut request: impl FnMut() -> Result<(), SpawnError>) {
    for _ in 0..20_000 {
        match request() {
            Err(
                SpawnError::HasJob
                | SpawnError::Refused(_)
                | SpawnError::NotAdmitted(punctual::NotAdmitted::NoSafeInstant(_)),
            ) => {
                thread::sleep(Span::from_us(250));
            }
            answer => return answer.expect("admitted"),
        }
    }
    panic!("never");
}

fn server(budget: u64, period: u64) -> Terms {
    let kind = punctual::model::ServerKind::Deferrable;
    Terms::server(kind, (Work::from_ms(budget), ms(period)))
}

/// Executes for about 200 us in its first job. Says how many have begun.
fn jobs(count: &Arc<AtomicU32>) -> impl FnOnce() + Send + 'static {
    let count = Arc::clone(count);
    move || {
        let started = thread::now();
        let busy = || {
            let spent = started.zip(thread::now()).map(|(from, to)| to.since(from));
            spent.is_some_and(|spent| spent < Span::from_us(200))
        };
        while busy() {
            core::hint::spin_loop();
        }
        count.fetch_add(1, Ordering::Relaxed);
        while thread::wait_next_period().is_ok() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Waits for 1 ms in each job, in which others see it.
fn waiting_jobs(count: &Arc<AtomicU32>) -> impl FnOnce() + Send + 'static {
    let count = Arc::clone(count);
    move || loop {
        count.fetch_add(1, Ordering::Relaxed);
        thread::sleep(ms(1));
        if thread::wait_next_period().is_err() {
            return;
        }
    }
}

/// Until so many jobs of each of them have begun, on a machine that comes to it in half a minute.
fn until_begun(counts: &[Arc<AtomicU32>], jobs: u32) {
    let begun = |count: &Arc<AtomicU32>| count.load(Ordering::Relaxed) >= jobs;
    for _ in 0..30_000 {
        if counts.iter().all(begun) {
            return;
        }
        thread::sleep(ms(1));
    }
    panic!("they do not come: {counts:?}");
}

/// A child comes, gets threads, creates one, blocks, wakes, lends, and leaves.
fn changes() -> Result<(), SpawnError> {
    let root = Scheduler::root()?;
    let every =
        |period, priority| Constraint::periodic(ms(period), Work::from_us(800)).priority(priority);
    let counts: [Arc<AtomicU32>; 3] = Default::default();
    let control = thread::spawn("control", every(10, 9), jobs(&counts[0]))?;
    let moved = thread::spawn("moved", every(50, 3), jobs(&counts[1]))?;
    let net = root.promote("net", server(5, 10).priority(5).quota(2))?;
    let log = root.promote("log", server(2, 20).priority(4))?;
    let suspended = every(50, 2).suspension(ms(2), 2);
    let own = net.spawn("own", suspended, waiting_jobs(&counts[2]))?;
    ask(|| root.grant(&moved, &net));
    let more = net.spawn("more", Constraint::aperiodic(1), || ());
    assert!(
        matches!(more, Err(SpawnError::Refused(_))),
        "beyond its quota"
    );
    ask(|| net.block(&own, Wait::within(ms(1)).exclusive()));
    let _ = net.wake(&own);
    ask(|| log.lend(&net.recipient(), Work::from_us(500)));
    until_begun(&counts, 2);
    ask(|| root.revoke(&moved));
    ask(|| root.demote(&net));
    root.demote(&log)?;
    // The last one that has begun may be cut off.
    until_begun(&counts, 5);
    for thread in [&control, &moved, &own] {
        let _ = thread.cancel();
    }
    Ok(())
}

#[test]
fn a_tree_that_a_program_changes_is_recorded_checked_and_replayed() {
    let _alone = crate::alone();
    let recorded = record(runtime(), 16 << 20, changes).expect("a run");
    assert_eq!(recorded.result, Some(Ok(())));
    prove(&recorded);
    let report = RunReport::new(&recorded.log);
    for name in ["control", "moved", "own"] {
        let task = report.tasks.iter().find(|task| task.name == name);
        let task = task.unwrap_or_else(|| panic!("no {name} in {report}"));
        let deadline = if name == "control" {
            10_000_000
        } else {
            50_000_000
        };
        assert!(task.jobs >= 3, "{report}");
        // The promise is the largest that any verdict made while it lived.
        let bound = task.machine_bound_ns.expect("promised");
        assert!(bound <= deadline, "{report}");
    }
}

/// Orders change places ten times while two threads with a guarantee and one without work.
fn replaces() -> Result<(), SpawnError> {
    let root = Scheduler::root()?;
    let net = root.promote("net", server(5, 10).priority(5))?;
    let every = |period| Constraint::periodic(ms(period), Work::from_us(800)).priority(2);
    let (fast, slow) = (
        net.spawn("fast", every(20), jobs(&Arc::default()))?,
        net.spawn("slow", every(50), jobs(&Arc::default()))?,
    );
    let free = net.spawn("free", Constraint::aperiodic(1), || {
        for _ in 0..1_000 {
            thread::sleep(Span::from_us(50));
        }
    })?;
    for _ in 0..5 {
        for policy in [PolicyKind::EarliestDeadlineFirst, FIXED] {
            ask(|| net.replace(policy));
            ask(|| root.replace(policy));
            thread::sleep(ms(11));
        }
    }
    for thread in [&fast, &slow, &free] {
        let _ = thread.cancel();
    }
    Ok(())
}

#[test]
fn policies_that_a_program_replaces_are_recorded_checked_and_replayed() {
    let _alone = crate::alone();
    let recorded = record(runtime(), 16 << 20, replaces).expect("a run");
    assert_eq!(recorded.result, Some(Ok(())));
    prove(&recorded);
    let replaced =
        |record: &Record| matches!(record, Record::Trace(TraceEvent::PolicyReplaced { .. }));
    let records = recorded.log.cpus[0].records.iter();
    assert_eq!(records.filter(|(_, r)| replaced(r)).count(), 20);
    let report = RunReport::new(&recorded.log);
    for name in ["fast", "slow"] {
        let task = report.tasks.iter().find(|task| task.name == name);
        assert!(task.is_some_and(|task| task.jobs >= 2), "{report}");
    }
}

/// A tree of a file, without tasks: its program creates them.
const FILE: &str = r#"
[system]
cpus = [0]

[cpu.0]
policy = "fixed-priority"

[scheduler.radio]
on = "cpu.0"
policy = "edf"
priority = 3
server = { kind = "deferrable", budget = "4ms", period = "20ms" }

[scheduler.plugin]
on = "cpu.0"
policy = "fixed-priority"
priority = 2
server = { kind = "deferrable", budget = "8ms", period = "20ms" }
trust = "own-time"
"#;

/// Threads in the schedulers of a file, one of which decides on its own supply.
fn in_a_file() -> Result<(), SpawnError> {
    let root = Scheduler::root()?;
    let (radio, plugin) = (root.child("radio")?, root.child("plugin")?);
    let every = Constraint::periodic(ms(60), Work::from_us(800));
    let counts: [Arc<AtomicU32>; 2] = Default::default();
    let received = radio.spawn("receive", every, jobs(&counts[0]))?;
    let drawn = plugin.spawn("draw", every, jobs(&counts[1]))?;
    let below = plugin.promote("below", server(1, 10));
    assert!(below.is_err(), "it has threads and no children");
    until_begun(&counts, 4);
    for thread in [&received, &drawn] {
        let _ = thread.cancel();
    }
    Ok(())
}

#[test]
fn a_run_starts_with_the_tree_of_a_file() {
    let _alone = crate::alone();
    let file = punctual_spec::parse(FILE, "tree.toml").expect("a system");
    let runtime = runtime().tree(file.system.schedulers);
    let recorded = record(runtime, 16 << 20, in_a_file).expect("a run");
    assert_eq!(recorded.result, Some(Ok(())));
    prove(&recorded);
    assert_eq!(recorded.log.schedulers, ["radio", "plugin"]);
    let report = RunReport::new(&recorded.log);
    for name in ["receive", "draw"] {
        let task = report.tasks.iter().find(|task| task.name == name);
        let task = task.unwrap_or_else(|| panic!("no {name} in {report}"));
        assert!(
            task.jobs >= 3 && task.machine_bound_ns.is_some(),
            "{report}"
        );
    }
}
