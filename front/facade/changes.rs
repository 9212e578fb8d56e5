//! The changes that a system declares: judged, prepared for a run, promised, written down.

use punctual_analysis::{Exactness, Judge, TaskVerdict, Test, Transition, Verdict, When};
use punctual_kern::Plan;
use punctual_model::{Ns, SchedulerId, Span, Stage, System, TaskId};
use punctual_tables::{Carry, Tables};
use punctual_trace::ChangeInfo;

use crate::Error;

/// A system at the start of its run: without what a change starts later.
pub fn at_start(system: &System) -> System {
    if system.changes.is_empty() {
        return system.clone();
    }
    Stage::at_start(system).system()
}

/// Judges the changes that a system declares, one after the other: from when on each keeps every
/// promise, and why, or why it is refused.
///
/// # Errors
/// As [`crate::admit`].
pub fn admit_changes(system: &System) -> Result<Vec<Transition>, Error> {
    admit_changes_by(system, punctual_analysis::admit)
}

/// The same by another judge, as a rule one that tries no other parameters.
pub(crate) fn admit_changes_by(system: &System, judge: Judge) -> Result<Vec<Transition>, Error> {
    system.validate().map_err(Error::Model)?;
    Ok(punctual_analysis::admit_changes_by(system, judge)?)
}

/// The promises for the whole run, by the number of the task in the file: its largest bound
/// before, between, during and after the changes. No bound at one time is none at all.
pub(crate) fn promises(system: &System, start: &Verdict, transitions: &[Transition]) -> Verdict {
    if system.changes.is_empty() {
        return start.clone();
    }
    let done = || transitions.iter().filter(|t| t.when != When::Never);
    let verdicts = || std::iter::once(start).chain(done().map(|t| &t.verdict));
    let promise = |(id, task): (TaskId, &punctual_model::Task)| {
        let rows = verdicts().flat_map(|verdict| &verdict.tasks);
        let rows = rows.filter(|row| row.name == task.name);
        let largest = rows.max_by_key(|row| row.response_bound.map_or(u64::MAX, Span::as_ns))?;
        let mut largest = TaskVerdict {
            task: id,
            ..largest.clone()
        };
        for (name, bound) in done().flat_map(|t| &t.meanwhile) {
            let larger = match (largest.response_bound, bound) {
                (Some(known), Some(bound)) => *bound > known,
                (known, None) => known.is_some(),
                (None, Some(_)) => false,
            };
            if *name == task.name && larger {
                largest.response_bound = *bound;
                largest.explanation = "jobs from before and after a change may meet".into();
            }
        }
        Some(largest)
    };
    let ids = (0..).map(TaskId).zip(&system.tasks);
    let tasks = ids.map(|of| promise(of).unwrap_or_else(|| nothing_of(of)));
    Verdict {
        tasks: tasks.collect(),
        ..start.clone()
    }
}

/// Nothing is promised about a task that never comes.
fn nothing_of((id, task): (TaskId, &punctual_model::Task)) -> TaskVerdict {
    TaskVerdict {
        task: id,
        name: task.name.clone(),
        cpu: task.cpu,
        response_bound: None,
        relative_deadline: task.class.relative_deadline(),
        exactness: Exactness::Sufficient,
        test: Test {
            name: "none",
            source: "it never comes",
        },
        explanation: "no change that is admitted starts it".into(),
        terms: Vec::new(),
        assumptions: Vec::new(),
        slack: None,
    }
}

/// A platform waits for this once the time of a change has come.
fn carry(system: &System, transition: &Transition) -> Carry {
    let named = |name: &String| {
        let place = system.schedulers.iter().position(|s| s.name == *name)?;
        Some(SchedulerId(u16::try_from(place).ok()?))
    };
    match transition.when {
        When::AtOnce | When::ZeroLag => Carry::Soon,
        When::Idle => {
            let idle = transition.idle.as_ref().and_then(named);
            idle.map_or(Carry::WhenIdle, Carry::WhenBelowIdle)
        }
        When::Never => Carry::Never,
    }
}

/// The plans of the platforms, CPU by CPU, and the words of the log about them.
pub(crate) fn prepare(
    system: &System,
    tables: &Tables,
    duration: Span<Ns>,
    transitions: &[Transition],
) -> (Vec<Plan>, Vec<ChangeInfo>) {
    if system.changes.is_empty() {
        return (vec![Plan::default(); tables.cpus.len()], Vec::new());
    }
    let carry: Vec<Carry> = transitions.iter().map(|t| carry(system, t)).collect();
    let plans = tables.plans(system, Some(duration), &carry);
    let info = |(number, (change, transition)): (u32, (&punctual_model::Change, &Transition))| {
        let part = |plan: &Plan| {
            let steps = plan.steps().iter().filter(|step| step.change == number);
            let events: usize = steps.map(|step| step.events.len()).sum();
            u32::try_from(events).unwrap_or(u32::MAX)
        };
        ChangeInfo {
            name: change.name.clone(),
            at: change.at,
            when: transition.when.name().to_owned(),
            ground: transition.ground.clone(),
            parts: plans.iter().map(part).collect(),
        }
    };
    let changes = (0..).zip(system.changes.iter().zip(transitions)).map(info);
    let changes = changes.collect();
    (plans, changes)
}
