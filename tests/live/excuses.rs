//! Misses of a process that was stopped
//!
//! A simulator that shares no code with the scheduler agrees on each that is excused.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::process::Command;

use punctual::trace::Behavior;
use punctual::{
    Class, Cpu, CpuId, Instant, LiveOptions, Log, Ns, PolicyKind, Priority, Span, System, Task,
    Work, WorkSource, judge, run,
};
use punctual_model::Late;
use punctual_trace::Miss;

/// Period and work of each task, in microseconds.
const TASKS: [(u64, u64); 3] = [(4_000, 600), (10_000, 1_500), (25_000, 4_000)];
const RUN_MS: u64 = 3_000;
/// The simulator has no entries and no timers: so close to a deadline nothing is compared.
const NEAR_NS: u64 = 60_000;
/// So long after an overrun its consequences are over.
const SETTLED_NS: u64 = 30_000_000;

fn system(policy: PolicyKind<Ns>) -> System {
    let cpus = punctual_linux::allowed_cpus().unwrap();
    let mut system = System {
        cpus: vec![Cpu {
            name: "0".into(),
            host: cpus.last().copied(),
            policy,
        }],
        ..System::default()
    };
    for (urgency, (period, work)) in (0..).zip(TASKS) {
        let class = Class::Periodic {
            period: Span::from_us(period),
            // A loaded machine takes from bodies what nobody sees, and here nobody is throttled.
            wcet: Work::from_us(period.min(6 * work)),
            relative_deadline: Span::from_us(period),
        };
        system.tasks.push(Task {
            priority: Priority::new(9 - urgency),
            work: Some(WorkSource::Burn(Work::from_us(work))),
            late: Late::Queue { backlog: 1_000 },
            ..Task::new(format!("t{urgency}"), CpuId(0), class)
        });
    }
    system
}

/// A job by its task and the number of its arrival.
type Job = (usize, u64);

fn arrival((task, number): Job) -> u64 {
    number * TASKS[task].0 * 1_000
}

fn deadline(job: Job) -> u64 {
    arrival(job) + TASKS[job.0].0 * 1_000
}

/// When each job is done if it arrives when it is due, executes so much, and nothing is taken.
fn completions(work: &BTreeMap<Job, u64>, policy: PolicyKind<Ns>) -> BTreeMap<Job, u64> {
    let mut left = work.clone();
    let mut done = BTreeMap::new();
    let mut now = 0;
    while !left.is_empty() {
        let key = |job: &Job| match policy {
            PolicyKind::EarliestDeadlineFirst => (deadline(*job), arrival(*job), job.0),
            _ => (job.0 as u64, arrival(*job), job.0),
        };
        let ready = left
            .keys()
            .filter(|job| arrival(**job) <= now)
            .min_by_key(|job| key(job));
        let next = left
            .keys()
            .map(|job| arrival(*job))
            .filter(|at| *at > now)
            .min();
        let Some(&job) = ready else {
            now = next.unwrap();
            continue;
        };
        let needed = left[&job];
        let until = next.unwrap_or(u64::MAX).min(now + needed);
        if until - now == needed {
            left.remove(&job);
            done.insert(job, until);
        } else {
            left.insert(job, needed - (until - now));
        }
        now = until;
    }
    done
}

/// The processor time that each job received.
fn works(log: &Log) -> BTreeMap<Job, u64> {
    let behavior = Behavior::new(log, 0);
    let jobs = behavior.jobs.iter().map(|job| {
        let arrived = log.ns(job.arrival.ticks());
        let period = TASKS[job.thread.index()].0 * 1_000;
        let number = (arrived + period / 2) / period;
        let received = log.ns(job.received.ticks());
        ((job.thread.index(), number), received)
    });
    jobs.collect()
}

/// A process that stops this one now and then, for 2 to 9 ms.
fn stopper() -> std::process::Child {
    let script = "n=0; while [ $n -lt 60 ]; do n=$((n + 1)); \
                  kill -STOP $PPID; sleep 0.00$((n % 8 + 2)); kill -CONT $PPID; sleep 0.03; done";
    Command::new("sh").args(["-c", script]).spawn().unwrap()
}

/// The record of the time around a miss.
fn around(log: &Log, miss: &Miss) -> String {
    let behavior = Behavior::new(log, 0);
    let from = miss.release_ns.saturating_sub(30_000_000);
    let to = miss.release_ns + u64::try_from(miss.lateness_ns).unwrap_or(0) + 40_000_000;
    let shown = |start: Instant, end: Instant| {
        let (start, end) = (log.ns(start.ticks()), log.ns(end.ticks()));
        (start < to && end > from).then_some((start, end - start))
    };
    let mut lines = Vec::new();
    for segment in &behavior.segments {
        let job = segment.job.map(|at| &behavior.jobs[at]);
        let job = job.map(|job| (job.thread.index(), job.index, log.ns(job.received.ticks())));
        let at = shown(segment.start, segment.end);
        lines.extend(at.map(|(at, ns)| (at, format!("{ns} of (task, job, received) {job:?}"))));
    }
    for gap in &behavior.missing {
        let at = shown(gap.start, gap.end);
        lines.extend(at.map(|(at, ns)| (at, format!("{ns} missing, {:?}", gap.cause))));
    }
    lines.sort();
    let lines = lines.iter().map(|(at, what)| format!("{at}: {what}\n"));
    lines.collect()
}

/// The simulator agrees on each miss of the record, where it has a word in it: on how many.
fn compare(log: &Log, policy: PolicyKind<Ns>) -> usize {
    let report = judge(log);
    assert_eq!(report.unexcused, None);
    assert!(
        !report.misses.is_empty(),
        "some of 60 stops make a job late"
    );
    let by = &report.cpus[0].missing_time_by;
    assert!(by.kernel_ns > 0, "the kernel stopped it: {by}");
    let done = completions(&works(log), policy);
    let jobs = Behavior::new(log, 0).jobs;
    let ns = |at: Instant| log.ns(at.ticks());
    // A stop at the end leaves jobs open, and their work is not in the record.
    let open = jobs.iter().filter(|job| job.ended.is_none());
    let open = open.map(|job| ns(job.arrival)).min();
    // Time that nobody saw being taken may throttle a job, and the simulator has no budgets.
    let throttled = |miss: &Miss| {
        let from = miss.release_ns.saturating_sub(SETTLED_NS);
        let task = miss.task_index.unwrap().index();
        let to = miss.release_ns + TASKS[task].0 * 1_000 + miss.lateness_ns.max(0).cast_unsigned();
        let mut overruns = jobs.iter().filter(|job| job.overran);
        overruns.any(|job| ns(job.arrival) < to && job.ended.is_none_or(|end| ns(end) > from))
    };
    let (mut excused, mut own) = (0, 0);
    for miss in &report.misses {
        let task = miss.task_index.unwrap().index();
        let period = TASKS[task].0 * 1_000;
        let job = (task, (miss.release_ns + period / 2) / period);
        let early = deadline(job).cast_signed() - done[&job].cast_signed();
        let is_open = open.is_some_and(|open| deadline(job) >= open);
        if is_open || throttled(miss) || early.unsigned_abs() < NEAR_NS {
            continue;
        }
        // On time without it, and yet not excused: what was taken alone does not do it.
        let alone = miss.detail.contains("alone does not make it late");
        let agrees = match miss.excused {
            true => early > 0,
            false => early < 0 || alone,
        };
        let record = || around(log, miss);
        assert!(
            agrees,
            "{policy:?}: early by {early}: {miss:?}\n{}",
            record()
        );
        excused += usize::from(miss.excused);
        own += usize::from(!miss.excused);
    }
    let all = report.misses.len();
    eprintln!("{policy:?}: {excused} excused, {own} not, of {all}");
    excused + own
}

#[test]
fn an_independent_simulator_agrees_on_the_excuses_of_a_stopped_process() {
    let _alone = crate::alone();
    let fixed = PolicyKind::FixedPriority { preemptive: true };
    for policy in [fixed, PolicyKind::EarliestDeadlineFirst] {
        // On a loaded machine overruns may surround every miss of a run.
        let compared = (0..4).any(|_| compare(&stopped_run(policy), policy) > 0);
        assert!(compared, "{policy:?}: no miss was compared");
    }
}

/// A run that is stopped 60 times.
fn stopped_run(policy: PolicyKind<Ns>) -> Log {
    let options = LiveOptions {
        duration: Some(Span::from_ms(RUN_MS)),
        force: true,
        ..LiveOptions::default()
    };
    let mut stopper = stopper();
    let log = run(
        &system(policy),
        &options,
        &mut crate::common::examples::workloads(),
        &mut |_| true,
    );
    stopper.wait().unwrap();
    log.unwrap()
}
