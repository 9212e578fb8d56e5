//! Why a CPU or a task is refused, with a witness that simulation can confirm
//!
//! # Assumptions
//! 1. A demand witness assumes that all tasks of the CPU arrive so that their releases, as late as
//!    their jitter allows, fall together at 0, and then as densely as they may.
//! 2. A response witness assumes the same of the tasks that may delay the one named; its own jobs
//!    arrive at the offset that the situation names.
//! 3. Each job needs its wcet and all its overheads.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Ordering;

use punctual_model::{PolicyKind, Span, System, TaskId, Work, readable};

use crate::bounds::{Basis, Bound, STEPS};
use crate::busy_window::{Question, Worst};
use crate::case::Case;
use crate::edf::{self, Excess};
use crate::error::{AnalysisError, Checked};
use crate::fixed_point::Meter;
use crate::verdict::{Refusal, Subject, Witness};
use crate::{decide, explain, fixed_priority, spuri};

/// All refusals of one CPU: first the CPU, then its tasks in the order of the file.
pub(crate) fn refusals(
    system: &System,
    case: &Case,
    bounds: &[Option<Bound>],
) -> Checked<Vec<Refusal>> {
    let mut refusals = Vec::new();
    let overloaded = case.load() == Ordering::Greater;
    let cpu = cpu_refusal(system, case, overloaded, bounds)?;
    let covers_deadlines = cpu
        .as_ref()
        .is_some_and(|refusal| refusal.witness.is_some());
    let by_deadline = case.policy == PolicyKind::EarliestDeadlineFirst;
    refusals.extend(cpu);
    for (place, contender) in case.contenders.iter().enumerate() {
        let bound = bounds[contender.task.index()];
        let allowed = decide::allowed(system, contender.task, contender.deadline);
        if bound.is_some_and(|b| b.response <= allowed) {
            continue;
        }
        // What the CPU's demand already says: overload without a bound, or an EDF deadline.
        let told =
            covers_deadlines && (bound.is_none() || (by_deadline && allowed == contender.deadline));
        if !told {
            refusals.push(task_refusal(system, case, place, bound, allowed)?);
        }
    }
    Ok(refusals)
}

fn refusal(subject: Subject, name: &str, reason: String) -> Refusal {
    Refusal {
        subject,
        name: name.to_string(),
        reason,
        witness: None,
        situation: String::new(),
        fix: None,
        advice: String::new(),
    }
}

fn cpu_refusal(
    system: &System,
    case: &Case,
    overloaded: bool,
    bounds: &[Option<Bound>],
) -> Checked<Option<Refusal>> {
    let name = &system.cpus[case.cpu.index()].name;
    let subject = Subject::Cpu(case.cpu);
    let utilization = crate::utilization::parts_per_million(&case.ratios());
    let mut meter = Meter::new(STEPS);
    if overloaded {
        let reason = format!(
            "CPU {name} is overloaded: its utilization is {}",
            explain::percent(utilization)
        );
        let excess = match edf::find_overload(case, &mut meter) {
            Ok(excess) => Some(excess),
            Err(AnalysisError::TooLong { .. } | AnalysisError::Overflow { .. }) => None,
            Err(other) => return Err(other),
        };
        return Ok(Some(with_excess(
            refusal(subject, name, reason),
            case,
            excess,
        )));
    }
    let waits = case.contenders.iter().any(|c| c.waiting > 0);
    if case.policy == PolicyKind::EarliestDeadlineFirst
        && !waits
        && let Some(excess) = edf::find_excess(case, &mut meter)?
    {
        let late = late_tasks(system, case, bounds);
        let reason = format!(
            "CPU {name} cannot do in {} what is due by then: {}; {late} can miss",
            readable(excess.at),
            readable(excess.demand)
        );
        return Ok(Some(with_excess(
            refusal(subject, name, reason),
            case,
            Some(excess),
        )));
    }
    if decide::exceeds_limit(system, case) {
        let limit = u64::from(system.machine.limits.utilization.ppm());
        let reason = format!(
            "CPU {name} is used to {}, the limit is {}",
            explain::percent(utilization),
            explain::percent(limit)
        );
        return Ok(Some(refusal(subject, name, reason)));
    }
    Ok(None)
}

fn late_tasks(system: &System, case: &Case, bounds: &[Option<Bound>]) -> String {
    let late = case
        .contenders
        .iter()
        .filter(|c| bounds[c.task.index()].is_none_or(|bound| bound.response > c.deadline));
    let names: Vec<&str> = late
        .map(|c| system.tasks[c.task.index()].name.as_str())
        .collect();
    if names.is_empty() {
        "some task".to_string()
    } else {
        names.join(", ")
    }
}

fn with_excess(mut refusal: Refusal, case: &Case, excess: Option<Excess>) -> Refusal {
    let Some(excess) = excess else { return refusal };
    // Counting suspension or waiting as demand is safe, but no simulation would show the miss.
    if case.contenders.iter().any(|c| c.cost.suspension > 0) {
        return refusal;
    }
    refusal.witness = Some(Witness::Demand {
        at: Span::from_ticks(excess.at),
        demand: Work::from_ticks(excess.demand),
        supply: Work::from_ticks(excess.supply),
    });
    refusal.situation = "all releases fall together at 0".to_string();
    if case.contenders.iter().any(|c| c.flow.jitter > 0) {
        refusal.situation += ", as late as their jitter allows";
    }
    if edf::blocking(case, excess.at) > 0 {
        refusal.situation += "; a section with a later deadline began one tick before";
    }
    refusal
}

fn task_refusal(
    system: &System,
    case: &Case,
    place: usize,
    bound: Option<Bound>,
    allowed: u64,
) -> Checked<Refusal> {
    let contender = &case.contenders[place];
    let name = &system.tasks[contender.task.index()].name;
    let what = if allowed < contender.deadline {
        "required response"
    } else {
        "deadline"
    };
    let over = readable(allowed);
    let reason = match bound {
        Some(bound) => {
            format!(
                "{name} may take {}, over its {what} of {over}",
                readable(bound.response)
            )
        }
        None => format!("nothing bounds the response of {name}; its {what} is {over}"),
    };
    let mut refusal = refusal(Subject::Task(contender.task), name, reason);
    if let Some((question, worst)) = missing_job(case, place, bound, allowed)? {
        refusal.witness = Some(Witness::Response {
            task: contender.task,
            job: worst.job,
            offset: Span::from_ticks(worst.offset),
            response: Span::from_ticks(worst.response),
            deadline: Span::from_ticks(allowed),
        });
        refusal.situation = situation(system, case, &question, &worst);
    }
    Ok(refusal)
}

/// The first job of the busy window that is late, where the test has a job to show.
fn missing_job(
    case: &Case,
    place: usize,
    bound: Option<Bound>,
    allowed: u64,
) -> Checked<Option<(Question<'_>, Worst)>> {
    let hidden = case
        .contenders
        .iter()
        .any(|c| c.waiting > 0 || c.cost.suspension > 0);
    let by_window = matches!(
        bound,
        Some(Bound {
            basis: Basis::Window(_) | Basis::Feasible,
            ..
        })
    );
    if hidden || by_window {
        return Ok(None);
    }
    let question = match (case.policy, bound.map(|b| b.basis)) {
        (PolicyKind::RoundRobin { .. }, _) | (PolicyKind::EarliestDeadlineFirst, None) => {
            return Ok(None);
        }
        (PolicyKind::EarliestDeadlineFirst, Some(Basis::Job(worst))) => {
            return Ok(Some((spuri::question(case, place, 0), worst)));
        }
        _ => fixed_priority::question(case, place, Some(allowed)),
    };
    if !fixed_priority::fits(&question) {
        return Ok(None);
    }
    match question.worst(&mut Meter::new(STEPS)) {
        Ok(worst) => Ok(worst
            .filter(|w| w.response > allowed)
            .map(|worst| (question, worst))),
        Err(AnalysisError::TooLong { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

fn situation(system: &System, case: &Case, question: &Question<'_>, worst: &Worst) -> String {
    let name = |task: TaskId| system.tasks[task.index()].name.as_str();
    let own = question.own;
    let together = own
        .flow
        .separation
        .map_or(worst.offset == 0, |t| worst.offset.is_multiple_of(t));
    let mut words = if question.rivals.is_empty() && case.takings.is_empty() {
        format!("{} alone", name(own.task))
    } else if together {
        "all that may delay it is released together with it at 0".to_string()
    } else {
        format!(
            "all that may delay it is released at 0; its own job {} at {}, earlier ones one period \
             apart before that",
            worst.job,
            readable(worst.offset)
        )
    };
    if let Some(blocker) = question.blocker(worst.offset) {
        let whose = blocker.task.map_or("background work", name);
        words += &format!("; a section of {whose} began one tick before");
    }
    if case.policy == PolicyKind::EarliestDeadlineFirst {
        words += "; equal deadlines go before it";
    }
    if case.contenders.iter().any(|c| c.flow.jitter > 0) {
        words += "; first releases are as late as their jitter allows";
    }
    words
}
