//! Judgements of transitions that are wrong on purpose, as `mutants` has analyses.

use punctual_analysis::{AnalysisError, Transition, When, admit_changes};
use punctual_model::{Class, SchedulerId, Span, Step, Supply, System, Task, TaskId, Work};

use crate::history::Transitions;

/// A wrong judgement of transitions.
#[derive(Clone, Debug)]
pub struct WrongChanges {
    /// The mistake.
    pub mistake: &'static str,
    /// The wrong judgement.
    pub transitions: Transitions,
}

/// All of them.
pub const ALL: [WrongChanges; 4] = [
    WrongChanges {
        mistake: "takes two admitted systems for an admitted change",
        transitions: hasty,
    },
    WrongChanges {
        mistake: "promises what holds before and after a change for the time between",
        transitions: nothing_between,
    },
    WrongChanges {
        mistake: "forgets what a lender has less",
        transitions: whole_lender,
    },
    WrongChanges {
        mistake: "forgets what a borrower has more",
        transitions: same_borrower,
    },
];

fn hasty(system: &System) -> Result<Vec<Transition>, AnalysisError> {
    let mut transitions = admit_changes(system)?;
    for (change, transition) in system.changes.iter().zip(&mut transitions) {
        let serves = |step: &Step| matches!(step, Step::Supply(..));
        if transition.when == When::Idle && !change.steps.iter().any(serves) {
            transition.when = When::ZeroLag;
            transition.idle = None;
        }
    }
    Ok(transitions)
}

fn nothing_between(system: &System) -> Result<Vec<Transition>, AnalysisError> {
    let mut transitions = admit_changes(system)?;
    for transition in &mut transitions {
        transition.meanwhile.clear();
    }
    Ok(transitions)
}

/// The budget of the borrower has a task beside it that arrives once, and the lender is as ever.
fn whole_lender(system: &System) -> Result<Vec<Transition>, AnalysisError> {
    let mut more = system.clone();
    let tasks = u32::try_from(system.tasks.len()).unwrap_or(u32::MAX);
    let steps = more.changes.iter_mut().flat_map(|change| &mut change.steps);
    for (number, step) in (tasks..).zip(steps.filter(|step| transferred(step).is_some())) {
        if let Some((_, to, size)) = transferred(step) {
            let borrower = &system.schedulers[to.index()];
            let class = Class::Once {
                size,
                relative_deadline: Span::from_ms(3_600_000),
            };
            let mut task = Task::new(format!("borrowed{number}"), borrower.cpu, class);
            (task.scheduler, task.priority) = (borrower.parent, borrower.priority);
            more.tasks.push(task);
            *step = Step::Start(TaskId(number));
        }
    }
    admit_changes(&more)
}

/// The lender has that much less all the time, and nobody has more.
fn same_borrower(system: &System) -> Result<Vec<Transition>, AnalysisError> {
    let mut less = system.clone();
    for change in &mut less.changes {
        for (from, _, work) in change.steps.iter().filter_map(transferred) {
            if let Supply::Server(server) = &mut less.schedulers[from.index()].supply
                && server.budget > work
            {
                server.budget = server.budget.saturating_sub(work);
            }
        }
        change.steps.retain(|step| transferred(step).is_none());
    }
    admit_changes(&less)
}

fn transferred(step: &Step) -> Option<(SchedulerId, SchedulerId, Work<punctual_model::Ns>)> {
    match *step {
        Step::Transfer { from, to, budget } => Some((from, to, budget)),
        _ => None,
    }
}
