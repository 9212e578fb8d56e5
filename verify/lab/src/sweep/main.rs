//! `punctual sweep`: which share of random task sets each policy admits, over utilization.
//!
//! A study is cut into units of a few sets each. The draws of a unit depend on the seed and the
//! unit alone, so any machine may do any of them in any order.

#![forbid(unsafe_code)]

mod plot;
mod points;
mod study;
mod units;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueHint;
use serde::Serialize;

use points::{Point, Results};
use punctual_lab::Shard;
use punctual_lab::command::{self, MergeArgs, Part, Shown};
use punctual_terminal::ending::{Ended, Failure};
use punctual_terminal::output;
use punctual_terminal::table::Table;
use study::{Flags, Sets};

/// Studies which share of random task sets each policy admits, and plots it
///
/// Every policy judges the same sets. The results are lines of JSON, one per few sets; a run that
/// was ended goes on where its file ends.
#[derive(Debug, clap::Parser)]
#[command(
    name = "punctual sweep",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    punctual sweep --out here.jsonl --plot here.svg       # the study of the defaults\n  \
    punctual sweep examples/sweep/study.toml --out here.jsonl\n  \
    punctual sweep --out a.jsonl --tasks 5,20 --utilization 70%..100%:2% --sets 200\n  \
    punctual sweep --out part-3.jsonl --shard 3/8         # the third of eight parts\n  \
    punctual sweep merge part-*.jsonl --out whole.jsonl --plot whole.svg\n\n\
    examples/sweep has templates for GNU parallel and Slurm."
)]
struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Joins the results of all shards: the same bytes as of one run
    Merge(MergeArgs),
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// The study; flags override it, and everything else has a default
    #[arg(value_hint = ValueHint::FilePath)]
    study: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
    /// Append the results to this file; one that holds a part of them is completed
    #[arg(long, value_name = "OUT", default_value = "sweep.jsonl")]
    out: PathBuf,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    shown: Shown,
}

impl Args {
    /// Whether a failure is told to a program.
    fn json(&self) -> bool {
        match &self.action {
            Some(Action::Merge(merge)) => merge.shown.json,
            None => self.run.shown.json,
        }
    }
}

fn main() -> ExitCode {
    punctual_terminal::run(execute, Args::json)
}

fn execute(args: &Args) -> Ended {
    match &args.action {
        Some(Action::Merge(merge)) => join(merge),
        None => run(&args.run),
    }
}

fn run(args: &RunArgs) -> Ended {
    let study = Sets::of(args.study.as_deref(), &args.flags)?;
    if let Some(source) = &args.study {
        punctual_terminal::input::refuse_overwriting(&args.out, source)?;
    }
    let (part, shown) = (&args.part, &args.shown);
    command::run(study, &args.out, part, shown.quiet, |study, lines, all| {
        show(&Results::new(study, lines), all, part.shard, shown)
    })
}

fn join(args: &MergeArgs) -> Ended {
    command::join(args, |study, lines, shown| {
        show(&Results::new(study, lines), true, Shard::WHOLE, shown)
    })
}

fn show(results: &Results, complete: bool, shard: Shard, shown: &Shown) -> Result<(), Failure> {
    if let Some(path) = &shown.plot {
        plot::write(results, path)?;
    }
    if shown.json {
        return output::print_json(&Summary {
            format: output::JSON_FORMAT,
            study: results.study(),
            shard: shard.to_string(),
            complete,
            points: results.points(),
        });
    }
    if shown.quiet {
        return Ok(());
    }
    output::print(table(results))
}

/// What `sweep --json` prints.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    format: u32,
    study: &'a Sets,
    shard: String,
    complete: bool,
    points: Vec<Point>,
}

fn table(results: &Results) -> Table {
    let mut columns = ["generator", ">tasks", ">utilization", ">sets"]
        .map(String::from)
        .to_vec();
    let policies = results.study().policies();
    columns.extend(policies.iter().map(|policy| format!(">{}", policy.name())));
    let mut table = Table::new(&columns);
    for point in results.points() {
        let percent = |part: u64, whole: u64| {
            let tenths = (part * 1_000 + whole / 2) / whole.max(1);
            format!("{}.{} %", tenths / 10, tenths % 10)
        };
        let mut row = vec![
            point.generator.name().to_string(),
            point.tasks.to_string(),
            percent(u64::from(point.utilization_ppm), 1_000_000),
            point.sets.to_string(),
        ];
        row.extend(point.admitted.iter().map(|n| percent(*n, point.sets)));
        table.row(row);
    }
    table
}
