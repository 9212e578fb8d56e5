//! Bounds are never exceeded, and exact ones are reached, in a brute-force simulation

use crate::common::draw::{POLICIES, draw, signed, wcet};
use crate::common::random::Random;
use crate::common::simulator::{Script, densest, longest_response, misses, simulate};
use crate::common::{EDF, FP, NP_FP, periodic, span, sporadic, work};
use punctual_analysis::{Exactness, Verdict, admit, is_admitted};
use punctual_model::{Class, CpuId, Ns, PolicyKind, Priority, Reserve, Span, System, TaskId};

fn judge(system: &System) -> Verdict {
    admit(system).expect("small numbers")
}

/// The longest response of each task over every combination of first releases of sporadic tasks.
fn worst_over_offsets(system: &System, end: i64) -> Vec<i64> {
    let n = system.tasks.len();
    let period = |task: usize| {
        signed(
            system.tasks[task]
                .class
                .min_separation()
                .map_or(1, Span::as_ns),
        )
    };
    let mut worst = vec![0; n];
    let combinations: i64 = (1..n).map(period).product();
    for mut code in 0..combinations {
        let mut script = Script {
            end,
            ..Script::default()
        };
        script.jobs.push(densest(system, 0, 0, end));
        for task in 1..n {
            script
                .jobs
                .push(densest(system, task, code % period(task), end));
            code /= period(task);
        }
        let against: &[Option<usize>] = match system.cpus[0].policy {
            PolicyKind::EarliestDeadlineFirst => &[Some(0), Some(1), Some(2)],
            _ => &[None],
        };
        for loses_ties in against {
            script.loses_ties = *loses_ties;
            let done = simulate(system, &script);
            for (task, worst) in worst.iter_mut().enumerate() {
                *worst = longest_response(&script, &done, task).max(*worst);
            }
        }
    }
    worst
}

#[test]
fn exact_bounds_of_sporadic_tasks_are_reached_by_some_arrivals() {
    let mut compared = 0;
    for seed in 0..1_000_u64 {
        let mut random = Random::new(seed + 900);
        let policy = [FP, NP_FP, EDF, PolicyKind::Fifo][usize::try_from(seed % 4).expect("small")];
        let rows: Vec<_> = (0..3)
            .map(|_| {
                let t = random.within(3, 8);
                (
                    random.within(1, t.div_ceil(3)),
                    t,
                    random.within(t / 2 + 1, 2 * t),
                )
            })
            .collect();
        let mut system = sporadic(policy, &rows);
        if policy == FP && random.within(0, 1) == 0 {
            system.tasks[1].priority = system.tasks[2].priority;
        }
        let verdict = judge(&system);
        if verdict.tasks.iter().any(|t| t.response_bound.is_none()) {
            continue;
        }
        let worst = worst_over_offsets(&system, 150);
        for (task, row) in verdict.tasks.iter().enumerate() {
            let bound = row.response_bound.map_or(0, |r| signed(r.as_ns()));
            let seen = worst[task];
            assert!(
                seen <= bound,
                "seed {seed}: task {task} took {seen} of {rows:?} {policy:?}: {}",
                row.explanation
            );
            if row.exactness == Exactness::Exact {
                compared += 1;
                assert_eq!(
                    worst[task], bound,
                    "seed {seed}: task {task} of {rows:?} {policy:?}"
                );
            }
        }
    }
    assert!(compared >= 1_500, "only {compared} exact bounds");
}

#[test]
fn exact_bounds_of_tasks_by_the_clock_are_reached_by_the_clock() {
    let mut exact = 0;
    for seed in 0..2_000_u64 {
        let mut random = Random::new(seed + 4_000);
        let rows: Vec<_> = (0..3)
            .map(|_| {
                let t = [4, 5, 6, 8, 10, 12][usize::try_from(random.within(0, 5)).expect("small")];
                (random.within(1, t / 2), t, t)
            })
            .collect();
        let mut system = periodic(FP, &rows);
        for task in &mut system.tasks {
            task.phase = span(random.within(0, 3));
        }
        if random.within(0, 1) == 0 {
            system.tasks[1].priority = system.tasks[2].priority;
        }
        let verdict = judge(&system);
        let end = 600;
        let mut script = Script {
            end,
            ..Script::default()
        };
        for (task, model) in system.tasks.iter().enumerate() {
            script
                .jobs
                .push(densest(&system, task, signed(model.phase.as_ns()), end));
        }
        let done = simulate(&system, &script);
        for (task, row) in verdict.tasks.iter().enumerate() {
            let Some(bound) = row.response_bound else {
                continue;
            };
            let seen = longest_response(&script, &done, task);
            assert!(
                seen <= signed(bound.as_ns()),
                "seed {seed}: task {task} of {system:?}"
            );
            if row.exactness == Exactness::Exact {
                exact += 1;
                assert_eq!(
                    seen,
                    signed(bound.as_ns()),
                    "seed {seed}: task {task} of {system:?}"
                );
            }
        }
    }
    assert!(exact >= 1_500, "only {exact} exact bounds");
}

/// A system with precedence on one or two CPUs, suspension and reserves.
fn draw_with_precedence(random: &mut Random, policy: PolicyKind<Ns>) -> System {
    let mut system = draw(random, policy, (8.0, 40.0));
    if random.within(0, 1) == 0 {
        system.cpus.push(system.cpus[0].clone());
        for task in &mut system.tasks {
            task.cpu = CpuId(u16::try_from(random.within(0, 1)).expect("small"));
        }
    }
    let n = system.tasks.len();
    for task in 0..n {
        let period = [5, 10, 20, 40][usize::try_from(random.within(0, 3)).expect("small")];
        let model = &mut system.tasks[task];
        let c = random.within(1, 4).min(period);
        model.class = Class::Periodic {
            period: span(period),
            wcet: work(c),
            relative_deadline: span(period * 2),
        };
        model.phase = span(random.within(0, 1) * random.within(0, 7));
        model.non_preemptive = work(random.within(0, 1) * random.within(0, c));
        model.priority = Priority::new(u32::try_from(random.within(1, 4)).expect("small"));
        if random.within(0, 4) == 0 && c > 1 {
            model.max_suspension = span(random.within(1, 3));
            model.suspensions = 1;
        }
        if random.within(0, 3) == 0 {
            model.jitter = span(random.within(1, 6));
        }
        if random.within(0, 9) == 0 {
            model.class = Class::Once {
                size: work(c),
                relative_deadline: span(period * 2),
            };
        }
        if random.within(0, 2) == 0 && task > 0 {
            let from = TaskId(u32::try_from(random.within(0, task as u64 - 1)).expect("small"));
            model.after.push(from);
        } else if random.within(0, 2) == 0 {
            let from = random.within(0, n as u64 - 1);
            if from != task as u64 {
                model
                    .follows
                    .push(TaskId(u32::try_from(from).expect("small")));
            }
        }
    }
    if random.within(0, 3) == 0 {
        system.machine.reserves.push(Reserve {
            name: "r".into(),
            budget: work(1),
            period: span(15),
        });
    }
    system
}

/// The jobs of a task by the clock, each released at random within its jitter.
fn jittery(random: &mut Random, system: &System, task: usize, end: i64) -> Vec<(i64, i64)> {
    let model = &system.tasks[task];
    let jitter = model.jitter.as_ns();
    let first = signed(model.phase.as_ns() + jitter);
    let mut latest = 0;
    let mut release = |(arrival, _): (i64, i64)| {
        latest = latest.max(arrival + signed(random.within(0, jitter)));
        (arrival, latest)
    };
    let jobs = densest(system, task, first, end);
    jobs.into_iter().map(&mut release).collect()
}

#[test]
fn no_job_exceeds_its_bound_with_precedence_suspension_and_sections() {
    let (mut admitted, mut bounded) = (0, 0);
    for seed in 0..10_000_u64 {
        let mut random = Random::new(seed + 70_000);
        let policy = POLICIES[usize::try_from(seed % 5).expect("small")];
        let system = draw_with_precedence(&mut random, policy);
        let verdict = judge(&system);
        assert_eq!(
            verdict.admitted,
            is_admitted(&system).expect("valid"),
            "seed {seed}"
        );
        admitted += u64::from(verdict.admitted);
        let end = 250;
        let mut script = Script {
            end,
            ..Script::default()
        };
        for (task, model) in system.tasks.iter().enumerate() {
            let jobs = jittery(&mut random, &system, task, end);
            script.jobs.push(jobs);
            let budget = wcet(&system, task);
            let section = model.non_preemptive.as_ns().min(budget);
            script.section_at.push(random.within(0, budget - section));
            let length = signed(model.max_suspension.as_ns());
            script
                .suspend
                .push((length > 0).then(|| (random.within(1, budget - 1), length)));
        }
        let done = simulate(&system, &script);
        for (task, row) in verdict.tasks.iter().enumerate() {
            let Some(bound) = row.response_bound else {
                continue;
            };
            bounded += 1;
            let seen = longest_response(&script, &done, task);
            assert!(
                seen <= signed(bound.as_ns()),
                "seed {seed}: task {task} took {seen}: {} in {system:?}",
                row.explanation
            );
        }
        if verdict.admitted {
            assert!(!misses(&system, &script, &done), "seed {seed}: {system:?}");
        }
    }
    assert!(
        (3_000..=7_000).contains(&admitted),
        "{admitted} of 10000 are admitted"
    );
    assert!(bounded >= 20_000, "only {bounded} bounds");
}
