//! The changes that a file declares, for people and for programs.

use std::fmt::Write as _;

use punctual_analysis::{Transition, Verdict, When};
use punctual_model::{Change, Ns, Span, System, readable};

use crate::input;
use crate::verdict_json::{self, of_refusal};
use crate::verdict_text::{self, refusal_text};
use punctual_terminal::ending::Failure;
use punctual_terminal::json::{Json, list};
use punctual_terminal::object;
use punctual_terminal::output;
use punctual_terminal::table::Table;

/// The verdict on a file: on its system at the start, and on the changes that it declares.
pub(crate) struct Judged {
    declared: System,
    /// The system at the start.
    pub(crate) system: System,
    pub(crate) verdict: Verdict,
    pub(crate) transitions: Vec<Transition>,
}

impl Judged {
    pub(crate) fn new(declared: System) -> Result<Judged, Failure> {
        let system = punctual::at_start(&declared);
        let verdict = input::admit(&system)?;
        let transitions = punctual_analysis::admit_changes(&declared).map_err(input::no_verdict)?;
        Ok(Judged {
            declared,
            system,
            verdict,
            transitions,
        })
    }

    /// Its changes, each with its transition.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (&Change, &Transition)> {
        self.declared.changes.iter().zip(&self.transitions)
    }

    /// The names of the changes that are refused.
    fn refused(&self) -> Vec<&str> {
        let refused = self.changes().filter(|(_, t)| t.when == When::Never);
        refused.map(|(change, _)| change.name.as_str()).collect()
    }

    /// Whether all of it is.
    pub(crate) fn admitted(&self) -> bool {
        self.verdict.admitted && self.refused().is_empty()
    }

    /// The answer in one line.
    pub(crate) fn headline(&self, coloured: bool) -> String {
        verdict_text::headline(&self.system, &self.verdict, &self.refused(), coloured)
    }

    pub(crate) fn json(&self) -> Json {
        let whole = Verdict {
            admitted: self.admitted(),
            ..self.verdict.clone()
        };
        let changes = json(&self.declared, &self.transitions);
        verdict_json::json(&self.system, &whole).with("changes", changes)
    }

    /// Prints it in words: the answer alone, or all of it.
    pub(crate) fn print(&self, quiet: bool) -> Result<(), Failure> {
        let coloured = output::colour_stdout();
        output::print(self.headline(coloured))?;
        if quiet {
            return Ok(());
        }
        output::print(verdict_text::body(&self.system, &self.verdict, coloured))?;
        match render(&self.declared, &self.transitions, coloured) {
            text if text.is_empty() => Ok(()),
            text => output::print(text),
        }
    }
}

/// From when on each change keeps every promise, why, and what refuses it.
fn json(system: &System, transitions: &[Transition]) -> Option<Json> {
    let both = system.changes.iter().zip(transitions);
    let of_change = |(change, transition): (&Change, &Transition)| {
        object! {
            name: &change.name,
            at_ns: change.at.as_ns(),
            when: transition.when.name(),
            idle: transition.idle.as_deref(),
            ground: &transition.ground,
            verdict: if transition.when == When::Never { "refused" } else { "admitted" },
            meanwhile: list(meanwhile(transition), |(name, bound)| object! {
                name: name,
                response_bound_ns: bound.map(Span::as_ns),
            }),
            refusals: list(&transition.verdict.refusals, |refusal| {
                of_refusal(&transition.system, refusal)
            }),
        }
    };
    (!system.changes.is_empty()).then(|| list(both, of_change))
}

/// The same in words.
fn render(system: &System, transitions: &[Transition], coloured: bool) -> String {
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
        for (task, bound) in meanwhile(transition) {
            let name = &change.name;
            let bound = bound.map_or("no bound".into(), |b| readable(b.as_ns()).to_string());
            let _ = writeln!(
                text,
                "while change {name} may still count: {task} has {bound}"
            );
        }
    }
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

/// The longest responses while an admitted change may still count, where they are others than in
/// the system after it.
fn meanwhile(transition: &Transition) -> Vec<(&str, Option<Span<Ns>>)> {
    let bounds = transition
        .meanwhile
        .iter()
        .map(|(name, bound)| (name.as_str(), *bound));
    let rows = &transition.verdict.tasks;
    let after = |name: &str| rows.iter().find(|row| row.name == name);
    let others =
        bounds.filter(|(name, bound)| after(name).is_none_or(|row| row.response_bound != *bound));
    others.filter(|_| transition.when != When::Never).collect()
}

/// What it waits for once its time has come.
pub(crate) fn words(transition: &Transition) -> String {
    match (transition.when, &transition.idle) {
        (When::AtOnce, _) => "at once".into(),
        (When::ZeroLag, _) => "at zero lag".into(),
        (When::Idle, None) => "when its CPU is idle".into(),
        (When::Idle, Some(scheduler)) => format!("when `{scheduler}` is idle"),
        (When::Never, _) => "refused".into(),
    }
}
