//! Arguments that all programs of studies have: they complete a file of results, or join parts.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueHint;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::pieces::{Shard, Study, work};
use crate::results::{Log, merge};
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::interrupt::Interrupt;
use punctual_terminal::output;

/// Which part of a study is done, and how.
#[derive(Debug, clap::Args)]
pub struct Part {
    /// Do part I of N, from 1/N to N/N
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub shard: Shard,
    /// Threads; all cores when left out
    #[arg(long)]
    pub threads: Option<usize>,
}

/// Forms of the results.
#[derive(Debug, clap::Args)]
pub struct Shown {
    /// Draw the results; by ending: .html a page, else SVG
    #[arg(long, value_name = "OUT")]
    pub plot: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
    /// Print no progress and no table
    #[arg(long, short)]
    pub quiet: bool,
}

/// Parts that are joined.
#[derive(Debug, clap::Args)]
pub struct MergeArgs {
    /// The results of all shards, in any order
    #[arg(required = true, value_name = "RESULTS", value_hint = ValueHint::FilePath)]
    parts: Vec<PathBuf>,
    /// Write the whole here instead of to standard output
    #[arg(long, value_name = "OUT")]
    out: Option<PathBuf>,
    /// Forms of the whole.
    #[command(flatten)]
    pub shown: Shown,
}

/// Completes the file of results `out` of a part, and has `show` show them, with whether all of the
/// part is there.
///
/// # Errors
/// A file that holds something else, and what the study cannot answer.
pub fn run<S: Study>(
    study: S,
    out: &Path,
    part: &Part,
    quiet: bool,
    show: impl FnOnce(S, Vec<S::Line>, bool) -> Result<(), Failure>,
) -> Ended {
    let interrupt = Interrupt::listen()?;
    let units = part.shard.units(&study);
    let mut log = Log::<S>::open(out, &study, part.shard, &units)?;
    let (done, total) = (log.lines().len(), units.len());
    if done > 0 && !quiet {
        output::remark(format!(
            "{}: {done} of {total} lines are there",
            out.display()
        ));
    }
    let bar = bar(total, done, quiet);
    let threads = part
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    work(&study, &units[done..], threads.max(1), &interrupt, |line| {
        bar.inc(1);
        log.append(line)
    })?;
    bar.finish_and_clear();
    let complete = log.lines().len() == total;
    show(study, log.into_lines(), complete)?;
    if complete {
        return Ok(Ending::Good);
    }
    output::remark("stopped by request; the same command goes on where the file ends");
    Ok(Ending::Stopped)
}

/// Joins parts, and has `show` show the whole: only its drawing where the whole is printed.
///
/// # Errors
/// The refusals of [`merge`].
pub fn join<S: Study>(
    args: &MergeArgs,
    show: impl FnOnce(S, Vec<S::Line>, &Shown) -> Result<(), Failure>,
) -> Ended {
    let (study, lines, text) = merge::<S>(&args.parts)?;
    match &args.out {
        Some(path) => {
            let same =
                |part: &&PathBuf| punctual_terminal::input::refuse_overwriting(path, part).is_err();
            if let Some(part) = args.parts.iter().find(same) {
                let lost = format!("{} would be overwritten, and it is a part", part.display());
                return Err(Failure::input(lost).with_help("name another file"));
            }
            output::PromisedFile::open(path)?.fill(|out| out.write_all(text.as_bytes()))?;
            show(study, lines, &args.shown)?;
        }
        None => {
            output::print(text.trim_end())?;
            let only_drawn = Shown {
                plot: args.shown.plot.clone(),
                json: false,
                quiet: true,
            };
            show(study, lines, &only_drawn)?;
        }
    }
    Ok(Ending::Good)
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
        ProgressStyle::with_template("working [{bar:40}] {percent:>3} % {pos}/{len}, {eta} left")
    {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_position(done as u64);
    bar.reset_eta();
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
