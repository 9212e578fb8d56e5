//! Requirements beyond deadlines: seen, compared, and judged like a miss.

use std::fmt;

use punctual_model::{Requirement, TaskId, readable};

use super::RunVerdict;
use super::counterfactual::Counterfactual;
use super::observed::Observed;
use crate::behavior::Behavior;
use crate::log::Log;

/// A line of `[require]` and what the run made of it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RequirementReport {
    /// `response`, `chain` or `jitter`.
    pub requirement: &'static str,
    /// Names of its tasks; of a chain in its order.
    pub tasks: Vec<String>,
    /// Most that is allowed.
    pub within_ns: u64,
    /// Most that was seen; `None`: nothing was.
    pub seen_ns: Option<u64>,
    /// Kept, broken, or broken by missing time alone.
    pub verdict: RunVerdict,
}

impl fmt::Display for RequirementReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, tasks) = (self.requirement, self.tasks.join(" > "));
        let within = readable(self.within_ns);
        let verdict = self.verdict.name();
        match self.seen_ns.map(readable) {
            Some(seen) => write!(f, "required {kind} of {tasks} {within}: {seen}, {verdict}"),
            None => write!(f, "required {kind} of {tasks} {within}: not seen"),
        }
    }
}

/// All requirements of the system.
pub(super) fn requirements(
    log: &Log,
    behaviors: &[Behavior],
    runs: Option<&Counterfactual>,
) -> Vec<RequirementReport> {
    let observed = Observed::new(log, behaviors);
    let judge = |requirement: &Requirement| {
        let (tasks, within) = (requirement.tasks(), requirement.within().as_ns());
        let seen = observed.seen(requirement);
        let kept = seen.is_none_or(|seen| seen <= within);
        let excused = !kept && runs.is_some_and(|runs| runs.excuses(requirement));
        let verdict = match (kept, excused) {
            (true, _) => RunVerdict::Met,
            (false, true) => RunVerdict::Excused,
            (false, false) => RunVerdict::Missed,
        };
        RequirementReport {
            requirement: requirement.name(),
            tasks: tasks.iter().map(|task| name(log, *task)).collect(),
            within_ns: within,
            seen_ns: seen,
            verdict,
        }
    };
    log.requirements.iter().map(judge).collect()
}

fn name(log: &Log, task: TaskId) -> String {
    let info = log.tasks.get(task.index());
    info.map_or_else(|| "?".into(), |info| info.name.clone())
}
