//! A miss is excused if and only if it is not there without the missing time.
//!
//! Judged again by a simulator that shares no code with the scheduler, its logs or its replay: same
//! arrivals, same work, no holes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};

use punctual::trace::{Behavior, Cause};
use punctual::{
    Class, Cpu, CpuId, Faults, MissingTime, Ns, PolicyKind, Priority, SimOptions, Span, System,
    Task, Work, WorkSource, Workloads, judge, judge_while, simulate_unjudged,
};
use punctual_model::Late;

/// All times of the systems are multiples of this.
const STEP_US: u64 = 100;
const RUN_MS: u64 = 400;
const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

/// A task and the number of its job.
type Job = (usize, u64);
type Jobs = BTreeSet<Job>;

/// Numbers below a limit, from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A periodic task, in steps.
struct Simple {
    phase: u64,
    period: u64,
    wcet: u64,
    work: u64,
    deadline: u64,
    priority: u32,
}

fn draw(dice: &mut Dice) -> Vec<Simple> {
    let tasks = 2 + dice.below(3);
    let draw = |n: u64| {
        let period = 50 + 10 * dice.below(30);
        // Between a third and five quarters of the processor in all.
        let wcet = (period * (4 + dice.below(12)) / (12 * tasks)).max(1);
        let work = wcet - dice.below(wcet / 3 + 1);
        let deadline = wcet + dice.below(period + period / 4 - wcet);
        Simple {
            phase: dice.below(period),
            period,
            wcet,
            work,
            deadline,
            priority: u32::try_from(1 + (n * 7 + dice.below(3)) % 5).unwrap(),
        }
    };
    (0..tasks).map(draw).collect()
}

fn system(tasks: &[Simple], policy: PolicyKind<Ns>) -> System {
    let span = |steps: u64| Span::from_us(STEP_US * steps);
    let work = |steps: u64| Work::from_us(STEP_US * steps);
    let mut system = System {
        cpus: vec![Cpu {
            name: "0".into(),
            host: None,
            policy,
        }],
        ..System::default()
    };
    for (n, task) in tasks.iter().enumerate() {
        let class = Class::Periodic {
            period: span(task.period),
            wcet: work(task.wcet),
            relative_deadline: span(task.deadline),
        };
        system.tasks.push(Task {
            phase: span(task.phase),
            priority: Priority::new(task.priority),
            work: Some(WorkSource::Burn(work(task.work))),
            late: Late::Queue { backlog: 1_000 },
            ..Task::new(format!("t{n}"), CpuId(0), class)
        });
    }
    system
}

/// When each job is done without missing time, step by step, by task and number. Of jobs that are
/// not `over` in the record nobody knows the work: it is the whole budget.
fn completions(tasks: &[Simple], policy: PolicyKind<Ns>, over: &Jobs) -> BTreeMap<Job, u64> {
    let mut waiting: Vec<(Job, u64)> = Vec::new();
    let mut done = BTreeMap::new();
    let mut running: Option<Job> = None;
    let horizon = RUN_MS * 1_000 / STEP_US;
    for now in 0_u64.. {
        for (n, task) in tasks.iter().enumerate() {
            let since = now.checked_sub(task.phase);
            if let Some(since) = since.filter(|since| since % task.period == 0 && now < horizon) {
                let job = (n, since / task.period);
                let known = over.contains(&job);
                waiting.push((job, if known { task.work } else { task.wcet }));
            }
        }
        if now >= horizon && waiting.is_empty() {
            break;
        }
        let arrival = |&(n, job): &Job| tasks[n].phase + job * tasks[n].period;
        let urgency = |at: &Job| {
            let task = &tasks[at.0];
            let first = match policy {
                PolicyKind::EarliestDeadlineFirst => arrival(at) + task.deadline,
                _ => u64::from(u32::MAX - task.priority),
            };
            (first, arrival(at), at.0)
        };
        let stays = policy == (PolicyKind::FixedPriority { preemptive: false });
        let kept = running.filter(|_| stays);
        let next = kept.or_else(|| {
            let all = waiting.iter().map(|(job, _)| *job);
            all.min_by_key(urgency)
        });
        running = next;
        let Some(next) = next else { continue };
        let at = waiting.iter().position(|(job, _)| *job == next).unwrap();
        waiting[at].1 -= 1;
        if waiting[at].1 == 0 {
            let _ = waiting.swap_remove(at);
            let _ = done.insert(next, now + 1);
            running = None;
        }
    }
    done
}

#[test]
fn an_independent_simulator_agrees_on_every_miss_of_a_thousand_runs_with_holes() {
    let (mut excused, mut own) = (0_u64, 0_u64);
    for seed in 0..1_000 {
        let mut dice = Dice(seed * 7_919 + 1);
        let tasks = draw(&mut dice);
        let policy = match seed % 3 {
            0 => FIXED,
            1 => PolicyKind::EarliestDeadlineFirst,
            _ => PolicyKind::FixedPriority { preemptive: false },
        };
        let holes = MissingTime {
            cpu: None,
            length: Span::from_us(100 + dice.below(6_000)),
            every: Span::from_us(8_000 + dice.below(90_000)),
        };
        let options = SimOptions {
            duration: Some(Span::from_ms(RUN_MS)),
            seed: Some(seed),
            faults: Faults {
                missing: vec![holes],
                ..Faults::default()
            },
            ..SimOptions::default()
        };
        let system = system(&tasks, policy);
        let log = simulate_unjudged(&system, &options, &mut Workloads::new(), &mut |_| true);
        let log = log.unwrap();
        let report = judge(&log);
        assert_eq!(report.unexcused, None);
        let jobs = Behavior::new(&log, 0).jobs;
        let over = jobs.iter().filter(|job| job.ended.is_some());
        let over = over.map(|job| (job.thread.index(), job.index)).collect();
        let done = completions(&tasks, policy, &over);
        for miss in &report.misses {
            let n = miss.task_index.unwrap().index();
            let task = &tasks[n];
            let deadline = task.phase + miss.job * task.period + task.deadline;
            let on_time = done[&(n, miss.job)] <= deadline;
            assert_eq!(miss.excused, on_time, "seed {seed}, {miss:?}");
            assert_eq!(
                on_time,
                miss.cause == Cause::MissingTime,
                "seed {seed}, {miss:?}"
            );
            assert_ne!(miss.cause, Cause::Unattributed, "seed {seed}, {miss:?}");
            *(if on_time { &mut excused } else { &mut own }) += 1;
        }
    }
    println!("{excused} misses excused, {own} not");
    assert!(excused > 2_000 && own > 2_000, "{excused} and {own}");
}

#[test]
fn a_judgement_that_is_stopped_has_the_facts_and_excuses_nothing() {
    let mut dice = Dice(7);
    let system = system(&draw(&mut dice), PolicyKind::EarliestDeadlineFirst);
    let holes = MissingTime {
        cpu: None,
        length: Span::from_us(6_000),
        every: Span::from_us(20_000),
    };
    let options = SimOptions {
        duration: Some(Span::from_ms(RUN_MS)),
        faults: Faults {
            missing: vec![holes],
            ..Faults::default()
        },
        ..SimOptions::default()
    };
    let log = simulate_unjudged(&system, &options, &mut Workloads::new(), &mut |_| true).unwrap();
    let whole = judge(&log);
    let stopped = judge_while(&log, &mut || false);
    assert!(whole.unexcused.is_none() && whole.misses.iter().any(|miss| miss.excused));
    assert!(
        stopped
            .unexcused
            .is_some_and(|why| why.contains("stopped by request"))
    );
    assert!(stopped.misses.iter().all(|miss| !miss.excused));
    assert_eq!(stopped.misses.len(), whole.misses.len());
}
