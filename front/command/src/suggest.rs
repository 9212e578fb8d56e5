//! `punctual check --suggest`: parameters with which a system is admitted.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use punctual_analysis::{Aim, NoSuggestion, Setting, Suggestion, suggest};
use punctual_model::System;

use crate::words::count;
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::json::{Json, list};
use punctual_terminal::object;
use punctual_terminal::output::{self, JSON_FORMAT, styled};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// What to look for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Wanted {
    /// The smallest budgets of servers, for their periods
    Budget,
    /// The shortest slots of frames, at their starts
    Slots,
    /// Priorities, by Audsley's assignment
    Priorities,
    /// The smallest capacities of the FIFOs of graphs, and which period each further place buys
    Buffers,
    /// A CPU for every task, by bin packing with the exact test
    Partition,
}

impl Wanted {
    const fn aim(self) -> Aim {
        match self {
            Wanted::Budget => Aim::Budgets,
            Wanted::Slots => Aim::Slots,
            Wanted::Priorities => Aim::Priorities,
            Wanted::Partition => Aim::Partition,
            Wanted::Buffers => Aim::Capacities,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Wanted::Budget => "budget",
            Wanted::Slots => "slots",
            Wanted::Priorities => "priorities",
            Wanted::Partition => "partition",
            Wanted::Buffers => "buffers",
        }
    }
}

/// Prints the suggestion; exit code 1 when there is none.
pub(crate) fn execute(system: &System, wanted: Wanted, json: bool) -> Ended {
    let found = match suggest(system, wanted.aim()) {
        Ok(found) => Ok(found),
        Err(NoSuggestion::Reason(reason)) => Err(reason),
        Err(NoSuggestion::Analysis(error)) => {
            return Err(Failure::input(format!("no suggestion: {error}")));
        }
    };
    if json {
        output::print_json(&as_json(wanted, &found))?;
    } else {
        output::print(as_text(&found, output::colour_stdout()))?;
    }
    Ok(Ending::of(found.is_ok()))
}

fn as_json(wanted: Wanted, found: &Result<Suggestion, String>) -> Json {
    let setting = |change: &Setting| {
        object! {
            parameter: &change.parameter,
            from: &change.from,
            to: &change.to,
        }
    };
    let (changes, ground) = match found {
        Ok(found) => (list(&found.changes, setting), &found.ground),
        Err(reason) => (Json::List(Vec::new()), reason),
    };
    object! {
        format: JSON_FORMAT,
        suggest: wanted.name(),
        found: found.is_ok(),
        changes: changes,
        ground: ground,
    }
}

fn as_text(found: &Result<Suggestion, String>, coloured: bool) -> String {
    let found = match found {
        Ok(found) => found,
        Err(reason) => return format!("{}: {reason}", styled("no suggestion", BAD, coloured)),
    };
    let changes = match found.changes.len() {
        0 => "nothing has to change".to_string(),
        some => count(some, "change"),
    };
    let mut text = format!("{}: {changes}\n", styled("admitted with", GOOD, coloured));
    for change in &found.changes {
        let _ = writeln!(text, "  {change}");
    }
    text + "found by: " + &found.ground
}
