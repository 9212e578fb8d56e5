//! Required along chains: end-to-end bounds, and how much the responses of a task differ
//!
//! The latency of a chain a → b → c counts from the arrival of any job of a to the completion of
//! the first job of c that has seen its effect. A job hands on at its completion, and sees what was
//! handed on before it started.
//!
//! ```text
//! latency = Σ (arrival of the next job of b that must see a's − arrival of a's) + R(last)
//! ```
//!
//! A job of b that arrives `ready` after the arrival of a's must see it, where `ready` is
//! * the release jitter of a, when b waits for a by precedence: such a hand-over is *triggered*;
//! * until a is ready, when b cannot overtake it on their CPU: *ordered* (Dürr et al. 2019);
//! * R(a) otherwise: *sampled* (Davare et al. 2007).
//!
//! The next arrival of b is one period away at most, and less where both arrive by the clock. Then
//! the arrivals themselves are walked through: one by one for every job of a until all repeats, or
//! hand-over by hand-over where that would be long.
//!
//! # Assumptions
//! 1. Data is read when a job starts and handed on when it completes, and is kept until read.
//! 2. Responses are those of the tests; no hand-over takes time of its own.
//! 3. The latency counts from an arrival of the first task. An event in the
//!    world just after that task has looked waits for its next arrival, at most one period more.
//! 4. The shortest response of a task is what its jobs surely execute: the work of its `burn`, the
//!    slice of a reservation, else nothing.
//!
//! Sources: Davare et al., DAC 2007 (T + R per hand-over); Dürr, von der Brüggen, Chen and
//! Chen, TECS 2019 (ordered hand-overs); Becker et al., JSA 2017 (walking through the
//! arrivals).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use punctual_model::{Class, Requirement, System, TaskId, WorkSource};

use crate::component::Component;
use crate::error::{Checked, in_range};
use crate::handover::{self, BY_PERIODS, Latency, Step};
use crate::lookup::task_name;
use crate::solve::Solution;
use crate::units::{Span, Work};
use crate::verdict::{
    ChainVerdict, Exactness, Handover, How, JitterVerdict, Refusal, Subject, TaskVerdict,
};

const WHAT: &str = "chain";

/// The chains and the differences of responses that are required on the CPUs of `component`.
pub(crate) fn required<'a>(
    system: &'a System,
    component: &'a Component,
) -> impl Iterator<Item = &'a Requirement> {
    let here = |task: &TaskId| {
        let task = system.tasks.get(task.index());
        task.is_some_and(|task| component.contains(task.cpu))
    };
    system.requirements.iter().filter(move |r| match r {
        Requirement::Chain { tasks, .. } => tasks.iter().any(here),
        Requirement::Jitter { task, .. } => here(task),
        Requirement::Response { .. } => false,
    })
}

/// Whether a chain or a difference of responses holds with these bounds.
pub(crate) fn holds(
    system: &System,
    solution: &Solution,
    requirement: &Requirement,
) -> Checked<bool> {
    Ok(match requirement {
        Requirement::Chain { tasks, within } => {
            let found = latency(system, solution, tasks)?;
            found.is_ok_and(|(_, latency)| latency.total <= *within)
        }
        Requirement::Jitter { task, within } => {
            jitter(system, solution, *task).is_some_and(|(_, _, widest)| widest <= *within)
        }
        Requirement::Response { .. } => true,
    })
}

/// The verdicts on all chains. O(arrivals until all repeats, at most 2^14 · length) per chain.
pub(crate) fn chains(
    system: &System,
    solution: &Solution,
    rows: &[TaskVerdict],
) -> Checked<Vec<ChainVerdict>> {
    let mut verdicts = Vec::new();
    for (requirement, required) in system.requirements.iter().enumerate() {
        let Requirement::Chain { tasks, within } = required else {
            continue;
        };
        let mut verdict = ChainVerdict {
            requirement,
            name: chain_name(system, tasks),
            within: *within,
            bound: None,
            exactness: Exactness::Sufficient,
            test: BY_PERIODS,
            handovers: Vec::new(),
            explanation: String::new(),
            assumptions: assumptions(),
        };
        match latency(system, solution, tasks)? {
            Err(why) => verdict.explanation = format!("no bound: {why}"),
            Ok((steps, latency)) => fill(&mut verdict, system, rows, tasks, &steps, &latency),
        }
        verdicts.push(verdict);
    }
    Ok(verdicts)
}

/// The verdicts on all required differences of responses. O(requirements).
pub(crate) fn jitters(system: &System, solution: &Solution) -> Vec<JitterVerdict> {
    let verdict = |(requirement, required): (usize, &Requirement)| {
        let &Requirement::Jitter { task, within } = required else {
            return None;
        };
        let found = jitter(system, solution, task);
        let explanation = match found {
            Some((longest, shortest, widest)) => format!(
                "{} = {} (longest response) - {} (what each job surely executes)",
                widest.readable(),
                longest.readable(),
                shortest.readable()
            ),
            None => "no bound: nothing bounds its response".to_string(),
        };
        Some(JitterVerdict {
            requirement,
            task,
            name: task_name(system, task).to_string(),
            within,
            bound: found.map(|(_, _, widest)| widest),
            explanation,
        })
    };
    let required = system.requirements.iter().enumerate();
    required.filter_map(verdict).collect()
}

/// A refusal for each of these requirements that does not hold.
pub(crate) fn refusals(chains: &[ChainVerdict], jitters: &[JitterVerdict]) -> Vec<Refusal> {
    let late = chains
        .iter()
        .filter(|c| c.bound.is_none_or(|b| b > c.within));
    let mut refusals: Vec<Refusal> = late
        .map(|c| {
            let over = format!("over the {} required", c.within.readable());
            refusal(
                c.requirement,
                &c.name,
                "from end to end",
                over,
                &c.explanation,
            )
        })
        .collect();
    let wide = jitters
        .iter()
        .filter(|j| j.bound.is_none_or(|b| b > j.within));
    refusals.extend(wide.map(|j| {
        let over = format!("over the {} required", j.within.readable());
        refusal(
            j.requirement,
            &j.name,
            "its responses differ",
            over,
            &j.explanation,
        )
    }));
    refusals
}

fn refusal(index: usize, name: &str, what: &str, over: String, explanation: &str) -> Refusal {
    let reason = format!("{what}, {explanation}; {over}");
    Refusal::new(Subject::Requirement(index), name, reason)
}

fn fill(
    verdict: &mut ChainVerdict,
    system: &System,
    rows: &[TaskVerdict],
    tasks: &[TaskId],
    steps: &[Step],
    latency: &Latency,
) {
    let handover = |(step, &length): (&Step, &Span)| Handover {
        from: step.from,
        to: step.to,
        how: step.how,
        length,
    };
    verdict.handovers = steps.iter().zip(&latency.lengths).map(handover).collect();
    verdict.bound = Some(latency.total);
    verdict.test = latency.test;
    verdict.explanation = words(system, tasks, verdict, latency);
    // With one job of each task per job of the first, and no response but the last in the sum, the
    // worst response of the last task is the end of some chain.
    let same_rate = steps
        .iter()
        .all(|s| s.source.is_some_and(|(_, period)| period == s.target.1));
    let triggered = steps.iter().all(|s| s.how == How::Triggered);
    let last = tasks.last().and_then(|t| rows.get(t.index()));
    let exact = last.is_some_and(|row| row.exactness == Exactness::Exact);
    if latency.constant && same_rate && triggered && exact {
        verdict.exactness = Exactness::Exact;
    } else {
        let doubt = "not exact: the worst responses and distances along the chain may never meet";
        verdict.assumptions.push(doubt.into());
    }
}

fn words(system: &System, tasks: &[TaskId], verdict: &ChainVerdict, latency: &Latency) -> String {
    let mut words = format!("{} =", latency.total.readable());
    let mut arrivals = Span::ZERO;
    for handover in &verdict.handovers {
        let (from, to) = (
            task_name(system, handover.from),
            task_name(system, handover.to),
        );
        let how = match handover.how {
            How::Triggered => format!("{to} arrives, and waits for {from}"),
            How::Ordered => format!("{to} arrives, and cannot overtake {from}"),
            How::Sampled => format!("{to} arrives when {from} has completed"),
        };
        words += &format!(" {} ({how}) +", handover.length.readable());
        arrivals = arrivals.saturating_add(handover.length);
    }
    let last = tasks.last().map_or("?", |&task| task_name(system, task));
    words
        + &format!(
            " {} (response of {last})",
            latency.total.saturating_sub(arrivals).readable()
        )
}

fn assumptions() -> Vec<String> {
    alloc::vec![
        "a job reads when it starts, and hands on when it completes".into(),
        "the latency counts from an arrival of the first task".into(),
    ]
}

/// The hand-overs of a chain and its longest latency, or in words why nothing bounds it.
fn latency(
    system: &System,
    solution: &Solution,
    tasks: &[TaskId],
) -> Checked<Result<(Vec<Step>, Latency), String>> {
    let mut steps = Vec::new();
    for pair in tasks.windows(2) {
        match handover::step(system, solution, pair[0], pair[1])? {
            Ok(step) => steps.push(step),
            Err(why) => return Ok(Err(why)),
        }
    }
    let last = tasks.last().copied().unwrap_or(TaskId(0));
    let Some(response) = solution.response(last) else {
        return Ok(Err(format!("nothing bounds {}", task_name(system, last))));
    };
    let found = match handover::walk(&steps)? {
        Some(found) => found,
        None => handover::by_periods(&steps)?,
    };
    let total = in_range(found.total.checked_add(response), WHAT)?;
    Ok(Ok((steps, Latency { total, ..found })))
}

/// The longest and the shortest response of a task, and how much they differ.
fn jitter(system: &System, solution: &Solution, task: TaskId) -> Option<(Span, Span, Span)> {
    let longest = solution.response(task)?;
    let shortest = shortest(system, task).as_span();
    Some((longest, shortest, longest.saturating_sub(shortest)))
}

/// The work that every job of the task surely executes.
fn shortest(system: &System, task: TaskId) -> Work {
    let Some(task) = system.tasks.get(task.index()) else {
        return Work::ZERO;
    };
    let budget = task.class.budget().unwrap_or_default();
    match (&task.class, &task.work) {
        (Class::Reservation { .. }, _) => budget,
        (_, Some(WorkSource::Burn(work))) => budget.min(*work),
        _ => Work::ZERO,
    }
}

fn chain_name(system: &System, tasks: &[TaskId]) -> String {
    let names: Vec<&str> = tasks.iter().map(|&t| task_name(system, t)).collect();
    names.join(" -> ")
}
