//! `punctual sweep`: which share of random task sets each policy admits, over utilization.
//!
//! A study is cut into units of a few sets each. What a unit draws depends on the seed and on the
//! unit alone, so any machine may do any of them in any order: shards need no word with each other,
//! and their results merge to the bytes of a single run. Results are appended line by line in the
//! order of the units; a killed run goes on where its file ends.

#![forbid(unsafe_code)]

mod plot;
mod results;
mod study;
mod units;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::IsTerminal;

use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::interrupt::Interrupt;
use punctual_terminal::output;
use punctual_terminal::table::Table;
use results::{Log, Results};
use study::{Flags, Study};
use units::Shard;

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
    study: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
    /// Append the results to this file; one that holds a part of them is completed
    #[arg(long, value_name = "OUT", default_value = "sweep.jsonl")]
    out: PathBuf,
    /// Do part I of N, from 1/N to N/N
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    shard: Shard,
    /// Threads; all cores when left out
    #[arg(long)]
    threads: Option<usize>,
    #[command(flatten)]
    shown: Shown,
}

#[derive(Debug, clap::Args)]
struct MergeArgs {
    /// The results of all shards, in any order
    #[arg(required = true, value_name = "RESULTS")]
    parts: Vec<PathBuf>,
    /// Write the whole here instead of to standard output
    #[arg(long, value_name = "OUT")]
    out: Option<PathBuf>,
    #[command(flatten)]
    shown: Shown,
}

/// What is made of the results.
#[derive(Debug, clap::Args)]
struct Shown {
    /// Draw the shares over the utilization; by ending: .html a page, else SVG
    #[arg(long, value_name = "OUT")]
    plot: Option<PathBuf>,
    /// Print the shares as JSON
    #[arg(long)]
    json: bool,
    /// Print no progress and no table
    #[arg(long, short)]
    quiet: bool,
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
    let study = Study::of(args.study.as_deref(), &args.flags)?;
    if let Some(source) = &args.study {
        punctual_terminal::input::refuse_overwriting(&args.out, source)?;
    }
    let interrupt = Interrupt::listen()?;
    let units = args.shard.units(&study);
    let mut log = Log::open(&args.out, &study, args.shard, &units)?;
    let (done, total) = (log.lines().len(), units.len());
    if done > 0 && !args.shown.quiet {
        output::remark(format!(
            "{}: {done} of {total} lines are there",
            args.out.display()
        ));
    }
    let bar = bar(total, done, args.shown.quiet);
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    units::work(&study, &units[done..], threads.max(1), &interrupt, |line| {
        bar.inc(1);
        log.append(line)
    })?;
    bar.finish_and_clear();
    let complete = log.lines().len() == total;
    let results = Results::new(study, log.into_lines());
    show(&results, complete, args.shard, &args.shown)?;
    if complete {
        return Ok(Ending::Good);
    }
    output::remark("stopped by request; the same command goes on where the file ends");
    Ok(Ending::Stopped)
}

fn join(args: &MergeArgs) -> Ended {
    let (results, text) = results::merge(&args.parts)?;
    match &args.out {
        Some(path) => {
            let same =
                |part: &&PathBuf| punctual_terminal::input::refuse_overwriting(path, part).is_err();
            if let Some(part) = args.parts.iter().find(same) {
                let lost = format!("{} would be overwritten, and it is a part", part.display());
                return Err(Failure::input(lost).with_help("name another file"));
            }
            output::PromisedFile::open(path)?.fill(|out| out.write_all(text.as_bytes()))?;
            show(&results, true, Shard::WHOLE, &args.shown)?;
        }
        None => {
            output::print(text.trim_end())?;
            if let Some(path) = &args.shown.plot {
                plot::write(&results, path)?;
            }
        }
    }
    Ok(Ending::Good)
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
    study: &'a Study,
    shard: String,
    complete: bool,
    points: Vec<results::Point>,
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

/// A bar on standard error; hidden when that is no terminal.
fn bar(total: usize, done: usize, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let bar = ProgressBar::with_draw_target(Some(total as u64), target);
    // The template is a constant; if it were wrong, the plain bar would do.
    if let Ok(style) =
        ProgressStyle::with_template("sweeping [{bar:40}] {percent:>3} % {pos}/{len}, {eta} left")
    {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_position(done as u64);
    bar.reset_eta();
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
