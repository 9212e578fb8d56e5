//! Yes or no, again and again: the steps that the searches for slack and fixes share
//!
//! # Assumptions
//! 1. Those of the tests. A search without steps left knows nothing, and says so: a trial that is
//!    not made is not a refusal.

use punctual_model::System;

use crate::bounds::QUERY_STEPS;
use crate::component::Component;
use crate::decide;
use crate::error::{AnalysisError, Checked};
use crate::fixed_point::StepBudget;
use crate::precedence::Edge;

/// Steps for all trials of one verdict: about a second.
const TRIAL_STEPS: u64 = QUERY_STEPS / 2;
/// The steps of a trial for each task before it begins: how long it takes to look at its numbers.
const STEPS_PER_TASK: u64 = 32;

/// No steps are left.
const TOO_LONG: AnalysisError = AnalysisError::TooLong {
    what: "trials of other parameters",
};

/// The trials of one verdict.
#[derive(Debug)]
pub(crate) struct Trials {
    step_budget: StepBudget,
}

impl Trials {
    /// None made yet.
    pub(crate) fn new() -> Trials {
        Trials {
            step_budget: StepBudget::new(TRIAL_STEPS),
        }
    }

    /// Whether any are left.
    ///
    /// # Errors
    /// [`AnalysisError::TooLong`]: none.
    pub(crate) fn are_left(&self) -> Checked<()> {
        match self.step_budget.left() {
            0 => Err(TOO_LONG),
            _ => Ok(()),
        }
    }

    /// Takes the steps of one more look at each task of `system`.
    ///
    /// # Errors
    /// As [`Trials::are_left`].
    pub(crate) fn pay(&self, system: &System) -> Checked<()> {
        self.are_left()?;
        let steps = STEPS_PER_TASK.saturating_mul(system.tasks.len() as u64);
        self.step_budget.take(steps);
        Ok(())
    }

    /// Whether everything on the CPUs of `component` holds.
    ///
    /// # Errors
    /// [`AnalysisError::TooLong`] when the trials before have used up all steps.
    pub(crate) fn admit(
        &self,
        system: &System,
        edges: &[Edge],
        component: &Component,
    ) -> Checked<bool> {
        let steps = self.step_budget.left().min(QUERY_STEPS);
        let one = StepBudget::new(steps);
        let answer = match steps {
            0 => Ok(false),
            _ => decide::admits(system, edges, component, &one),
        };
        let copies = STEPS_PER_TASK.saturating_mul(system.tasks.len() as u64);
        self.step_budget.take(steps - one.left() + copies);
        if one.left() == 0 && steps < QUERY_STEPS {
            return Err(TOO_LONG);
        }
        answer
    }
}
