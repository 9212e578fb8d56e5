//! One history, run.

use std::cell::RefCell;
use std::rc::Rc;

use crate::level::{Outcome, Setup, Steps};
use crate::quiet;
use crate::reference::Reference;
use crate::symptom::{Symptom, Violation};

/// Runs one history; a panic is one of its outcomes.
pub(crate) fn run<L: Steps>(steps: &[L::Step], setup: Setup<'_>) -> Outcome {
    let places = L::places(setup.threads);
    let mut reference = Reference::new(setup.claims, places, setup.record);
    reference.live = setup.live.cloned();
    let reference = Rc::new(RefCell::new(reference));
    let mut executed = vec![false; steps.len()];
    let work = || L::execute(steps, setup, &reference, &mut executed);
    let caught = quiet::catch(work);
    let mut reference = reference.borrow_mut();
    if let Err(message) = caught {
        let detail = format!("panics: {message}");
        reference.fail(Violation::new(Symptom::Panic, detail));
        // The step that panicked did not come to its end; it belongs to the history all the same.
        executed.fill(true);
    }
    Outcome {
        violation: reference.violation.take(),
        lines: reference.lines.take().unwrap_or_default(),
        executed,
        coverage: reference.coverage,
    }
}
