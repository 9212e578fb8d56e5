//! Chains and differences of responses: by hand, and against every schedule of small systems

use crate::common::random::Random;
use crate::common::simulator::{Script, simulate};
use crate::common::{EDF, FP, empty, periodic, span, work};
use punctual_analysis::{Exactness, How, Subject, admit, is_admitted};
use punctual_model::{Class, CpuId, Ns, PolicyKind, Requirement, System, Task, TaskId, WorkSource};

/// Tasks (CPU, C, T, phase), the first with the highest priority.
fn on_cpus(policy: PolicyKind<Ns>, tasks: &[(u16, u64, u64, u64)]) -> System {
    let rows: Vec<_> = tasks.iter().map(|&(_, c, t, _)| (c, t, t)).collect();
    let mut system = periodic(policy, &rows);
    system.cpus = empty(policy, 3).cpus;
    for (task, &(cpu, _, _, phase)) in system.tasks.iter_mut().zip(tasks) {
        task.cpu = CpuId(cpu);
        task.phase = span(phase);
    }
    system
}

fn require_chain(system: &mut System, tasks: &[u32], within: u64) {
    system.requirements.push(Requirement::Chain {
        tasks: tasks.iter().map(|&t| TaskId(t)).collect(),
        within: span(within),
    });
}

fn bound(system: &System) -> Option<u64> {
    let verdict = admit(system).expect("analysis ends");
    verdict.chains[0].bound.map(|b| b.as_ns())
}

#[test]
fn a_triggered_chain_of_one_rate_takes_the_response_of_its_last_task() {
    let mut system = on_cpus(FP, &[(0, 2, 20, 0), (1, 3, 20, 0), (0, 4, 20, 0)]);
    system.tasks[1].after.push(TaskId(0));
    system.tasks[2].after.push(TaskId(1));
    require_chain(&mut system, &[0, 1, 2], 20);
    let verdict = admit(&system).expect("analysis ends");
    let chain = &verdict.chains[0];
    assert_eq!(chain.bound, verdict.tasks[2].response_bound);
    assert!(chain.handovers.iter().all(|h| h.how == How::Triggered));
    assert_eq!(chain.name, "t0 -> t1 -> t2");
}

#[test]
fn a_triggered_chain_on_one_cpu_is_exact() {
    let mut system = on_cpus(FP, &[(0, 2, 20, 0), (0, 3, 20, 5)]);
    system.tasks[1].after.push(TaskId(0));
    require_chain(&mut system, &[0, 1], 10);
    let verdict = admit(&system).expect("analysis ends");
    // t1 arrives 5 later; that its worst response needs both at once makes the response doubtful.
    assert_eq!(verdict.chains[0].bound, Some(span(10)));
    assert_eq!(verdict.chains[0].exactness, Exactness::Sufficient);
    system.tasks[1].phase = span(0);
    let verdict = admit(&system).expect("analysis ends");
    assert_eq!(verdict.chains[0].bound, Some(span(5)));
    assert_eq!(verdict.chains[0].exactness, Exactness::Exact);
}

#[test]
fn a_sampled_hand_over_takes_a_response_and_a_period() {
    // Periods 10 and 7 meet at every distance; R = 2 and 3.
    let mut system = on_cpus(FP, &[(0, 2, 10, 0), (1, 3, 7, 0)]);
    require_chain(&mut system, &[0, 1], 100);
    // Arrivals of t1 at or after one of t0 and 2: at most 2 + 6 later.
    assert_eq!(bound(&system), Some(8 + 3));
    // Without a clock the distance is a whole period.
    system.tasks[0].class = Class::Sporadic {
        min_separation: span(10),
        wcet: work(2),
        relative_deadline: span(10),
    };
    assert_eq!(bound(&system), Some(2 + 7 + 3));
}

#[test]
fn a_task_that_cannot_overtake_need_not_arrive_after_the_completion() {
    let mut system = on_cpus(FP, &[(0, 2, 10, 0), (0, 3, 10, 0)]);
    require_chain(&mut system, &[0, 1], 5);
    assert_eq!(bound(&system), Some(5));
    assert_eq!(is_admitted(&system), Ok(true));
    // The other way round t0 has looked before t1 has completed.
    system.requirements.clear();
    require_chain(&mut system, &[1, 0], 100);
    assert_eq!(bound(&system), Some(10 + 2));
}

#[test]
fn a_chain_through_a_task_that_arrives_when_it_likes_is_refused() {
    let mut system = on_cpus(FP, &[(0, 2, 10, 0), (0, 3, 10, 0)]);
    system.tasks[1].class = Class::Sporadic {
        min_separation: span(10),
        wcet: work(3),
        relative_deadline: span(10),
    };
    require_chain(&mut system, &[0, 1], 1_000);
    let verdict = admit(&system).expect("analysis ends");
    assert!(!verdict.admitted);
    assert_eq!(verdict.refusals[0].subject, Subject::Requirement(0));
    assert!(verdict.refusals[0].reason.contains("arrives when it likes"));
    assert_eq!(is_admitted(&system), Ok(false));
}

#[test]
fn a_broken_chain_is_mended_by_its_fix_and_by_nothing_smaller() {
    let mut random = Random::new(7);
    let mut mended = 0;
    for _ in 0..60 {
        let mut system = random_system(&mut random);
        require_chain(&mut system, &[0, 1, 2], 100_000);
        let Some(bound) = bound(&system) else {
            continue;
        };
        system.requirements.clear();
        require_chain(&mut system, &[0, 1, 2], bound - 1);
        let verdict = admit(&system).expect("analysis ends");
        assert_eq!(is_admitted(&system), Ok(false));
        let Some(fix) = verdict.refusals.iter().find_map(|r| r.fix.clone()) else {
            continue;
        };
        let mut changed = system.clone();
        fix.apply(&mut changed);
        assert!(admit(&changed).expect("analysis ends").admitted, "{fix}");
        let mut short = fix.clone();
        let back = if fix.to < fix.from { 1_i64 } else { -1 };
        short.to = span(fix.to.as_ns().checked_add_signed(back).expect("in range"));
        let mut changed = system.clone();
        short.apply(&mut changed);
        assert!(!admit(&changed).expect("analysis ends").admitted, "{fix}");
        mended += 1;
    }
    assert!(mended > 20, "{mended} systems had a fix");
}

#[test]
fn slack_keeps_chains() {
    let mut system = on_cpus(FP, &[(0, 2, 10, 0), (1, 3, 10, 0)]);
    require_chain(&mut system, &[0, 1], 14);
    let verdict = admit(&system).expect("analysis ends");
    // 10 until t1 arrives after 2, and 4 for t1: 33.3 %.
    assert_eq!(verdict.chains[0].bound, Some(span(13)));
    let slack = verdict.tasks[1].slack.expect("admitted");
    assert_eq!(slack.tenths_of_a_percent(), 333);
}

#[test]
fn responses_differ_by_the_longest_less_what_is_surely_executed() {
    let mut system = periodic(FP, &[(2, 10, 10), (5, 20, 20)]);
    let jitter = |within| Requirement::Jitter {
        task: TaskId(1),
        within: span(within),
    };
    system.requirements.push(jitter(6));
    let verdict = admit(&system).expect("analysis ends");
    assert_eq!(verdict.jitters[0].bound, Some(span(7)));
    assert!(!verdict.admitted);
    system.tasks[1].work = Some(WorkSource::Burn(work(3)));
    let verdict = admit(&system).expect("analysis ends");
    assert_eq!(verdict.jitters[0].bound, Some(span(4)));
    assert!(verdict.admitted);
}

fn random_system(random: &mut Random) -> System {
    let policy = if random.within(0, 1) == 0 { FP } else { EDF };
    let mut rows = Vec::new();
    for _ in 0..3 {
        let period = [4, 5, 6, 8, 10, 12][usize::try_from(random.within(0, 5)).expect("small")];
        let cpu = u16::try_from(random.within(0, 1)).expect("small");
        let wcet = random.within(1, (period / 3).max(1));
        rows.push((cpu, wcet, period, random.within(0, 9)));
    }
    let mut system = on_cpus(policy, &rows);
    for to in 1..3_u32 {
        match random.within(0, 4) {
            0 => system.tasks[to as usize].after.push(TaskId(to - 1)),
            1 => system.tasks[to as usize].follows.push(TaskId(to - 1)),
            _ => {}
        }
        if random.within(0, 4) == 0 {
            let task: &mut Task = &mut system.tasks[to as usize];
            task.jitter = span(random.within(1, 3));
        }
    }
    system
}

/// Arrivals by the clock, released as late as `jitter` says for each.
fn script(system: &System, random: &mut Random, end: i64) -> Script {
    let signed = |v: u64| i64::try_from(v).expect("small");
    let jobs = system.tasks.iter().map(|task| {
        let period = signed(task.class.min_separation().expect("periodic").as_ns());
        let arrivals = (0..end / period).map(|k| signed(task.phase.as_ns()) + k * period);
        let mut last = 0;
        let late = task.jitter.as_ns();
        let jobs = arrivals.map(|at| {
            last = last.max(at + signed(random.within(0, late)));
            (at, last)
        });
        jobs.collect::<Vec<_>>()
    });
    Script {
        jobs: jobs.collect(),
        section_at: vec![0; system.tasks.len()],
        suspend: vec![None; system.tasks.len()],
        loses_ties: None,
        end: end + 200,
    }
}

/// The longest time from an arrival of the first task until a job of the last that saw it is done.
/// A job starts at the earliest when it is released and the one before it is done, and at the
/// latest a wcet before its completion. Whatever the start, at the latest it has seen less.
fn observed(system: &System, script: &Script, done: &[Vec<Option<i64>>], tasks: &[u32]) -> i64 {
    let mut longest = 0;
    let signed = |v: u64| i64::try_from(v).expect("small");
    let first = tasks[0] as usize;
    for (job, &(arrival, _)) in script.jobs[first].iter().enumerate() {
        let Some(mut seen) = done[first][job] else {
            break;
        };
        for &to in &tasks[1..] {
            let task = &system.tasks[to as usize];
            let wcet = signed(task.class.budget().map_or(0, |w| w.as_ns()));
            // What completes a wcet after `seen` or later may have started after it; what
            // completes earlier cannot.
            let next = done[to as usize]
                .iter()
                .flatten()
                .find(|&&at| at - wcet >= seen);
            let Some(&next) = next else { return longest };
            seen = next;
        }
        longest = longest.max(seen - arrival);
    }
    longest
}

#[test]
fn no_schedule_takes_longer_from_end_to_end_than_the_bound() {
    let mut random = Random::new(3);
    let (mut bounded, mut reached) = (0, 0);
    for seed in 0..2_000 {
        let mut system = random_system(&mut random);
        require_chain(&mut system, &[0, 1, 2], 1_000);
        let verdict = admit(&system).expect("analysis ends");
        let Some(bound) = verdict.chains[0].bound else {
            continue;
        };
        bounded += 1;
        for _ in 0..3 {
            let script = script(&system, &mut random, 480);
            let done = simulate(&system, &script);
            let seen = observed(&system, &script, &done, &[0, 1, 2]);
            let bound = i64::try_from(bound.as_ns()).expect("small");
            assert!(
                seen <= bound,
                "seed {seed}: {seen} over {bound} in {system:#?}"
            );
            reached += i32::from(seen == bound);
        }
    }
    assert!(bounded > 1_000, "{bounded}");
    assert!(reached > 300, "{reached} of {bounded} bounds were reached");
}
