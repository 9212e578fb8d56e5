//! A yes or no comes faster than a verdict, and it is the same
#![allow(clippy::expect_used, reason = "a test may panic")]

use crate::common::random::{Deadlines, Random, set};
use crate::common::{FP, periodic, span, work};
use crate::groups;
use punctual_analysis::{
    GraphVerdict, Judge, Refusal, Subject, Transition, Verdict, When, admit, admit_changes,
    admit_changes_by, admit_without_slack, bounds_only, is_admitted,
};
use punctual_generate::draw_graph_system;
use punctual_model::{
    Change, CpuId, Instant, Priority, Reserve, Step, System, Task, TaskId, Terms,
};

/// Fixed priorities with everything that the closed bound counts: equal priorities, jitter,
/// sections, reserves; close to where the answer turns.
fn draw(seed: u64) -> System {
    let mut random = Random::new(seed * 31 + 5);
    let tasks = usize::try_from(random.within(1, 7)).expect("small");
    let load = 0.35 + 0.7 * random.unit();
    let rows = set(&mut random, tasks, load, (5.0, 200.0), Deadlines::Arbitrary);
    let mut system = periodic(FP, &rows);
    for task in &mut system.tasks {
        if random.within(0, 3) == 0 {
            task.priority = Priority::new(3);
        }
        if random.within(0, 3) == 0 {
            task.jitter = span(random.within(1, 30));
        }
        if random.within(0, 3) == 0 {
            let wcet = task.class.budget().map_or(1, |w| w.as_ns());
            task.non_preemptive = work(random.within(1, wcet));
        }
    }
    if random.within(0, 2) == 0 {
        system.machine.reserves.push(Reserve {
            name: "r".into(),
            budget: work(1),
            period: span(random.within(8, 60)),
        });
    }
    system
}

#[test]
fn the_fast_answer_is_that_of_the_bounds() {
    let mut admitted = 0;
    for seed in 0..4_000 {
        let system = draw(seed);
        let verdict = admit(&system).expect("small numbers");
        assert_eq!(
            is_admitted(&system),
            Ok(verdict.admitted),
            "seed {seed}: {system:?}"
        );
        admitted += u32::from(verdict.admitted);
    }
    assert!(
        (1_000..3_000).contains(&admitted),
        "{admitted} of 4000 admitted"
    );
}

/// A verdict as one that tries no other parameters gives it; with `fixes` one that has these.
fn without_trials(mut verdict: Verdict, fixes: bool) -> Verdict {
    for row in &mut verdict.tasks {
        row.slack = None;
    }
    if fixes {
        return verdict;
    }
    for refusal in &mut verdict.refusals {
        refusal.fix = None;
        refusal.advice.clear();
    }
    for row in &mut verdict.graphs {
        row.fix = None;
        row.together.clear();
    }
    verdict
}

/// A graph that is to end an iteration soon.
fn hurried(random: &mut punctual_generate::Random) -> System {
    let mut system = draw_graph_system(random, 1_000);
    system.graphs[0].every = Some(span(1_000 * random.within(1, 400)));
    system
}

/// Systems of tasks, of a graph, of groups, and of a graph beside tasks.
fn of_any_kind(seed: u64) -> System {
    let mut random = punctual_generate::Random::at(seed, &[71]);
    match seed % 4 {
        0 => draw(seed),
        1 => hurried(&mut random),
        2 => groups::drawn(&mut random),
        _ => {
            let mut system = hurried(&mut random);
            let tasks = draw(seed);
            let cpu = u16::try_from(system.cpus.len()).expect("few");
            system.cpus.extend(tasks.cpus);
            system
                .tasks
                .extend(tasks.tasks.into_iter().map(|task| Task {
                    cpu: CpuId(cpu),
                    ..task
                }));
            system
        }
    }
}

#[test]
fn a_verdict_without_trials_is_the_same_but_for_slack_and_fixes() {
    let (mut slack, mut fixes, mut of_graphs, mut of_groups) = (0, 0, 0, 0);
    for seed in 0..600 {
        let system = of_any_kind(seed);
        let verdict = admit(&system).expect("small numbers");
        slack += verdict.tasks.iter().filter(|t| t.slack.is_some()).count();
        fixes += verdict.refusals.iter().filter(|r| r.fix.is_some()).count();
        let has_fix = |row: &&GraphVerdict| row.fix.is_some() || !row.together.is_empty();
        of_graphs += verdict.graphs.iter().filter(has_fix).count();
        let of_group = |r: &&Refusal| matches!(r.subject, Subject::Group(_)) && r.fix.is_some();
        of_groups += verdict.refusals.iter().filter(of_group).count();
        let told = bounds_only(&system).expect("small numbers");
        assert_eq!(told, without_trials(verdict.clone(), false), "seed {seed}");
        let told = admit_without_slack(&system).expect("small numbers");
        assert_eq!(told, without_trials(verdict, true), "seed {seed}");
    }
    let all = [slack, fixes, of_graphs, of_groups];
    assert!(all.iter().all(|&seen| seen > 10), "{all:?}");
}

/// The same with three changes: other terms, the end of a task, and the end of a CPU's bandwidth.
fn changing(seed: u64) -> System {
    let mut random = Random::new(seed * 17 + 3);
    let mut system = draw(seed);
    let last = system.tasks.len() - 1;
    let mut step = || match random.within(0, 2) {
        0 => Step::Stop(TaskId(0)),
        _ => Step::Constrain(
            TaskId(u32::try_from(last).expect("few")),
            Terms {
                budget: Some(work(random.within(1, 40))),
                separation: Some(span(random.within(40, 200))),
                ..Terms::default()
            },
        ),
    };
    let changes = (1..=3).map(|number: u64| Change {
        name: format!("c{number}"),
        at: Instant::from_ns(number * 1_000),
        steps: vec![step()],
    });
    system.changes = changes.collect();
    system
}

#[test]
fn changes_are_judged_alike_by_every_judge() {
    let (mut refused, mut fixes) = (0, 0);
    for seed in 0..400 {
        let system = changing(seed);
        let judged = admit_changes(&system).expect("small numbers");
        refused += judged.iter().filter(|t| t.when == When::Never).count();
        for (judge, with_fixes) in [(admit_without_slack as Judge, true), (bounds_only, false)] {
            let told = admit_changes_by(&system, judge).expect("small numbers");
            let expected = judged.iter().cloned().map(|transition| Transition {
                verdict: without_trials(transition.verdict, with_fixes),
                ..transition
            });
            assert_eq!(told, expected.collect::<Vec<_>>(), "seed {seed}");
        }
        let refusals = judged.iter().flat_map(|t| &t.verdict.refusals);
        fixes += refusals.filter(|refusal| refusal.fix.is_some()).count();
    }
    assert!((200..1_100).contains(&refused), "{refused} of 1200 refused");
    assert!(fixes > 50, "{fixes}");
}
