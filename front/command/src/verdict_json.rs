//! A verdict for programs: the JSON of `check` (`punctual schema check`).

use punctual_analysis::{
    ChainVerdict, JitterVerdict, SchedulerVerdict, TaskVerdict, Verdict, Witness,
};
use punctual_model::{CpuId, Span, System, TaskId, readable};
use serde::Serialize;

use crate::platform_file::Origin;
use punctual_terminal::output::JSON_FORMAT;

/// The whole answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct VerdictJson {
    format: u32,
    verdict: &'static str,
    tasks: Vec<TaskJson>,
    refusals: Vec<RefusalJson>,
    cpus: Vec<CpuJson>,
    schedulers: Vec<SchedulerJson>,
    chains: Vec<ChainJson>,
    jitters: Vec<JitterJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform: Option<Origin>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct TaskJson {
    name: String,
    on: String,
    cpu: String,
    response_bound_ns: Option<u64>,
    relative_deadline_ns: Option<u64>,
    exactness: &'static str,
    test: String,
    explanation: String,
    slack_percent: Option<f64>,
    assumptions: Vec<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct RefusalJson {
    subject: String,
    reason: String,
    witness: Option<WitnessJson>,
    situation: String,
    fix: Option<FixJson>,
    advice: String,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum WitnessJson {
    Demand {
        at_ns: u64,
        demand_ns: u64,
        supply_ns: u64,
    },
    Response {
        task: String,
        job: u64,
        offset_ns: u64,
        response_ns: u64,
        deadline_ns: u64,
    },
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct FixJson {
    parameter: String,
    from: String,
    to: String,
    from_ns: u64,
    to_ns: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct CpuJson {
    name: String,
    policy: &'static str,
    utilization_percent: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct SchedulerJson {
    name: String,
    cpu: String,
    policy: &'static str,
    utilization_percent: f64,
    supply_percent: f64,
    budget_bound_ns: Option<u64>,
    blackout_ns: Option<u64>,
    explanation: String,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct ChainJson {
    name: String,
    within_ns: u64,
    bound_ns: Option<u64>,
    exactness: &'static str,
    test: String,
    handovers: Vec<HandoverJson>,
    explanation: String,
    assumptions: Vec<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct HandoverJson {
    from: String,
    to: String,
    how: &'static str,
    length_ns: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct JitterJson {
    task: String,
    within_ns: u64,
    bound_ns: Option<u64>,
    explanation: String,
}

impl VerdictJson {
    /// `verdict` on `system`, with names in the place of numbers.
    pub(crate) fn new(system: &System, verdict: &Verdict) -> VerdictJson {
        VerdictJson {
            format: JSON_FORMAT,
            verdict: if verdict.admitted {
                "admitted"
            } else {
                "refused"
            },
            tasks: verdict
                .tasks
                .iter()
                .map(|task| TaskJson::new(system, task))
                .collect(),
            refusals: verdict
                .refusals
                .iter()
                .map(|r| RefusalJson::new(system, r))
                .collect(),
            cpus: verdict
                .cpus
                .iter()
                .map(|cpu| CpuJson::new(system, cpu))
                .collect(),
            schedulers: verdict
                .schedulers
                .iter()
                .map(|scheduler| SchedulerJson::new(system, scheduler))
                .collect(),
            chains: verdict
                .chains
                .iter()
                .map(|chain| ChainJson::new(system, chain))
                .collect(),
            jitters: verdict.jitters.iter().map(JitterJson::new).collect(),
            platform: None,
        }
    }

    /// The same with a word on whose terms were added to the system's.
    pub(crate) fn with_platform(self, platform: Option<Origin>) -> VerdictJson {
        VerdictJson { platform, ..self }
    }
}

impl TaskJson {
    fn new(system: &System, task: &TaskVerdict) -> TaskJson {
        TaskJson {
            name: task.name.clone(),
            on: home(system, task),
            cpu: cpu_name(system, task.cpu),
            response_bound_ns: task.response_bound.map(Span::as_ns),
            relative_deadline_ns: task.relative_deadline.map(Span::as_ns),
            exactness: task.exactness.name(),
            test: task.test.to_string(),
            explanation: task.explanation.clone(),
            slack_percent: task.slack.map(|slack| tenths(slack.tenths_of_a_percent())),
            assumptions: task.assumptions.clone(),
        }
    }
}

impl RefusalJson {
    fn new(system: &System, refusal: &punctual_analysis::Refusal) -> RefusalJson {
        RefusalJson {
            subject: refusal.name.clone(),
            reason: refusal.reason.clone(),
            witness: refusal
                .witness
                .map(|witness| WitnessJson::new(system, witness)),
            situation: refusal.situation.clone(),
            fix: refusal.fix.as_ref().map(|fix| FixJson {
                parameter: fix.parameter.clone(),
                from: readable(fix.from.as_ns()).to_string(),
                to: readable(fix.to.as_ns()).to_string(),
                from_ns: fix.from.as_ns(),
                to_ns: fix.to.as_ns(),
            }),
            advice: refusal.advice.clone(),
        }
    }
}

impl WitnessJson {
    fn new(system: &System, witness: Witness) -> WitnessJson {
        match witness {
            Witness::Demand { at, demand, supply } => WitnessJson::Demand {
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
            } => WitnessJson::Response {
                task: task_name(system, task),
                job,
                offset_ns: offset.as_ns(),
                response_ns: response.as_ns(),
                deadline_ns: deadline.as_ns(),
            },
        }
    }
}

impl CpuJson {
    fn new(system: &System, cpu: &punctual_analysis::CpuVerdict) -> CpuJson {
        CpuJson {
            name: cpu.name.clone(),
            policy: system
                .cpus
                .get(cpu.cpu.index())
                .map_or("", |cpu| cpu.policy.name()),
            // Parts per million, rounded up, to tenths of a percent, rounded up.
            utilization_percent: tenths(cpu.utilization_ppm.div_ceil(1_000)),
        }
    }
}

impl SchedulerJson {
    fn new(system: &System, scheduler: &SchedulerVerdict) -> SchedulerJson {
        let model = system.schedulers.get(scheduler.scheduler.index());
        SchedulerJson {
            name: scheduler.name.clone(),
            cpu: cpu_name(system, scheduler.cpu),
            policy: model.map_or("", |scheduler| scheduler.policy.name()),
            utilization_percent: tenths(scheduler.utilization_ppm.div_ceil(1_000)),
            supply_percent: tenths(scheduler.supply_ppm / 1_000),
            budget_bound_ns: scheduler.budget_bound.map(Span::as_ns),
            blackout_ns: scheduler.blackout.map(Span::as_ns),
            explanation: scheduler.explanation.clone(),
        }
    }
}

impl ChainJson {
    fn new(system: &System, chain: &ChainVerdict) -> ChainJson {
        let name = |task| task_name(system, task);
        let handovers = chain.handovers.iter().map(|handover| HandoverJson {
            from: name(handover.from),
            to: name(handover.to),
            how: handover.how.name(),
            length_ns: handover.length.as_ns(),
        });
        ChainJson {
            name: chain.name.clone(),
            within_ns: chain.within.as_ns(),
            bound_ns: chain.bound.map(Span::as_ns),
            exactness: chain.exactness.name(),
            test: chain.test.to_string(),
            handovers: handovers.collect(),
            explanation: chain.explanation.clone(),
            assumptions: chain.assumptions.clone(),
        }
    }
}

impl JitterJson {
    fn new(jitter: &JitterVerdict) -> JitterJson {
        JitterJson {
            task: jitter.name.clone(),
            within_ns: jitter.within.as_ns(),
            bound_ns: jitter.bound.map(Span::as_ns),
            explanation: jitter.explanation.clone(),
        }
    }
}

fn task_name(system: &System, task: TaskId) -> String {
    let task = system.tasks.get(task.index());
    task.map_or(String::new(), |task| task.name.clone())
}

/// The name of a CPU in the file.
pub(crate) fn cpu_name(system: &System, cpu: CpuId) -> String {
    system
        .cpus
        .get(cpu.index())
        .map_or(String::new(), |cpu| cpu.name.clone())
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
fn tenths(tenths: u64) -> f64 {
    tenths as f64 / 10.0
}
