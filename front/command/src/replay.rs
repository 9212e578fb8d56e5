//! `punctual replay`: a recorded run again, decision by decision or under another policy.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::ValueHint;
use punctual_trace::{Divergence, Log, ReplayStats, RunReport, text};
use serde::Serialize;

use crate::flags::Outputs;
use crate::{logfile, outcome, what_if};
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::interrupt::Interrupt;
use punctual_terminal::output;

/// Records that are shown before a difference.
const CONTEXT: usize = 8;

/// Replays a recorded run: identically, or under another policy
///
/// The scheduler is deterministic, so the events of a log must give its decisions again, on any
/// machine. A first difference is shown with the records before it: then the log, or the program,
/// is not the one of the run. The report is that of the recorded run, each miss with its cause.
///
/// With --policy another policy decides, in virtual time, about the same arrivals, the work that
/// each job received, its waits and the missing time. Report, trace and page are then those of the
/// answer.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 identical, and the run met or was excused; 1 different, or the \
    run missed; 2 bad input; 3 identical and met as far as it was recorded, or a failure. With --policy: 0 \
    met or excused; 1 missed.\n\n\
    Examples:\n  \
    punctual run examples/rosace.toml --for 10s --record flight.log\n  \
    punctual replay flight.log\n  \
    punctual replay flight.log --json --report flight.html\n  \
    punctual replay flight.log --policy edf                     # what if EDF\n  \
    punctual replay flight.log --policy 0=round-robin:1ms --record turns.log"
)]
pub(crate) struct Args {
    /// A log (of `run --record` or `sim --record`); `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    log: PathBuf,
    /// Let this policy decide instead: fifo, round-robin, round-robin:1ms, fixed-priority,
    /// non-preemptive, edf; on every CPU, or NAME=POLICY for one CPU or scheduler; may be given
    /// several times
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<String>,
    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

pub(crate) fn execute(args: &Args) -> Ended {
    let log = logfile::load(&args.log)?;
    let promised = args.outputs.promise(&args.log)?;
    if !args.policies.is_empty() {
        return what_if::execute(&log, &args.policies, &args.outputs, promised);
    }
    let finding = Finding::new(&log);
    let report = outcome::judge(&log, &Interrupt::listen()?);
    let kept = promised.keep(&log, &report);
    tell(&finding, &report, &args.outputs)?;
    kept.map_err(Failure::beside_result)?;
    Ok(match finding.identical {
        false => Ending::Bad,
        true => outcome::ending_of(&report, args.outputs.strict),
    })
}

fn tell(finding: &Finding, report: &RunReport, outputs: &Outputs) -> Result<(), Failure> {
    if outputs.json {
        return output::print_json(&ReplayJson {
            report,
            replay: finding,
        });
    }
    let mut text = finding.to_text();
    let _ = match outputs.quiet {
        true => write!(text, "{}", outcome::verdict_line(report)),
        false => write!(text, "\n{report}"),
    };
    output::print(text.trim_end())
}

/// What `replay --json` prints: the report of the run, and what the replay found.
#[derive(Serialize)]
struct ReplayJson<'a> {
    #[serde(flatten)]
    report: &'a RunReport,
    replay: &'a Finding,
}

/// Whether a log was replayed as it was recorded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Finding {
    identical: bool,
    /// Of the records that were equal.
    events: u64,
    changes: u64,
    decisions: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Found>,
}

/// The first difference.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Found {
    cpu: String,
    record: u64,
    at_ns: u64,
    detail: String,
    recorded: Option<String>,
    replayed: Option<String>,
    context: Vec<String>,
}

impl Finding {
    fn new(log: &Log) -> Finding {
        let (equal, difference) = match punctual::replay(log) {
            Ok(stats) => (stats, None),
            Err(divergence) => (divergence.equal, Some(Found::new(log, &divergence))),
        };
        let ReplayStats {
            events,
            changes,
            decisions,
        } = equal;
        Finding {
            identical: difference.is_none(),
            events,
            changes,
            decisions,
            difference,
        }
    }

    fn to_text(&self) -> String {
        let counts = format!(
            "{} events, {} changes, {} decisions",
            self.events, self.changes, self.decisions
        );
        match &self.difference {
            None => format!("identical: {counts}\n"),
            Some(found) => format!("{}{counts} were equal before\n", found.to_text()),
        }
    }
}

impl Found {
    fn new(log: &Log, divergence: &Divergence) -> Found {
        let context = divergence.context(log, CONTEXT);
        let difference = &divergence.difference;
        Found {
            cpu: divergence.name.clone(),
            record: divergence.record,
            at_ns: log.ns(divergence.now.ticks()),
            detail: divergence.to_string(),
            recorded: difference.recorded().as_ref().map(text::line),
            replayed: difference.replayed().as_ref().map(text::line),
            context: context.iter().map(text::line).collect(),
        }
    }

    fn to_text(&self) -> String {
        let at = punctual_model::readable(self.at_ns);
        let mut text = format!(
            "DIFFERENT: CPU {}, record {}, at {at}\n",
            self.cpu, self.record
        );
        for line in &self.context {
            let _ = writeln!(text, "             {line}");
        }
        if self.recorded.is_none() && self.replayed.is_none() {
            let _ = writeln!(text, "  {}", self.detail);
        } else {
            let nothing = || "nothing".to_string();
            let recorded = self.recorded.clone().unwrap_or_else(nothing);
            let replayed = self.replayed.clone().unwrap_or_else(nothing);
            let _ = writeln!(text, "  recorded   {recorded}\n  replayed   {replayed}");
        }
        text
    }
}
