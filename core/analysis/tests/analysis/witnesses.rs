//! Every witness is seen in a simulation of the situation that it names

use crate::common::draw::{draw, signed, wcet};
use crate::common::random::Random;
use crate::common::simulator::{Script, densest, misses, simulate};
use crate::common::{EDF, FP, NP_FP, require_response, span, work};
use punctual_analysis::{Refusal, Witness, admit};
use punctual_model::{Ns, PolicyKind, Reserve, Span, System, Work};

/// Longest demand that is simulated tick by tick.
const LONGEST: u64 = 20_000;

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
            .map_or(u64::MAX, Span::as_ns);
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
                system.tasks[task].non_preemptive.as_ns()
            };
            section == blocking + 1
        };
        // The least urgent one with this section.
        let urgency = |&task: &usize| match system.cpus[0].policy {
            PolicyKind::EarliestDeadlineFirst => -signed(
                system.tasks[task]
                    .class
                    .relative_deadline()
                    .map_or(0, Span::as_ns),
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

/// A system that may also have a required response and a reserve.
fn draw_strict(seed: u64) -> System {
    let mut random = Random::new(seed + 50_000);
    let policy = [FP, NP_FP, EDF, PolicyKind::Fifo][usize::try_from(seed % 4).expect("small")];
    let mut system = draw(&mut random, policy, (5.0, 60.0));
    if random.within(0, 2) == 0 {
        let deadline = system.tasks[0]
            .class
            .relative_deadline()
            .map_or(1, Span::as_ns);
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
    system
}

/// Some deadline up to `at` is missed when everything is released at 0.
fn confirm_demand(system: &System, at: Span<Ns>, demand: Work<Ns>) -> bool {
    let end = signed(at.as_ns());
    let due = |task: usize| {
        let deadline = system.tasks[task]
            .class
            .relative_deadline()
            .map_or(0, Span::as_ns);
        let list = densest(system, task, 0, end + 1);
        let jobs = list
            .iter()
            .filter(|job| job.0 + signed(deadline) <= end)
            .count() as u64;
        jobs * wcet(system, task)
    };
    let released: u64 = (0..system.tasks.len()).map(due).sum();
    let script = situation(system, None, demand.as_ns() - released, end);
    let mut deadlines_only = system.clone();
    deadlines_only.requirements.clear();
    misses(&deadlines_only, &script, &simulate(system, &script))
}

/// The response of the job that a refusal names, in the situation that it names.
fn observed_response(system: &System, refusal: &Refusal) -> Option<i64> {
    let Some(Witness::Response {
        task,
        job,
        offset,
        response,
        ..
    }) = refusal.witness
    else {
        return None;
    };
    let end = signed(offset.as_ns() + response.as_ns() + 1);
    let own = Some((task.index(), offset.as_ns()));
    let script = situation(system, own, blocking_of(&refusal.situation, system), end);
    let index = usize::try_from(job).expect("small");
    let arrival = script.jobs[task.index()][index].0;
    assert_eq!(arrival, signed(offset.as_ns()), "{refusal:?}");
    simulate(system, &script)[task.index()][index].map(|done| done - arrival)
}

#[test]
fn every_witness_is_seen_in_a_simulation() {
    let (mut demands, mut responses, mut without) = (0, 0, 0);
    for seed in 0..3_000_u64 {
        let system = draw_strict(seed);
        for refusal in admit(&system).expect("small numbers").refusals {
            match refusal.witness {
                None => without += 1,
                Some(Witness::Demand { at, demand, supply }) => {
                    assert!(demand.as_ns() > supply.as_ns());
                    if at.as_ns() <= LONGEST {
                        demands += 1;
                        assert!(
                            confirm_demand(&system, at, demand),
                            "seed {seed}: {refusal:?}"
                        );
                    }
                }
                Some(Witness::Response {
                    response, deadline, ..
                }) => {
                    responses += 1;
                    assert!(response > deadline);
                    let seen = observed_response(&system, &refusal);
                    let promised = Some(signed(response.as_ns()));
                    assert_eq!(seen, promised, "seed {seed}: {refusal:?} {system:?}");
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

/// The blocking by the section that the situation names.
fn blocking_of(situation: &str, system: &System) -> u64 {
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
        system.tasks[task].non_preemptive.as_ns()
    };
    section - 1
}
