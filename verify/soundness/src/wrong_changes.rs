//! Judgements of transitions that are wrong on purpose, as `mutants` has analyses.

use punctual_analysis::{AnalysisError, Transition, When, admit_changes};
use punctual_model::{Step, System};

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
pub const ALL: [WrongChanges; 2] = [
    WrongChanges {
        mistake: "takes two admitted systems for an admitted change",
        transitions: hasty,
    },
    WrongChanges {
        mistake: "promises what holds before and after a change for the time between",
        transitions: nothing_between,
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
