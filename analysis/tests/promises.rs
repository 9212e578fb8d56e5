//! What a verdict promises, each promise tried on random systems
//!
//! Fixes admit and one step short refuses; slack is admitted and one step beyond refused; every
//! witness is seen in a simulation; admitted systems never miss; exact bounds are reached.

mod common;

use common::random::{Deadlines, Random, set};
use common::simulator::{Script, densest, longest_response, misses, simulate};
use common::{EDF, FP, NP_FP, periodic, require_response, span, sporadic, work};
use punctual_analysis::{Exactness, Slack, Verdict, Witness, admit, is_admitted};
use punctual_model::{Class, CpuId, PolicyKind, Priority, Reserve, Span, System, TaskId, Work};

fn judge(system: &System) -> Verdict {
    admit(system).expect("small numbers")
}

/// The quick answer; that it is the answer of `admit` is asserted where both are asked.
fn admitted(system: &System) -> bool {
    is_admitted(system).expect("valid")
}

fn set_wcet(system: &mut System, task: usize, value: u64) {
    if let Class::Periodic { wcet, .. } | Class::Sporadic { wcet, .. } =
        &mut system.tasks[task].class
    {
        *wcet = work(value);
    }
}

fn wcet(system: &System, task: usize) -> u64 {
    system.tasks[task].class.budget().map_or(0, Work::ticks)
}

const POLICIES: [PolicyKind; 5] = [
    FP,
    NP_FP,
    EDF,
    PolicyKind::Fifo,
    PolicyKind::RoundRobin {
        timeslice: Span::from_ticks(5),
    },
];

/// A random system on one CPU with some of everything that one CPU can have.
fn draw(random: &mut Random, policy: PolicyKind, periods: (f64, f64)) -> System {
    let n = usize::try_from(random.within(2, 5)).expect("small");
    let top = if matches!(policy, FP | EDF) {
        1.08
    } else {
        0.75
    };
    let load = top - 0.45 * random.unit();
    let rows = set(random, n, load, periods, Deadlines::Arbitrary);
    let mut system = if random.within(0, 1) == 0 {
        periodic(policy, &rows)
    } else {
        sporadic(policy, &rows)
    };
    for task in &mut system.tasks {
        if random.within(0, 3) == 0 {
            task.priority = Priority::new(2);
        }
        if random.within(0, 4) == 0 {
            let budget = task.class.budget().map_or(0, Work::ticks);
            task.non_preemptive = work(random.within(0, budget));
        }
    }
    system
}

#[test]
fn every_fix_admits_and_one_step_short_of_it_refuses() {
    let (mut fixes, mut refused) = (0, 0);
    for seed in 0..1_500_u64 {
        let mut random = Random::new(seed);
        let policy = POLICIES[usize::try_from(seed % 5).expect("small")];
        let mut system = draw(&mut random, policy, (20.0, 400.0));
        if random.within(0, 2) == 0 {
            let deadline = system.tasks[0]
                .class
                .relative_deadline()
                .map_or(1, Span::ticks);
            require_response(&mut system, 0, random.within(deadline / 2, deadline).max(1));
        }
        let verdict = judge(&system);
        assert_eq!(verdict.admitted, admitted(&system), "seed {seed}");
        refused += u64::from(!verdict.admitted);
        for refusal in &verdict.refusals {
            let Some(fix) = &refusal.fix else { continue };
            fixes += 1;
            let mut fixed = system.clone();
            fix.apply(&mut fixed);
            assert!(
                admitted(&fixed),
                "seed {seed}: {fix} does not mend {system:?}"
            );
            let mut short = fix.clone();
            let step = if fix.to > fix.from {
                fix.to.ticks() - 1
            } else {
                fix.to.ticks() + 1
            };
            short.to = span(step);
            let mut unmended = system.clone();
            short.apply(&mut unmended);
            assert!(
                !admitted(&unmended),
                "seed {seed}: {short} is enough for {system:?}"
            );
        }
    }
    assert!(
        (450..=1_050).contains(&refused),
        "{refused} of 1500 are refused"
    );
    assert!(
        fixes * 10 >= refused * 9,
        "{fixes} fixes of {refused} refused systems"
    );
}

#[test]
fn slack_is_admitted_and_one_step_beyond_is_refused() {
    let mut tried = 0;
    for seed in 0..500_u64 {
        let mut random = Random::new(seed);
        let policy = POLICIES[usize::try_from(seed % 5).expect("small")];
        // Long periods, so that a tenth of a percent is several ticks.
        let system = draw(&mut random, policy, (10_000.0, 200_000.0));
        // So near to a utilization of 1 that the analysis says it cannot tell.
        let Ok(verdict) = admit(&system) else {
            continue;
        };
        for (index, row) in verdict.tasks.iter().enumerate() {
            assert_eq!(row.slack.is_some(), verdict.admitted);
            let Some(slack) = row.slack else { continue };
            tried += 1;
            let before = wcet(&system, index);
            let grown = |tenths: u64| (before * (1_000 + tenths)).div_ceil(1_000);
            let mut changed = system.clone();
            set_wcet(&mut changed, index, grown(slack.tenths_of_a_percent()));
            assert_eq!(
                Slack::grown(slack, work(before)).map(Work::ticks),
                Some(wcet(&changed, index))
            );
            assert!(
                admitted(&changed),
                "seed {seed}, task {index}: {slack} of {system:?}"
            );
            set_wcet(&mut changed, index, grown(slack.tenths_of_a_percent() + 1));
            assert!(
                !admitted(&changed),
                "seed {seed}, task {index}: beyond {slack}"
            );
        }
    }
    assert!(tried >= 500, "only {tried} slacks");
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).expect("small numbers")
}

/// The situation of a witness: everything at 0, the witness task at its offset, and the section
/// that the numbers speak of begun one tick before.
fn situation(system: &System, own: Option<(usize, u64)>, blocking: u64, end: i64) -> Script {
    let mut script = Script {
        end,
        ..Script::default()
    };
    for task in 0..system.tasks.len() {
        script.jobs.push(densest(system, task, 0, end));
    }
    if let Some((task, offset)) = own {
        let period = system.tasks[task]
            .class
            .min_separation()
            .map_or(u64::MAX, Span::ticks);
        script.jobs[task] = densest(system, task, signed(offset % period), end);
        let edf = system.cpus[0].policy == EDF;
        script.loses_ties = edf.then_some(task);
    }
    if blocking > 0 {
        let blocks = |task: usize| {
            let cpu = &system.cpus[0];
            let whole = matches!(cpu.policy, NP_FP);
            let section = if whole {
                wcet(system, task)
            } else {
                system.tasks[task].non_preemptive.ticks()
            };
            section == blocking + 1
        };
        // The least urgent one with this section.
        let urgency = |&task: &usize| match system.cpus[0].policy {
            PolicyKind::EarliestDeadlineFirst => -signed(
                system.tasks[task]
                    .class
                    .relative_deadline()
                    .map_or(0, Span::ticks),
            ),
            _ => i64::from(system.tasks[task].priority.number()),
        };
        let blocker = (0..system.tasks.len())
            .filter(|&t| blocks(t))
            .min_by_key(urgency);
        let blocker = blocker.expect("some task has this section");
        script.jobs[blocker] = densest(system, blocker, -1, end);
    }
    script
}

#[test]
fn every_witness_is_seen_in_a_simulation() {
    let (mut demands, mut responses, mut without) = (0, 0, 0);
    for seed in 0..3_000_u64 {
        let mut random = Random::new(seed + 50_000);
        let policy = [FP, NP_FP, EDF, PolicyKind::Fifo][usize::try_from(seed % 4).expect("small")];
        let mut system = draw(&mut random, policy, (5.0, 60.0));
        if random.within(0, 2) == 0 {
            let deadline = system.tasks[0]
                .class
                .relative_deadline()
                .map_or(1, Span::ticks);
            require_response(&mut system, 0, random.within(1, deadline));
        }
        if random.within(0, 3) == 0 {
            let reserve = Reserve {
                name: "r".into(),
                budget: work(1),
                period: span(10),
            };
            system.machine.reserves.push(reserve);
        }
        for refusal in judge(&system).refusals {
            match refusal.witness {
                None => without += 1,
                Some(Witness::Demand { at, demand, supply }) => {
                    demands += 1;
                    assert!(demand.ticks() > supply.ticks());
                    let at = signed(at.ticks());
                    if at > 20_000 {
                        continue;
                    }
                    let due = |task: usize| {
                        let d = system.tasks[task]
                            .class
                            .relative_deadline()
                            .map_or(0, Span::ticks);
                        let list = densest(&system, task, 0, at + 1);
                        let jobs = list.iter().filter(|j| j.0 + signed(d) <= at).count() as u64;
                        jobs * wcet(&system, task)
                    };
                    let released: u64 = (0..system.tasks.len()).map(due).sum();
                    let script = situation(&system, None, demand.ticks() - released, at);
                    let done = simulate(&system, &script);
                    let mut deadlines_only = system.clone();
                    deadlines_only.requirements.clear();
                    assert!(
                        misses(&deadlines_only, &script, &done),
                        "seed {seed}: {refusal:?}"
                    );
                }
                Some(Witness::Response {
                    task,
                    job,
                    offset,
                    response,
                    deadline,
                }) => {
                    responses += 1;
                    assert!(response > deadline);
                    let end = signed(offset.ticks() + response.ticks() + 1);
                    let own = Some((task.index(), offset.ticks()));
                    let blocking = blocking_of(&refusal.situation, &system, task);
                    let script = situation(&system, own, blocking, end);
                    let done = simulate(&system, &script);
                    let index = usize::try_from(job).expect("small");
                    let arrival = script.jobs[task.index()][index].0;
                    assert_eq!(arrival, signed(offset.ticks()), "seed {seed}");
                    let seen = done[task.index()][index].map(|done| done - arrival);
                    assert_eq!(
                        seen,
                        Some(signed(response.ticks())),
                        "seed {seed}: {refusal:?} {system:?}"
                    );
                }
            }
        }
    }
    assert!(
        demands >= 300 && responses >= 600,
        "{demands} demands, {responses} responses"
    );
    assert!(
        without * 20 <= demands + responses,
        "{without} refusals without a witness"
    );
}

/// The blocking of the task that the situation names.
fn blocking_of(situation: &str, system: &System, _task: TaskId) -> u64 {
    let Some(rest) = situation.split("; a section of ").nth(1) else {
        return 0;
    };
    let name = rest.split(' ').next().expect("a name follows");
    let task = system
        .tasks
        .iter()
        .position(|t| t.name == name)
        .expect("it exists");
    let section = if matches!(system.cpus[0].policy, NP_FP) {
        wcet(system, task)
    } else {
        system.tasks[task].non_preemptive.ticks()
    };
    section - 1
}

/// The longest response of each task over every combination of first releases of sporadic tasks.
fn worst_over_offsets(system: &System, end: i64) -> Vec<i64> {
    let n = system.tasks.len();
    let period = |task: usize| {
        signed(
            system.tasks[task]
                .class
                .min_separation()
                .map_or(1, Span::ticks),
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
    for seed in 0..160_u64 {
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
            let bound = row.response_bound.map_or(0, |r| signed(r.ticks()));
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
    assert!(compared >= 250, "only {compared} exact bounds");
}

#[test]
fn exact_bounds_of_tasks_by_the_clock_are_reached_by_the_clock() {
    let mut exact = 0;
    for seed in 0..400_u64 {
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
                .push(densest(&system, task, signed(model.phase.ticks()), end));
        }
        let done = simulate(&system, &script);
        for (task, row) in verdict.tasks.iter().enumerate() {
            let Some(bound) = row.response_bound else {
                continue;
            };
            let seen = longest_response(&script, &done, task);
            assert!(
                seen <= signed(bound.ticks()),
                "seed {seed}: task {task} of {system:?}"
            );
            if row.exactness == Exactness::Exact {
                exact += 1;
                assert_eq!(
                    seen,
                    signed(bound.ticks()),
                    "seed {seed}: task {task} of {system:?}"
                );
            }
        }
    }
    assert!(exact >= 300, "only {exact} exact bounds");
}

/// A system with precedence on one or two CPUs, suspension and reserves.
fn draw_with_precedence(random: &mut Random, policy: PolicyKind) -> System {
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
    system
}

#[test]
fn no_job_exceeds_its_bound_with_precedence_suspension_and_sections() {
    let (mut admitted, mut bounded) = (0, 0);
    for seed in 0..3_000_u64 {
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
            script
                .jobs
                .push(densest(&system, task, signed(model.phase.ticks()), end));
            let budget = wcet(&system, task);
            let section = model.non_preemptive.ticks().min(budget);
            script.section_at.push(random.within(0, budget - section));
            let length = signed(model.max_suspension.ticks());
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
                seen <= signed(bound.ticks()),
                "seed {seed}: task {task} took {seen}: {} in {system:?}",
                row.explanation
            );
        }
        if verdict.admitted {
            assert!(!misses(&system, &script, &done), "seed {seed}: {system:?}");
        }
    }
    assert!(
        (900..=2_100).contains(&admitted),
        "{admitted} of 3000 are admitted"
    );
    assert!(bounded >= 6_000, "only {bounded} bounds");
}
