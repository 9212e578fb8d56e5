//! The changes that a file declares, for people and for programs.

use std::fmt::Write as _;

use punctual_analysis::{Transition, When};
use punctual_model::{Change, System, readable};

use crate::verdict_json::of_refusal;
use crate::verdict_text::refusal_text;
use punctual_terminal::json::{Json, list};
use punctual_terminal::object;
use punctual_terminal::table::Table;

/// The names of the changes that are refused.
pub(crate) fn refused<'a>(system: &'a System, transitions: &[Transition]) -> Vec<&'a str> {
    let both = system.changes.iter().zip(transitions);
    let refused = both.filter(|(_, transition)| transition.when == When::Never);
    refused.map(|(change, _)| change.name.as_str()).collect()
}

/// From when on each change keeps every promise, why, and what refuses it.
pub(crate) fn json(system: &System, transitions: &[Transition]) -> Option<Json> {
    let both = system.changes.iter().zip(transitions);
    let of_change = |(change, transition): (&Change, &Transition)| {
        object! {
            name: &change.name,
            at_ns: change.at.as_ns(),
            when: transition.when.name(),
            idle: transition.idle.as_deref(),
            ground: &transition.ground,
            verdict: if transition.when == When::Never { "refused" } else { "admitted" },
            refusals: list(&transition.verdict.refusals, |refusal| {
                of_refusal(&transition.system, refusal)
            }),
        }
    };
    (!system.changes.is_empty()).then(|| list(both, of_change))
}

/// The same in words.
pub(crate) fn render(system: &System, transitions: &[Transition], coloured: bool) -> String {
    let mut text = String::new();
    if system.changes.is_empty() {
        return text;
    }
    let mut table = Table::new(&["change", ">at", "when", "ground"]);
    for (change, transition) in system.changes.iter().zip(transitions) {
        table.row(vec![
            change.name.clone(),
            readable(change.at.as_ns()).to_string(),
            words(transition),
            transition.ground.clone(),
        ]);
    }
    let _ = write!(text, "\n{table}");
    for (change, transition) in system.changes.iter().zip(transitions) {
        for refusal in &transition.verdict.refusals {
            let name = &change.name;
            let refusal = refusal_text(&transition.system, refusal, coloured);
            let _ = write!(text, "\nafter change {name}: {refusal}");
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// What it waits for once its time has come.
fn words(transition: &Transition) -> String {
    match (transition.when, &transition.idle) {
        (When::AtOnce, _) => "at once".into(),
        (When::ZeroLag, _) => "at zero lag".into(),
        (When::Idle, None) => "when its CPU is idle".into(),
        (When::Idle, Some(scheduler)) => format!("when `{scheduler}` is idle"),
        (When::Never, _) => "refused".into(),
    }
}
