//! A verdict for programs: the JSON of `check` (`punctual schema check`).

use punctual_analysis::{
    ChainVerdict, CpuVerdict, Fix, Refusal, SchedulerVerdict, TaskVerdict, Verdict, Witness,
};
use punctual_model::{Span, System, readable};

use crate::words::{cpu_name, task_name};
use crate::{gangs, graphs, plans};
use punctual_terminal::json::{Json, list};
use punctual_terminal::object;
use punctual_terminal::output::JSON_FORMAT;

/// `verdict` on `system`, with names in the place of numbers.
pub(crate) fn json(system: &System, verdict: &Verdict) -> Json {
    object! {
        format: JSON_FORMAT,
        verdict: verdict.word(),
        tasks: list(&verdict.tasks, |task| of_task(system, task)),
        refusals: list(&verdict.refusals, |refusal| of_refusal(system, refusal)),
        cpus: list(&verdict.cpus, |cpu| of_cpu(system, cpu)),
        schedulers: list(&verdict.schedulers, |scheduler| of_scheduler(system, scheduler)),
        chains: list(&verdict.chains, |chain| of_chain(system, chain)),
        jitters: list(&verdict.jitters, |jitter| object! {
            task: &jitter.name,
            within_ns: jitter.within.as_ns(),
            bound_ns: jitter.bound.map(Span::as_ns),
            explanation: &jitter.explanation,
        }),
    }
    .with("graphs", graphs::json(verdict))
    .with("gangs", gangs::json(system, verdict))
    .with("planning", plans::json(system, verdict))
}

pub(crate) fn of_task(system: &System, task: &TaskVerdict) -> Json {
    object! {
        name: &task.name,
        on: home(system, task),
        cpu: cpu_name(system, task.cpu),
        response_bound_ns: task.response_bound.map(Span::as_ns),
        relative_deadline_ns: task.relative_deadline.map(Span::as_ns),
        exactness: task.exactness.name(),
        test: task.test.to_string(),
        explanation: &task.explanation,
        slack_percent: task.slack.map(|slack| tenths(slack.tenths_of_a_percent())),
        assumptions: &task.assumptions,
    }
}

pub(crate) fn of_refusal(system: &System, refusal: &Refusal) -> Json {
    let of_fix = |fix: &Fix| {
        object! {
            parameter: &fix.parameter,
            from: readable(fix.from.as_ns()).to_string(),
            to: readable(fix.to.as_ns()).to_string(),
            from_ns: fix.from.as_ns(),
            to_ns: fix.to.as_ns(),
        }
    };
    object! {
        subject: &refusal.name,
        reason: &refusal.reason,
        witness: refusal.witness.map(|witness| of_witness(system, witness)),
        situation: &refusal.situation,
        fix: refusal.fix.as_ref().map(of_fix),
        advice: &refusal.advice,
    }
}

fn of_witness(system: &System, witness: Witness) -> Json {
    match witness {
        Witness::Demand { at, demand, supply } => object! {
            kind: "demand",
            at_ns: at.as_ns(),
            demand_ns: demand.as_ns(),
            supply_ns: supply.as_ns(),
        },
        Witness::Response {
            task,
            job,
            offset,
            response,
            deadline,
        } => object! {
            kind: "response",
            task: task_name(system, task),
            job: job,
            offset_ns: offset.as_ns(),
            response_ns: response.as_ns(),
            deadline_ns: deadline.as_ns(),
        },
    }
}

fn of_cpu(system: &System, cpu: &CpuVerdict) -> Json {
    let model = system.cpus.get(cpu.cpu.index());
    object! {
        name: &cpu.name,
        policy: model.map_or("", |cpu| cpu.policy.name()),
        // Parts per million, rounded up, to tenths of a percent, rounded up.
        utilization_percent: tenths(cpu.utilization_ppm.div_ceil(1_000)),
        between_slots: cpu.between_slots.map(|between| object! {
            each_ns: between.each.as_ns(),
            all_ns: between.all.as_ns(),
            frame_ns: between.frame.as_ns(),
        }),
    }
}

fn of_scheduler(system: &System, scheduler: &SchedulerVerdict) -> Json {
    let model = system.schedulers.get(scheduler.scheduler.index());
    object! {
        name: &scheduler.name,
        cpu: cpu_name(system, scheduler.cpu),
        policy: model.map_or("", |scheduler| scheduler.policy.name()),
        utilization_percent: tenths(scheduler.utilization_ppm.div_ceil(1_000)),
        supply_percent: tenths(scheduler.supply_ppm / 1_000),
        budget_bound_ns: scheduler.budget_bound.map(Span::as_ns),
        blackout_ns: scheduler.blackout.map(Span::as_ns),
        explanation: &scheduler.explanation,
        slice: scheduler.slice.as_ref().map(|slice| object! {
            by: &slice.by,
            to: &slice.to,
            guaranteed: slice.is_guaranteed,
            reason: &slice.reason,
        }),
    }
}

fn of_chain(system: &System, chain: &ChainVerdict) -> Json {
    object! {
        name: &chain.name,
        within_ns: chain.within.as_ns(),
        bound_ns: chain.bound.map(Span::as_ns),
        exactness: chain.exactness.name(),
        test: chain.test.to_string(),
        handovers: list(&chain.handovers, |handover| object! {
            from: task_name(system, handover.from),
            to: task_name(system, handover.to),
            how: handover.how.name(),
            length_ns: handover.length.as_ns(),
        }),
        explanation: &chain.explanation,
        assumptions: &chain.assumptions,
    }
}

/// Where a task stands, as the file writes it.
pub(crate) fn home(system: &System, task: &TaskVerdict) -> String {
    let scheduler = system
        .tasks
        .get(task.task.index())
        .and_then(|task| task.scheduler)
        .and_then(|id| system.schedulers.get(id.index()));
    match scheduler {
        Some(scheduler) => format!("scheduler.{}", scheduler.name),
        None => format!("cpu.{}", cpu_name(system, task.cpu)),
    }
}

/// Tenths of a percent as a percentage. Exact to the last digit that is printed, below 10^15.
#[allow(
    clippy::cast_precision_loss,
    reason = "a percentage that large is read by nobody"
)]
pub(crate) fn tenths(tenths: u64) -> f64 {
    tenths as f64 / 10.0
}
