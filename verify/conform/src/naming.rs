//! From what was seen to the property that is broken.
//!
//! The same symptom may have several causes; then the shortest history is run once more with one
//! thing changed.

use crate::level::{Level, Setup, Steps};
use crate::property::Property;
use crate::run::run;
use crate::symptom::{Symptom, Violation, Why};

/// Names what `violation` breaks. `steps` is the shortest history that shows it.
pub(crate) fn name<L: Steps>(
    steps: &[L::Step],
    setup: Setup<'_>,
    violation: &Violation,
) -> Property {
    let by_haste = || is_healed_by_picks::<L>(steps, setup, violation);
    match violation.symptom {
        Symptom::NotReady(Why::Foreign) => Property::UnknownThread,
        Symptom::NotReady(Why::Exhausted) => Property::BudgetConservation,
        Symptom::NotReady(Why::Left) if by_haste() => Property::WakeBeforeBlock,
        Symptom::NotReady(Why::Left) if violation.left_twice && steps.iter().any(L::requeues) => {
            Property::Duplicate
        }
        Symptom::NotReady(Why::Left) => Property::UnknownThread,
        Symptom::Lost if by_haste() => Property::WakeBeforeBlock,
        Symptom::Lost => Property::LostThread,
        Symptom::Idle => Property::WorkConservation,
        Symptom::Order => Property::PriorityOrder,
        Symptom::Tie => Property::OrderAmongEquals,
        Symptom::Turns => Property::FairTurns,
        Symptom::Preempted => Property::NoPreemption,
        Symptom::Unstable => Property::StablePick,
        Symptom::Twin => Property::Determinism,
        Symptom::BeyondBudget => Property::BudgetConservation,
        Symptom::TurnEnd => Property::TurnEnd,
        Symptom::LostWakeUp => Property::WakeBeforeBlock,
        Symptom::Uncontained => Property::IllegalChildAnswer,
        Symptom::Panic => Property::Panic,
    }
}

/// Whether the symptom needs two calls between the same picks: with a pick after each call it is
/// gone. Only calls of the seam can be taken apart so; an event of the core makes several at once.
fn is_healed_by_picks<L: Steps>(
    steps: &[L::Step],
    setup: Setup<'_>,
    violation: &Violation,
) -> bool {
    let apart = Setup {
        pick_always: true,
        ..setup
    };
    let again = run::<L>(steps, apart).violation;
    L::LEVEL == Level::Seam && again.is_none_or(|again| again.symptom != violation.symptom)
}
